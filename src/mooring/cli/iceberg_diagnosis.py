"""What ``mooring doctor`` finds of an Iceberg catalog: its server, what that lacks, its storage.

Nothing is written, and a handful of requests is made, however many tables there are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from mooring.cli.diagnosis import OK, PROBLEM, SKIPPED, WARNING, Finding, probe, reason
from mooring.cli.storage_diagnosis import diagnose_storage
from mooring.errors import MooringError
from mooring.iceberg.paths import COMMIT_TRANSACTION, RENAME_TABLE, TABLE
from mooring.identifiers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.iceberg.backend import IcebergBackend
    from mooring.iceberg.server_config import ServerConfig
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo

__all__ = ["diagnose_iceberg"]

_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
# What is asked of a server, and what cannot be done on one that does not offer it.
_NEEDED = (
    ("POST", _NAMESPACES, "namespaces cannot be made"),
    ("DELETE", _NAMESPACE, "namespaces cannot be dropped"),
    ("POST", f"{_NAMESPACE}/properties", "properties of namespaces cannot be changed"),
    ("POST", f"{_NAMESPACE}/tables", "tables cannot be made or registered"),
    ("POST", TABLE, "properties, and tables that the catalog manages, cannot be changed"),
    ("DELETE", TABLE, "tables can be neither deregistered nor purged"),
)
_OPTIONAL = (
    ("rename", RENAME_TABLE, "drop and undrop move tables by it", "no table can be dropped"),
    (
        "transactions",
        COMMIT_TRANSACTION,
        "several tables can be changed by one commit",
        "only one table is changed at a time",
    ),
)


def diagnose_iceberg(catalog: Catalog, *, write_probe: bool) -> Iterator[Finding]:
    """Look at a server, and at the storage of its tables.

    Args:
        catalog: An Iceberg catalog.
        write_probe: Whether something may be written into the storage of new tables.
    """
    backend = cast("IcebergBackend", catalog.backend)
    try:
        config = backend.connection.client.config
        namespaces = backend.list_namespaces(ROOT)
    except MooringError as exc:
        yield Finding("server", "reachable", "no", PROBLEM, reason(exc))
        return
    yield Finding("server", "reachable", "yes", note=config.address)
    yield from _server(config)
    yield from _lacking(config)
    yield from _catalog(backend)
    try:
        yield from _trash(backend)
        where = [ROOT.child(name) for name in namespaces]
        yield from _new_tables(backend, where, write_probe=write_probe)
        yield diagnose_storage(
            backend, where, wanted="Lance table", tell=partial(_storage, backend)
        )
    except MooringError as exc:
        yield Finding("catalog", "readable", "no", PROBLEM, reason(exc))


def _server(config: ServerConfig) -> Iterator[Finding]:
    given = config.properties
    yield Finding("server", "warehouse", given.get("warehouse"))
    yield Finding("server", "prefix", config.prefix, note="what paths begin with")
    separator = ascii(unquote(config.separator))
    yield Finding("server", "separator", separator, note="what joins the levels of a namespace")
    if given.get("credential"):
        asked = given.get("oauth2-server-uri") or config.address
        yield Finding("server", "signs in", "with a credential", note=f"tokens from {asked}")
    elif given.get("token"):
        yield Finding("server", "signs in", "with a token")
    else:
        note = "MOORING_ICEBERG_TOKEN or MOORING_ICEBERG_CREDENTIAL would be used"
        yield Finding("server", "signs in", "no", note=note)


def _lacking(config: ServerConfig) -> Iterator[Finding]:
    """Tell what the server says that it offers; one that says nothing may offer anything."""
    is_told = config.endpoints is not None
    told = str(len(config.endpoints)) if config.endpoints is not None else "not told"
    note = None if is_told else "what it lacks shows when it is asked for"
    yield Finding("server", "endpoints", told, note=note)
    for name, path, with_it, without in _OPTIONAL:
        if config.offers("POST", path):
            yield Finding("server", name, "yes" if is_told else "not told", note=with_it)
        else:
            yield Finding("server", name, "no", WARNING, without)
    for method, path, without in _NEEDED:
        if not config.offers(method, path):
            yield Finding("server", f"{method} {path}", "not offered", WARNING, without)


def _catalog(backend: IcebergBackend) -> Iterator[Finding]:
    yield Finding("catalog", "mode", "Iceberg catalog")
    yield Finding("catalog", "read-only", "yes" if backend.read_only else "no")
    yield Finding(
        "catalog",
        "versions of new tables",
        backend.managed_by.value,
        note="who decides: the storage, or with impl the server; a table keeps what it began with",
    )


def _trash(backend: IcebergBackend) -> Iterator[Finding]:
    yield Finding("tables", "dropped", str(len(backend.list_purgable_tables())))


def _new_tables(
    backend: IcebergBackend, namespaces: list[ObjectId], *, write_probe: bool
) -> Iterator[Finding]:
    """Tell where new tables lie, and whether that can be reached from here."""
    from mooring.store import open_store

    if not namespaces:
        note = "there is no namespace yet: a server tells it for each"
        yield Finding("storage", "new tables", None, SKIPPED, note)
        return
    place = backend.place_of_new_tables(namespaces[0])
    if place is None:
        note = "the server chooses when a table is made; iceberg.root says it before"
        yield Finding("storage", "new tables", "not told", note=note)
        return
    yield Finding("storage", "new tables", place, note=f"those of namespace '{namespaces[0]}'")
    if write_probe and not backend.read_only:
        yield from probe(open_store(place, backend.connection.storage_options), "storage")


def _storage(backend: IcebergBackend, info: TableInfo, is_there: bool) -> Finding:
    """Word whether the files of a table are reached as the server hands out its storage."""
    handed = backend.connection.storage_options.keys() < info.storage_options.keys()
    note = f"'{info.location}'" + (", as the server hands it out" if handed else "")
    if is_there:
        return Finding("storage", "reachable", "yes", OK, note)
    absent = f"nothing lies in {note} of '{info.id}'"
    return Finding("storage", "reachable", None, WARNING, absent)
