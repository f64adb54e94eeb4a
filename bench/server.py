"""``mooring serve`` under load, beside pylance's own server of the same protocol.

Both are processes of their own on loopback, with a catalog of the same entries each, and are asked
the same questions by the same clients, in turns.
"""

from __future__ import annotations

import http.client
import io
import json
import statistics
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import quote

import lance_namespace as spec
import numpy as np
import pyarrow as pa

import mooring
from bench.curves import OURS, Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.http_load import ask, get, hold_and_ask, post
from bench.lakes import workspace
from bench.sections import Section
from bench.seeds import NAMESPACES, seed_pair, table_id
from bench.served import Server, serve_ours, serve_theirs
from bench.timing import time_rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bench.http_load import Load
    from bench.sections import Found

    Questions = Callable[[Server], Iterator[bytes]]

__all__ = ["run"]

_PEER = "RestAdapter"
_PAGE = 100
_READERS, _WRITERS = 8, 32
_CLIENTS = (1, 2, 4, 8, 16, 32, 64)
_HELD = 1_000
_MIB = 1024 * 1024
_MOST_GROWN = 300
_ROUNDS = 3
_DIMENSIONS = 1_024
_BATCH_MIB = 8
_STREAM_END = 8
_CALLS = 300


@dataclass(frozen=True)
class _Size:
    """How much is done."""

    tables: int
    seconds: float
    streamed_mib: int


_SIZES = {True: _Size(1_000, 1.0, 256), False: _Size(10_000, 4.0, 2_048)}


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Put both under load, then look at large bodies."""
    size = _SIZES[quick]
    with workspace() as space:
        pair = seed_pair(space, "served", size.tables + NAMESPACES)
        with (
            serve_ours(pair.ours, size.tables) as ours,
            serve_theirs(pair.theirs, size.tables) as theirs,
        ):
            both = (ours, theirs)
            found = _load(both, size, groups, create_target=None if quick else 10)
        found += groups.measure("large bodies", lambda: _streaming(space / "rows", size))
    return Section(
        f"Servers of a catalog of {size.tables:,} tables on loopback",
        found,
        [
            "each is one process with a catalog of its own; the clients share its machine",
            "seconds are those a server needs for one answer, with so many clients at once",
            "Mooring syncs changes to disk before it answers; pylance does not",
        ],
    )


def _load(
    both: tuple[Server, Server], size: _Size, groups: Groups, *, create_target: float | None
) -> list[Found]:
    """Measure all that both servers answer."""
    page = f"list_tables, page of {_PAGE}"
    readers = {"clients": _READERS, "seconds": size.seconds}
    # pylance rewrites all entries at every change, which costs little of a few.
    writers = {"clients": _WRITERS, "seconds": size.seconds, "at_least": create_target}
    return [
        *groups.measure(
            "describe_table", lambda: _beside("describe_table", _describing, both, **readers)
        ),
        *groups.measure("list_tables", lambda: _beside(page, _listing, both, **readers)),
        *groups.measure(
            "create_namespace",
            lambda: _beside("create_namespace", _creating(), both, **writers)[:1],
        ),
        *groups.measure("clients", lambda: [_growing(both, size)]),
        *groups.measure("RestNamespace", lambda: _by_client(both)),
        *groups.measure("held connections", lambda: [_holding(both[0], size)]),
    ]


# -- questions -------------------------------------------------------------------------------


def _describing(server: Server) -> Iterator[bytes]:
    for number in count():
        # All over the catalog: what was asked for last is not asked for next.
        table = quote("$".join(table_id(number * 7919 % (server.tables - 1))), safe="")
        yield post(f"{server.prefix}/v1/table/{table}/describe", b"{}")


def _listing(server: Server) -> Iterator[bytes]:
    for number in count():
        yield get(f"{server.prefix}/v1/namespace/ns{number % NAMESPACES}/table/list?limit={_PAGE}")


def _creating() -> Questions:
    numbers = count()

    def questions(server: Server) -> Iterator[bytes]:
        while True:
            yield post(f"{server.prefix}/v1/namespace/new{next(numbers)}/create", b"{}")

    return questions


# -- loads -----------------------------------------------------------------------------------


def _beside(
    what: str,
    questions: Questions,
    servers: tuple[Server, Server],
    *,
    clients: int,
    seconds: float,
    at_least: float | None = 1,
) -> list[Figure]:
    """Have both servers work in turns."""
    taken = _take_turns(questions, servers, clients, seconds)
    ours, theirs = (
        statistics.median(load.rate for load in loads) for loads in zip(*taken, strict=True)
    )
    named = f"{what}, {clients} clients"
    mine, other = zip(*taken, strict=True)
    return [
        Figure(
            named,
            [1 / load.rate for load in mine],
            beside=_PEER,
            theirs=[1 / load.rate for load in other],
            at_least=at_least,
            detail=f"{ours:,.0f}/s beside {theirs:,.0f}/s",
            is_telling=True,
        ),
        Figure(
            f"{named}: 99 of 100 within",
            [load.p99 for load in mine],
            beside=_PEER,
            theirs=[load.p99 for load in other],
            within=1,
        ),
    ]


def _take_turns(
    questions: Questions, servers: tuple[Server, Server], clients: int, seconds: float
) -> list[tuple[Load, Load]]:
    """Return what came of each round, ours first."""
    taken: list[tuple[Load, Load]] = []
    for turn in range(_ROUNDS):
        order = servers if turn % 2 == 0 else servers[::-1]
        loads = {
            server.port: ask(server.port, questions(server), clients, seconds) for server in order
        }
        taken.append((loads[servers[0].port], loads[servers[1].port]))
    for load in (one for pair in taken for one in pair):
        assert not load.failures, load.failures[0]
    return taken


def _growing(servers: tuple[Server, Server], size: _Size) -> Curve:
    """Have more and more clients ask."""
    rates: dict[str, list[tuple[float, list[float]]]] = {OURS: [], _PEER: []}
    for clients in _CLIENTS:
        taken = _take_turns(_describing, servers, clients, size.seconds / 2)
        for who, loads in zip(rates, zip(*taken, strict=True), strict=True):
            rates[who].append((clients, [load.rate for load in loads]))
    lines = tuple(Line(who, tuple(points)) for who, points in rates.items())
    title = "Descriptions of tables by a server"
    return Curve(title, "concurrency", "clients at once", lines, "rate")


def _by_client(servers: tuple[Server, Server]) -> list[Figure]:
    """Ask one after the other by pylance's own client, which takes its time, too."""
    clients = [spec.connect("rest", {"uri": server.uri}) for server in servers]
    request = spec.DescribeTableRequest(id=table_id(7))

    def describe(client: spec.LanceNamespace) -> None:
        for _ in range(_CALLS):
            client.describe_table(request)

    ours, theirs = clients
    taken = time_rounds(
        {"ours": lambda: describe(ours), "theirs": lambda: describe(theirs)}, _ROUNDS
    )
    each = {who: [took / _CALLS for took in rounds] for who, rounds in taken.items()}
    what = "describe_table, one RestNamespace after itself"
    return [Figure(what, each["ours"], beside=_PEER, theirs=each["theirs"])]


