"""What is in a namespace: other namespaces, and its tables with what is known of them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import InvalidInputError, MooringError, NamespaceNotFoundError
from mooring.identifiers import ObjectId, quote
from mooring.server.roles import Role
from mooring.server.ui.atlas.findings import Absence, Finding
from mooring.server.ui.atlas.index import fold
from mooring.server.ui.atlas.sight import Sight
from mooring.server.ui.browse.beginnings import begin
from mooring.server.ui.browse.recent import RecentTable, recent_tables
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mooring.server.ui.visit import Visit

    Key = Callable[[Finding], "int | None"]

__all__ = ["ChildNamespace", "ChildTable", "Heading", "NamespaceView", "show_namespace"]

PAGE = 200
_DESCRIPTIONS = ("description", "comment")
_NAME = "name"
_ASCENDING, _DESCENDING = "asc", "desc"
_LACKS = {
    Absence.NONE: "cannot be read",
    Absence.DATA: "no data yet",
    Absence.LANCE: "not a table of Lance",
    Absence.OWN_FILES: "files of other tables",
    Absence.OTHER: "cannot be read",
}
_COLUMNS: Mapping[str, tuple[str, Key]] = {
    "version": ("Version", lambda one: one.version),
    "rows": ("Rows", lambda one: one.rows),
    "columns": ("Columns", lambda one: one.width),
    "size": ("Size", lambda one: one.size_bytes),
    "written": ("Last written", lambda one: one.written_at_ms),
}


class ChildNamespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace in another.

    Attributes:
        name: Its own name.
        href: Its page.
        tables: How many tables lie in it, at any depth.
        namespaces: How many namespaces do.
        description: What it is for; empty where nobody said.
    """

    name: str
    href: str
    tables: int
    namespaces: int
    description: str


class ChildTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table in a namespace; None stands for what is not known.

    Attributes:
        name: Its own name.
        href: Its page.
        description: What it is for; empty where nobody said.
        version: Its newest version.
        rows: How many rows it has.
        columns: How many columns it has.
        size_bytes: What its data files take.
        written_at_ms: When it was last written.
        is_known: Whether somebody looked into it.
        failure: Why nobody could.
        lack: The same in a few words.
    """

    name: str
    href: str
    description: str
    version: int | None
    rows: int | None
    columns: int | None
    size_bytes: int | None
    written_at_ms: int | None
    is_known: bool
    failure: str
    lack: str


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the list, by which it can be sorted.

    Attributes:
        key: Which.
        label: What it is called.
        href: The list, sorted by it; the other way round where it is already.
        order: How the list is sorted by it: ``ascending``, ``descending``, or not.
    """

    key: str
    label: str
    href: str
    order: str


class NamespaceView(View, frozen=True, kw_only=True):
    """A namespace, and what is in it.

    Attributes:
        id: Which.
        description: What it is for; empty where nobody said.
        properties: What is kept with it; None where the catalog does not tell, or nobody may know.
        tables_below: How many tables lie in it, at any depth.
        namespaces_below: How many namespaces do.
        drops_below: How many dropped tables lay in it.
        unknown_tables: How many tables nobody has looked into yet: of those on this page, or of all
            where they are sorted by what is in them.
        namespaces: Those in it, of this page.
        total_namespaces: How many there are in all that fit the name.
        tables: The tables in it, of this page.
        total_tables: How many there are in all that fit the name.
        all_tables: How many tables lie directly in it.
        all_namespaces: How many namespaces lie directly in it.
        name: What the names must hold.
        sort: By what the tables are sorted.
        order: ``asc`` or ``desc``.
        headings: The columns of the list.
        page: Which page this is, from 1.
        pages: How many there are.
        before: The page before; empty for none.
        after: The page after; empty for none.
        actions: What may be done here, with the address of each.
        is_passage: Whether it only leads to what may be read.
        trash_href: Where dropped tables are.
        as_of_ms: When the catalog was seen like this.
        trouble: Why it was not seen since; empty where it was.
        recent: The tables that were written last; of a catalog alone, where it has namespaces.
        beginnings: How a first table is made, by the language; none where there are tables.
    """

    id: list[str]
    description: str
    properties: dict[str, str] | None
    tables_below: int
    namespaces_below: int
    drops_below: int
    unknown_tables: int
    namespaces: list[ChildNamespace]
    total_namespaces: int
    tables: list[ChildTable]
    total_tables: int
    all_tables: int
    all_namespaces: int
    name: str
    sort: str
    order: str
    headings: list[Heading]
    page: int
    pages: int
    before: str
    after: str
    actions: dict[str, str]
    is_passage: bool
    trash_href: str
    as_of_ms: int
    trouble: str
    recent: list[RecentTable]
    beginnings: dict[str, str]


