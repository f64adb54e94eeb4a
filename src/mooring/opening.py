"""From a path or URI to a catalog."""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

from mooring.catalog import Catalog
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.layout import TABLE_SUFFIX
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.manifest import MANIFEST_DIR
from mooring.directory.manifest_backend import ManifestBackend
from mooring.directory.sharing import share_manifest
from mooring.errors import InvalidInputError
from mooring.namespace.home import Home
from mooring.namespace.settings import METASTORE
from mooring.store import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.iceberg.backend import IcebergBackend
    from mooring.metastore.backend import MetastoreBackend
    from mooring.metastore.recognition import Layout
    from mooring.remote.backend import RemoteBackend

__all__ = [
    "ICEBERG_SCHEME",
    "METASTORE_SCHEME",
    "REMOTE_SCHEME",
    "DirectoryBackend",
    "StoredBackend",
    "connect",
    "current_author",
    "open_directory",
    "open_iceberg",
    "open_metastore",
    "open_remote",
]

DirectoryBackend: TypeAlias = CompatBackend | ListingBackend | ManifestBackend
StoredBackend: TypeAlias = "DirectoryBackend | MetastoreBackend"

METASTORE_SCHEME = "metastore+"
ICEBERG_SCHEME = "iceberg+"
REMOTE_SCHEME = "lance+"
# What storage options begin with that are properties of a catalog that a server keeps.
_ICEBERG, _LANCE = "iceberg.", "lance."


def connect(
    uri: str | os.PathLike[str],
    *,
    read_only: bool = False,
    author: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    manifest_enabled: bool = True,
    dir_listing_enabled: bool = True,
    managed_versioning: bool = False,
    dialect: str | None = None,
    beside_others: bool = False,
) -> Catalog:
    """Open a catalog; nothing is written by opening it.

    Args:
        uri: A path, or an ``s3://``, ``gs://`` or ``az://`` URI, of a directory of Lance tables;
            ``metastore+`` before it opens a metastore instead. ``iceberg+http://`` or
            ``iceberg+https://`` opens an Iceberg REST catalog, ``lance+http://`` or
            ``lance+https://`` what any Lance REST server keeps; what follows ``?`` are properties
            of it, as in ``?warehouse=lake&managed_by=impl``.
        read_only: Refuse every change, and ask for no permission to write.
        author: In whose name changes are recorded; ``MOORING_USER`` or the user of the operating
            system unless given.
        storage_options: Credentials and settings of the store, named as Lance names them. Those
            that begin with ``iceberg.`` are properties of an Iceberg catalog: ``iceberg.token``,
            ``iceberg.credential``, ``iceberg.root``; those that begin with ``lance.``, of a Lance
            REST server: ``lance.token``, ``lance.credential``, ``lance.api_key``.
        manifest_enabled: Use the catalog's manifest, which namespaces and renames need.
        dir_listing_enabled: Find root tables by their `<name>.lance` directories, too.
        managed_versioning: Tell Lance to commit through the catalog, for whoever opens a table
            through it; a catalog's settings can ask for that, too. A metastore always does.
        dialect: The layout of a new metastore: ``document``, the default, or ``deltacat``, that of
            its library. One that is there must be of it.
        beside_others: Change a metastore of deltacat's while its own writers do, too.

    Raises:
        InvalidInputError: the URI or an option makes no sense.
        ConflictError: the metastore is of another dialect.
        CatalogFormatError: the catalog is newer than this release.
        MissingExtraError: what speaks to servers is not installed.
    """
    if not isinstance(uri, str | os.PathLike):
        msg = f"a catalog is named by a path or a URI, not by {type(uri).__name__}"
        raise InvalidInputError(msg)
    text = os.fspath(uri)
    given: dict[str, Any] = {
        "read_only": read_only,
        "author": author or current_author(),
        "storage_options": dict(storage_options or {}),
        "manifest_enabled": manifest_enabled,
        "dir_listing_enabled": dir_listing_enabled,
        "managed_versioning": managed_versioning,
        "dialect": dialect,
        "beside_others": beside_others,
    }
    if text.startswith((ICEBERG_SCHEME, REMOTE_SCHEME)):
        if not (manifest_enabled and dir_listing_enabled) or dialect or beside_others:
            msg = "what a server keeps has neither a manifest, a listing nor a dialect to choose"
            raise InvalidInputError(msg)
        scheme, _, address = text.partition("+")
        open_kept = open_iceberg if f"{scheme}+" == ICEBERG_SCHEME else open_remote
        kept = open_kept(address, storage_options or {}, read_only=read_only, author=author)
        return Catalog(kept, text, given)
    if text.startswith(METASTORE_SCHEME):
        root = text.removeprefix(METASTORE_SCHEME)
        if not (manifest_enabled and dir_listing_enabled):
            msg = "a metastore has neither a manifest nor a listing that could be left out"
            raise InvalidInputError(msg)
        metastore = open_metastore(
            root,
            storage_options or {},
            read_only=read_only,
            author=author,
            dialect=dialect,
            beside_others=beside_others,
        )
        return Catalog(metastore, text, given)
    if dialect is not None or beside_others:
        msg = "a dialect is that of a metastore: open one with 'metastore+' before its path or URI"
        raise InvalidInputError(msg)
    backend = open_directory(
        text,
        storage_options or {},
        read_only=read_only,
        author=author,
        manifest_enabled=manifest_enabled,
        dir_listing_enabled=dir_listing_enabled,
        managed_versioning=managed_versioning,
    )
    return Catalog(backend, text, given)


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


