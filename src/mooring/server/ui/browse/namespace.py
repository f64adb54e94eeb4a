"""What is in a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.errors import NamespaceNotFoundError
from mooring.identifiers import quote
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from mooring.server.ui.visit import Visit

__all__ = ["NamespaceView", "show_namespace"]


class ChildNamespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace in another."""

    name: str
    tables: int
    href: str


class ChildTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table in a namespace."""

    name: str
    href: str


class NamespaceView(View, frozen=True, kw_only=True):
    """A namespace, and what is in it."""

    id: list[str]
    properties: dict[str, str]
    namespaces: list[ChildNamespace]
    tables: list[ChildTable]


def show_namespace(visit: Visit) -> NamespaceView:
    """Show what is in a namespace.

    Raises:
        NamespaceNotFoundError: there is none.
    """
    picture, namespace = visit.atlas.picture(), visit.namespace
    if not (picture.has_namespace(namespace) and visit.sees(namespace)):
        raise NamespaceNotFoundError(f"there is no namespace {quote(str(namespace))}")
    below = [namespace.child(name) for name in picture.namespaces_in.get(namespace, ())]
    tables = [namespace.child(name) for name in picture.tables_in.get(namespace, ())]
    return NamespaceView(
        cli=visit.cli("ls", *([str(namespace)] if namespace.names else [])),
        id=list(namespace.names),
        properties=dict(picture.look.namespaces.get(namespace) or {}),
        namespaces=[
            ChildNamespace(
                name=one.name,
                tables=picture.tables_below.get(one, 0),
                href=visit.links.namespace(one),
            )
            for one in below
            if visit.sees(one)
        ],
        tables=[
            ChildTable(name=one.name, href=visit.links.table(one))
            for one in tables
            if visit.identity.role_in(visit.served.name, one)
        ],
    )
