"""What ``mooring doctor`` finds of a Lance REST server: what it offers, and its storage.

Nothing is written, and a handful of requests is made, however many tables there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mooring.cli.diagnosis import OK, PROBLEM, WARNING, Finding, reason
from mooring.cli.storage_diagnosis import diagnose_storage
from mooring.errors import MooringError
from mooring.identifiers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.namespace.api import TableInfo
    from mooring.remote.backend import RemoteBackend
    from mooring.remote.settings import RemoteSettings

__all__ = ["diagnose_remote"]


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
        where = [ROOT, *(ROOT.child(name) for name in namespaces)]
        yield diagnose_storage(backend, where, wanted="table with data", tell=_storage)
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


def _storage(info: TableInfo, is_there: bool) -> Finding:
    """Word whether the files of a table are reached where the server says that it lies."""
    where = f"'{info.location}' of '{info.id}'"
    if is_there:
        return Finding("storage", "reachable", "yes", OK, where)
    note = f"nothing is to be seen from here in {where}"
    return Finding("storage", "reachable", "no", PROBLEM, note)
