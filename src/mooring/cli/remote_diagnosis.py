"""What ``mooring doctor`` finds of a Lance REST server: what it offers, and its storage.

Nothing is written, and a handful of requests is made, however many tables there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mooring.cli.diagnosis import OK, PROBLEM, SKIPPED, WARNING, Finding, reason
from mooring.errors import MooringError
from mooring.identifiers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.remote.backend import RemoteBackend
    from mooring.remote.settings import RemoteSettings

__all__ = ["diagnose_remote"]

_LOOKED_AT = 20


def diagnose_remote(catalog: Catalog) -> Iterator[Finding]:
    """Look at a server, and at the storage of its tables.

    Args:
        catalog: A catalog that a Lance REST server keeps.
    """
    backend = cast("RemoteBackend", catalog.backend)
    try:
        namespaces = backend.list_namespaces(ROOT)
        facts = backend.facts
    except MooringError as exc:
        yield Finding("server", "reachable", "no", PROBLEM, reason(exc))
        return
    yield Finding("server", "reachable", "yes", note=backend.connection.lance.server)
    yield from _signs_in(backend.connection.settings)
    if facts is None:
        note = "Lance REST alone: nothing dropped can be listed, brought back or purged"
        yield Finding("server", "beside Lance REST", "nothing", WARNING, note)
    else:
        yield Finding("server", "beside Lance REST", f"Mooring {facts.version}")
        yield Finding("catalog", "kind", facts.kind, note=f"'{facts.name}' of the server")
        yield Finding("server", "read-only", "yes" if facts.read_only else "no")
    yield Finding("catalog", "mode", "Lance REST server")
    yield Finding("catalog", "read-only", "yes" if backend.read_only else "no")
    try:
        yield from _tables(backend)
        yield from _storage(backend, [ROOT, *(ROOT.child(name) for name in namespaces)])
    except MooringError as exc:
        yield Finding("catalog", "readable", "no", PROBLEM, reason(exc))


def _signs_in(settings: RemoteSettings) -> Iterator[Finding]:
    given = {
        "with a token": settings.token,
        "with a credential": settings.credential,
        "with an API key": settings.api_key,
    }
    how = next((name for name, value in given.items() if value), "no")
    unused = "MOORING_LANCE_TOKEN, MOORING_LANCE_CREDENTIAL or MOORING_LANCE_API_KEY would be used"
    yield Finding("server", "signs in", how, note=unused if how == "no" else None)


def _tables(backend: RemoteBackend) -> Iterator[Finding]:
    yield Finding("tables", "live", str(len(backend.list_all_tables())))
    if backend.connection.beside.offered() is not None:
        yield Finding("tables", "dropped", str(len(backend.list_purgable_tables())))


def _storage(backend: RemoteBackend, namespaces: list[ObjectId]) -> Iterator[Finding]:
    """Look for the files of one table, as the server tells where it lies."""
    info = _some_table(backend, namespaces)
    if info is None:
        note = "no table with data was found in the first namespaces"
        yield Finding("storage", "reachable", None, SKIPPED, note)
        return
    from mooring.tables.place import open_place

    try:
        place = open_place(info.location, info.storage_options)
        is_there = place.store.list_dir(place.directory).exists
    except MooringError as exc:
        yield Finding("storage", "reachable", "no", PROBLEM, reason(exc))
        return
    if is_there:
        yield Finding("storage", "reachable", "yes", OK, f"'{info.location}' of '{info.id}'")
        return
    note = f"nothing is to be seen from here in '{info.location}' of '{info.id}'"
    yield Finding("storage", "reachable", "no", PROBLEM, note)


def _some_table(backend: RemoteBackend, namespaces: list[ObjectId]) -> TableInfo | None:
    """Return a table with data, where one of the first tables has any."""
    looked_at = 0
    for namespace in namespaces[:_LOOKED_AT]:
        for name in backend.list_tables(namespace)[:_LOOKED_AT]:
            looked_at += 1
            if looked_at > _LOOKED_AT:
                return None
            info = backend.describe_table(namespace.child(name), check_declared=True)
            if info.is_only_declared is not True:
                return info
    return None
