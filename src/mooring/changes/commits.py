"""The commit of changes: every partition and every table of a run, in one transaction.

Whoever comes second gets the next positions: nothing of what was written depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.changes.objects import partition_at, require_objects, run_locator
from mooring.changes.transforms import partition_id
from mooring.errors import ConcurrentModificationError, ConflictError
from mooring.identifiers import quote
from mooring.metastore import CommitState, Delta, DeltaType, Manifest, Partition, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.catalog import Catalog
    from mooring.changes.definition import Definition
    from mooring.changes.objects import ChangeObjects
    from mooring.changes.parts import PartitionFile
    from mooring.changes.transforms import Values
    from mooring.identifiers import ObjectId
    from mooring.metastore import DataFile
    from mooring.metastore.transaction import Transaction

__all__ = [
    "Landed",
    "WrittenChange",
    "add_change",
    "commit_changes",
    "find_done",
    "find_run",
    "note_run",
    "require_same",
    "take_position",
]


# What files depend on, beside the types of their columns.
_FIXED = ("identity", "keys", "order", "partitions", "buckets")


@dataclass(frozen=True)
class WrittenChange:
    """What was written for a table.

    Attributes:
        table: The table.
        definition: What it was when it was written.
        type: What the rows do.
        files: The files.
    """

    table: ObjectId
    definition: Definition
    type: DeltaType
    files: tuple[PartitionFile, ...]

    @property
    def rows(self) -> int:
        """How many rows."""
        return sum(one.file.rows or 0 for one in self.files)


@dataclass(frozen=True)
class Landed:
    """A change in its table.

    Attributes:
        table: The table.
        position: The position that it got, or has had since an earlier run of the same name.
        rows: How many rows.
        is_new: Whether it happened now.
        txn_id: The transaction that did it, where it happened now.
    """

    table: ObjectId
    position: int
    rows: int
    is_new: bool = True
    txn_id: str | None = None


def commit_changes(
    catalog: Catalog,
    token: str,
    changes: Sequence[WrittenChange],
    *,
    run: str | None = None,
    message: str | None = None,
    also: Callable[[Transaction, list[Landed]], None] | None = None,
) -> list[Landed]:
    """Commit what was written, all of it or nothing.

    Args:
        catalog: The catalog.
        token: The id that the files were written under.
        changes: What was written.
        run: A name: a run that is in a table already is not committed again.
        message: What it is for.
        also: Changes more in the same transaction.

    Raises:
        ConcurrentModificationError: a table has other columns than when it was written to, or a
            vacuum has given the files up.
        ConflictError: a run of this name has changed some of the tables, and not the others.
        TableNotFoundError: a table is gone.
    """

    def work(txn: Transaction) -> list[Landed]:
        done = find_done(txn, [change.table for change in changes], run) if run else None
        if done is not None:
            return done
        txn.depends_on(token)
        landed = [add_change(txn, change, message) for change in changes]
        if run:
            note_run(txn, run, landed)
        if also is not None:
            also(txn, landed)
        return landed

    told = message or "; ".join(
        f"{one.type.value} {one.rows} rows to {one.table}" for one in changes
    )
    return catalog.metastore.run(work, message=told)


def add_change(txn: Transaction, change: WrittenChange, message: str | None = None) -> Landed:
    """Give a change the next position of its table, within a transaction.

    Raises:
        ConcurrentModificationError: the table has other columns than when it was written to.
    """
    table = require_objects(txn, change.table)
    require_same(table, change)
    position = take_position(txn, table)
    by_partition: dict[Values, list[DataFile]] = {}
    for one in change.files:
        by_partition.setdefault(one.values, []).append(one.file)
    for values, files in by_partition.items():
        add_delta(txn, table, values, position, change.type, files, message)
    return Landed(change.table, position, change.rows, txn_id=txn.id)


def take_position(txn: Transaction, table: ChangeObjects) -> int:
    """Take the next position of a table; of two who take one the second begins anew."""
    locator = table.changes
    stream = cast("Stream", txn.get(locator).value)
    position = (stream.watermark or 0) + 1
    txn.update(locator, replace(stream, watermark=position))
    return position


def add_delta(  # noqa: PLR0917  # what a delta is made of
    txn: Transaction,
    table: ChangeObjects,
    values: Values,
    position: int,
    type_: DeltaType,
    files: Sequence[DataFile],
    message: str | None = None,
) -> None:
    """Add a delta to a partition."""
    locator, partition = partition_at(txn, table.changes, partition_id(values), values)
    delta = Delta(
        stream_position=position,
        type=type_,
        manifest=Manifest(files=tuple(files), author=txn.author),
        previous_position=partition.stream_position,
        at_ms=txn.start_ms,
        properties={"message": message} if message else {},
    )
    txn.create(locator.child(str(position)), delta)
    txn.update(locator, replace(partition, stream_position=position))


def find_run(txn: Transaction, table: ObjectId, run: str) -> Landed | None:
    """Find what a named run did to a table; None where it did nothing yet."""
    found = txn.find(run_locator(require_objects(txn, table).locator, run))
    if found is None:
        return None
    told = cast("Partition", found.value).properties
    return Landed(table, int(told["position"]), int(told["rows"]), is_new=False)


def find_done(txn: Transaction, tables: Sequence[ObjectId], run: str) -> list[Landed] | None:
    """Find what a named run did to tables; None where it did nothing yet.

    Raises:
        ConflictError: it did something to some of them: it was another one, of the same name.
    """
    found = {table: find_run(txn, table, run) for table in tables}
    done = [found[table] for table in tables]
    if all(one is None for one in done):
        return None
    if None in done:
        own = quote(str(next(table for table, one in found.items() if one is not None)))
        other = quote(str(next(table for table, one in found.items() if one is None)))
        msg = f"run {quote(run)} has changed table {own} before, and not table {other}"
        raise ConflictError(f"{msg}: give this run another name")
    return [one for one in done if one is not None]


def note_run(txn: Transaction, run: str, landed: Sequence[Landed]) -> None:
    """Note a run in every table that it changed: whoever repeats it finds it there."""
    last = {one.table: one for one in landed}
    for table, one in last.items():
        locator = run_locator(require_objects(txn, table).locator, run)
        rows = sum(other.rows for other in landed if other.table == table)
        txn.create(
            locator,
            Partition(
                partition_id=locator.parts[0],
                state=CommitState.COMMITTED,
                values=(run,),
                properties={
                    "run": run,
                    "position": str(one.position),
                    "rows": str(rows),
                    "at_ms": str(txn.start_ms),
                },
            ),
        )


def require_same(table: ChangeObjects, change: WrittenChange) -> None:
    """Refuse files of another table, or for other keys, partitions or types of columns.

    Raises:
        ConcurrentModificationError: they were.
    """
    now, then = table.definition, change.definition
    same = all(getattr(now, name) == getattr(then, name) for name in _FIXED)
    kinds = {number: now.schema.field(name).type for number, name in now.names_by_id.items()}
    written = {int(number) for one in change.files for number in one.file.nulls}
    if not same or any(kinds.get(one) != _kind(then, one) for one in written):
        msg = f"{table.what} was changed meanwhile: write the rows again"
        raise ConcurrentModificationError(msg)


def _kind(table: Definition, number: int) -> object:
    return table.schema.field(table.names_by_id[number]).type
