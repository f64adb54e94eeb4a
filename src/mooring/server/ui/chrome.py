"""What stands around every page: where it is, who looks, and where else to go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.identifiers import ROOT, ObjectId
from mooring.server.roles import Role
from mooring.server.ui.links import CATALOGS_PATH, Links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.browse.tree import Branch
    from mooring.server.ui.visit import Visit

__all__ = ["Chrome", "Crumb", "Tab", "chrome_within"]

_SECTIONS = (
    ("browse", "Browse"),
    ("trash", "Trash"),
    ("activity", "Activity"),
    ("runs", "Pipelines"),
    ("audit", "Audit"),
)
_TABS = (
    ("overview", "Overview"),
    ("rows", "Rows"),
    ("versions", "Versions"),
    ("indexes", "Indexes"),
    ("health", "Health"),
    ("open", "Open"),
)
# Pages that belong to the section or tab of another one.
_WITHIN = {
    "diff": "versions",
    "cell": "rows",
    "history": "overview",
    "lineage": "runs",
    "details": "runs",
    "changes": "activity",
    "start-audit": "audit",
    "purge-expired": "trash",
    "undrop": "trash",
    "purge": "trash",
    "create-namespace": "browse",
    "properties": "browse",
}
_FIRST_CRUMBS, _LAST_CRUMBS = 4, 12


@dataclass(frozen=True, slots=True)
class Crumb:
    """A step on the way to a page."""

    label: str
    href: str


@dataclass(frozen=True, slots=True)
class Tab:
    """One of several pages beside each other."""

    label: str
    href: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Chrome:
    """What a template shows around a page.

    Attributes:
        now_ms: When it was made.
        seal: What its forms hold.
        subject: Who looks; None where nobody is asked for a name.
        asks_nobody: Whether anybody may look.
        theme: What the reader chose: ``light``, ``dark``, or nothing for the system's choice.
        notice: What was just done.
        catalogs: The names of those that can be looked at.
        visit: The request; None for pages outside of a catalog.
        crumbs: The way to the page.
        sections: The parts of the catalog.
        tabs: The pages of the table that it is about.
        json_href: Its twin; empty where it has none.
    """

    now_ms: int
    seal: str = ""
    subject: str | None = None
    asks_nobody: bool = True
    theme: str = ""
    notice: str = ""
    catalogs: Sequence[str] = ()
    visit: Visit | None = None
    crumbs: Sequence[Crumb] = ()
    sections: Sequence[Tab] = ()
    tabs: Sequence[Tab] = ()
    json_href: str = ""

    @property
    def catalog(self) -> str:
        """The catalog's name; nothing outside of one."""
        return self.visit.served.name if self.visit else ""

    @property
    def links(self) -> Links:
        """The addresses within the catalog."""
        return Links(self.catalog)

    @property
    def role(self) -> str:
        """The highest role of whoever looks, for the object of the page."""
        if self.visit is None:
            return ""
        about = _about(self.visit)
        return self.visit.identity.role_in(self.catalog, about) or ""

    @property
    def table(self) -> ObjectId | None:
        """The table that the page is about, if it is about one."""
        return self.visit.table if self.visit and "table" in self.visit.path else None

    @property
    def tree(self) -> Branch | None:
        """The tree of the catalog, opened where the page is; None where there is none to show."""
        from mooring.server.ui.browse.tree import tree_of  # which pages without it do not need

        return tree_of(self.visit) if self.visit else None

    def href_of(self, catalog: str) -> str:
        """Return where a catalog begins."""
        return Links(catalog).to("browse")

    @property
    def home(self) -> str:
        """Where all catalogs are."""
        return "/"

    @property
    def catalogs_path(self) -> str:
        """Below which all pages of catalogs are."""
        return CATALOGS_PATH

    def may_write(self, one: ObjectId) -> bool:
        """Whether an object may be changed by whoever looks."""
        return self.visit is not None and self.visit.may(Role.WRITER, one)

    def may_admin(self, one: ObjectId) -> bool:
        """Whether what only an admin may is allowed with an object."""
        return self.visit is not None and self.visit.may(Role.ADMIN, one)


def chrome_within(chrome: Chrome, visit: Visit, word: str) -> Chrome:
    """Add what belongs to the catalog, object and page that are looked at.

    Args:
        chrome: What stands around any page.
        visit: The request.
        word: The last word of the page's path.
    """
    current = _WITHIN.get(word, word)
    is_table = "table" in visit.path
    is_object = is_table or "namespace" in visit.path
    section = "browse" if is_object and current != "trash" else current
    return replace(
        chrome,
        visit=visit,
        crumbs=_crumbs(visit, has_others=len(chrome.catalogs) > 1),
        sections=[Tab(label, visit.links.to(page), page == section) for page, label in _SECTIONS],
        tabs=_tabs(visit, current) if is_table else [],
    )


def _tabs(visit: Visit, current: str) -> list[Tab]:
    at = {name: visit.query.get(name) or None for name in ("version", "tag", "branch")}
    return [
        Tab(label, visit.links.table(visit.table, page, **at), page == current)
        for page, label in _TABS
    ]


def _about(visit: Visit) -> ObjectId:
    return visit.table if "table" in visit.path else visit.namespace


def _crumbs(visit: Visit, *, has_others: bool) -> list[Crumb]:
    about = _about(visit)
    namespaces = about.parent if "table" in visit.path else about
    found = [Crumb("Catalogs", "/")] if has_others else []
    found.append(Crumb(visit.served.name, visit.links.namespace(ROOT)))
    for level in _steps(namespaces.level):
        one = ObjectId(namespaces.names[:level])
        is_left_out = level > 1 and level - 1 not in _steps(namespaces.level)
        found += [Crumb("…", visit.links.namespace(one.parent))] if is_left_out else []
        found.append(Crumb(one.name, visit.links.namespace(one)))
    if "table" in visit.path:
        found.append(Crumb(about.name, visit.links.table(about)))
    return found


def _steps(levels: int) -> Sequence[int]:
    """Return the levels that are named on the way; of a long way, its beginning and its end.

    Each has an address as long as the way to it: those of all would fill the memory.
    """
    if levels <= _FIRST_CRUMBS + _LAST_CRUMBS:
        return range(1, levels + 1)
    return [*range(1, _FIRST_CRUMBS + 1), *range(levels - _LAST_CRUMBS + 1, levels + 1)]
