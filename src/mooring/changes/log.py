"""The changes of a table as this process knows them: which files make up a bucket at a position.

A delta never changes. So what is known stays known, and what was committed since is added: a plan
costs what is new and what it reads, however many deltas there are.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from mooring.changes.objects import BASES, CHANGES, COLUMNS, LEVEL, THROUGH
from mooring.metastore import DataFile, Delta, DeltaType, Kind, Partition, Segment, Stream
from mooring.metastore.layout import Operation
from mooring.metastore.model import decode_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mooring.changes.definition import Definition
    from mooring.changes.transforms import Values
    from mooring.metastore.chain import Snapshot
    from mooring.metastore.entry import Change
    from mooring.metastore.metastore import Metastore
    from mooring.metastore.timeline import Ids

# From where on it is cheaper to read the whole state than what was committed since.
_MOST = 512

__all__ = ["Base", "ChangeLog", "LoggedDelta", "PartitionLog", "Piece", "open_log"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a bucket in a file.

    Attributes:
        position: Of the delta that brought them.
        type: What they do.
        file: The file.
        segment: Where they are in it.
    """

    position: int
    type: DeltaType
    file: DataFile
    segment: Segment


@dataclass(frozen=True, slots=True)
class LoggedDelta:
    """A delta of the changes.

    Attributes:
        position: Its position.
        type: What it does.
        files: Its files.
        at_ms: When it was committed.
        by: By whom.
        message: What for.
    """

    position: int
    type: DeltaType
    files: tuple[DataFile, ...]
    at_ms: int | None = None
    by: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """A round of compaction: what all changes up to a position come to.

    Attributes:
        through: The position.
        round: Its number.
        level: How the rows lie in it.
        files: Its files.
        properties: What else is known of the round.
        at_ms: When it was committed.
        by: By whom.
    """

    through: int
    round: int
    level: int
    files: tuple[DataFile, ...]
    properties: dict[str, str] = field(default_factory=dict)
    at_ms: int | None = None
    by: str | None = None

    def pieces(self) -> dict[int, list[Piece]]:
        """Return its rows by buckets, in order: what is merged, then changes by position."""
        found: dict[int, list[Piece]] = defaultdict(list)
        for file in self.files:
            for segment in file.segments:
                type_ = segment.type or DeltaType.APPEND
                found[segment.bucket].append(Piece(segment.position, type_, file, segment))
        for pieces in found.values():
            pieces.sort(key=lambda one: one.position)
        return found

    @property
    def has_every_column(self) -> bool:
        """Whether it has all columns that the table ever had up to it."""
        told = self.properties.get(COLUMNS)
        if told is None:
            return True
        last, *known = map(int, told.split(","))
        return len(known) == last

    def serves(self, table: Definition) -> bool:
        """Whether it has the columns of a table, which may be as it was: a round writes no others.

        Columns that came later are in no file of it, and have their defaults.
        """
        told = self.properties.get(COLUMNS)
        if told is None:
            return True
        last, *known = map(int, told.split(","))
        return all(one > last or one in known for one in table.names_by_id)


class PartitionLog:
    """The changes of one partition."""

    def __init__(self, partition_id: str) -> None:
        """Begin with nothing."""
        self.id = partition_id
        self.values: Values = ()
        self.deltas: list[LoggedDelta] = []
        self.bases: list[Base] = []
        self._positions: list[int] = []
        self._pieces: dict[int, tuple[list[int], list[Piece]]] = {}
        self._base_pieces: dict[int, dict[int, list[Piece]]] = {}

    def add_delta(self, delta: LoggedDelta) -> None:
        """Take in a delta, whose position is the greatest."""
        self.deltas.append(delta)
        self._positions.append(delta.position)
        for file in delta.files:
            for segment in file.segments or (Segment(0, 0, file.rows or 0),):
                positions, pieces = self._pieces.setdefault(segment.bucket, ([], []))
                positions.append(delta.position)
                pieces.append(Piece(delta.position, segment.type or delta.type, file, segment))

    def add_base(self, base: Base) -> None:
        """Take in a base."""
        # Another list: one that is being sorted is empty for whoever reads it meanwhile.
        self.bases = sorted([*self.bases, base], key=lambda one: (one.through, one.round))

    def base_at(self, position: int, table: Definition | None = None) -> Base | None:
        """Return the base to begin with for a position; None where there is none.

        Args:
            position: The position.
            table: What the table was, where it is read as it was before columns were dropped.
        """
        bases = self.bases
        place = bisect_right(bases, position, key=lambda one: one.through)
        while table is not None and place and not bases[place - 1].serves(table):
            place -= 1
        return bases[place - 1] if place else None

    def deltas_between(self, after: int, until: int) -> Sequence[LoggedDelta]:
        """Return the deltas after a position, up to another."""
        first = bisect_right(self._positions, after)
        return self.deltas[first : bisect_right(self._positions, until)]

    def layers(
        self, position: int, table: Definition | None = None
    ) -> dict[int, tuple[list[Piece], list[Piece]]]:
        """Return, by buckets, the pieces of the base and those of the changes after it."""
        base = self.base_at(position, table)
        after = base.through if base else 0
        known = self._pieces_of(base) if base else {}
        found: dict[int, tuple[list[Piece], list[Piece]]] = {
            bucket: (pieces, []) for bucket, pieces in known.items()
        }
        for bucket, (positions, pieces) in list(self._pieces.items()):
            first, last = bisect_right(positions, after), bisect_right(positions, position)
            if first < last:
                found[bucket] = (known.get(bucket, []), pieces[first:last])
        return found

    def _pieces_of(self, base: Base) -> dict[int, list[Piece]]:
        if base.round not in self._base_pieces:
            self._base_pieces[base.round] = base.pieces()
        return self._base_pieces[base.round]


