"""The trash as a page: what was dropped, by whom, when, and how long it can come back."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from mooring.identifiers import DELIMITER, ObjectId
from mooring.server.roles import Role
from mooring.server.ui.lifespan import part_left
from mooring.server.ui.trash.droppers import name_droppers
from mooring.server.ui.trash.drops import Drops, drops_of
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mooring.feed.look import SeenDrop
    from mooring.server.ui.visit import Visit

__all__ = ["TrashView", "show_trash"]

PAGE_SIZE = 50
_ORDERS = ("dropped", "left", "name")
_TABLE, _NAMESPACE = "table", "namespace"
_FOR_EVER = float("inf")
_SOON, _SOONER = 0.3, 0.1
_SILENT = "The server that keeps this catalog has no trash that can be looked at."
# Beyond such a part of all it is quicker to sort them.
_MUCH = 8


class DroppedView(msgspec.Struct, frozen=True, kw_only=True):
    """A dropped table or namespace.

    Attributes:
        kind: ``table`` or ``namespace``.
        id: What it was called.
        by: Who dropped it; None where nobody knows.
        deleted_at_ms: When; None where nobody knows.
        expires_at_ms: When its time is over; None for never.
        left: The share of its time that is left; None where it stays for ever.
        tone: How the time that is left is drawn.
        is_expired: Whether the next purge takes it.
        location: Where a table lies in the catalog's storage, where that is known.
        tables: Of a namespace, how many tables went with it.
        namespaces: Of a namespace, how many namespaces did.
        is_earlier: Whether the same name was dropped again later.
        is_taken: Whether something live has the name.
        went_with: The namespace that it was dropped with; None where it was dropped on its own.
        href: The page of a dropped table; empty where its name leads to something else.
        contents: Where what went with a namespace is listed.
        undrop: Where it can be brought back; empty where it cannot, or not by whoever looks.
        purge: Where its bytes can be deleted; empty likewise.
    """

    kind: str
    id: list[str]
    by: str | None
    deleted_at_ms: int | None
    expires_at_ms: int | None
    left: float | None
    tone: str
    is_expired: bool
    location: str | None = None
    tables: int = 0
    namespaces: int = 0
    is_earlier: bool
    is_taken: bool
    went_with: list[str] | None = None
    href: str = ""
    contents: str = ""
    undrop: str = ""
    purge: str = ""


class TrashView(View, frozen=True, kw_only=True):
    """The trash.

    Attributes:
        within: The dropped namespace whose content is shown; None for the trash itself.
        at: When that was dropped.
        tables: How many tables are in it, at all.
        namespaces: How many namespaces were dropped on their own.
        expired: How many of the tables the next purge takes.
        matching: How many rows there are for what is looked for.
        first: The number of the first that is shown.
        rows: Those that are shown.
        sort: Their order.
        q: What is looked for in names.
        sorts: Where the other orders are.
        newer: Where those before are.
        older: Where the next are.
        purge_expired: Where all that expired can be purged; empty where it cannot.
        back: Where the whole trash is.
        note: Why there is nothing, where the catalog cannot have a trash.
    """

    within: list[str] | None = None
    at: int = 0
    tables: int
    namespaces: int
    expired: int
    matching: int
    first: int
    rows: list[DroppedView]
    sort: str
    q: str
    sorts: dict[str, str]
    newer: str = ""
    older: str = ""
    purge_expired: str = ""
    back: str = ""
    note: str = ""


# Of which kind it is, and its drop.
_Entry: TypeAlias = "tuple[str, SeenDrop]"


def show_trash(visit: Visit) -> TrashView:
    """Show the trash, or what went with a namespace that is in it.

    Raises:
        UnsupportedError: it is no catalog of Mooring's.
        InvalidInputError: a parameter makes no sense.
    """
    drops = drops_of(visit)
    chosen = _Chosen.of(visit)
    found = chosen.find(drops)
    matching = sum(map(len, found.values()))
    at = (chosen.page - 1) * PAGE_SIZE
    # One after the other: a hundred thousand at once would be much to clear away.
    entries = ((kind, one) for kind, some in found.items() for one in some)
    end = at + PAGE_SIZE
    first = nsmallest if end * _MUCH < matching else _smallest
    shown = first(end, entries, key=chosen.order)[at:]
    return TrashView(
        cli=visit.cli("trash", "list"),
        within=None if chosen.within is None else list(chosen.within.names),
        at=chosen.at_ms,
        tables=drops.table_count,
        namespaces=len(drops.namespaces),
        expired=drops.count_expired(visit.now_ms),
        matching=matching,
        first=at + 1,
        rows=_Rows(visit, drops, shown).rows(),
        sort=chosen.sort,
        q=chosen.q,
        sorts={order: chosen.href(sort=order) for order in _ORDERS},
        newer=chosen.href(page=chosen.page - 1) if chosen.page > 1 else "",
        older=chosen.href(page=chosen.page + 1) if end < matching else "",
        purge_expired=visit.links.to("purge-expired") if visit.may(Role.ADMIN) else "",
        back=visit.links.to("trash"),
        note=_note(visit),
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What of the trash is asked for."""

    visit: Visit
    within: ObjectId | None
    at_ms: int
    sort: str
    q: str
    page: int

    @classmethod
    def of(cls, visit: Visit) -> _Chosen:
        within = visit.query.get("within")
        sort = visit.query.get("sort", "")
        return cls(
            visit,
            visit.parse(within) if within else None,
            visit.number("at") or 0,
            sort if sort in _ORDERS else _ORDERS[0],
            visit.query.get("q", "").strip(),
            visit.number("page", least=1) or 1,
        )

    def find(self, drops: Drops) -> dict[str, Sequence[SeenDrop]]:
        """Return what is asked for, of each kind, in no order."""
        tables, namespaces = drops.tables, drops.namespaces
        if self.within is None and self.q:
            tables = [*drops.all_tables]  # whoever looks for one may not know what it went with
        elif self.within is not None:
            moment = self.within, self.at_ms
            tables = drops.tables_with.get(moment, ())
            namespaces = drops.namespaces_with.get(moment, ())
        return {_NAMESPACE: self._matching(namespaces), _TABLE: self._matching(tables)}

    def _matching(self, drops: Sequence[SeenDrop]) -> Sequence[SeenDrop]:
        wanted = self.q.casefold()
        if not wanted:
            return drops
        return [one for one in drops if wanted in DELIMITER.join(one.id.names).casefold()]

    def order(self, entry: _Entry) -> tuple[object, ...]:
        drop = entry[1]
        match self.sort:
            case "name":
                return drop.id.names, -drop.deleted_at_ms
            case "left":
                ends = _FOR_EVER if drop.expires_at_ms is None else drop.expires_at_ms
                return ends, drop.id.names
            case _:
                return -drop.deleted_at_ms, drop.id.names

    def href(self, *, sort: str | None = None, page: int = 1) -> str:
        """Return where the same is in another order, or another page of it."""
        return self.visit.links.to(
            "trash",
            within=DELIMITER.join(self.within.names) if self.within else None,
            at=self.at_ms if self.within else None,
            q=self.q or None,
            sort=sort or self.sort,
            page=page if page > 1 else None,
        )


