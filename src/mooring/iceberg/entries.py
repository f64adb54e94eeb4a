"""Letting a table's entry go, and keeping the bytes.

An Iceberg catalog is told not to purge, and some delete all that lies at a table's location all the
same. So a server is tried before it is trusted: with a table of no worth, once. Where it deletes,
an entry stays, under a name that nobody looks for.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mooring.errors import (
    InvalidInputError,
    MooringError,
    UnsupportedError,
)
from mooring.iceberg.connection import TRASH
from mooring.iceberg.properties import ManagedBy, own_properties
from mooring.identifiers import ObjectId

if TYPE_CHECKING:
    from mooring.iceberg.client import LoadedTable
    from mooring.iceberg.connection import Connection
    from mooring.iceberg.table import IcebergTable

__all__ = ["forgotten_name", "is_forgotten", "keeps_bytes", "release"]

_FORGOTTEN = "f"
_CANARY = "canary"
_NO_COLUMNS = {"type": "struct", "schema-id": 0, "fields": []}


def forgotten_name(connection: Connection) -> ObjectId:
    """Return a name in the trash that nobody looks for."""
    return ObjectId((TRASH, f"{_FORGOTTEN}_{connection.ids.new_id()}"))


def is_forgotten(name: ObjectId) -> bool:
    """Whether an entry has such a name: whoever lets it go wants its bytes to stay for good."""
    return name.parent.names == (TRASH,) and name.name.startswith(f"{_FORGOTTEN}_")


def release(connection: Connection, name: ObjectId, table: IcebergTable) -> None:
    """Let an entry go whose name in the trash nobody looks for.

    Args:
        connection: The server.
        name: The name that the entry has now.
        table: What it is the entry of.
    """
    # It is forgotten already; an entry that stays is in nobody's way.
    with suppress(MooringError):
        if keeps_bytes(connection, table):
            connection.client.drop_table(name.parent.names, name.name)


def keeps_bytes(connection: Connection, table: IcebergTable) -> bool:
    """Whether the server leaves files alone when an entry goes; found out by trying, once.

    Args:
        connection: The server.
        table: A table beside which it is tried.
    """
    if connection.keeps_bytes is None:
        try:
            connection.keeps_bytes = _survives(connection, table)
        except (InvalidInputError, UnsupportedError):
            connection.keeps_bytes = False  # it takes no such table: better safe
    return connection.keeps_bytes


def _create(connection: Connection, name: ObjectId, location: str | None) -> LoadedTable:
    return connection.client.create_table(
        name.parent.names,
        name.name,
        schema=_NO_COLUMNS,
        location=location,
        properties=own_properties(ManagedBy.STORAGE),
    )


def _survives(connection: Connection, beside: IcebergTable) -> bool:
    """Make a table with a file, let its entry go, and look for the file."""
    client, name = connection.client, forgotten_name(connection)
    location = f"{beside.metadata['location'].rstrip('/')}-{_CANARY}-{name.name[-12:]}"
    try:
        loaded = _create(connection, name, location)
    except InvalidInputError:
        loaded = _create(connection, name, None)  # it chooses all locations itself
    place = connection.read(name, loaded).place
    store, path = place.store, place.path(f"data/{_CANARY}")
    store.put(path, b"the server must leave this file alone")
    try:
        client.drop_table(name.parent.names, name.name)
        return store.head(path) is not None
    finally:
        with suppress(MooringError):
            store.delete_prefix(place.directory)
            store.prune(place.directory)
