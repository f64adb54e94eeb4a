"""The backends of catalogs that can be gone through, without anything that imports Lance."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.manifest_backend import ManifestBackend
from mooring.errors import UnsupportedError
from mooring.iceberg.backend import IcebergBackend
from mooring.metastore.backend import MetastoreBackend
from mooring.remote.backend import RemoteBackend

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.opening import StoredBackend

__all__ = ["WholeBackend", "stored_backend", "whole_backend"]

WholeBackend: TypeAlias = "StoredBackend | IcebergBackend | RemoteBackend"


def stored_backend(catalog: Catalog) -> StoredBackend:
    """Return the backend of a catalog that lies in storage.

    Raises:
        UnsupportedError: the catalog is of another kind.
    """
    backend = catalog.backend
    if isinstance(backend, CompatBackend | ListingBackend | ManifestBackend | MetastoreBackend):
        return backend
    msg = (
        f"'{catalog.uri}' is kept by a server, and only a catalog that lies in storage can be"
        ' audited: "mooring doctor" looks at the server, "mooring inventory" at its tables'
    )
    raise UnsupportedError(msg)


def whole_backend(catalog: Catalog) -> WholeBackend:
    """Return the backend of a catalog that tells all it holds, and purges what has expired.

    Raises:
        UnsupportedError: the catalog is of another kind.
    """
    backend = catalog.backend
    if isinstance(backend, IcebergBackend | RemoteBackend):
        return backend
    return stored_backend(catalog)
