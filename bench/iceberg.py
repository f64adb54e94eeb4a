"""Lance tables in an Iceberg REST catalog, beside lance-namespace-impls on the same server.

The peer runs in an environment of its own, which `make interop` builds too.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.iceberg.counting import counting
from tests.interop.iceberg_peer import NotBuiltError, find_interpreter
from tests.irc_servers import run_seaweedfs_irc

from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import TINY, workspace
from bench.sections import Section
from bench.timing import time_rounds
from mooring.catalog import Catalog
from mooring.iceberg.opening import open_iceberg
from mooring.iceberg.types import to_iceberg
from mooring.identifiers import ObjectId

if TYPE_CHECKING:
    from tests.irc_servers import IrcServer

    from mooring.iceberg.backend import IcebergBackend

__all__ = ["run"]

_PEER = "lance-namespace-impls"
_PROGRAM = Path(__file__).parents[1] / "tests" / "iceberg" / "peer_listing.py"
_NAMESPACE = ObjectId(("many",))
_AT_ONCE = 4
_APPENDS = 20
_NO_LAKEKEEPER = "its server is not on PyPI, where the name is another project, nor on npm"
_ROUNDS = 3


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """List tables, and append to one whose versions the server decides about."""
    tables = 200 if quick else 1_000
    with workspace() as space, run_seaweedfs_irc(space) as irc:
        backend = _open(irc, irc.uri)
        _fill(backend, tables)
        figures = [
            *groups.measure("listing", lambda: _listing(irc, tables)),
            *groups.measure("appending", lambda: [_appending(backend)]),
            *groups.measure("Lakekeeper", lambda: [Figure("Lakekeeper", missing=_NO_LAKEKEEPER)]),
        ]
        backend.connection.client.close()
    return Section(
        "Iceberg REST catalogs",
        figures,
        [
            "the server is SeaweedFS's; a way in between counts the requests",
            f"a page holds a thousand, and {_PEER} 0.4.2 reads the first: so many are listed",
        ],
    )


def _open(irc: IrcServer, uri: str) -> IcebergBackend:
    own = {key: value for key, value in irc.properties.items() if not key.startswith("storage.")}
    storage = {
        key.removeprefix("storage."): value
        for key, value in irc.properties.items()
        if key.startswith("storage.")
    }
    return open_iceberg({**own, "uri": uri, "managed_by": "impl"}, storage, author="bench")


def _fill(backend: IcebergBackend, tables: int) -> None:
    backend.create_namespace(_NAMESPACE, {})
    client = backend.connection.client
    schema = to_iceberg(pa.schema([("n", pa.int64())]), schema_id=0)
    lance_table = {"table_type": "lance"}

    def create(number: int) -> None:
        client.create_table(
            _NAMESPACE.names, f"t{number}", schema=schema, location=None, properties=lance_table
        )

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(create, range(tables)))


def _listing(irc: IrcServer, tables: int) -> list[Figure]:
    what, missing = f"list {tables:,} tables", ""
    ours: list[tuple[float, int]] = []
    theirs: list[tuple[float, int]] = []
    for _ in range(_ROUNDS):
        ours.append(_listing_of_ours(irc, tables))
        try:
            theirs.append(_listing_of_the_peer(irc, tables))
        except NotBuiltError as exc:
            missing = f"{_PEER}: {exc}"
    beside = {"beside": _PEER, "missing": missing}
    return [
        Figure(
            f"{what}: requests",
            ours[-1][1],
            kind="requests",
            theirs=theirs[-1][1] if theirs else None,
            at_least=50 if tables >= 1_000 else None,
            is_telling=True,
            **beside,
        ),
        Figure(
            what,
            [seconds for seconds, _ in ours],
            theirs=[seconds for seconds, _ in theirs] or None,
            **beside,
        ),
    ]


def _listing_of_ours(irc: IrcServer, tables: int) -> tuple[float, int]:
    with counting(irc.uri) as way:
        backend = _open(irc, way.uri)
        started = time.perf_counter()
        assert len(backend.list_tables(_NAMESPACE)) == tables
        seconds, requests = time.perf_counter() - started, way.requests
        backend.connection.client.close()
    return seconds, requests


def _listing_of_the_peer(irc: IrcServer, tables: int) -> tuple[float, int]:
    python = find_interpreter()
    with counting(irc.uri) as way:
        order = json.dumps([way.uri, _token(irc), [irc.warehouse, *_NAMESPACE.names]])
        done = subprocess.run([python, _PROGRAM, order], capture_output=True, text=True, check=True)
    found, seconds = done.stdout.split()
    assert int(found) == tables
    return float(seconds), way.requests


def _token(irc: IrcServer) -> str:
    """Get a token: the peer takes one, and no credentials."""
    name, _, secret = irc.properties["credential"].partition(":")
    form = {"grant_type": "client_credentials", "client_id": name, "client_secret": secret}
    body = urllib.parse.urlencode({**form, "scope": "catalog"}).encode()
    with urllib.request.urlopen(f"{irc.uri}/v1/oauth/tokens", body) as answer:  # noqa: S310  # ours
        return str(json.load(answer)["access_token"])


def _appending(backend: IcebergBackend) -> Figure:
    """Append rows, each by a commit; the server decides about one table, the store about one."""
    catalog = Catalog(backend, "bench")
    managed = {"managed_by": "storage"}
    ours = catalog.create_table(_NAMESPACE.child("by_server"), TINY)
    stored = catalog.create_table(_NAMESPACE.child("by_store"), TINY, properties=managed)
    found = time_rounds(
        {"server": lambda: ours.insert(TINY), "store": lambda: stored.insert(TINY)}, _APPENDS
    )
    return Figure(
        "append to a table, the server deciding",
        found["server"],
        beside="the store deciding",
        theirs=found["store"],
    )
