"""From a path or URI to a catalog."""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING, TypeAlias

from mooring.catalog import Catalog
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.manifest_backend import ManifestBackend
from mooring.directory.sharing import share_manifest
from mooring.errors import InvalidInputError, UnsupportedError
from mooring.namespace.home import Home
from mooring.namespace.settings import METASTORE
from mooring.store import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.metastore.backend import MetastoreBackend

__all__ = [
    "METASTORE_SCHEME",
    "DirectoryBackend",
    "StoredBackend",
    "connect",
    "current_author",
    "open_directory",
    "open_metastore",
]

DirectoryBackend: TypeAlias = CompatBackend | ListingBackend | ManifestBackend
StoredBackend: TypeAlias = "DirectoryBackend | MetastoreBackend"

# Kinds of catalogs that the contract names and this release does not open yet.
_LATER = ("iceberg+", "lance+")
METASTORE_SCHEME = "metastore+"


def connect(
    uri: str | os.PathLike[str],
    *,
    read_only: bool = False,
    author: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    manifest_enabled: bool = True,
    dir_listing_enabled: bool = True,
    managed_versioning: bool = False,
) -> Catalog:
    """Open a catalog; nothing is written by opening it.

    Args:
        uri: A path, or an ``s3://``, ``gs://`` or ``az://`` URI, of a directory of Lance tables;
            ``metastore+`` before it opens a metastore instead.
        read_only: Refuse every change, and ask for no permission to write.
        author: In whose name changes are recorded; ``MOORING_USER`` or the user of the operating
            system unless given.
        storage_options: Credentials and settings of the store, named as Lance names them.
        manifest_enabled: Use the catalog's manifest, which namespaces and renames need.
        dir_listing_enabled: Find root tables by their `<name>.lance` directories, too.
        managed_versioning: Tell Lance to commit through the catalog, for whoever opens a table
            through it; a catalog's settings can ask for that, too.

    Raises:
        InvalidInputError: the URI or an option makes no sense.
        CatalogFormatError: the catalog is newer than this release.
        UnsupportedError: this release does not open that kind of catalog.
    """
    text = os.fspath(uri)
    if text.startswith(_LATER):
        kind = text.partition("+")[0]
        msg = f"this release opens directories of Lance tables, not yet '{kind}+' catalogs"
        raise UnsupportedError(msg)
    if text.startswith(METASTORE_SCHEME):
        root = text.removeprefix(METASTORE_SCHEME)
        metastore = open_metastore(root, storage_options or {}, read_only=read_only, author=author)
        return Catalog(metastore, text)
    backend = open_directory(
        text,
        storage_options or {},
        read_only=read_only,
        author=author,
        manifest_enabled=manifest_enabled,
        dir_listing_enabled=dir_listing_enabled,
        managed_versioning=managed_versioning,
    )
    return Catalog(backend, text)


def open_directory(  # a root and options, the rest by name
    root: str,
    options: Mapping[str, str],
    *,
    read_only: bool = False,
    author: str | None = None,
    manifest_enabled: bool = True,
    dir_listing_enabled: bool = True,
    managed_versioning: bool = False,
) -> DirectoryBackend:
    """Open the backend of a directory catalog.

    Raises:
        InvalidInputError: neither manifest nor listing is wanted.
    """
    home = Home(
        open_store(root, options),
        author=author or current_author(),
        read_only=read_only,
        managed_versioning=managed_versioning,
    )
    if not manifest_enabled:
        if not dir_listing_enabled:
            msg = "without a manifest, dir_listing_enabled=false leaves nothing to read"
            raise InvalidInputError(msg)
        return ListingBackend(home)
    manifest = share_manifest(home)
    return CompatBackend(home, manifest=manifest, listing=dir_listing_enabled)


def open_metastore(
    root: str,
    options: Mapping[str, str],
    *,
    read_only: bool = False,
    author: str | None = None,
) -> MetastoreBackend:
    """Open the backend of a metastore."""
    from mooring.metastore.backend import MetastoreBackend  # what directories do not need

    home = Home(
        open_store(root, options),
        author=author or current_author(),
        read_only=read_only,
        kind=METASTORE,
    )
    return MetastoreBackend(home)


def current_author() -> str:
    """Tell in whose name changes are recorded: ``MOORING_USER``, or the system's user."""
    named = os.environ.get("MOORING_USER")
    if named:
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid-{os.getuid()}"
