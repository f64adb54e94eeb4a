"""The backend of a catalog that lies in storage, without anything that imports Lance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.manifest_backend import ManifestBackend
from mooring.errors import UnsupportedError
from mooring.metastore.backend import MetastoreBackend

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.opening import StoredBackend

__all__ = ["stored_backend"]


def stored_backend(catalog: Catalog) -> StoredBackend:
    """Return the backend of a catalog that lies in storage.

    Raises:
        UnsupportedError: the catalog is of another kind.
    """
    backend = catalog.backend
    if isinstance(backend, CompatBackend | ListingBackend | ManifestBackend | MetastoreBackend):
        return backend
    msg = f"'{catalog.uri}' does not lie in storage, and only such a catalog can be looked through"
    raise UnsupportedError(msg)
