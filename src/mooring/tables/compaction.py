"""Compaction: small fragments become large ones, and versions that nobody needs go.

Compacting makes a version and loses nothing. Cleaning deletes versions, but never the newest, one
that a tag names or one that a branch comes from, and no file that a version still needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lance.optimize import Compaction

from mooring.errors import InvalidInputError
from mooring.tables.handle import At

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.lance import CleanupStats
    from lance.optimize import CompactionOptions

    from mooring.tables.handle import TableHandle

__all__ = ["Cleaned", "Cleaning", "Compacted", "compact"]

_FULL = 1024 * 1024


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


def compact(
    handle: TableHandle,
    cleaning: Cleaning | None = None,
    *,
    branch: str | None = None,
    target_rows: int | None = None,
    dry_run: bool = False,
) -> Compacted:
    """Merge small fragments, drop deleted rows from files and, if wanted, delete old versions.

    Args:
        handle: The table.
        cleaning: Which versions go; none unless given.
        branch: The branch; main unless given.
        target_rows: How many rows a fragment is to hold; a million unless given.
        dry_run: Only say what would be done.

    Raises:
        InvalidInputError: an argument makes no sense.
        ConcurrentModificationError: a conflicting change came first.
    """
    if target_rows is not None and target_rows < 1:
        msg = f"a fragment cannot hold {target_rows} rows: the target starts at 1"
        raise InvalidInputError(msg)
    options: CompactionOptions = {"target_rows_per_fragment": target_rows} if target_rows else {}
    cleaning = cleaning or Cleaning()
    at = At(branch=branch)
    if dry_run:
        with handle.reading(at) as dataset:
            return _plan(dataset, options, cleaning)
    with handle.changing(at) as dataset:
        done = Compaction.execute(dataset, options)
        cleaned = _clean(handle, dataset, cleaning) if cleaning.is_wanted else None
        return Compacted(
            dataset.version,
            done.fragments_removed,
            done.fragments_added,
            done.files_removed,
            done.files_added,
            cleaned,
        )


def _plan(dataset: LanceDataset, options: CompactionOptions, cleaning: Cleaning) -> Compacted:
    """Say what would be done; cleaning is told of the versions that there are now."""
    target = options.get("target_rows_per_fragment") or _FULL
    tasks = [task.fragments for task in Compaction.plan(dataset, options).tasks]
    merged = [fragment for fragments in tasks for fragment in fragments]
    added = sum(
        -(-sum(fragment.num_rows for fragment in fragments) // target) for fragments in tasks
    )
    deletions = sum(fragment.deletion_file is not None for fragment in merged)
    cleaned = None
    if cleaning.is_wanted:
        found = dataset.explain_cleanup_old_versions(
            cleaning.older_than, cleaning.keep, error_if_tagged_old_versions=False
        )
        cleaned = _cleaned(found.stats)
    return Compacted(
        dataset.version,
        len(merged),
        added,
        sum(len(fragment.files) for fragment in merged) + deletions,
        added,
        cleaned,
        is_plan=True,
    )


def _clean(handle: TableHandle, dataset: LanceDataset, cleaning: Cleaning) -> Cleaned:
    """Delete old versions; those that tags name stay, and what branches need."""
    handle.ledger.confirm()
    return _cleaned(
        dataset.cleanup_old_versions(
            cleaning.older_than, cleaning.keep, error_if_tagged_old_versions=False
        )
    )


def _cleaned(stats: CleanupStats) -> Cleaned:
    files = (
        stats.data_files_removed
        + stats.transaction_files_removed
        + stats.index_files_removed
        + stats.deletion_files_removed
    )
    return Cleaned(stats.old_versions, files, stats.bytes_removed)
