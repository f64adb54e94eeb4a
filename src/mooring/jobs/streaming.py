"""A stream's batches in a table: each counts once, whoever writes it and however often.

Workers write a batch's data files under a run that carries the stream's name; one commit makes them
visible, with stream and batch in its properties and in the table's notes. A batch that is repeated,
after a crash or by a driver that should be dead, finds its own commit and adds nothing.

A stream begins a batch only when the one before it is done, so every run of it that is there before
a batch's commit belongs to this batch or an earlier one. When the batch is done nobody can commit
these runs any more, and the files of theirs that are in no version go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import lance

from mooring.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
)
from mooring.jobs.writing import PartWritten
from mooring.tables.additions import appended_files
from mooring.tables.draft import Draft, draft_for, field_ids
from mooring.tables.fragments import Landed, commit, data_files, pack, unpack
from mooring.tables.handle import At
from mooring.tables.pending import PendingRun, list_runs, new_run_id
from mooring.tables.runs import Done, RunMark, Runs, find_done

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from mooring.tables.handle import TableHandle

__all__ = ["BatchDraft", "BatchPart", "Stream"]

_NO_DRIVER = "0"
_COMMIT = "commit"


@dataclass(frozen=True)
class BatchDraft:
    """What a worker must know to write its part of a batch.

    Attributes:
        draft: Where to.
        schema: The columns of the table.
        version: The version that it was made for.
    """

    draft: Draft
    schema: pa.Schema
    version: int

    @property
    def nothing(self) -> BatchPart:
        """What a worker wrote that got no rows."""
        draft = self.draft
        return BatchPart(
            run=draft.run, location=draft.location, version=self.version, fields=draft.fields
        )

    def write(self, rows: pa.RecordBatchReader, *, rows_a_file: int | None = None) -> BatchPart:
        """Write a part; a failure leaves nothing.

        Args:
            rows: They have the columns of the table, in its order.
            rows_a_file: How many go into one file.
        """
        written = self.draft.write(rows, rows_a_file=rows_a_file)
        count = sum(fragment.physical_rows for fragment in written)
        return replace(self.nothing, fragments=pack(written), rows=count)


@dataclass(frozen=True)
class BatchPart(PartWritten):
    """What a worker wrote of a batch.

    Attributes:
        run: The run that its files belong to.
        location: The table's directory, where they lie.
        version: The version that they were made for.
        fields: The identifiers of the fields that it has.
    """

    run: str = ""
    location: str = ""
    version: int = 0
    fields: tuple[int, ...] = ()


class Stream:
    """A stream that writes into a table."""

    def __init__(self, handle: TableHandle, query: str, driver: str | None = None) -> None:
        """Look after a stream.

        Args:
            handle: The table.
            query: The stream's name.
            driver: One start of it, in letters and digits, where that is known.

        Raises:
            InvalidInputError: the stream cannot have this name.
        """
        RunMark(query)
        self._handle = handle
        self._query = query
        self._driver = driver

    def begin(self) -> BatchDraft:
        """Begin a batch, or one more try at it."""
        run = f"{self._query}.{self._driver or _NO_DRIVER}.{new_run_id()}"
        with self._handle.reading() as dataset:
            draft = draft_for(self._handle.location, self._handle.options, run, dataset)
            return BatchDraft(draft, dataset.schema, int(dataset.version))

    def commit(self, batch: int, parts: Sequence[BatchPart]) -> Landed:
        """Make a batch's rows visible, unless they are already; a batch without rows is noted.

        Raises:
            ConcurrentModificationError: a conflicting change came first, or a cleanup gave the
                batch up: it has to be written again.
            InvalidTableStateError: a later batch is there, or nobody can tell about this one.
        """
        mark = RunMark(self._query, batch)
        self._require_same(mark, parts)
        own = {part.run for part in parts}
        # Before the commit: what is there now is of this batch, or of one before it.
        others = [run for run in self._runs() if run.run not in own]
        landed = self._land(mark, [part for part in parts if part.fragments])
        self._settle(own, [part for part in parts if landed.is_new])
        self._sweep(others, mark)
        return landed

    def _require_same(self, mark: RunMark, parts: Sequence[BatchPart]) -> None:
        """Refuse a table that took the place of the stream's."""
        what = self._handle.what
        if any(part.location != self._handle.location for part in parts):
            msg = f"{what} was replaced while {mark} was written for it: write the batch again"
            raise ConcurrentModificationError(msg)
        if not mark.batch or Runs(self._handle.place, mark).last_done() is not None:
            return
        with self._handle.reading() as dataset:
            is_fresh = dataset.version == 1 and not dataset.get_fragments()
        if is_fresh:
            msg = (
                f"{what} is new and empty, and {mark} is not the first: what the stream wrote"
                " before is elsewhere; bring that table back, or begin anew with another checkpoint"
            )
            raise InvalidTableStateError(msg)

    def _land(self, mark: RunMark, parts: Sequence[BatchPart]) -> Landed:
        if not parts:
            return self._note_empty(mark)
        runs = [PendingRun(self._handle.place, run) for run in {part.run for part in parts}]

        def claim(read_version: int, files: Iterable[str]) -> None:
            del files  # each run has its own
            for run in runs:
                written = [part for part in parts if part.run == run.run]
                run.claim(read_version, data_files(_fragments(written)))

        try:
            return commit(
                self._handle,
                lance.LanceOperation.Append(_fragments(parts)),
                self._read_version(parts[0]),
                mark=mark,
                rows=sum(part.rows for part in parts),
                claim=claim,
            )
        except ConcurrentModificationError:
            self._settle({part.run for part in parts}, [])
            raise

    def _read_version(self, part: BatchPart) -> int:
        """Return the version that a commit is made from; a cleanup may have taken that of then."""
        try:
            return int(self._handle.open(At(part.version)).version)
        except TableVersionNotFoundError as exc:
            with self._handle.reading() as newest:
                if field_ids(newest) == part.fields:
                    return int(newest.version)
            msg = (
                f"{self._handle.what} has other columns than when the batch was written, and"
                f" version {part.version} is gone: write the batch again"
            )
            raise ConcurrentModificationError(msg) from exc

    def _note_empty(self, mark: RunMark) -> Landed:
        known = find_done(self._handle, mark)
        if known is None:
            with self._handle.reading() as dataset:
                known = Done(int(dataset.version), 0)
            runs = Runs(self._handle.place, mark)
            runs.begin(known.version)
            runs.end(known)
        return Landed(known.version, is_new=False)

    def give_up(self, runs: Iterable[str] = ()) -> None:
        """Delete what is left of a batch that failed, as far as it cannot be in a version.

        Args:
            runs: Its runs; those of this driver are known anyway.
        """
        prefix = f"{self._query}.{self._driver}."
        doomed = set(runs)
        for run in self._runs():
            is_own = self._driver is not None and run.run.startswith(prefix)
            if (is_own or run.run in doomed) and run.abandon():
                run.settle()

    # -- what others left ------------------------------------------------------------------------

    def _runs(self) -> list[PendingRun]:
        """Find the runs of this stream that were not ended, of whichever driver."""
        return [
            run for run in list_runs(self._handle.place) if run.run.rsplit(".", 2)[0] == self._query
        ]

    def _settle(self, runs: Iterable[str], kept: Sequence[BatchPart]) -> None:
        files = {str(file.path) for one in _fragments(kept) for file in one.files}
        for run in runs:
            try:
                PendingRun(self._handle.place, run).settle(files)
            except ServiceUnavailableError:
                return  # the next batch finds it

    def _sweep(self, runs: Sequence[PendingRun], mark: RunMark) -> None:
        """Delete what lost attempts left."""
        committed: set[str] | None = None
        for run in runs:
            if run.outcome != _COMMIT and run.abandon():
                run.settle()
                continue
            # It may have come as far as its commit.
            committed = self._committed(mark) if committed is None else committed
            files = run.files()
            if not committed & files and run.is_in_a_version():
                if run.is_in_a_version(surely=True):
                    run.settle(files)
                continue  # it may be about to land, or to be refused: its driver ends it
            run.settle(committed & files)

    def _committed(self, mark: RunMark) -> set[str]:
        """Name the data files of a batch and the one before it, as far as anybody can tell."""
        found: set[str] = set()
        for batch in range(max(0, mark.batch - 1), mark.batch + 1):
            try:
                done = find_done(self._handle, RunMark(mark.run, batch))
            except InvalidTableStateError:
                continue
            if done is not None:
                found |= appended_files(self._handle, done.version)
        return found


def _fragments(parts: Iterable[PartWritten]) -> list[lance.FragmentMetadata]:
    return unpack(text for part in parts for text in part.fragments)
