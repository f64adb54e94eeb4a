"""What a request touches, so that nobody reaches what they may not."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import MooringError
from mooring.identifiers import ROOT, ObjectId
from mooring.server.iceberg import commits, making, namespaces, tables
from mooring.server.roles import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.iceberg.calls import Call
    from mooring.server.iceberg.routes import Route

__all__ = ["check", "touched"]

_CONFIG = "/v1/config"


class _Table(msgspec.Struct, frozen=True):
    namespace: list[str]
    name: str


class _Named(msgspec.Struct, frozen=True):
    namespace: list[str]


class _Placed(msgspec.Struct, frozen=True):
    name: str
    location: str | None = None


class _Rename(msgspec.Struct, frozen=True):
    source: _Table
    destination: _Table


class _Part(msgspec.Struct, frozen=True):
    identifier: _Table


class _Transaction(msgspec.Struct, frozen=True):
    table_changes: list[_Part] = msgspec.field(name="table-changes")


def touched(call: Call, route: Route) -> Sequence[ObjectId]:
    """Return all that a request is about, as far as it can be read."""
    with suppress(MooringError):  # the operation words it better
        return () if route.path == _CONFIG else _touched(call, route)
    return ()


def check(call: Call, route: Route) -> None:
    """Refuse what is not allowed.

    Raises:
        PermissionDeniedError: it is not allowed.
        InvalidInputError: the request cannot be read.
    """
    role = Role.WRITER if route.changes else Role.READER
    call.identity.require_somewhere(role, call.catalog)
    if route.path == _CONFIG or call.identity.may(role, call.catalog):
        return
    objects = _touched(call, route)
    if route.run in {namespaces.list_namespaces, tables.list_tables} and all(
        call.identity.sees(call.catalog, one) for one in objects
    ):
        return  # what is below and not allowed is left out of the answer
    call.identity.require(role, call.catalog, objects)


def _touched(call: Call, route: Route) -> list[ObjectId]:
    if route.run is namespaces.create_namespace:
        return [call.names.namespace(call.read(_Named).namespace)]
    if route.run is tables.rename_table:
        asked = call.read(_Rename)
        return [_id(call, asked.source), _id(call, asked.destination)]
    if route.run is commits.commit_transaction:
        return [_id(call, one.identifier) for one in call.read(_Transaction).table_changes]
    if route.run in {making.create_table, making.register_table}:
        placed = call.read(_Placed)
        is_placed = placed.location or route.run is making.register_table
        # A location is a way around names: it takes the role in the whole catalog.
        return [call.namespace.child(placed.name), *([ROOT] if is_placed else [])]
    return [_in_path(call)]


def _in_path(call: Call) -> ObjectId:
    if "table" in call.path:
        return call.table
    return call.namespace if "namespace" in call.path else ROOT


def _id(call: Call, table: _Table) -> ObjectId:
    return call.names.table(table.namespace, table.name)
