"""The table of a page at the version that is asked for, or why there is nothing to look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from mooring.config import mask_uris
from mooring.errors import NotLanceTableError, TableNotFoundError, UnsupportedError
from mooring.namespace.states import Exists
from mooring.server.ui.view import View
from mooring.tables.handle import At
from mooring.tables.portrait import portray

if TYPE_CHECKING:
    from mooring.server.ui.visit import Visit
    from mooring.table import Table
    from mooring.tables.handle import TableHandle
    from mooring.tables.portrait import Portrait

__all__ = ["CHANGES", "DECLARED", "Lack", "Shown", "Subject", "TableView", "find_subject"]

DECLARED, CHANGES, OTHER = "declared", "changes", "other"
_NO_DATA = "This table has no data yet: its name is reserved. Whoever writes it first completes it."
_OF_CHANGES = (
    "This is a table of changes: upserts and deletions that are merged when it is read. It is no"
    " table of Lance, so that it has no versions, indexes or fragments."
)


class Lack(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is nothing to look at.

    Attributes:
        kind: ``declared``, ``changes`` or ``other``.
        text: The same for people.
    """

    kind: str
    text: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Which version a page shows.

    Attributes:
        version: Its number.
        newest: The newest one of its branch.
        tag: The tag by which it was asked for, if so.
        branch: Its branch; empty for main.
        newest_href: The same page of the newest version.
    """

    version: int
    newest: int
    tag: str = ""
    branch: str = ""
    newest_href: str

    @property
    def is_newest(self) -> bool:
        """Whether nothing newer is left out: a banner is needed where there is."""
        return self.version == self.newest


class TableView(View, frozen=True, kw_only=True):
    """What pages of a table have in common.

    Attributes:
        id: The table.
        lack: Why there is nothing to look at, where that is so.
        shown: Which version is shown.
    """

    id: list[str]
    lack: Lack | None = None
    shown: Shown | None = None


@dataclass(frozen=True)
class Subject:
    """A live Lance table with data.

    Attributes:
        visit: Who looks.
        table: The table.
        handle: The same, as it is opened.
        portrait: The version that is asked for.
    """

    visit: Visit
    table: Table
    handle: TableHandle
    portrait: Portrait

    @cached_property
    def name(self) -> str:
        """Its identifier, as commands take it."""
        return str(self.table.info.id)

    def shown(self, page: str) -> Shown:
        """Say which version is shown, for a page of this name."""
        at, visit = self.portrait.at, self.visit
        return Shown(
            version=self.portrait.version,
            newest=self.portrait.newest,
            tag=visit.query.get("tag", ""),
            branch=at.branch or "",
            newest_href=visit.links.table(visit.table, page, branch=at.branch),
        )


def find_subject(visit: Visit, *, newest: bool = False) -> Subject | Lack:
    """Open the table of a page.

    Args:
        visit: Who looks.
        newest: Whether the page is about the newest version only, whatever is asked for.

    Raises:
        TableNotFoundError: there is no live table of this name.
        TableVersionNotFoundError: it has no such version.
        TableTagNotFoundError: it has no such tag.
        TableBranchNotFoundError: it has no such branch.
    """
    at = At(branch=visit.query.get("branch") or None) if newest else _read_at(visit)
    try:
        table = visit.open_table()
    except NotLanceTableError as exc:
        if visit.kind == "metastore":
            return Lack(kind=CHANGES, text=_OF_CHANGES)
        return Lack(kind=OTHER, text=str(exc))
    except UnsupportedError as exc:
        return Lack(kind=OTHER, text=mask_uris(str(exc)))
    handle = table.handle
    if table.info.is_only_declared:
        return Lack(kind=DECLARED, text=_NO_DATA)
    try:
        return Subject(visit, table, handle, portray(handle, at))
    except TableNotFoundError:
        # It was only declared, and nobody looked; or it was dropped meanwhile.
        if visit.backend.table_status(visit.table) != Exists():
            raise
        return Lack(kind=DECLARED, text=_NO_DATA)


def _read_at(visit: Visit) -> At:
    version = visit.number("version", least=1)
    return At(version, visit.query.get("tag") or None, visit.query.get("branch") or None)
