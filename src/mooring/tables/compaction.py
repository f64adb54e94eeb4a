"""Compaction: small fragments become large ones, and versions that nobody needs go.

Compacting makes a version and loses nothing. The plan's tasks can be done anywhere; one commit
takes their results in, and a commit that lost a race is planned and done again. Where all files of
a task were written alike and nothing was deleted from them, their encoded pages are copied as they
are, several times faster than writing the rows anew; elsewhere Lance writes them anew.

Cleaning deletes versions, but never the newest, one that a tag names or one that a branch comes
from, and no file that a version still needs.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from lance.optimize import Compaction, CompactionTask, RewriteResult

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    ServiceUnavailableError,
)
from mooring.tables.fragments import data_files
from mooring.tables.handle import At
from mooring.tables.pending import PendingRun, new_run_id
from mooring.tables.publications import note_published
from mooring.tables.runs import note_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lance import LanceDataset
    from lance.lance import CleanupStats
    from lance.optimize import CompactionOptions

    from mooring.tables.handle import TableHandle

__all__ = ["Cleaned", "Cleaning", "Compacted", "Rewriting", "clean", "compact", "rewrite"]

_FULL = 1024 * 1024
_ATTEMPTS = 5

# Their ways from and to text are missing in Lance's type hints.
_TASKS: Any = CompactionTask
_RESULTS: Any = RewriteResult


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Which versions go.

    Attributes:
        older_than: Those that were made so long ago.
        keep: Those before the newest so many; both conditions must hold where both are given.
    """

    older_than: timedelta | None = None
    keep: int | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.older_than is not None and self.older_than < timedelta(0):
            msg = f"versions cannot be older than {self.older_than}"
            raise InvalidInputError(msg)
        if self.keep is not None and self.keep < 1:
            msg = f"the newest version stays: {self.keep} cannot be kept"
            raise InvalidInputError(msg)

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to go."""
        return self.older_than is not None or self.keep is not None


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What cleaning deleted.

    Attributes:
        versions: How many versions.
        files: How many files, those of the versions left out.
        bytes: What they all took.
    """

    versions: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did, or would do.

    Attributes:
        version: The newest version after it.
        fragments_removed: Fragments that were merged or rewritten.
        fragments_added: Fragments that took their place; of a plan, about so many.
        files_removed: Files of the first.
        files_added: Files of the second; of a plan, about so many.
        cleaned: What cleaning deleted; None where it was not asked for.
        is_plan: Whether nothing was done.
    """

    version: int
    fragments_removed: int
    fragments_added: int
    files_removed: int
    files_added: int
    cleaned: Cleaned | None = None
    is_plan: bool = False


class Rewriting(Protocol):
    """Has the tasks of a plan done, by whomever."""

    def __call__(self, run: PendingRun, version: int, tasks: Sequence[str]) -> list[str]:
        """Call ``rewrite`` for each of them, on the table at this version."""
        ...


def compact(
    handle: TableHandle,
    cleaning: Cleaning | None = None,
    *,
    branch: str | None = None,
    target_rows: int | None = None,
    dry_run: bool = False,
    rewriting: Rewriting | None = None,
) -> Compacted:
    """Merge small fragments, drop deleted rows from files and, if wanted, delete old versions.

    Args:
        handle: The table.
        cleaning: Which versions go; none unless given.
        branch: The branch; main unless given.
        target_rows: How many rows a fragment is to hold; a million unless given.
        dry_run: Only say what would be done.
        rewriting: Has the tasks done; threads of this process unless given.

    Raises:
        InvalidInputError: an argument makes no sense.
        ConcurrentModificationError: conflicting changes came first every time.
    """
    if target_rows is not None and target_rows < 1:
        msg = f"a fragment cannot hold {target_rows} rows: the target starts at 1"
        raise InvalidInputError(msg)
    options: CompactionOptions = {"compaction_mode": "try_binary_copy"}
    if target_rows is not None:
        options["target_rows_per_fragment"] = target_rows
    cleaning = cleaning or Cleaning()
    at = At(branch=branch)
    if dry_run:
        with handle.reading(at) as dataset:
            return _plan(dataset, options, cleaning)
    handle.ledger.prepare()
    done = _Merging(handle, at, options, rewriting or _Here(handle, branch)).run()
    if not cleaning.is_wanted:
        return done
    return replace(done, cleaned=clean(handle, cleaning, branch=branch))


def rewrite(dataset: LanceDataset, run: PendingRun, task: str) -> str:
    """Do one task of a plan; the result is committed by whoever planned it.

    Args:
        dataset: The table at the version of the plan.
        run: Where the files that are written are noted.
        task: The task.
    """
    done = _TASKS.from_json(task).execute(dataset)
    run.note(data_files(done.new_fragments))
    return _with_sizes(done, run)


def clean(
    handle: TableHandle, cleaning: Cleaning, *, branch: str | None = None, dry_run: bool = False
) -> Cleaned:
    """Delete old versions and what only they need.

    Args:
        handle: The table.
        cleaning: Which versions go.
        branch: The branch; main unless given.
        dry_run: Only say what would go.
    """
    at = At(branch=branch)
    if dry_run:
        with handle.reading(at) as dataset:
            return _would_clean(dataset, cleaning)
    with handle.changing(at) as dataset:
        return _clean(handle, dataset, cleaning)


class _Merging:
    """The part of a compaction that makes a version."""

    def __init__(
        self, handle: TableHandle, at: At, options: CompactionOptions, rewriting: Rewriting
    ) -> None:
        self._handle = handle
        self._at = at
        self._options = options
        self._rewriting = rewriting

    def run(self) -> Compacted:
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._try()
            except ConcurrentModificationError:
                continue
        return self._try()

    def _try(self) -> Compacted:
        with self._handle.reading(self._at) as dataset:
            version = int(dataset.version)
            tasks = [_json(task) for task in Compaction.plan(dataset, self._options).tasks]
        if not tasks:
            return Compacted(version, 0, 0, 0, 0)
        run = PendingRun(self._handle.place_of(self._at.branch), new_run_id())
        try:
            texts = self._rewriting(run, version, tasks)
            done = [_RESULTS.from_json(text) for text in texts]
            run.claim(version, _files(done))
        except BaseException:
            run.settle()
            raise
        return self._commit(run, version, done)

    def _commit(self, run: PendingRun, version: int, done: list[RewriteResult]) -> Compacted:
        try:
            with self._handle.changing(At(version, branch=self._at.branch)) as dataset:
                counts = Compaction.commit(dataset, done, self._options)
                newest = int(dataset.version)
        except ConcurrentModificationError:
            run.settle()  # no version has them; after any other failure one may, and they stay
            raise
        with suppress(ServiceUnavailableError):  # the version stands, and a cleanup finds the rest
            run.settle(_files(done))
        return Compacted(
            newest,
            counts.fragments_removed,
            counts.fragments_added,
            counts.files_removed,
            counts.files_added,
        )


@dataclass(frozen=True)
class _Here:
    """Does the tasks in threads of this process."""

    handle: TableHandle
    branch: str | None

    def __call__(self, run: PendingRun, version: int, tasks: Sequence[str]) -> list[str]:
        workers = max(1, min(len(tasks), os.cpu_count() or 1))
        with (
            self.handle.reading(At(version, branch=self.branch)) as dataset,
            ThreadPoolExecutor(workers) as pool,
        ):
            return list(pool.map(partial(rewrite, dataset, run), tasks))


def _files(done: Iterable[RewriteResult]) -> set[str]:
    return {name for one in done for name in data_files(one.new_fragments)}


def _json(one: Any) -> str:  # noqa: ANN401  # see above
    return str(one.json())


def _with_sizes(done: RewriteResult, run: PendingRun) -> str:
    """Add the sizes of files to a result: Lance leaves them out where it copied pages."""
    document = json.loads(_json(done))
    for fragment in document["new_fragments"]:
        for file in fragment["files"]:
            if file["file_size_bytes"] is None:
                meta = run.place.store.head(run.place.path(f"data/{file['path']}"))
                file["file_size_bytes"] = meta and meta.size_bytes
    return json.dumps(document)


def _plan(dataset: LanceDataset, options: CompactionOptions, cleaning: Cleaning) -> Compacted:
    """Say what would be done; cleaning is told of the versions that there are now."""
    target = options.get("target_rows_per_fragment") or _FULL
    tasks = [task.fragments for task in Compaction.plan(dataset, options).tasks]
    merged = [fragment for fragments in tasks for fragment in fragments]
    added = sum(
        -(-sum(fragment.num_rows for fragment in fragments) // target) for fragments in tasks
    )
    deletions = sum(fragment.deletion_file is not None for fragment in merged)
    cleaned = _would_clean(dataset, cleaning) if cleaning.is_wanted else None
    return Compacted(
        dataset.version,
        len(merged),
        added,
        sum(len(fragment.files) for fragment in merged) + deletions,
        added,
        cleaned,
        is_plan=True,
    )


def _would_clean(dataset: LanceDataset, cleaning: Cleaning) -> Cleaned:
    found = dataset.explain_cleanup_old_versions(
        cleaning.older_than, cleaning.keep, error_if_tagged_old_versions=False
    )
    return _cleaned(found.stats)


def _clean(handle: TableHandle, dataset: LanceDataset, cleaning: Cleaning) -> Cleaned:
    """Delete old versions; those that tags name stay, and what branches need."""
    handle.ledger.confirm()
    note_runs(handle)
    note_published(handle)
    done = dataset.cleanup_old_versions(
        cleaning.older_than, cleaning.keep, error_if_tagged_old_versions=False
    )
    handle.ledger.tidy()
    return _cleaned(done)


def _cleaned(stats: CleanupStats) -> Cleaned:
    files = (
        stats.data_files_removed
        + stats.transaction_files_removed
        + stats.index_files_removed
        + stats.deletion_files_removed
    )
    return Cleaned(stats.old_versions, files, stats.bytes_removed)
