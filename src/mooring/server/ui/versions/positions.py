"""The positions of a change table, and the rounds of its compaction, as a page shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.errors import MooringError
from mooring.server.ui.versions.operations import mark_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.changes.positions import Position
    from mooring.changes.rounds import Round
    from mooring.server.ui.versions.operations import Mark
    from mooring.server.ui.visit import Visit

__all__ = ["PositionRow", "Positions", "find_positions"]


class PositionRow(msgspec.Struct, frozen=True, kw_only=True):
    """What happened at a position, or up to it.

    Attributes:
        number: The position; of a round, the one that it goes up to.
        operation: What was done.
        word: The same for people.
        rows: How many rows were written.
        size_bytes: What they take.
        at_ms: When.
        by: By whom.
        message: What for.
    """

    number: int
    operation: str
    word: str
    rows: int
    size_bytes: int
    at_ms: int | None
    by: str | None
    message: str | None = None

    @property
    def mark(self) -> Mark:
        """How it is drawn."""
        return mark_of(self.operation)


class Positions(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a change table, the newest first.

    Attributes:
        total: How many positions are known.
        changes: The newest of them.
        rounds: The newest rounds of compaction.
    """

    total: int
    changes: list[PositionRow]
    rounds: list[PositionRow]


def find_positions(visit: Visit, limit: int) -> Positions | None:
    """Return the newest positions of a change table; None for a table that is none."""
    from mooring.changes import ChangeTable
    from mooring.changes.positions import positions_of

    try:
        table = ChangeTable(visit.catalog, visit.table)
        moment, rounds = table.at(), table.rounds()
    except MooringError:  # it is one of Iceberg's, or went meanwhile: the caller knows why
        return None
    found = positions_of(moment)
    return Positions(
        total=len(found),
        changes=[_change(one) for one in found[:limit]],
        rounds=_rounds(rounds)[:limit],
    )


def _change(one: Position) -> PositionRow:
    return PositionRow(
        number=one.number,
        operation=one.type,
        word=mark_of(one.type).word,
        rows=one.rows,
        size_bytes=one.size_bytes,
        at_ms=one.at_ms,
        by=one.by,
        message=one.message,
    )


def _rounds(rounds: Sequence[Round]) -> list[PositionRow]:
    """Take the rounds of all partitions up to a position as one; replacements are changes."""
    own: dict[int, list[Round]] = {}
    for one in rounds:
        if one.kind == "compaction":
            own.setdefault(one.through, []).append(one)
    return [
        PositionRow(
            number=through,
            operation="compaction",
            word=mark_of("compaction").word,
            rows=sum(one.rows_out for one in parts),
            size_bytes=sum(one.bytes_out for one in parts),
            at_ms=max((one.at_ms for one in parts if one.at_ms is not None), default=None),
            by=parts[0].by,
        )
        for through, parts in own.items()
    ]
