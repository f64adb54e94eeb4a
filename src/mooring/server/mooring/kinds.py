"""The kinds of catalogs, as addresses of Mooring's tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mooring.opening import ICEBERG_SCHEME, METASTORE_SCHEME
from mooring.server.catalogs import MooringCatalog

if TYPE_CHECKING:
    from mooring.server.catalogs import Served

__all__ = ["Kind", "kind_of", "name_kind"]

Kind = Literal["directory", "metastore", "iceberg", "lance", "foreign"]

_LANCE_SCHEME = "lance+"
_BY_SCHEME: dict[str, Kind] = {
    METASTORE_SCHEME: "metastore",
    ICEBERG_SCHEME: "iceberg",
    _LANCE_SCHEME: "lance",
}
_NAMES: dict[Kind, str] = {
    "directory": "a directory of tables",
    "metastore": "a metastore",
    "iceberg": "an Iceberg catalog",
    "lance": "kept by another server",
    "foreign": "no catalog of Mooring's",
}


def kind_of(served: Served) -> Kind:
    """Tell what kind of catalog is served."""
    if not isinstance(served, MooringCatalog):
        return "foreign"
    uri = served.catalog.uri
    found = (kind for scheme, kind in _BY_SCHEME.items() if uri.startswith(scheme))
    return next(found, "directory")


def name_kind(kind: Kind) -> str:
    """Say in words what a catalog is."""
    return _NAMES[kind]
