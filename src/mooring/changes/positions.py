"""The positions of a change table: what changed at each, by whom and when."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.changes.replacement import REPLACEMENT
from mooring.changes.rounds import KIND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.changes.log import Base, LoggedDelta
    from mooring.changes.plan import Moment

__all__ = ["Position", "positions_of"]


@dataclass(frozen=True, slots=True)
class Position:
    """What changed at a position, in all partitions.

    Attributes:
        number: The position.
        type: What it did: a type of delta, or a replacement.
        rows: How many rows it brought.
        files: In how many files.
        size_bytes: What they take.
        partitions: In how many partitions.
        by: By whom.
        at_ms: When.
        message: What for.
    """

    number: int
    type: str
    rows: int
    files: int
    size_bytes: int
    partitions: int
    by: str | None
    at_ms: int | None
    message: str | None


def positions_of(moment: Moment) -> list[Position]:
    """Gather what partitions know of the positions, the newest first."""
    deltas: dict[int, list[LoggedDelta]] = defaultdict(list)
    replaced: dict[int, list[Base]] = defaultdict(list)
    for log in moment.partitions.values():
        for delta in log.deltas_between(0, moment.position):
            deltas[delta.position].append(delta)
        for base in log.bases:
            if base.properties.get(KIND) == REPLACEMENT and base.through <= moment.position:
                replaced[base.through].append(base)
    found = [
        _position(number, own[0].type.value, own, own[0].message) for number, own in deltas.items()
    ]
    found += [
        _position(number, REPLACEMENT, own, own[0].properties.get("message"))
        for number, own in replaced.items()
    ]
    return sorted(found, key=lambda one: -one.number)


def _position(
    number: int, type_: str, own: Sequence[LoggedDelta | Base], message: str | None
) -> Position:
    files = [file for one in own for file in one.files]
    return Position(
        number=number,
        type=type_,
        rows=sum(file.rows or 0 for file in files),
        files=len(files),
        size_bytes=sum(file.size_bytes or 0 for file in files),
        partitions=len(own),
        by=own[0].by,
        at_ms=own[0].at_ms,
        message=message,
    )
