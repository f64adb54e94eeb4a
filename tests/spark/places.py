"""Catalogs that a driver in another process can open, one of every kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mooring
from mooring.identifiers import ObjectId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.catalog import Catalog

__all__ = ["DISK", "KINDS", "SEAWEEDFS", "Place"]

DISK = ("v1-disk", "v2-disk", "metastore-disk")
SEAWEEDFS = ("v1-seaweedfs", "v2-seaweedfs", "metastore-seaweedfs")
KINDS = (*DISK, *SEAWEEDFS)


@dataclass(frozen=True)
class Place:
    """A catalog and a table in it, as text that travels.

    Attributes:
        uri: The catalog.
        names: The table.
        options: The arguments of ``mooring.connect``.
    """

    uri: str
    names: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: str, where: str, storage: Mapping[str, str] | None = None) -> Place:
        """Make a catalog of a kind and the namespace that the table will lie in."""
        options: dict[str, Any] = {"storage_options": dict(storage)} if storage else {}
        if kind.startswith("v1"):
            return cls(where, ("t",), {**options, "manifest_enabled": False})
        prefix = "metastore+" if kind.startswith("metastore") else ""
        place = cls(prefix + where, ("ns", "t"), options)
        place.open().create_namespace(["ns"])
        return place

    @property
    def name(self) -> ObjectId:
        """The table's identifier."""
        return ObjectId(self.names)

    def open(self) -> Catalog:
        """Open the catalog."""
        return mooring.connect(self.uri, **self.options)