class _Rows:
    """Makes the rows of a page."""

    def __init__(self, visit: Visit, drops: Drops, shown: Sequence[_Entry]) -> None:
        self._visit = visit
        self._drops = drops
        self._shown = shown
        self._look = visit.atlas.picture().look
        wanted = {drop.id for _, drop in shown}
        self._newest: dict[tuple[str, ObjectId], int] = {}
        for kind, some in ((_TABLE, self._look.drops), (_NAMESPACE, self._look.namespace_drops)):
            for one in some:
                if one.id in wanted:
                    key = kind, one.id
                    self._newest[key] = max(one.deleted_at_ms, self._newest.get(key, 0))

    def rows(self) -> list[DroppedView]:
        unknown = [
            drop
            for kind, drop in self._shown
            if kind == _TABLE and drop.by is None and not self._is_earlier((kind, drop))
        ]
        # An Iceberg catalog never knows, and would be asked for each.
        is_known = self._visit.kind != "iceberg"
        named = name_droppers(self._visit.backend, unknown) if is_known else {}
        return [self._row(one, named) for one in self._shown]

    def _is_earlier(self, entry: _Entry) -> bool:
        kind, drop = entry
        return drop.deleted_at_ms < self._newest[kind, drop.id]

    def _row(self, entry: _Entry, named: Mapping[ObjectId, str]) -> DroppedView:
        (kind, drop), now_ms = entry, self._visit.now_ms
        left = part_left(drop.deleted_at_ms, drop.expires_at_ms, now_ms)
        is_earlier = self._is_earlier(entry)
        live = self._look.tables if kind == _TABLE else self._look.namespaces
        moment = drop.id, drop.deleted_at_ms
        tables = len(self._drops.tables_with.get(moment, ())) if kind == _NAMESPACE else 0
        namespaces = len(self._drops.namespaces_with.get(moment, ()))
        above = self._drops.namespace_of(drop)
        undrop, purge = self._ways(entry, is_earlier=is_earlier)
        return DroppedView(
            kind=kind,
            id=list(drop.id.names),
            by=drop.by or (None if is_earlier else named.get(drop.id)),
            deleted_at_ms=drop.deleted_at_ms or None,
            expires_at_ms=drop.expires_at_ms,
            left=left,
            tone=_tone(left),
            is_expired=_is_over(drop, now_ms),
            location=drop.location,
            tables=tables,
            namespaces=namespaces,
            is_earlier=is_earlier,
            is_taken=drop.id in live,
            went_with=None if above is None else list(above.names),
            href=self._page_of(drop) if kind == _TABLE and above is None and not is_earlier else "",
            contents=self._contents(drop) if tables or namespaces else "",
            undrop=undrop,
            purge=purge,
        )

    def _page_of(self, drop: SeenDrop) -> str:
        return "" if drop.id in self._look.tables else self._visit.links.table(drop.id)

    def _contents(self, drop: SeenDrop) -> str:
        within = DELIMITER.join(drop.id.names)
        return self._visit.links.to("trash", within=within, at=drop.deleted_at_ms)

    def _ways(self, entry: _Entry, *, is_earlier: bool) -> tuple[str, str]:
        """Return the ways out of the trash, back and for good, that are open to whoever looks."""
        visit, (kind, drop) = self._visit, entry
        one = drop.id
        to = visit.links.table if kind == _TABLE else visit.links.namespace
        # One that went with another namespace comes back, or goes, with that.
        is_inner = kind == _NAMESPACE and drop not in self._drops.namespaces
        if is_earlier or is_inner:
            return "", ""
        undrop = to(one, "undrop") if visit.may(Role.WRITER, one) else ""
        return undrop, to(one, "purge") if visit.may(Role.ADMIN, one) else ""


def _note(visit: Visit) -> str:
    is_silent = visit.kind == "lance" and getattr(visit.backend, "facts", None) is None
    return _SILENT if is_silent else ""


def _smallest(
    number: int, entries: Iterable[_Entry], key: Callable[[_Entry], tuple[object, ...]]
) -> list[_Entry]:
    """Return the first of some, in order, where they are a large part of them."""
    return sorted(entries, key=key)[:number]


def _tone(left: float | None) -> str:
    if left is None or left > _SOON:
        return ""
    return "warn" if left > _SOONER else "bad"


def _is_over(drop: SeenDrop, now_ms: int) -> bool:
    return drop.expires_at_ms is not None and drop.expires_at_ms <= now_ms