def _holding(server: Server, size: _Size) -> Figure:
    load, lost = hold_and_ask(
        server.port, _describing(server), held=_HELD, clients=_READERS, seconds=size.seconds
    )
    assert not load.failures, load.failures[0]
    return Figure(
        f"{_HELD:,} connections held open: lost",
        lost,
        kind="count",
        at_most=0,
        detail=f"{load.rate:,.0f} descriptions/s meanwhile",
    )


# -- large bodies ----------------------------------------------------------------------------


def _streaming(root: Path, size: _Size) -> list[Figure]:
    """Write a table and read it whole, fast and slowly, and watch the server's memory."""
    batch = _batch()
    count_ = size.streamed_mib // _BATCH_MIB
    query = json.dumps({"k": count_ * batch.num_rows, "vector": {}}).encode()
    mooring.connect(root).create_namespace("ns")
    with serve_ours(root, 1) as server:
        # What is loaded at first is not of any body.
        _send(server, "warm", _stream(batch, 1))
        _read_all(server, "warm", query)
        return [
            _grown(server, "are sent", lambda: _send(server, "t", _stream(batch, count_))),
            _grown(server, "are read", lambda: _read_all(server, "t", query)),
            _grown(server, "are read slowly", lambda: _read_all(server, "t", query, 0.002)),
        ]


def _grown(server: Server, what: str, call: Callable[[], int]) -> Figure:
    before = server.resident_mib()
    with _watching(server) as seen:
        passed, seconds = _timed(call)
    return Figure(
        f"MiB that memory grows by while {passed // _MIB:,} MiB {what}",
        round(max(seen) - before),
        kind="count",
        at_most=_MOST_GROWN,
        detail=f"{passed / _MIB / seconds:,.0f} MiB/s",
    )


def _batch() -> pa.RecordBatch:
    rows = _BATCH_MIB * _MIB // (4 * _DIMENSIONS)
    numbers = np.random.default_rng(7).random(rows * _DIMENSIONS, np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), _DIMENSIONS)
    return pa.record_batch([vectors], ["vector"])


def _stream(batch: pa.RecordBatch, batches: int) -> Iterator[bytes]:
    """Write a batch several times as an Arrow IPC stream: a schema, the batches, an end."""
    once, never = (_written(batch, times) for times in (1, 0))
    schema, end = never[:-_STREAM_END], never[-_STREAM_END:]
    yield schema
    yield from (once[len(schema) : -_STREAM_END] for _ in range(batches))
    yield end


def _written(batch: pa.RecordBatch, times: int) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(times):
            writer.write_batch(batch)
    return sink.getvalue()


def _send(server: Server, table: str, parts: Iterator[bytes]) -> int:
    sent = 0

    def counted() -> Iterator[bytes]:
        nonlocal sent
        for part in parts:
            sent += len(part)
            yield part

    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    kind = {"Content-Type": "application/vnd.apache.arrow.stream"}
    path = f"{server.prefix}/v1/table/{table}/create"
    connection.request("POST", path, counted(), kind, encode_chunked=True)
    answer = connection.getresponse()
    told = answer.read()
    assert answer.status == http.HTTPStatus.OK, told
    connection.close()
    return sent


def _read_all(server: Server, table: str, query: bytes, pause_s: float = 0.0) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    kind = {"Content-Type": "application/json"}
    connection.request("POST", f"{server.prefix}/v1/table/{table}/query", query, kind)
    answer = connection.getresponse()
    assert answer.status == http.HTTPStatus.OK, answer.read()
    got = 0
    while part := answer.read(_MIB):
        got += len(part)
        time.sleep(pause_s)
    connection.close()
    return got


def _timed(call: Callable[[], int]) -> tuple[int, float]:
    began = time.perf_counter()
    return call(), time.perf_counter() - began


@contextmanager
def _watching(server: Server) -> Iterator[list[float]]:
    """Look at a server's memory all the while."""
    seen = [server.resident_mib()]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            seen.append(server.resident_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()