def show_namespace(visit: Visit) -> NamespaceView:
    """Show what is in a namespace.

    Raises:
        NamespaceNotFoundError: there is none.
        InvalidInputError: a parameter makes no sense.
    """
    namespace = visit.namespace
    sight = Sight.of(visit.atlas.picture(), visit.identity, visit.served.name)
    if not (sight.picture.has_namespace(namespace) and sight.sees(namespace)):
        raise NamespaceNotFoundError(f"there is no namespace {quote(str(namespace))}")
    return _Maker(visit, sight, namespace).view()


class _Maker:
    """Puts the page of a namespace together."""

    def __init__(self, visit: Visit, sight: Sight, namespace: ObjectId) -> None:
        self._visit = visit
        self._sight = sight
        self._at = namespace
        self._findings = visit.atlas.findings
        self._sort = _choice(visit, "sort", [_NAME, *_COLUMNS])
        self._order = _choice(visit, "order", [_ASCENDING, _DESCENDING])
        self._name = visit.query.get("name", "").strip()
        self._page = visit.number("page", least=1) or 1

    def view(self) -> NamespaceView:
        """Return all that is shown."""
        visit, sight, at = self._visit, self._sight, self._at
        all_namespaces, all_tables = sight.namespaces_in(at), sight.tables_in(at)
        namespaces, tables = self._named(all_namespaces), self._sorted(self._named(all_tables))
        pages = max(1, -(-max(len(namespaces), len(tables)) // PAGE))
        self._page = min(self._page, pages)
        cut = slice((self._page - 1) * PAGE, self._page * PAGE)
        shown = [ObjectId((*at.names, name)) for name in tables[cut]]
        visit.atlas.surveyor.want(reversed(shown))
        properties = self._properties()
        trouble = visit.atlas.trouble
        return NamespaceView(
            cli=visit.cli("ls", names=[str(at)] if at.names else []),
            id=list(at.names),
            description=_description(properties),
            properties=properties,
            tables_below=sight.count_tables(at),
            namespaces_below=sight.count_namespaces(at),
            drops_below=sight.count_drops(at),
            unknown_tables=self._count_unknown(tables[cut] if self._sort == _NAME else tables),
            namespaces=[self._namespace(ObjectId((*at.names, name))) for name in namespaces[cut]],
            total_namespaces=len(namespaces),
            tables=[self._table(one) for one in shown],
            total_tables=len(tables),
            all_tables=len(all_tables),
            all_namespaces=len(all_namespaces),
            name=self._name,
            sort=self._sort,
            order=self._order,
            headings=[self._heading(_NAME, "Name")]
            + [self._heading(key, label) for key, (label, _) in _COLUMNS.items()],
            page=self._page,
            pages=pages,
            before=self._href(page=self._page - 1) if self._page > 1 else "",
            after=self._href(page=self._page + 1) if self._page < pages else "",
            actions=self._actions(),
            is_passage=not sight.reads(at),
            trash_href=visit.links.to("trash", namespace=str(at) or None),
            as_of_ms=trouble.since_ms if trouble else sight.picture.taken_at_ms,
            trouble=trouble.message if trouble else "",
            recent=self._recent() if all_namespaces else [],
            beginnings={} if all_tables or all_namespaces else begin(visit, at),
        )

    # -- what is listed ----------------------------------------------------------------------------

    def _named(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names that hold what was asked for."""
        wanted = fold(self._name)
        return [name for name in names if wanted in fold(name)] if wanted else names

    def _sorted(self, names: Sequence[str]) -> Sequence[str]:
        is_down = self._order == _DESCENDING
        if self._sort == _NAME:
            return names[::-1] if is_down else names
        _, key = _COLUMNS[self._sort]
        known: list[tuple[int, str]] = []
        unknown: list[str] = []
        for name in names:
            value = self._value(name, key)
            known.append((value, name)) if value is not None else unknown.append(name)
        # Those of the same value stay in the order of their names, and the unknown come last.
        known.sort(key=lambda one: one[0], reverse=is_down)
        return [name for _, name in known] + unknown

    def _value(self, name: str, key: Key) -> int | None:
        table = ObjectId((*self._at.names, name))
        found = self._findings.get(table)
        if found is not None:
            return key(found)
        return self._sight.picture.look.tables[table].version if self._sort == "version" else None

    def _count_unknown(self, names: Sequence[str]) -> int:
        around = self._at.names
        return sum(self._findings.get(ObjectId((*around, name))) is None for name in names)

    def _namespace(self, one: ObjectId) -> ChildNamespace:
        sight = self._sight
        kept = sight.picture.look.namespaces.get(one) if sight.reads(one) else None
        return ChildNamespace(
            name=one.name,
            href=self._visit.links.namespace(one),
            tables=sight.count_tables(one),
            namespaces=sight.count_namespaces(one),
            description=_description(kept),
        )

    def _table(self, one: ObjectId) -> ChildTable:
        seen, found = self._sight.picture.look.tables[one], self._findings.get(one)
        # What was known of another table of this name is of no use.
        is_known = found is not None and found.seen.location == seen.location
        found = found if is_known else None
        found = found or Finding(found_at_ms=0, seen=seen)
        kept = found.properties if seen.properties is None else seen.properties
        return ChildTable(
            name=one.name,
            href=self._visit.links.table(one),
            description=_description(kept),
            version=found.version if seen.version is None else seen.version,
            rows=found.rows,
            columns=found.width,
            size_bytes=found.size_bytes,
            written_at_ms=found.written_at_ms,
            is_known=is_known,
            failure=found.failure,
            lack=self._lack(found),
        )

    def _lack(self, found: Finding) -> str:
        if not found.failure:
            return ""
        if found.lack is Absence.LANCE and self._visit.kind == "metastore":
            return "table of changes"
        return _LACKS[found.lack]

    def _recent(self) -> list[RecentTable]:
        if not self._at.is_root or self._name or self._page > 1:
            return []
        return recent_tables(self._sight, self._findings, self._visit.links)

    # -- what stands around ------------------------------------------------------------------------

    def _properties(self) -> dict[str, str] | None:
        if not self._sight.reads(self._at):
            return None
        kept = self._sight.picture.look.namespaces.get(self._at)
        if kept is None and not self._at.is_root:
            # Some kinds tell it by a request for each alone: this one can be asked for.
            with suppress(MooringError):
                kept = self._visit.backend.describe_namespace(self._at)
        return None if kept is None else dict(kept)

    def _heading(self, key: str, label: str) -> Heading:
        is_it = key == self._sort
        is_up = self._order == _ASCENDING
        # Who sorts by a number wants the largest first.
        first = _ASCENDING if key == _NAME else _DESCENDING
        order = (_DESCENDING if is_up else _ASCENDING) if is_it else first
        return Heading(
            key=key,
            label=label,
            href=self._href(sort=key, order=order, page=1),
            order=("ascending" if is_up else "descending") if is_it else "",
        )

    def _href(self, *, page: int, sort: str | None = None, order: str | None = None) -> str:
        sort, order = sort or self._sort, order or self._order
        is_usual = (sort, order) == (_NAME, _ASCENDING)
        return self._visit.links.namespace(
            self._at,
            name=self._name or None,
            sort=None if is_usual else sort,
            order=None if is_usual else order,
            page=page if page > 1 else None,
        )

    def _actions(self) -> dict[str, str]:
        visit, at = self._visit, self._at
        if not visit.may(Role.WRITER, at):
            return {}
        found = {}
        levels = visit.served.levels
        if levels is None or at.level + 1 < levels:
            found["Create namespace"] = visit.links.namespace(at, "create-namespace")
        if not at.is_root:
            found["Properties"] = visit.links.namespace(at, "properties")
            found["Drop"] = visit.links.namespace(at, "drop")
        return found


def _choice(visit: Visit, name: str, known: Sequence[str]) -> str:
    wanted = visit.query.get(name) or known[0]
    if wanted not in known:
        raise InvalidInputError(f"'{name}' is one of {', '.join(known)}, not {quote(wanted)}")
    return wanted


def _description(properties: Mapping[str, str] | None) -> str:
    return next((text for key in _DESCRIPTIONS if (text := (properties or {}).get(key))), "")
