"""The plan of a read: which rows of which files make up the table at a position."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.changes.log import open_log
from mooring.changes.objects import objects_then, require_objects
from mooring.errors import InvalidInputError
from mooring.metastore.chain import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.catalog import Catalog
    from mooring.changes.definition import Definition
    from mooring.changes.log import PartitionLog, Piece
    from mooring.changes.objects import ChangeObjects
    from mooring.changes.predicates import Predicate
    from mooring.changes.transforms import Values
    from mooring.identifiers import ObjectId

__all__ = ["BucketRead", "Moment", "ReadPlan", "divide", "find_moment", "plan_read"]


@dataclass(frozen=True)
class Moment:
    """A table at a position.

    Attributes:
        table: The table, with the columns that it had then.
        position: The position.
        partitions: Its changes by partitions.
    """

    table: ChangeObjects
    position: int
    partitions: dict[str, PartitionLog]


@dataclass(frozen=True)
class BucketRead:
    """A bucket of a partition, and what it is made of.

    Attributes:
        values: The partition's values.
        bucket: The bucket.
        base: Rows that are merged already.
        changes: Changes after them, in their order.
    """

    values: Values
    bucket: int
    base: tuple[Piece, ...]
    changes: tuple[Piece, ...]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All of it, the oldest first."""
        return (*self.base, *self.changes)

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return sum(piece.segment.rows for piece in self.pieces)


@dataclass(frozen=True)
class ReadPlan:
    """What is to be read.

    Attributes:
        moment: The table at its position.
        buckets: The buckets that can have rows.
        left_out: How many buckets cannot, by the statistics of their files.
    """

    moment: Moment
    buckets: tuple[BucketRead, ...]
    left_out: int = 0

    @property
    def definition(self) -> Definition:
        """What the table is."""
        return self.moment.table.definition


def find_moment(
    catalog: Catalog,
    name: ObjectId,
    *,
    position: int | None = None,
    txn_id: str | None = None,
    time_ms: int | None = None,
) -> Moment:
    """Find a table at a position, after a transaction, or at a time; now unless one is given.

    Raises:
        InvalidInputError: more than one is given, or the position cannot be read.
        TableNotFoundError: there is or was no such table.
        TransactionNotFoundError: no committed transaction has this id.
    """
    if sum(one is not None for one in (position, txn_id, time_ms)) > 1:
        raise InvalidInputError("a table is read at a position, a transaction or a time: name one")
    metastore = catalog.metastore
    view = metastore.begin()
    table = require_objects(view, name)
    if txn_id is not None or time_ms is not None:
        seq = metastore.state_at(txn_id=txn_id, time_ms=time_ms)
        then = objects_then(metastore.begin(at=seq), table)
        table, position = _as_then(table, then), then.position
    wanted = table.position if position is None else position
    if not 0 <= wanted <= table.position:
        msg = f"{table.what} has no position {wanted}: the newest is {table.position}"
        raise InvalidInputError(msg)
    log = open_log(metastore, table.ids)
    partitions, horizon = log.look(Snapshot(view.timeline, view.seq))
    # The changes are those that the log has: whoever follows them must know where they begin.
    table = replace(table, horizon=max(horizon, table.horizon))
    if wanted >= table.horizon:
        return Moment(table, wanted, partitions)
    if position is None:
        return find_moment(catalog, name)  # newer changes came, and a tidy that kept only these
    msg = (
        f"{table.what} cannot be read at position {wanted} any more: what was before"
        f" {table.horizon} is tidied away"
    )
    raise InvalidInputError(msg)


def _as_then(now: ChangeObjects, then: ChangeObjects) -> ChangeObjects:
    """Return the table with the columns of then, and all that is known of it now."""
    return replace(now, definition=then.definition)


def plan_read(moment: Moment, where: Predicate | None = None) -> ReadPlan:
    """Plan to read a table; what cannot match is left out by statistics."""
    buckets: list[BucketRead] = []
    left_out = 0
    definition = moment.table.definition
    for log in moment.partitions.values():
        _require_columns(moment, log)
        for bucket, (base, changes) in sorted(log.layers(moment.position, definition).items()):
            read = BucketRead(log.values, bucket, tuple(base), tuple(changes))
            if where is None:
                buckets.append(read)
                continue
            kept = where.prune(read, definition)
            if kept is None:
                left_out += 1
            else:
                buckets.append(kept)
    return ReadPlan(moment, tuple(buckets), left_out)


def _require_columns(moment: Moment, log: PartitionLog) -> None:
    """Refuse to read columns that were dropped, where only a later compaction is left.

    Raises:
        InvalidInputError: what had them is tidied away.
    """
    table = moment.table
    oldest = log.base_at(table.horizon) if table.horizon else None
    if oldest is None or oldest.serves(table.definition):
        return
    used = log.base_at(moment.position, table.definition)
    if used is None or used.through < oldest.through:
        msg = (
            f"{table.what} cannot be read with columns that were dropped since: what had them is"
            " tidied away; read it at its position instead"
        )
        raise InvalidInputError(msg)


def divide(buckets: Sequence[BucketRead], parts: int) -> list[list[BucketRead]]:
    """Divide buckets into parts of about as many rows, at most so many."""
    found: list[list[BucketRead]] = [[] for _ in range(max(1, min(parts, len(buckets))))]
    loads = [0] * len(found)
    for read in sorted(buckets, key=lambda one: one.rows, reverse=True):
        least = loads.index(min(loads))
        found[least].append(read)
        loads[least] += read.rows
    return [part for part in found if part]
