"""Tidying: changes and rounds go that no position needs any more which is to be read.

A position is read from the newest base at or before it, and the changes after that base. So what a
partition has up to the base of the oldest position that counts is forgotten, and older positions
with it; where there is no base the changes stay. Files go later, by a vacuum: readers that have
begun end in peace.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.changes.definition import VERSION, Definition
from mooring.changes.log import open_log
from mooring.changes.objects import BASES, CHANGES, RUNS, require_objects
from mooring.changes.replacement import REPLACEMENT
from mooring.changes.rounds import KIND
from mooring.changes.table import ChangeTable, list_change_tables
from mooring.errors import ConcurrentModificationError, InvalidInputError, TableNotFoundError
from mooring.metastore.chain import Snapshot
from mooring.metastore.model import decode_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.catalog import Catalog
    from mooring.changes.log import Base, PartitionLog
    from mooring.changes.objects import ChangeObjects
    from mooring.identifiers import ObjectId
    from mooring.metastore import DataFile, Partition, Stream, TableVersion
    from mooring.metastore.timeline import Ids
    from mooring.metastore.transaction import Transaction

__all__ = ["Tidied", "tidy", "tidy_all"]

_DAY_MS = 86_400_000
RUNS_KEPT_MS = 30 * _DAY_MS
# Each is a file that the transaction writes.
_AT_ONCE = 1000


@dataclass(frozen=True)
class Tidied:
    """What was forgotten, or would be.

    Attributes:
        table: The table.
        horizon: The oldest position that can be read afterwards.
        horizon_before: And before.
        deltas: How many changes went.
        rounds: How many rounds of compaction, or replacements.
        runs: How many notes of named runs.
        files: How many files nothing of the table names afterwards.
        bytes: How large they are.
    """

    table: ObjectId
    horizon: int
    horizon_before: int
    deltas: int = 0
    rounds: int = 0
    runs: int = 0
    files: int = 0
    bytes: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing went."""
        return not (self.deltas or self.rounds or self.runs)


def tidy(
    table: ChangeTable,
    *,
    keep: int | None = None,
    older_than_ms: int | None = None,
    runs_older_than_ms: int | None = RUNS_KEPT_MS,
    dry_run: bool = False,
) -> Tidied:
    """Forget changes and rounds that are needed only to read old positions.

    Args:
        table: The table.
        keep: The oldest position that must be readable afterwards.
        older_than_ms: Or: how long positions must be readable after the next one came.
        runs_older_than_ms: Forget named runs that are as old: repeated, they would happen again.
            None keeps all.
        dry_run: Only tell.

    Raises:
        InvalidInputError: neither a position nor an age is given, or both are.
        TableNotFoundError: there is no such table.
    """
    if (keep is None) == (older_than_ms is None):
        raise InvalidInputError("say which positions to keep: the oldest one, or how old it may be")
    plan = _Plan(table)
    plan.find_old(keep, older_than_ms)
    if runs_older_than_ms is not None:
        plan.find_runs(runs_older_than_ms)
    if not dry_run:
        plan.commit()
    return plan.report()


def tidy_all(
    catalog: Catalog,
    *,
    older_than_ms: int,
    runs_older_than_ms: int | None = RUNS_KEPT_MS,
    dry_run: bool = False,
) -> list[Tidied]:
    """Tidy all change tables of a catalog; return those of which something went.

    Args:
        catalog: A metastore.
        older_than_ms: How long positions must be readable after the next one came.
        runs_older_than_ms: Forget named runs that are as old; None keeps all.
        dry_run: Only tell.
    """
    found = []
    for name in list_change_tables(catalog):
        try:
            found.append(
                tidy(
                    ChangeTable(catalog, name),
                    older_than_ms=older_than_ms,
                    runs_older_than_ms=runs_older_than_ms,
                    dry_run=dry_run,
                )
            )
        except TableNotFoundError:
            continue  # it was dropped meanwhile
    return [one for one in found if not one.is_empty]


