"""Removal: rows that a condition is true for go, and no others.

A search finds them at a position, part by part, and writes what is to be committed. The commit
looks whether a partition changed since then, which nobody can do unseen: every change takes a
position. Where one did, only that one is searched again, and of a table without keys only files
that are new in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace as with_fields

from mooring.changes.commits import Landed, WrittenChange, add_change, find_run, note_run
from mooring.changes.files import read_segments
from mooring.changes.log import open_log
from mooring.changes.merging import key_codes, with_all_columns
from mooring.changes.objects import BASES, CHANGES, require_objects
from mooring.changes.parts import Draft, PartitionFile, write_buckets
from mooring.changes.plan import BucketRead, Moment, divide, plan_read
from mooring.changes.predicates import parse_predicate
from mooring.changes.reading import merge_bucket
from mooring.changes.replacement import REPLACEMENT, add_replacement
from mooring.changes.rounds import KIND
from mooring.changes.writing import ChangeRun
from mooring.clock import RandomIds
from mooring.errors import ConcurrentModificationError
from mooring.jobs.runner import Threads
from mooring.metastore import DeltaType
from mooring.metastore.chain import Snapshot
from mooring.metastore.layout import data_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.changes.definition import Definition
    from mooring.changes.log import PartitionLog, Piece
    from mooring.changes.objects import ChangeObjects
    from mooring.changes.predicates import Predicate
    from mooring.changes.table import ChangeTable
    from mooring.changes.transforms import Values
    from mooring.jobs.runner import Runner
    from mooring.metastore import DataFile
    from mooring.metastore.transaction import Transaction
    from mooring.store import Store

__all__ = ["delete_where"]

_ATTEMPTS = 50
_ROW = "_change_row"
_Place = tuple[str, int]


def delete_where(
    table: ChangeTable,
    where: str | Predicate,
    *,
    runner: Runner | None = None,
    run: str | None = None,
    message: str | None = None,
) -> Landed:
    """Delete the rows that a condition is true for.

    Args:
        table: The table.
        where: The condition.
        runner: Who searches; threads of this process unless given.
        run: A name; a run that is repeated changes nothing.
        message: What it is for.

    Returns:
        Its position and how many rows went; where none did no position is taken.

    Raises:
        InvalidInputError: the condition cannot be read.
        ConcurrentModificationError: the rows that it is about change all the time.
        TableNotFoundError: there is no such table.
    """
    with ChangeRun(table.catalog, run=run) as work:
        done = work.find_done([table.id])
        if done is not None:
            return done[0]
        search = _Search(table, where, work, runner or Threads())
        moved: set[str] | None = None
        for _ in range(_ATTEMPTS):
            search.look(moved)
            if not search.rows and run is None:
                return Landed(table.id, search.position, 0, is_new=False)
            try:
                return search.commit(message or f"delete rows of {table.id}: {where}", message)
            except _Moved as exc:
                moved = exc.partitions
    msg = f"'{table.id}' changes all the time where rows are to be deleted: try again later"
    raise ConcurrentModificationError(msg)


class _Moved(Exception):  # noqa: N818  # an answer, not an error
    """Partitions changed after they were searched; None for the whole table."""

    def __init__(self, partitions: set[str] | None) -> None:
        super().__init__("partitions changed while they were searched")
        self.partitions = partitions


@dataclass(frozen=True)
class _Looked:
    """A partition as it was searched: what a compactor does to it since changes nothing here."""

    partition: str
    values: Values
    position: int
    definition: Definition
    reads: tuple[BucketRead, ...]
    round: int | None
    positions: tuple[int, ...]

    @classmethod
    def at(cls, moment: Moment, log: PartitionLog) -> _Looked:
        """Look at a partition."""
        position, definition = moment.position, moment.table.definition
        while True:
            base = log.base_at(position, definition)
            reads = plan_read(Moment(moment.table, position, {log.id: log})).buckets
            deltas = log.deltas_between(base.through if base else 0, position)
            if log.base_at(position, definition) is base:
                break
        positions = tuple(one.position for one in deltas)
        number = base.round if base else None
        return cls(log.id, log.values, position, definition, reads, number, positions)


@dataclass(frozen=True)
class _Task:
    """Buckets of one partition, or files of it, to be searched; it travels."""

    partition: str
    where: Predicate
    buckets: tuple[BucketRead, ...]
    deletes: Draft
    keeps: Draft


@dataclass(frozen=True)
class _Found:
    """What a worker found.

    Attributes:
        partition: Where.
        rows: How many rows go.
        deletes: Keys that are deleted.
        keeps: Rows of these keys that stay.
        searched: Of a table without keys: by path and offset, how many rows of a piece go, and the
            file of the others; None where nothing of it stays.
    """

    partition: str
    rows: int = 0
    deletes: tuple[PartitionFile, ...] = ()
    keeps: tuple[PartitionFile, ...] = ()
    searched: dict[_Place, tuple[int, DataFile | None]] = field(default_factory=dict)


class _Search:
    """The rows that are to go, as far as they were looked for."""

    def __init__(
        self, table: ChangeTable, where: str | Predicate, work: ChangeRun, runner: Runner
    ) -> None:
        self._table = table
        self._text = str(where)
        self._work = work
        self._runner = runner
        self._looked: dict[str, _Looked] = {}
        self._found: dict[str, list[_Found]] = {}
        # Files never change: what was searched once is known.
        self._searched: dict[_Place, tuple[int, DataFile | None]] = {}
        self._moment: Moment | None = None
        self._where: Predicate | None = None

    @property
    def position(self) -> int:
        return self._moment.position if self._moment else 0

    @property
    def rows(self) -> int:
        keyed = sum(one.rows for found in self._found.values() for one in found)
        return keyed + sum(map(self._rows_in, self._looked.values()))

    def _rows_in(self, looked: _Looked) -> int:
        """Count the rows of a partition without keys that go."""
        return sum(
            self._searched.get(_place(piece), (0, None))[0]
            for read in looked.reads
            for piece in read.pieces
        )

    # -- looking ---------------------------------------------------------------------------------

    def look(self, partitions: set[str] | None) -> None:
        """Search some partitions as they are now; all where none are given."""
        moment = self._table.at()
        definition = moment.table.definition
        if partitions is None:
            self._found, self._looked, self._searched = {}, {}, {}
            self._where = parse_predicate(self._text, definition)
        self._moment = moment
        wanted = moment.partitions.keys() if partitions is None else partitions
        logs = [moment.partitions[one] for one in list(wanted) if one in moment.partitions]
        for log in logs:
            self._looked[log.id] = _Looked.at(moment, log)
            self._found.pop(log.id, None)
        tasks = [task for log in logs for task in self._tasks(log.id, len(logs))]
        for found in self._runner.run(_search, tasks, label="searching"):
            self._searched |= found.searched
            if found.rows:
                self._found.setdefault(found.partition, []).append(found)

    def _tasks(self, partition: str, count: int) -> Iterator[_Task]:
        where, looked = self._where, self._looked[partition]
        if where is None:
            return
        deletes = self._work.draft(self._table.id, DeltaType.DELETE)
        keeps = self._work.draft(self._table.id, DeltaType.APPEND)
        pruned = [(read, where.prune(read, looked.definition)) for read in looked.reads]
        if looked.definition.is_keyed:
            # Whole buckets: a row of a key that goes may lie where no row matches.
            reads = [read for read, left in pruned if left is not None]
        else:
            parts = [part for _, left in pruned for part in _by_pieces(left)]
            reads = [one for one in parts if _place(one.changes[0]) not in self._searched]
        for part in divide(reads, max(1, 4 * self._runner.workers // count)):
            yield _Task(partition, where, tuple(part), deletes, keeps)

    # -- committing ------------------------------------------------------------------------------

    def commit(self, told: str, message: str | None) -> Landed:
        """Commit what was found.

        Raises:
            _Moved: partitions changed since.
        """
        return self._work.commit(
            message=told, also=lambda txn, landed: self._change(txn, landed, message)
        )[-1]

    def _change(self, txn: Transaction, landed: list[Landed], message: str | None) -> None:
        table = require_objects(txn, self._table.id)
        run = self._work.run
        known = find_run(txn, table.id, run) if run else None
        if known is not None:
            landed.append(known)
            return
        self._require_still(txn, table)
        position = self._delete(txn, table, message) or self._rewrite(txn, table, message)
        landed.append(Landed(table.id, position, self.rows, txn_id=txn.id))
        if run:
            note_run(txn, run, landed)

    def _delete(self, txn: Transaction, table: ChangeObjects, message: str | None) -> int:
        """Delete keys, and add again what stays of them."""
        if not table.definition.is_keyed:
            return 0
        every = [one for found in self._found.values() for one in found]
        deletes = tuple(file for one in every for file in one.deletes)
        keeps = tuple(file for one in every for file in one.keeps)
        known = table.definition
        changes = [WrittenChange(table.id, known, DeltaType.DELETE, deletes)]
        if keeps:
            changes.append(WrittenChange(table.id, known, DeltaType.APPEND, keeps))
        return [add_change(txn, change, message) for change in changes][-1].position

    def _rewrite(self, txn: Transaction, table: ChangeObjects, message: str | None) -> int:
        """Give partitions that lose rows a base of their other rows."""
        files: dict[Values, list[DataFile]] = {}
        for partition, looked in self._looked.items():
            if not self._rows_in(looked):
                continue
            if not _has_sources(txn, table, looked):
                raise _Moved({partition})
            files[looked.values] = _left(looked, self._searched)
        return add_replacement(txn, table, files, rows=self.rows, message=message).position

    # -- whether it still holds ------------------------------------------------------------------

    def _require_still(self, txn: Transaction, table: ChangeObjects) -> None:
        searched = self._moment.table.definition if self._moment else table.definition
        if not _is_same(searched, table.definition):
            raise _Moved(None)
        log = open_log(self._table.catalog.metastore, table.ids)
        partitions = log.refresh(Snapshot(txn.timeline, txn.seq))
        moved = {
            one.id
            for one in list(partitions.values())
            if _has_changed(one, self._since(one.id), table.position)
        }
        if not moved:
            return
        known = {one: self._looked.get(one) for one in moved}
        relevant = {
            one for one, at in known.items() if self._found.get(one) or (at and self._rows_in(at))
        }
        relevant |= {
            one for one in moved if plan_read(_moment(table, partitions[one]), self._where).buckets
        }
        if relevant:
            raise _Moved(relevant)

    def _since(self, partition: str) -> int:
        known = self._looked.get(partition)
        return known.position if known else 0


def _moment(table: ChangeObjects, log: PartitionLog) -> Moment:
    return Moment(table, table.position, {log.id: log})


def _has_sources(txn: Transaction, table: ChangeObjects, looked: _Looked) -> bool:
    """Whether all is there whose files are named again; a vacuum may delete others."""
    # Every tidy changes the stream, and is in the way of a commit that has read it.
    txn.get(table.bases)
    rounds = [] if looked.round is None else [(BASES[0], looked.round)]
    sources = [*rounds, *((CHANGES[0], position) for position in looked.positions)]
    return all(
        txn.timeline.find((*table.ids, stream, looked.partition, str(number)), txn.seq) is not None
        for stream, number in sources
    )


def _is_same(one: Definition, other: Definition) -> bool:
    return one == other and one.ids_by_name == other.ids_by_name


def _has_changed(log: PartitionLog, since: int, until: int) -> bool:
    """Whether rows changed between two positions; compaction changes none."""
    replaced = (
        base.properties.get(KIND) == REPLACEMENT and since < base.through <= until
        for base in log.bases
    )
    return bool(log.deltas_between(since, until)) or any(replaced)


def _by_pieces(read: BucketRead | None) -> list[BucketRead]:
    """Divide a bucket of rows that do not change each other."""
    if read is None:
        return []
    return [BucketRead(read.values, read.bucket, (), (piece,)) for piece in read.pieces]


def _left(looked: _Looked, searched: dict[_Place, tuple[int, DataFile | None]]) -> list[DataFile]:
    """Return the files that a partition without keys is made of, without the rows that went."""
    files: dict[str, DataFile] = {}
    for read in looked.reads:
        for piece in read.pieces:
            place = _place(piece)
            rows, made = searched.get(place, (0, None))
            if rows:
                if made is not None:
                    files[made.path] = made
                continue
            known = files.get(piece.file.path)
            segments = (*(known.segments if known else ()), piece.segment)
            files[piece.file.path] = with_fields(piece.file, segments=segments)
    return list(files.values())


def _place(piece: Piece) -> _Place:
    return piece.file.path, piece.segment.offset


# -- what workers do ---------------------------------------------------------------------------


def _search(task: _Task) -> _Found:
    store = task.keeps.catalog.open().metastore.store
    return (_search_keys if task.keeps.table.is_keyed else _search_rows)(task, store)


def _search_keys(task: _Task, store: Store) -> _Found:
    """Find the keys of rows that match; rows of them that do not match are kept."""
    table = task.keeps.table
    names = list(dict.fromkeys([*table.keys, *sorted(task.where.columns)]))
    kept: list[pa.RecordBatch] = []
    count = 0

    def keys() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for read in task.buckets:
            rows = merge_bucket(store, read.pieces, table, names).rows
            matching = _matching(rows, task.where, table)
            if not len(matching):
                continue
            count += len(matching)
            codes = key_codes(rows.select(list(table.keys)))
            first = np.unique(codes[matching], return_index=True)[1]
            yield from rows.select(list(table.keys)).take(pa.array(matching[first])).to_batches()
            others = np.isin(codes, codes[matching])
            others[matching] = False
            if others.any():
                whole = merge_bucket(store, read.pieces, table, table.schema.names).rows
                kept.extend(whole.take(pa.array(np.flatnonzero(others))).to_batches())

    name = RandomIds().new_id()
    deletes = task.deletes.write(keys(), f"d{name}").files
    keeps = task.keeps.write(kept, f"k{name}").files if kept else ()
    return _Found(task.partition, count, deletes, keeps)


def _search_rows(task: _Task, store: Store) -> _Found:
    """Write files anew that have rows which match."""
    table = task.keeps.table
    searched: dict[_Place, tuple[int, DataFile | None]] = {}
    for piece in (piece for read in task.buckets for piece in read.pieces):
        (own,) = read_segments(
            store, piece.file, [piece.segment], table=table, names=table.schema.names
        )
        rows = with_all_columns(own, table.schema)
        matching = _matching(rows, task.where, table)
        searched[_place(piece)] = (0, None)
        if not len(matching):
            continue
        stays = np.ones(rows.num_rows, bool)
        stays[matching] = False
        made = _write(store, task.keeps, rows.filter(pa.array(stays)))
        searched[_place(piece)] = (len(matching), made)
    return _Found(task.partition, searched=searched)


def _write(store: Store, draft: Draft, rows: pa.Table) -> DataFile | None:
    if not rows.num_rows:
        return None
    path = f"{data_dir(draft.token)}/r{RandomIds().new_id()}.parquet"
    return write_buckets(store, path, rows, hashes=np.zeros(0, np.uint64), table=draft.table)


def _matching(rows: pa.Table, where: Predicate, table: Definition) -> np.ndarray[Any, Any]:
    """Return the numbers of the rows that a condition is true for."""
    numbered = rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    found: np.ndarray[Any, Any] = numbered.filter(where.expression(table.schema))[_ROW].to_numpy()
    return found