class ChangeLog:
    """The changes of a table, brought up to date whenever somebody asks."""

    def __init__(self, metastore: Metastore, table: Ids) -> None:
        """Know nothing yet.

        Args:
            metastore: The objects.
            table: The ids of the table's version.
        """
        self._metastore = metastore
        self._table = table
        self._seq = -1
        self._reading = threading.Lock()
        self.partitions: dict[str, PartitionLog] = {}
        self._horizon = 0

    def refresh(self, state: Snapshot) -> dict[str, PartitionLog]:
        """Take in what was committed up to a state, and return the partitions by their ids.

        What came later is known, too, where somebody else asked for it: positions tell.
        """
        return self.look(state)[0]

    def look(self, state: Snapshot) -> tuple[dict[str, PartitionLog], int]:
        """Return the partitions, and the oldest position that can be read by them.

        That may be newer than the state's, where somebody else has seen a tidy since.
        """
        with self._reading:
            if self._seq < 0 or not self._follow(state):
                self._rebuild(state)
            # A copy: others add to it while it is gone through.
            return dict(self.partitions), self._horizon

    def _follow(self, state: Snapshot) -> bool:
        """Take in entries one by one; False where something was deleted."""
        if state.seq <= self._seq:
            return True
        if state.seq - self._seq > _MOST:
            return False
        fresh: list[Change] = []
        for entry in self._metastore.chain.between(self._seq, state.seq):
            for record in entry.records:
                fresh += [one for one in record.changes if one.ids[:3] == self._table]
        if any(one.operation is Operation.DELETE for one in fresh):
            return False
        self._seq = -1  # what is interrupted halfway is read anew
        self._take(fresh)
        self._seq = state.seq
        return True

    def _rebuild(self, state: Snapshot) -> None:
        self._seq, self.partitions = -1, {}
        timeline = state.timeline
        found: list[Change] = []
        for stream in (CHANGES[0], BASES[0]):
            for partition in timeline.children((*self._table, stream), state.seq):
                found.append(partition)
                found += timeline.children(partition.ids, state.seq)
        bases = timeline.find((*self._table, BASES[0]), state.seq)
        self._take([*found, bases] if bases is not None else found)
        self._seq = state.seq

    def _take(self, changes: Iterable[Change]) -> None:
        deltas: list[tuple[int, PartitionLog, LoggedDelta]] = []
        for change in changes:
            if change.kind is Kind.STREAM and change.ids[3] == BASES[0]:
                self._note_horizon(change)
            if change.kind is Kind.PARTITION and change.ids[3] != "runs":
                self._note_partition(change)
            if change.kind is not Kind.DELTA or change.body is None:
                continue
            delta = cast("Delta", decode_object(change.body, "/".join(change.ids)))
            log = self._log(change.ids[4])
            position = delta.stream_position or 0
            if change.ids[3] == CHANGES[0]:
                if change.operation is Operation.CREATE:
                    deltas.append((position, log, _logged(delta)))
            else:
                log.add_base(_base(delta))
        for _, log, logged in sorted(deltas, key=lambda one: one[0]):
            log.add_delta(logged)

    def _note_horizon(self, change: Change) -> None:
        value = cast("Stream", decode_object(change.body or b"", "/".join(change.ids)))
        self._horizon = value.watermark or 0

    def _note_partition(self, change: Change) -> None:
        value = cast("Partition", decode_object(change.body or b"", "/".join(change.ids)))
        self._log(change.ids[4]).values = tuple(value.values)

    def _log(self, partition_id: str) -> PartitionLog:
        return self.partitions.setdefault(partition_id, PartitionLog(partition_id))


def _logged(delta: Delta) -> LoggedDelta:
    return LoggedDelta(
        delta.stream_position or 0,
        delta.type,
        delta.manifest.files,
        delta.at_ms,
        delta.manifest.author,
        delta.properties.get("message"),
    )


def _base(delta: Delta) -> Base:
    told = dict(delta.properties)
    return Base(
        int(told.pop(THROUGH, "0")),
        delta.stream_position or 0,
        int(told.pop(LEVEL, "2")),
        delta.manifest.files,
        told,
        delta.at_ms,
        delta.manifest.author,
    )


_logs: WeakKeyDictionary[Metastore, dict[Ids, ChangeLog]] = WeakKeyDictionary()
_opening = threading.Lock()


def open_log(metastore: Metastore, table: Ids) -> ChangeLog:
    """Return the log of a table, one for all who have the same metastore open."""
    with _opening:
        known = _logs.setdefault(metastore, {})
        if table not in known:
            known[table] = ChangeLog(metastore, table)
        return known[table]
