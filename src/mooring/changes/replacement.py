"""Replacement: partitions get other rows at once, and what they had is history.

It takes a position as any change does, and gives each partition a base that holds all changes up
to there. Readers of older positions go on reading what was before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace as with_fields

from mooring.changes.commits import Landed, WrittenChange, find_run, note_run, require_same
from mooring.changes.commits import take_position as take
from mooring.changes.objects import LEVEL, THROUGH, partition_at, require_objects
from mooring.changes.parts import check_columns
from mooring.changes.rounds import KIND
from mooring.changes.transforms import partition_id, show_values
from mooring.changes.writing import ChangeRun
from mooring.errors import InvalidInputError
from mooring.metastore import Delta as MetaDelta
from mooring.metastore import DeltaType, Manifest, Partition
from mooring.tables.rows import to_reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mooring.changes.objects import ChangeObjects
    from mooring.changes.table import ChangeTable
    from mooring.changes.transforms import Values
    from mooring.metastore import DataFile
    from mooring.metastore.transaction import Transaction

__all__ = ["REPLACEMENT", "add_replacement", "replace", "replace_files", "truncate"]

REPLACEMENT = "replacement"
_MERGED = "2"


def truncate(
    table: ChangeTable,
    partitions: Iterable[Values] | None = None,
    *,
    run: str | None = None,
    message: str | None = None,
) -> Landed:
    """Remove all rows of a table, or of some partitions; older positions keep them.

    Args:
        table: The table.
        partitions: The values of partitions; all unless given.
        run: A name; a run that is repeated changes nothing.
        message: What it is for.

    Raises:
        InvalidInputError: there is no such partition.
        TableNotFoundError: there is no such table.
    """
    chosen = None if partitions is None else [tuple(one) for one in partitions]
    told = message or f"truncate {table.id}"
    with ChangeRun(table.catalog, run=run) as work:

        def change(txn: Transaction, landed: list[Landed]) -> None:
            found = require_objects(txn, table.id)
            known = find_run(txn, table.id, run) if run else None
            if known is not None:
                landed.append(known)
                return
            wanted = _known_partitions(txn, found)
            if chosen is not None:
                _require_known(chosen, wanted, found.what)
                wanted = chosen
            landed.append(add_replacement(txn, found, dict.fromkeys(wanted, ()), message=message))
            if run:
                note_run(txn, run, landed)

        return work.commit(message=told, also=change)[0]


def replace(
    table: ChangeTable,
    rows: object,
    *,
    partitions: Iterable[Values] | None = None,
    only_touched: bool = False,
    run: str | None = None,
    message: str | None = None,
) -> Landed:
    """Put rows in the place of all that a table has, or some of its partitions.

    Args:
        table: The table.
        rows: The rows; where the table has keys each comes once.
        partitions: The values of partitions that are replaced; all unless given.
        only_touched: Replace those partitions that the rows fall into, and no other.
        run: A name; a run that is repeated changes nothing.
        message: What it is for.

    Raises:
        InvalidInputError: rows fall into a partition that is not to be replaced.
        ConflictError: a key comes twice.
        TableSchemaValidationError: rows do not fit.
    """
    if partitions is not None and only_touched:
        raise InvalidInputError(
            "name the partitions, or replace those that rows fall into: not both"
        )
    chosen = None if partitions is None else [tuple(one) for one in partitions]
    with ChangeRun(table.catalog, run=run) as work:
        done = work.find_done([table.id])
        if done is not None:
            return done[0]
        is_keyed = table.definition.is_keyed
        draft = work.draft(table.id, DeltaType.UPSERT if is_keyed else DeltaType.APPEND)
        reader = to_reader(rows, draft.table.schema if isinstance(rows, list) else None)
        check_columns(reader.schema, draft.table, DeltaType.APPEND, draft.what)
        # The rows are what the table is then: nothing is left to a merge order.
        written = draft.strict().write(reader, "0")
        change = WrittenChange(table.id, draft.table, DeltaType.APPEND, written.files)
        if only_touched:
            chosen = list(dict.fromkeys(one.values for one in written.files))
        return replace_files(work, change, chosen, message=message)


def replace_files(
    work: ChangeRun,
    change: WrittenChange,
    partitions: Sequence[Values] | None = None,
    *,
    message: str | None = None,
) -> Landed:
    """Put files that workers wrote in the place of all that a table has, or some partitions.

    Args:
        work: The run that they were written in.
        change: What was written.
        partitions: The values of partitions that are replaced; all unless given.
        message: What it is for.

    Raises:
        InvalidInputError: rows fall into a partition that is not to be replaced.
        ConcurrentModificationError: the table has other columns now.
    """
    files: dict[Values, list[DataFile]] = {}
    for one in change.files:
        files.setdefault(one.values, []).append(one.file)

    def put(txn: Transaction, landed: list[Landed]) -> None:
        found = require_objects(txn, change.table)
        known = find_run(txn, change.table, work.run) if work.run else None
        if known is not None:
            landed.append(known)
            return
        require_same(found, change)
        wanted = _known_partitions(txn, found) if partitions is None else partitions
        outside = [one for one in files if partitions is not None and one not in partitions]
        if outside:
            msg = f"rows fall into partition {show_values(outside[0])}, which is not to be replaced"
            raise InvalidInputError(f"{msg}: name it, too, or leave them out")
        every = {**dict.fromkeys(wanted, ()), **files}
        landed.append(add_replacement(txn, found, every, rows=change.rows, message=message))
        if work.run:
            note_run(txn, work.run, landed)

    told = message or f"replace rows of {change.table} by {change.rows}"
    return work.commit(message=told, also=put)[0]


def add_replacement(
    txn: Transaction,
    table: ChangeObjects,
    files: Mapping[Values, Sequence[DataFile]],
    *,
    rows: int = 0,
    message: str | None = None,
) -> Landed:
    """Give partitions other files, within a transaction; without any files, no rows.

    Args:
        txn: The transaction.
        table: The table.
        files: The files of each partition.
        rows: How many rows it was about, to be told.
        message: What it is for.
    """
    position = take(txn, table)
    for values, own in files.items():
        _add_base(txn, table, values, position, own, message)
    return Landed(table.id, position, rows, txn_id=txn.id)


def _add_base(  # noqa: PLR0917  # what a base is made of
    txn: Transaction,
    table: ChangeObjects,
    values: Values,
    position: int,
    files: Sequence[DataFile],
    message: str | None,
) -> None:
    place, partition = partition_at(txn, table.bases, partition_id(values), values)
    number = (partition.stream_position or 0) + 1
    delta = MetaDelta(
        stream_position=number,
        manifest=Manifest(files=tuple(files), author=txn.author),
        previous_position=partition.stream_position,
        at_ms=txn.start_ms,
        properties={
            KIND: REPLACEMENT,
            LEVEL: _MERGED,
            THROUGH: str(position),
            **({"message": message} if message else {}),
        },
    )
    txn.create(place.child(str(number)), delta)
    txn.update(place, with_fields(partition, stream_position=number))


def _known_partitions(txn: Transaction, table: ChangeObjects) -> list[Values]:
    """Return the values of all partitions; one that comes meanwhile is in the way of the commit."""
    found = {
        tuple(cast("Partition", child.value).values): None
        for stream in (table.changes, table.bases)
        for child in txn.children(stream)
    }
    return list(found)


def _require_known(chosen: Sequence[Values], known: Sequence[Values], what: str) -> None:
    unknown = [one for one in chosen if one not in known]
    if unknown:
        shown = ", ".join(sorted(map(show_values, known))[:10]) or "none"
        msg = f"{show_values(unknown[0])} is not among the partitions of {what}: they are {shown}"
        raise InvalidInputError(msg)
