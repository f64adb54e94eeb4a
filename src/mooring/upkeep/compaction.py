"""Compaction in parts: workers write large fragments, one commit puts them into place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.jobs.address import CatalogAddress, TableAddress
from mooring.tables import compaction
from mooring.tables.compaction import Cleaning, rewrite
from mooring.tables.failures import translated
from mooring.tables.pending import PendingRun

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from mooring.catalog import Catalog, Name
    from mooring.jobs.runner import Runner
    from mooring.tables.compaction import Compacted

__all__ = ["compact"]


def compact(
    catalog: Catalog,
    name: Name,
    *,
    runner: Runner,
    older_than: timedelta | None = None,
    keep: int | None = None,
    branch: str | None = None,
    target_rows: int | None = None,
    dry_run: bool = False,
) -> Compacted:
    """Merge small fragments of a table and drop deleted rows from files, divided among workers.

    What is appended or deleted meanwhile is kept: a compaction that cannot follow a change is
    done again. It does the same as ``Table.compact``.

    Args:
        catalog: The catalog.
        name: The table.
        runner: Writes the large fragments.
        older_than: Then delete versions that were made so long ago; none unless given.
        keep: Then delete versions before the newest so many; none unless given.
        branch: The branch; main unless given.
        target_rows: How many rows a fragment is to hold; a million unless given.
        dry_run: Only say what would be done.

    Raises:
        InvalidInputError: an argument makes no sense.
        ConcurrentModificationError: conflicting changes came first every time.
    """
    table = catalog.table(name)
    handle = table.handle
    address = TableAddress(CatalogAddress.of(catalog), table.info.id.names, branch=branch)

    def rewriting(run: PendingRun, version: int, tasks: Sequence[str]) -> list[str]:
        work = _Rewrite(replace(address, version=version), run.run)
        with translated(handle.what):
            return runner.run(work, tasks, label=f"compacting {table.info.id}")

    return compaction.compact(
        handle,
        Cleaning(older_than, keep),
        branch=branch,
        target_rows=target_rows,
        dry_run=dry_run,
        rewriting=rewriting,
    )


@dataclass(frozen=True)
class _Rewrite:
    """Does one task of a plan, wherever it is."""

    at: TableAddress
    run: str

    def __call__(self, task: str) -> str:
        place = self.at.table().handle.place_of(self.at.branch)
        return rewrite(self.at.open(), PendingRun(place, self.run), task)
