"""Rounds of compaction: how one becomes the base of a partition, and which there were.

A round is in the way of another compactor and of a tidy, never of a writer: it reads nothing that a
writer changes. What was committed after the position that it goes up to is simply not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.changes.objects import (
    BASES,
    CHANGES,
    COLUMNS,
    LEVEL,
    THROUGH,
    partition_at,
    stream_of,
)
from mooring.errors import ConcurrentModificationError, TableNotFoundError
from mooring.metastore import Delta, Manifest, Partition, Stream, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.catalog import Catalog
    from mooring.changes.compaction_plan import PartitionPlan
    from mooring.changes.definition import Definition
    from mooring.changes.log import Base
    from mooring.changes.objects import ChangeObjects
    from mooring.changes.table import ChangeTable
    from mooring.changes.transforms import Values
    from mooring.metastore import DataFile, Locator
    from mooring.metastore.transaction import Transaction

__all__ = ["COMPACTION", "KIND", "Round", "commit_round", "rounds"]

KIND, COMPACTION = "kind", "compaction"


@dataclass(frozen=True)
class Round:
    """A round, as it is recorded.

    Attributes:
        values: The partition's values.
        round: Its number in the partition.
        kind: ``compaction``, or ``replacement`` where somebody replaced the rows.
        level: 1 gathered changes, 2 merged them.
        after: The position that it began after.
        through: The position up to which it has all changes.
        deltas: How many changes it took in.
        rewritten: How many buckets were rewritten.
        kept: How many were kept as they were.
        rows_in: How many rows were read.
        rows_out: How many were written.
        bytes_in: About how many bytes were read.
        bytes_out: How many were written.
        seconds: How long it took.
        by: By whom.
        at_ms: When.
    """

    values: Values
    round: int
    kind: str
    level: int
    after: int
    through: int
    deltas: int = 0
    rewritten: int = 0
    kept: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    seconds: float = 0.0
    by: str | None = None
    at_ms: int | None = None

    def properties(self, table: Definition) -> dict[str, str]:
        """Return what the round's delta keeps of it."""
        counts = {name: str(getattr(self, name)) for name in _COUNTS}
        ids = [table.last_id, *sorted(table.names_by_id)]
        return {
            KIND: self.kind,
            LEVEL: str(self.level),
            THROUGH: str(self.through),
            COLUMNS: ",".join(map(str, ids)),
            "seconds": f"{self.seconds:.3f}",
            **counts,
        }


_COUNTS = (
    "after",
    "deltas",
    "rewritten",
    "kept",
    "rows_in",
    "rows_out",
    "bytes_in",
    "bytes_out",
)


def rounds(table: ChangeTable) -> list[Round]:
    """Return the rounds of a table that are still known, the newest first.

    Raises:
        TableNotFoundError: there is no such table.
    """
    logs = table.at().partitions.values()
    found = [_parse(log.values, base) for log in logs for base in log.bases]
    return sorted(found, key=lambda one: (-one.through, -one.round, list(map(str, one.values))))


def _parse(values: Values, base: Base) -> Round:
    told = base.properties
    return Round(
        values,
        base.round,
        told.get(KIND, COMPACTION),
        base.level,
        through=base.through,
        seconds=float(told.get("seconds", "0")),
        by=base.by,
        at_ms=base.at_ms,
        **{name: int(told.get(name, "0")) for name in _COUNTS},
    )


def commit_round(
    catalog: Catalog,
    table: ChangeObjects,
    plan: PartitionPlan,
    *,
    files: Sequence[DataFile],
    properties: Mapping[str, str],
    token: str,
) -> Delta | None:
    """Make files the base of a partition; return the round's delta.

    None where somebody else was first: another compactor came as far, or a tidy went past it or
    deleted what it builds on.

    Args:
        catalog: The catalog.
        table: The table, as it was when the round was planned.
        plan: What was planned.
        files: What the base is made of.
        properties: What is kept of the round.
        token: The id that files were written under.

    Raises:
        TableNotFoundError: the table is gone.
        UnknownOutcomeError: the store never said whether it happened.
    """

    def work(txn: Transaction) -> Delta | None:
        locator = _require_table(txn, table)
        bases = stream_of(locator, BASES)
        if _is_beaten(txn, table, bases, plan):
            return None
        txn.depends_on(token)
        place, partition = partition_at(txn, bases, plan.id, plan.values)
        number = (partition.stream_position or 0) + 1
        delta = Delta(
            stream_position=number,
            manifest=Manifest(files=tuple(files), author=txn.author),
            previous_position=partition.stream_position,
            at_ms=txn.start_ms,
            properties=dict(properties),
        )
        txn.create(place.child(str(number)), delta)
        txn.update(place, replace(partition, stream_position=number))
        return delta

    try:
        return catalog.metastore.run(work, message=f"compact {table.id}")
    except ConcurrentModificationError:
        return None  # a vacuum gave the files up, or others were first all the time


def _require_table(txn: Transaction, table: ChangeObjects) -> Locator:
    """Find the table again, whatever it is called by now."""
    locator = txn.locate(table.ids[:2])
    found = txn.find(locator)
    same = found is not None and found.ids == table.ids[:2]
    if found is None or not same or cast("Table", found.value).dropped is not None:
        raise TableNotFoundError(f"{table.what} was dropped while it was compacted")
    return locator


def _is_beaten(txn: Transaction, table: ChangeObjects, bases: Locator, plan: PartitionPlan) -> bool:
    """Whether somebody made the round needless, or deleted what it is made of."""
    # Every tidy changes the stream: whichever comes meanwhile is in the way of the commit.
    stream = cast("Stream", txn.get(bases).value)
    if (stream.watermark or 0) > plan.through:
        return True
    place = bases.child(plan.id)
    found = txn.find(place)
    newest = (cast("Partition", found.value).stream_position or 0) if found else 0
    known = plan.base.round if plan.base else 0
    for number in range(known + 1, newest + 1):
        other = txn.find(place.child(str(number)))
        if other is not None and _through(other.value) >= plan.through:
            return True
    if plan.base is not None and txn.find(place.child(str(plan.base.round))) is None:
        return True
    return any(not _has_delta(txn, table, plan.id, one) for one in plan.referenced)


def _through(value: object) -> int:
    return int(cast("Delta", value).properties.get(THROUGH, "0"))


def _has_delta(txn: Transaction, table: ChangeObjects, partition: str, position: int) -> bool:
    """Whether a change is still there; looking at it as a reader does would meet every writer."""
    ids = (*table.ids, CHANGES[0], partition, str(position))
    return txn.timeline.find(ids, txn.seq) is not None
