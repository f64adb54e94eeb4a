"""Everything a catalog names, with its state, in the words of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mooring.clock import format_time
from mooring.errors import UnsupportedError
from mooring.identifiers import ROOT

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.directory.decisions import Hint
    from mooring.iceberg.backend import IcebergBackend
    from mooring.identifiers import ObjectId
    from mooring.metastore.backend import MetastoreBackend
    from mooring.namespace.states import Standing
    from mooring.opening import DirectoryBackend, StoredBackend
    from mooring.remote.backend import RemoteBackend
    from mooring.upkeep.stored import WholeBackend

__all__ = [
    "DEREGISTERED",
    "DROPPED",
    "LISTED_COLUMNS",
    "LIVE",
    "PURGED",
    "PURGING",
    "UNFINISHED",
    "Listed",
    "as_time",
    "can_undrop",
    "change_tables",
    "count_below",
    "directory_of",
    "is_below",
    "is_iceberg",
    "is_remote",
    "kind_of",
    "list_everything",
    "list_namespaces",
    "metastore_of",
    "state_word",
    "stored",
    "whole",
]

LIVE, DROPPED, DEREGISTERED, PURGED = "live", "dropped", "deregistered", "purged"
PURGING = "purging"
# Verbs that somebody is at, or that a crash cut off.
UNFINISHED = ("creating", "reviving", "undropping", PURGING)
LISTED_COLUMNS = ("name", "state", "deleted_at", "expires_at")
_STORED = {"deleted": DROPPED}


@dataclass(frozen=True, slots=True)
class Listed:
    """A table or a namespace as a listing shows it."""

    name: str
    state: str
    deleted_at_ms: int | None = None
    expires_at_ms: int | None = None

    def is_expired(self, now_ms: int) -> bool:
        """Whether its time in the trash is over."""
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms

    def row(self) -> dict[str, object]:
        """Return it as output."""
        return {
            "name": self.name,
            "state": self.state,
            "deleted_at": as_time(self.deleted_at_ms),
            "expires_at": as_time(self.expires_at_ms),
        }


def list_everything(catalog: Catalog, within: ObjectId = ROOT) -> list[Listed]:
    """List the tables below a namespace at any level, whatever they are, by full identifier.

    A name that was dropped and used again is there twice.

    Raises:
        UnsupportedError: this kind of catalog cannot tell.
    """
    states = whole(catalog).states()
    return [_listed(table, hint) for table, hint in states if is_below(table, within)]


def list_namespaces(catalog: Catalog, within: ObjectId = ROOT) -> list[Listed]:
    """List the namespaces below one at any level, live or dropped, by full identifier.

    Raises:
        UnsupportedError: this kind of catalog cannot tell.
    """
    backend = whole(catalog)
    found = [(name, Listed(str(name), LIVE)) for name, _ in backend.describe_namespaces()]
    found += [(name, _listed(name, hint)) for name, hint in backend.dropped_namespaces()]
    return [
        listed for name, listed in sorted(found, key=lambda pair: pair[0]) if is_below(name, within)
    ]


def count_below(catalog: Catalog, namespace: ObjectId) -> tuple[int, int]:
    """Count the live namespaces and tables below a namespace, at any level."""
    backend = whole(catalog)
    namespaces = sum(is_below(name, namespace) for name, _ in backend.describe_namespaces())
    return namespaces, sum(one.state == LIVE for one in list_everything(catalog, namespace))


def is_below(object_id: ObjectId, namespace: ObjectId) -> bool:
    """Whether an object lies in a namespace, at any level."""
    level = namespace.level
    return object_id.level > level and object_id.names[:level] == namespace.names


def change_tables(catalog: Catalog, namespace: str | None = None) -> list[str]:
    """Return the names of the change tables, all or those of a namespace; only metastores have any.

    Args:
        catalog: The catalog.
        namespace: The namespace; all unless given.
    """
    from mooring.metastore.backend import MetastoreBackend
    from mooring.metastore.ground import live_namespaces
    from mooring.metastore.lance_table import any_in

    if not isinstance(catalog.backend, MetastoreBackend):
        return []
    view = catalog.metastore.begin()
    around = [
        one.locator
        for one in live_namespaces(view)
        if namespace is None or one.locator.parts == catalog.identifier(namespace).names
    ]
    found = (table for above in around for table in any_in(view, above))
    return [str(one.id) for one in found if not one.is_lance and one.value.dropped is None]


def stored(catalog: Catalog) -> StoredBackend:
    """Return the backend of a catalog that lies in storage.

    Raises:
        UnsupportedError: the catalog is of another kind.
    """
    from mooring.metastore.backend import MetastoreBackend

    if isinstance(catalog.backend, MetastoreBackend):
        return catalog.backend
    return directory_of(catalog)


def whole(catalog: Catalog) -> WholeBackend:
    """Return the backend of a catalog that tells all it holds.

    Raises:
        UnsupportedError: the catalog is of another kind.
    """
    if is_iceberg(catalog) or is_remote(catalog):
        return cast("IcebergBackend | RemoteBackend", catalog.backend)
    return stored(catalog)


def directory_of(catalog: Catalog) -> DirectoryBackend:
    """Return the directory behind a catalog.

    Raises:
        UnsupportedError: the catalog is of another kind.
    """
    from mooring.directory.compat_backend import CompatBackend
    from mooring.directory.listing_backend import ListingBackend
    from mooring.directory.manifest_backend import ManifestBackend

    if not isinstance(catalog.backend, CompatBackend | ListingBackend | ManifestBackend):
        msg = f"'{catalog.uri}' is {kind_of(catalog)}, and only a directory of tables can do this"
        raise UnsupportedError(msg)
    return catalog.backend


def is_iceberg(catalog: Catalog) -> bool:
    """Whether a catalog is kept by an Iceberg REST server."""
    from mooring.opening import ICEBERG_SCHEME

    # Its backend would import Arrow, which listings of other catalogs do without.
    return catalog.uri.startswith(ICEBERG_SCHEME)


def is_remote(catalog: Catalog) -> bool:
    """Whether a catalog is kept by a Lance REST server."""
    from mooring.opening import REMOTE_SCHEME

    return catalog.uri.startswith(REMOTE_SCHEME)


def can_undrop(catalog: Catalog) -> bool:
    """Whether what is dropped can come back; what other Lance REST servers do is theirs to say."""
    if not is_remote(catalog):
        return True
    return cast("RemoteBackend", catalog.backend).connection.beside.offered() is not None


def metastore_of(catalog: Catalog) -> MetastoreBackend:
    """Return the metastore behind a catalog.

    Raises:
        UnsupportedError: the catalog is of another kind.
    """
    from mooring.metastore.backend import MetastoreBackend

    if not isinstance(catalog.backend, MetastoreBackend):
        msg = (
            f"'{catalog.uri}' is {kind_of(catalog)}, and only a metastore has transactions:"
            ' one is opened with "metastore+" before its path or URI'
        )
        raise UnsupportedError(msg)
    return catalog.backend


def kind_of(catalog: Catalog) -> str:
    """Tell what kind of catalog it is, for messages."""
    from mooring.metastore.backend import MetastoreBackend

    if is_iceberg(catalog):
        return "an Iceberg catalog"
    if is_remote(catalog):
        return "a catalog that a Lance REST server keeps"
    is_metastore = isinstance(catalog.backend, MetastoreBackend)
    return "a metastore" if is_metastore else "a directory of tables"


def state_word(state: str) -> str:
    """Return the word for a stored state: a table is dropped, whatever its file says."""
    return _STORED.get(str(state), str(state))


def as_time(at_ms: int | None) -> str | None:
    """Write a time, if there is one."""
    return None if at_ms is None else format_time(at_ms)


def _listed(object_id: ObjectId, hint: Hint | Standing) -> Listed:
    expiry = None
    if hint.deleted_at_ms is not None and hint.ttl_ms is not None:
        expiry = hint.deleted_at_ms + hint.ttl_ms
    return Listed(str(object_id), state_word(hint.state), hint.deleted_at_ms, expiry)