def open_metastore(  # a root and options, the rest by name
    root: str,
    options: Mapping[str, str],
    *,
    read_only: bool = False,
    author: str | None = None,
    dialect: str | None = None,
    beside_others: bool = False,
) -> MetastoreBackend:
    """Open the backend of a metastore.

    Raises:
        InvalidInputError: a directory of tables is there, or there is no such dialect.
        ConflictError: the metastore is of another dialect.
    """
    # What directories do not need.
    from mooring.metastore.backend import MetastoreBackend
    from mooring.metastore.recognition import open_metastore as open_objects

    layout = _parse_dialect(dialect)
    home = Home(
        open_store(root, options),
        author=author or current_author(),
        read_only=read_only,
        kind=METASTORE,
    )
    _require_no_tables(home)
    metastore = open_objects(
        home.store,
        author=home.author,
        layout=layout,
        clock=home.clock,
        ids=home.ids,
        beside_others=beside_others,
    )
    return MetastoreBackend(home, metastore)


def open_iceberg(
    uri: str,
    options: Mapping[str, str],
    *,
    read_only: bool = False,
    author: str | None = None,
) -> IcebergBackend:
    """Open the backend of an Iceberg catalog; nothing is asked of its server yet.

    Args:
        uri: The server's address; what follows ``?`` are properties.
        options: Storage options, and properties that begin with ``iceberg.``.
        read_only: Refuse every change.
        author: In whose name changes are recorded.

    Raises:
        InvalidInputError: a property is unknown or makes no sense.
        MissingExtraError: what speaks to servers is not installed.
    """
    from mooring.iceberg.opening import open_iceberg as open_backend  # what directories need not

    properties, storage = _split(uri, options, _ICEBERG)
    return open_backend(properties, storage, author=author or current_author(), read_only=read_only)


def open_remote(
    uri: str,
    options: Mapping[str, str],
    *,
    read_only: bool = False,
    author: str | None = None,
) -> RemoteBackend:
    """Open the backend of what a Lance REST server keeps; nothing is asked of it yet.

    Args:
        uri: The server's address; what follows ``?`` are properties.
        options: Storage options, and properties that begin with ``lance.``.
        read_only: Refuse every change.
        author: In whose name tables are written.

    Raises:
        InvalidInputError: a property is unknown or makes no sense.
        MissingExtraError: what speaks to servers is not installed.
    """
    from mooring.remote.opening import open_remote as open_backend  # what directories need not

    properties, storage = _split(uri, options, _LANCE)
    return open_backend(properties, storage, author=author or current_author(), read_only=read_only)


def _split(
    uri: str, options: Mapping[str, str], mark: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Tell properties of a server from options of the storage behind it."""
    address, _, query = uri.partition("?")
    storage = {key: value for key, value in options.items() if not key.startswith(mark)}
    given = {
        key.removeprefix(mark): value for key, value in options.items() if key.startswith(mark)
    }
    return {"uri": address, **dict(parse_qsl(query, keep_blank_values=True)), **given}, storage


def _parse_dialect(name: str | None) -> Layout | None:
    from mooring.metastore.recognition import Layout

    if name is None:
        return None
    known = [layout.value for layout in Layout if layout is not Layout.EMPTY]
    if name not in known:
        msg = f"'{name}' is no dialect of a metastore: use one of {', '.join(known)}"
        raise InvalidInputError(msg)
    return Layout(name)


def _require_no_tables(home: Home) -> None:
    """Refuse a directory of tables that has no settings to say so."""
    if home.settings.revision:
        return
    found = home.store.list_dir("").directories
    if MANIFEST_DIR in found or any(name.endswith(TABLE_SUFFIX) for name in found):
        where = home.store.location("")
        msg = f"'{where}' is a directory of tables: open it without 'metastore+'"
        raise InvalidInputError(msg)


def current_author() -> str:
    """Tell in whose name changes are recorded: ``MOORING_USER``, or the system's user."""
    named = os.environ.get("MOORING_USER")
    if named:
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid-{os.getuid()}"
