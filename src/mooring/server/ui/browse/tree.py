"""The tree beside pages: the way to where one is, opened, with what lies left and right of it.

It stands beside every page of a table, so it is cut short: of many siblings it shows some around
the one that leads on, and says how many more there are.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import MooringError, NamespaceNotFoundError
from mooring.identifiers import ROOT, ObjectId, quote
from mooring.server.ui.atlas.sight import Sight
from mooring.server.ui.links import JSON_ENDING
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.visit import Visit

__all__ = ["Branch", "TreeView", "show_tree", "tree_of"]

_MOST_SIBLINGS = 40
_MOST_TABLES = 30
_MOST_OPENED = 200
_MOST_LEVELS = 24


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace or table in the tree.

    Attributes:
        name: Its own name.
        href: Its page.
        is_table: Whether it is a table.
        tables: How many tables lie in it, at any depth.
        is_current: Whether it is what the page is about.
        is_open: Whether what lies in it is shown.
        twin: Where what lies in it can be had as JSON; empty where nothing does.
        branches: What lies in it, as far as it is shown.
        more: How many more do.
    """

    name: str
    href: str
    is_table: bool = False
    tables: int = 0
    is_current: bool = False
    is_open: bool = False
    twin: str = ""
    branches: list[Branch] = []
    more: int = 0


class TreeView(View, frozen=True, kw_only=True):
    """What lies in a namespace, for the tree."""

    id: list[str]
    branches: list[Branch]
    more: int
    href: str


def show_tree(visit: Visit) -> TreeView:
    """Show what lies in a namespace, one level deep.

    Raises:
        NamespaceNotFoundError: there is none.
    """
    namespace = visit.namespace
    sight = Sight.of(visit.atlas.picture(), visit.identity, visit.served.name)
    if not (sight.picture.has_namespace(namespace) and sight.sees(namespace)):
        raise NamespaceNotFoundError(f"there is no namespace {quote(str(namespace))}")
    maker = _Maker(visit, sight, namespace)
    branches, more = maker.inside(namespace, _MOST_OPENED, _MOST_OPENED)
    return TreeView(
        cli=visit.cli("ls", names=[str(namespace)] if namespace.names else []),
        id=list(namespace.names),
        branches=branches,
        more=more,
        href=visit.links.namespace(namespace),
    )


def tree_of(visit: Visit) -> Branch | None:
    """Return the tree for the page of a namespace or table; None where nothing can be seen."""
    try:
        about = visit.table if "table" in visit.path else visit.namespace
        picture = visit.atlas.picture()
    except MooringError:
        return None  # the page itself says what is the matter
    if about in picture.look.tables:
        visit.atlas.surveyor.want([about])
    sight = Sight.of(picture, visit.identity, visit.served.name)
    return _Maker(visit, sight, about).root()


class _Maker:
    """Makes a tree."""

    def __init__(self, visit: Visit, sight: Sight, about: ObjectId) -> None:
        self._visit = visit
        self._sight = sight
        self._about = about
        self._is_table = "table" in visit.path

    def root(self) -> Branch:
        """Return all of it; of a long way, its end."""
        above = ObjectId(self._about.names[: max(0, self._about.level - _MOST_LEVELS)])
        if above.is_root or not self._sight.picture.has_namespace(above):
            return self._namespace(ROOT, self._visit.served.name)
        return self._namespace(above, f"… {above.name}")

    def inside(
        self, around: ObjectId, most_namespaces: int = _MOST_SIBLINGS, most_tables: int = 0
    ) -> tuple[list[Branch], int]:
        """Return what lies in a namespace, and how much more."""
        way = self._about.names[around.level : around.level + 1]
        on = way[0] if way and self._about.names[: around.level] == around.names else ""
        namespaces = self._sight.namespaces_in(around)
        tables = self._sight.tables_in(around)
        shown = _around(namespaces, on, most_namespaces)
        found = [self._namespace(ObjectId((*around.names, name)), name) for name in shown]
        found += [self._table(around, name) for name in _around(tables, on, most_tables)]
        return found, len(namespaces) + len(tables) - len(found)

    def _namespace(self, one: ObjectId, label: str) -> Branch:
        is_open = self._about.names[: one.level] == one.names
        home = self._about.parent if self._is_table else self._about
        branches: list[Branch] = []
        more = 0
        if is_open:
            branches, more = self.inside(one, most_tables=_MOST_TABLES if one == home else 0)
        is_empty = not (self._sight.namespaces_in(one) or self._sight.tables_in(one))
        links = self._visit.links
        return Branch(
            name=label,
            href=links.namespace(one),
            tables=self._sight.count_tables(one),
            is_current=one == self._about and not self._is_table,
            is_open=is_open,
            twin="" if is_empty else links.namespace(one, f"tree{JSON_ENDING}"),
            branches=branches,
            more=more,
        )

    def _table(self, around: ObjectId, name: str) -> Branch:
        one = ObjectId((*around.names, name))
        is_current = self._is_table and one == self._about
        return Branch(
            name=name, href=self._visit.links.table(one), is_table=True, is_current=is_current
        )


def _around(names: Sequence[str], name: str, most: int) -> Sequence[str]:
    """Return as many sorted names as are shown, those around a name."""
    if len(names) <= most:
        return names
    place = bisect_left(names, name) if name else 0
    start = max(0, min(place - most // 2, len(names) - most))
    return names[start : start + most]
