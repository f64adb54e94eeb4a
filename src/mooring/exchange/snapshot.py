"""What a catalog names: its namespaces and tables, with their properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from mooring.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.catalog import Catalog
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.namespace.settings import Settings
    from mooring.store import Store

__all__ = [
    "NamespaceEntry",
    "Snapshot",
    "TableEntry",
    "directory_of",
    "relative",
    "take_snapshot",
]


class NamespaceEntry(msgspec.Struct, frozen=True, tag_field="type", tag="namespace"):
    """A line about a namespace; the root's identifier is empty."""

    id: tuple[str, ...]
    properties: dict[str, str] = {}


class TableEntry(msgspec.Struct, frozen=True, tag_field="type", tag="table"):
    """A line about a table; its location is relative to the root, or a URI outside of it."""

    id: tuple[str, ...]
    location: str
    properties: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a catalog names, sorted: so parents come before their children."""

    namespaces: Sequence[NamespaceEntry]
    tables: Sequence[TableEntry]

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.namespaces) + len(self.tables)


@runtime_checkable
class _Directory(Protocol):
    """What an exchange asks of a catalog beyond the operations that all have."""

    @property
    def levels(self) -> int | None: ...
    @property
    def store(self) -> Store: ...
    @property
    def settings(self) -> Settings: ...
    def describe_namespaces(self) -> list[tuple[ObjectId, Mapping[str, str]]]: ...
    def describe_tables(self) -> list[TableInfo]: ...
    def unrecorded_tables(self) -> list[ObjectId]: ...


def directory_of(catalog: Catalog) -> _Directory:
    """Return what a catalog tells beyond the operations that all have.

    Raises:
        UnsupportedError: this kind of catalog cannot tell.
    """
    if not isinstance(catalog.backend, _Directory):
        msg = (
            f"'{catalog.uri}' is not a directory of tables, and only those are exported and"
            " imported: register the tables of others by their locations"
        )
        raise UnsupportedError(msg)
    return catalog.backend


def relative(location: str, directory: _Directory) -> str:
    """Return a location as it stands in a snapshot."""
    return location.removeprefix(directory.store.location("").rstrip("/") + "/")


def take_snapshot(catalog: Catalog) -> Snapshot:
    """Read the names, locations and properties of everything that is live.

    Raises:
        UnsupportedError: this kind of catalog cannot tell.
    """
    directory = directory_of(catalog)
    # Tables first: the namespace of one that is made meanwhile is older than it.
    tables = [
        TableEntry(info.id.names, relative(info.location, directory), dict(info.properties))
        for info in directory.describe_tables()
    ]
    namespaces = [
        NamespaceEntry(name.names, dict(properties))
        for name, properties in directory.describe_namespaces()
    ]
    return Snapshot(namespaces, tables)
