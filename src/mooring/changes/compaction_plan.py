"""The plan of a compaction: for every partition which buckets are rewritten and what is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.changes.compaction_policy import GATHER, MERGE, CompactionPolicy
from mooring.changes.plan import BucketRead
from mooring.metastore import Segment
from mooring.metastore.lance_table import locator_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mooring.changes.log import Base, LoggedDelta, PartitionLog, Piece
    from mooring.changes.plan import Moment
    from mooring.changes.table import ChangeTable
    from mooring.changes.transforms import Values
    from mooring.metastore import DataFile, Table

__all__ = ["CompactionPlan", "PartitionPlan", "plan_compaction", "policy_of", "size_of"]


@dataclass(frozen=True)
class PartitionPlan:
    """What a round would do to a partition.

    Attributes:
        id: The partition's id.
        values: Its values.
        base: The round that it builds on; None where there is none.
        through: The position up to which it takes changes.
        deltas: How many changes came since the base.
        files: How many files they have.
        bytes: And how many bytes.
        level: 1 gathers, 2 merges.
        is_due: Whether it is to be done.
        rewritten: What is read and written anew.
        kept: Files that stay as they are, with the rows of theirs that stay.
        buckets: How many buckets there are.
        kept_buckets: How many of them are not touched.
        referenced: Positions of changes whose files are kept.
    """

    id: str
    values: Values
    base: Base | None
    through: int
    deltas: int = 0
    files: int = 0
    bytes: int = 0
    level: int = MERGE
    is_due: bool = False
    rewritten: tuple[BucketRead, ...] = ()
    kept: tuple[DataFile, ...] = ()
    buckets: int = 0
    kept_buckets: int = 0
    referenced: tuple[int, ...] = ()

    @property
    def rewritten_buckets(self) -> int:
        """How many buckets are read or written."""
        return self.buckets - self.kept_buckets

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return sum(read.rows for read in self.rewritten)

    @property
    def read_bytes(self) -> int:
        """About how many bytes are read."""
        return round(sum(size_of(read.pieces) for read in self.rewritten))


@dataclass(frozen=True)
class CompactionPlan:
    """What a compaction would do.

    Attributes:
        moment: The table, and the position up to which changes are taken.
        policy: When and how.
        partitions: All partitions that have changes or a base, by their values.
    """

    moment: Moment
    policy: CompactionPolicy
    partitions: tuple[PartitionPlan, ...]

    @property
    def due(self) -> tuple[PartitionPlan, ...]:
        """The partitions that are to be compacted."""
        return tuple(one for one in self.partitions if one.is_due)


def policy_of(table: ChangeTable, **given: object) -> CompactionPolicy:
    """Return the policy of a table: what is given, else its properties, else the usual.

    Raises:
        InvalidInputError: a property is no number, or makes no sense.
        TableNotFoundError: there is no such table.
    """
    definition = table.definition
    found = table.catalog.metastore.begin().get(locator_of(table.id)).value
    told = {**definition.properties, **cast("Table", found).properties}
    return CompactionPolicy.of(told, **given)


def plan_compaction(
    table: ChangeTable, policy: CompactionPolicy | None = None, moment: Moment | None = None
) -> CompactionPlan:
    """Plan to compact a table; nothing is changed.

    Args:
        table: The table.
        policy: When and how; that of the table unless given.
        moment: Up to where; the newest position unless given.

    Raises:
        TableNotFoundError: there is no such table.
        InvalidInputError: a property of the table makes no sense.
    """
    chosen = policy or policy_of(table)
    at = moment or table.at()
    logs = sorted(at.partitions.values(), key=lambda log: [str(value) for value in log.values])
    found = (_Partition(log, at, chosen).plan() for log in logs)
    return CompactionPlan(at, chosen, tuple(one for one in found if one is not None))


def size_of(pieces: Iterable[Piece]) -> float:
    """Return about how many bytes pieces have, by their shares of files."""
    return sum(
        (piece.file.size_bytes or 0) * piece.segment.rows / max(piece.file.rows or 1, 1)
        for piece in pieces
    )


class _Partition:
    """One partition, as it is to be planned."""

    def __init__(self, log: PartitionLog, moment: Moment, policy: CompactionPolicy) -> None:
        self._log = log
        self._policy = policy
        self._is_keyed = moment.table.definition.is_keyed
        self._base = log.base_at(moment.position)
        after = self._base.through if self._base else 0
        self._deltas = log.deltas_between(after, moment.position)
        self._layers = log.layers(moment.position)

    def plan(self) -> PartitionPlan | None:
        """Plan it; None where nothing ever was."""
        if self._base is None and not self._deltas:
            return None
        files = [file for delta in self._deltas for file in delta.files]
        size = sum(file.size_bytes or 0 for file in files)
        level = self._level()
        rewritten, kept, referenced = (
            self._pack()
            if not self._is_keyed
            else self._gather()
            if level == GATHER
            else self._merge()
        )
        touched = {read.bucket for read in rewritten} | self._changed()
        is_due = self._policy.is_due(deltas=len(self._deltas), files=len(files), size=size)
        if self._policy.level is not None:
            is_due = is_due or bool(rewritten or self._deltas)
        return PartitionPlan(
            self._log.id,
            self._log.values,
            self._base,
            self._deltas[-1].position if self._deltas else cast("Base", self._base).through,
            len(self._deltas),
            len(files),
            size,
            level,
            is_due=is_due and bool(rewritten or self._deltas),
            rewritten=tuple(rewritten),
            kept=tuple(kept),
            buckets=len(self._layers),
            kept_buckets=len(self._layers.keys() - touched),
            referenced=tuple(referenced),
        )

    def _level(self) -> int:
        if not self._is_keyed:
            return MERGE
        merged = unmerged = 0.0
        layers = 0
        for base, changes in self._layers.values():
            done = [piece for piece in base if not piece.position]
            waiting = [*base[len(done) :], *changes]
            merged += size_of(done)
            unmerged += size_of(waiting)
            layers = max(layers, len({piece.position for piece in waiting}))
        return self._policy.choose_level(unmerged=unmerged, merged=merged, layers=layers)

    def _changed(self) -> set[int]:
        return {bucket for bucket, (_, changes) in self._layers.items() if changes}

    @property
    def _base_files(self) -> tuple[DataFile, ...]:
        return self._base.files if self._base else ()

    def _merge(self) -> tuple[list[BucketRead], list[DataFile], list[int]]:
        """Merge the buckets that are not, and keep the others."""
        rewritten = [
            BucketRead(self._log.values, bucket, tuple(base), tuple(changes))
            for bucket, (base, changes) in sorted(self._layers.items())
            if self._policy.force or changes or any(piece.position for piece in base)
        ]
        gone = {read.bucket for read in rewritten}
        return rewritten, list(_without(self._base_files, gone)), []

    def _gather(self) -> tuple[list[BucketRead], list[DataFile], list[int]]:
        """Put small changes together, as they are; large ones are kept."""
        large = [delta for delta in self._deltas if self._is_large(delta)]
        positions = {delta.position for delta in large}
        rewritten = []
        for bucket, (_, changes) in sorted(self._layers.items()):
            small = tuple(piece for piece in changes if piece.position not in positions)
            if small:
                rewritten.append(BucketRead(self._log.values, bucket, (), small))
        kept = [
            *self._base_files,
            *(_as_gathered(delta, file) for delta in large for file in delta.files),
        ]
        return rewritten, kept, sorted(positions)

    def _is_large(self, delta: LoggedDelta) -> bool:
        """Whether a change is worth no copy; of one change all files go the same way."""
        return all((file.size_bytes or 0) >= self._policy.target_bytes // 2 for file in delta.files)

    def _pack(self) -> tuple[list[BucketRead], list[DataFile], list[int]]:
        """Put small files together, up to the size that files are to have."""
        by_file: dict[str, list[Piece]] = {}
        for base, changes in self._layers.values():
            for piece in (*base, *changes):
                by_file.setdefault(piece.file.path, []).append(piece)
        small = [
            own
            for own in by_file.values()
            if self._policy.force or (own[0].file.size_bytes or 0) < self._policy.target_bytes // 2
        ]
        groups = _groups(small, self._policy.target_bytes)
        if not self._policy.force:
            groups = [group for group in groups if len(group) > 1]
        pieces = [[piece for own in group for piece in own] for group in groups]
        gone = {piece.file.path for group in pieces for piece in group}
        kept = {path: own[0].file for path, own in by_file.items() if path not in gone}
        referenced = [
            delta.position
            for delta in self._deltas
            if any(file.path in kept for file in delta.files)
        ]
        rewritten = [BucketRead(self._log.values, 0, tuple(group), ()) for group in pieces]
        return rewritten, [_with_segments(file) for file in kept.values()], referenced


def _groups(files: Sequence[list[Piece]], target_bytes: int) -> list[list[list[Piece]]]:
    """Take files together, in their order and with all of their pieces, until they are of a size.

    A file may have several pieces, where small groups of an earlier round shared it.
    """
    found: list[list[list[Piece]]] = []
    size = target_bytes
    for pieces in files:
        own = pieces[0].file.size_bytes or 0
        if size + own > target_bytes:
            found.append([])
            size = 0
        found[-1].append(pieces)
        size += own
    return found


def _without(files: Iterable[DataFile], buckets: set[int]) -> Iterable[DataFile]:
    """Return files without the rows of some buckets; those that have no others are left out.

    What is known of a file's rows stays true of some of them: counts and the least and greatest
    values are the file's.
    """
    for file in files:
        segments = tuple(one for one in file.segments if one.bucket not in buckets)
        if segments:
            yield file if len(segments) == len(file.segments) else replace(file, segments=segments)


def _as_gathered(delta: LoggedDelta, file: DataFile) -> DataFile:
    """Return a file of a change with its rows told as those of a file that gathers changes."""
    segments = tuple(
        replace(one, position=delta.position, type=one.type or delta.type)
        for one in _with_segments(file).segments
    )
    return replace(file, segments=segments)


def _with_segments(file: DataFile) -> DataFile:
    return file if file.segments else replace(file, segments=(Segment(0, 0, file.rows or 0),))