class _Plan:
    """What of a table is to go."""

    def __init__(self, table: ChangeTable) -> None:
        self._metastore = table.catalog.metastore
        self._view = self._metastore.begin()
        self._table: ChangeObjects = require_objects(self._view, table.id)
        self._horizon = self._table.horizon
        log = open_log(self._metastore, self._table.ids)
        logs = log.refresh(Snapshot(self._view.timeline, self._view.seq))
        self._logs = list(logs.values())
        self._deltas: list[Ids] = []
        self._rounds: list[Ids] = []
        self._runs: list[Ids] = []
        self._gone: list[DataFile] = []
        self._past: list[Definition] | None = None

    # -- what goes -------------------------------------------------------------------------------

    def find_old(self, keep: int | None, older_than_ms: int | None) -> None:
        since = 0
        if older_than_ms is not None:
            since = self._metastore.state_at(time_ms=self._view.start_ms - older_than_ms)
            keep = self._position_at(since)
        oldest = min(keep or 0, self._table.position)
        for log in self._logs:
            base = self._base_for(log, oldest, since)
            after = base.through if base else 0
            deltas = log.deltas_between(0, after)
            rounds = _needless(log.bases, base)
            for delta in deltas:
                self._deltas.append(self._ids(CHANGES, log, delta.position))
                self._gone += delta.files
            for one in rounds:
                self._rounds.append(self._ids(BASES, log, one.round))
                self._gone += one.files
            if deltas or any(one.through < after or _replaces(one) for one in rounds):
                self._horizon = max(self._horizon, after)

    def _position_at(self, seq: int) -> int:
        """Return the position of the table in a state, whatever it was called then."""
        ids = (*self._table.ids, CHANGES[0])
        found = self._metastore.begin(at=seq).timeline.find(ids, seq)
        if found is None:
            return 0
        return cast("Stream", decode_object(found.body or b"", "/".join(ids))).watermark or 0

    def _base_for(self, log: PartitionLog, position: int, since: int) -> Base | None:
        """Return the base that all readers from a position on can begin with."""
        known = [one for one in log.bases if one.through <= position]
        for base in reversed(known):
            if all(base.serves(one) for one in self._definitions(base, since)):
                return base
        return None

    def _definitions(self, base: Base, since: int) -> Sequence[Definition]:
        """Return what the table was in states that may be read; nothing where it is all the same.

        A round writes the columns of its time: who reads the table as it was before one of them
        was dropped cannot begin with it.
        """
        if base.has_every_column:
            return ()
        if self._past is None:
            locator = self._table.locator.child(VERSION)
            history = self._view.history(locator)
            first = max(
                (place for place, (seq, _) in enumerate(history) if seq <= since), default=0
            )
            self._past = [
                Definition.from_version(
                    cast("TableVersion", decode_object(change.body or b"", str(locator))),
                    self._table.what,
                )
                for _, change in history[first:]
            ]
        return self._past

    def find_runs(self, older_than_ms: int) -> None:
        before = self._view.start_ms - older_than_ms
        stream = (*self._table.ids, RUNS[0])
        for change in self._view.timeline.children(stream, self._view.seq):
            note = cast("Partition", decode_object(change.body or b"", "/".join(change.ids)))
            if int(note.properties.get("at_ms", before)) < before:
                self._runs.append(change.ids)

    def _ids(self, stream: tuple[str, str], log: PartitionLog, number: int) -> Ids:
        return (*self._table.ids, stream[0], log.id, str(number))

    # -- what is done ----------------------------------------------------------------------------

    def commit(self) -> None:
        """Move the horizon and forget what is before it.

        Raises:
            ConcurrentModificationError: somebody else tidies the table.
        """
        doomed = [*self._deltas, *self._rounds, *self._runs]
        for start in range(0, len(doomed), _AT_ONCE):
            self._metastore.run(
                partial(self._forget, doomed=doomed[start : start + _AT_ONCE]),
                message=f"tidy {self._table.id} before position {self._horizon}",
            )

    def _forget(self, txn: Transaction, doomed: Sequence[Ids]) -> None:
        ids = (*self._table.ids, BASES[0])
        if txn.timeline.find(ids, txn.seq) is None:
            raise TableNotFoundError(f"{self._table.what} is gone")
        locator = txn.locate(ids)
        # Always: whoever builds on what is deleted here has read it.
        stream = cast("Stream", txn.get(locator).value)
        horizon = max(stream.watermark or 0, self._horizon)
        txn.update(locator, replace(stream, watermark=horizon or None))
        for one in doomed:
            if txn.timeline.find(one, txn.seq) is None:
                msg = f"{self._table.what} is tidied by somebody else: look again"
                raise ConcurrentModificationError(msg)
            txn.discard(one)

    def report(self) -> Tidied:
        dead = {*self._deltas, *self._rounds}
        named = {file.path for ids, files in self._every() if ids not in dead for file in files}
        files = {file.path: file.size_bytes or 0 for file in self._gone if file.path not in named}
        return Tidied(
            self._table.id,
            self._horizon,
            self._table.horizon,
            len(self._deltas),
            len(self._rounds),
            len(self._runs),
            len(files),
            sum(files.values()),
        )

    def _every(self) -> Iterator[tuple[Ids, Sequence[DataFile]]]:
        for log in self._logs:
            for delta in log.deltas:
                yield self._ids(CHANGES, log, delta.position), delta.files
            for base in log.bases:
                yield self._ids(BASES, log, base.round), base.files


def _needless(bases: Sequence[Base], first: Base | None) -> list[Base]:
    """Return the bases that nobody begins with: before the first one, or followed by a better."""
    if first is None:
        return []
    place = next(number for number, base in enumerate(bases) if base is first)
    found = list(bases[:place])
    for one, following in pairwise(bases[place:]):
        same = one.through == following.through
        # Of a replacement whoever follows the changes must hear, as long as its position is there.
        is_needed = one is first or _replaces(one)
        if same and not is_needed and following.has_every_column:
            found.append(one)
    return found


def _replaces(base: Base) -> bool:
    return base.properties.get(KIND) == REPLACEMENT
