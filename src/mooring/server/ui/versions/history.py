"""The versions of a table as far as a page shows them: bounded, however many there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.errors import NotFoundError
from mooring.tables.reference_names import MAIN, branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.table import Table
    from mooring.tables.api import VersionRecord
    from mooring.tables.branches import Branch
    from mooring.tables.handle import TableHandle
    from mooring.tables.log import LogEntry
    from mooring.tables.tags import Tag

__all__ = ["LISTED", "Beside", "History", "read_history"]

# So many are looked into; so many more are drawn, of which only the time is known.
LISTED, DRAWN = 100, 500
_BRANCHES = 8
_OF_A_BRANCH = 100


@dataclass(frozen=True, slots=True)
class Beside:
    """Another line of versions: main or a branch.

    Attributes:
        name: Its name.
        records: Its newest versions, the newest first.
    """

    name: str
    records: Sequence[VersionRecord]


@dataclass(frozen=True, slots=True)
class History:
    """What is known of the versions of a table.

    Attributes:
        branch: The line that is told; ``main`` for the table itself.
        newest: Its newest version; None for a table that has none.
        records: Its versions to draw, the newest first.
        entries: The newest of these, looked into; with the one before them, if there is one.
        is_last: Whether the table has no versions before those that are drawn.
        tags: All tags.
        branches: All branches.
        beside: Other lines to draw.
    """

    branch: str
    newest: int | None = None
    records: Sequence[VersionRecord] = ()
    entries: Sequence[LogEntry] = ()
    is_last: bool = True
    tags: Sequence[Tag] = ()
    branches: Mapping[str, Branch] = field(default_factory=dict)
    beside: Sequence[Beside] = ()

    @property
    def listed(self) -> Sequence[LogEntry]:
        """The versions that are told."""
        return self.entries[:LISTED]

    @property
    def has_older(self) -> bool:
        """Whether there are versions before those that are told."""
        return len(self.entries) > LISTED or len(self.records) > len(self.entries)

    def tags_of(self, version: int, branch: str | None = None) -> list[str]:
        """Name the tags of a version of a line, of the one that is told unless given."""
        wanted = branch or self.branch
        return [
            tag.name for tag in self.tags if (tag.branch or MAIN, tag.version) == (wanted, version)
        ]

    def branches_of(self, version: int) -> list[str]:
        """Name the branches that come from a version."""
        return [
            one.name
            for one in self.branches.values()
            if (one.parent_branch or MAIN, one.parent_version) == (self.branch, version)
        ]


def read_history(table: Table, branch: str | None, before: int | None) -> History:
    """Read the versions of a line.

    Args:
        table: The table.
        branch: The line; main unless given.
        before: Only versions before this one.

    Raises:
        TableBranchNotFoundError: there is no such branch.
    """
    from mooring.tables.branches import Branches
    from mooring.tables.log import read_log
    from mooring.tables.tags import Tags

    handle, on = table.handle, branch_of(branch)
    newest, records = _records(handle, on, before)
    if newest is None:
        return History(on or MAIN)
    entries = read_log(handle, records[: LISTED + 1], branch=on)
    branches = {one.name: one for one in Branches(handle).list()}
    return History(
        branch=on or MAIN,
        newest=newest,
        records=records[:DRAWN],
        entries=entries,
        is_last=len(records) <= DRAWN,
        tags=Tags(handle).list(),
        branches=branches,
        beside=_beside(handle, on or MAIN, branches),
    )


def _records(
    handle: TableHandle, branch: str | None, before: int | None
) -> tuple[int | None, list[VersionRecord]]:
    """Return the newest version, and those to draw with one more."""
    if before is None:
        records = handle.ledger.newest_first(branch, DRAWN + 1)
        return (records[0].version if records else None), records
    newest = handle.ledger.newest(branch)
    if newest is None:
        return None, []
    # No more versions can be newer than there are numbers.
    newer = max(newest.version - before + 1, 0)
    records = handle.ledger.newest_first(branch, newer + DRAWN + 1)
    older = [record for record in records if record.version < before]
    return newest.version, older[: DRAWN + 1]


def _beside(handle: TableHandle, shown: str, branches: Mapping[str, Branch]) -> Sequence[Beside]:
    """Look at the other lines: main, and the branches that were made last."""
    latest = sorted(branches.values(), key=lambda one: one.created_at, reverse=True)
    names = [MAIN, *(one.name for one in latest)]
    wanted = [name for name in names if name != shown][:_BRANCHES]
    found = []
    for name in wanted:
        try:
            records = handle.ledger.newest_first(None if name == MAIN else name, _OF_A_BRANCH)
        except NotFoundError:  # deleted meanwhile, or half made
            continue
        found.append(Beside(name, records))
    return found
