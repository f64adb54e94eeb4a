"""What a server does not let clients do to others: fill it, hold it, or wait in it for ever."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx2
import pyarrow as pa
import pytest
import uvicorn
from starlette.testclient import TestClient

import mooring
from mooring.errors import ServiceUnavailableError, ThrottledError, UnknownOutcomeError
from mooring.server.app import create_app
from mooring.server.asked import enter
from mooring.server.running import bind, uvicorn_config
from mooring.server.settings import ServerSettings
from mooring.server.work import Lane, Workers
from tests.lakes import rows
from tests.server.gated import Gate
from tests.server.test_metrics import scrape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp

_TIGHT = ServerSettings(catalog_threads=1, data_threads=1, most_waiting=0)
_DESCRIBE = "/lance/v1/table/t/describe"
_PATIENCE_S = 60
_MIB = 1024 * 1024


@contextmanager
def serving(app: ASGIApp, settings: ServerSettings) -> Iterator[tuple[str, int]]:
    """Serve on a port, as the command does."""
    with bind("127.0.0.1", 0) as taken:
        server = uvicorn.Server(uvicorn_config(app, settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            yield taken.getsockname()[:2]
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def connected(address: tuple[str, int], sent: bytes = b"") -> Iterator[socket.socket]:
    """Open a connection, and send something."""
    with socket.create_connection(address, _PATIENCE_S) as one:
        one.sendall(sent)
        yield one


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: localhost", *lines, "", ""]).encode()


def answer_of(one: socket.socket) -> bytes:
    """Read an answer of /health/live to its end."""
    read = b""
    while not read.endswith(b'{"status":"live"}'):
        part = one.recv(4096)
        assert part, read
        read += part
    return read


def post(address: tuple[str, int], path: str) -> httpx2.Response:
    return httpx2.post(f"http://{address[0]}:{address[1]}{path}", json={}, timeout=_PATIENCE_S)


# -- back-pressure -----------------------------------------------------------------------------


def test_what_there_is_no_place_for_is_refused_at_once_and_told_when_to_come_back():
    gate = Gate()
    with TestClient(create_app(gate, _TIGHT)) as client, ThreadPoolExecutor() as threads:
        first = threads.submit(client.post, _DESCRIBE, json={})
        assert gate.came.wait(_PATIENCE_S)
        refused = client.post(_DESCRIBE, json={})
        busy = scrape(client)
        assert client.get("/health/live").status_code == 200
        gate.open.set()
        assert first.result(_PATIENCE_S).status_code == 200
        assert client.post(_DESCRIBE, json={}).status_code == 200
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["code"] == 21
    assert refused.json()["instance"] == refused.headers["x-request-id"]
    assert gate.calls == ["describe_table"] * 2
    assert busy['mooring_refused_total{lane="catalog"}'] == 1
    assert busy['mooring_work{lane="catalog",state="working"}'] == 1
    assert busy['mooring_errors_total{code="21",dialect="lance"}'] == 1


def test_iceberg_clients_are_told_to_come_back_too(tmp_path):
    gate = Gate()
    lake = mooring.connect(tmp_path / "lake")
    app = create_app({"gate": gate, "lake": lake}, _TIGHT)
    with TestClient(app) as client, ThreadPoolExecutor() as threads:
        first = threads.submit(client.post, _DESCRIBE, json={})
        assert gate.came.wait(_PATIENCE_S)
        refused = client.get("/iceberg/v1/lake/namespaces")
        gate.open.set()
        first.result(_PATIENCE_S)
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"


def test_full_threads_for_rows_leave_those_of_the_catalog(tmp_path):
    gate = Gate()
    lake = mooring.connect(tmp_path / "lake")
    lake.create_table("t", rows([1]))
    app = create_app({"lake": lake, "gate": gate}, _TIGHT)
    with TestClient(app) as client, ThreadPoolExecutor() as threads:
        first = threads.submit(client.post, "/lance/gate/v1/table/t/count_rows", json={})
        assert gate.came.wait(_PATIENCE_S)
        assert client.post("/lance/v1/table/t/count_rows", json={}).json()["code"] == 21
        assert client.post(_DESCRIBE, json={}).status_code == 200
        gate.open.set()
        assert first.result(_PATIENCE_S).json() == 7


def test_client_with_a_name_leaves_half_of_the_places_to_others():
    async def attempt() -> list[str]:
        workers = Workers(replace(_TIGHT, catalog_threads=2, most_waiting=2))
        gate, came, enough = threading.Event(), [], asyncio.Event()

        async def ask(subject: str | None) -> str:
            enter({"state": {} if subject is None else {"subject": subject}})
            try:
                await workers.run(Lane.CATALOG, lambda: gate.wait(_PATIENCE_S))
            except ThrottledError as exc:
                came.append(f"{subject} refused")
                if len(came) == 2:
                    enough.set()
                return str(exc)
            came.append(f"{subject} done")
            return ""

        tasks = [asyncio.create_task(ask(who)) for who in ("ada", "ada", "ada", "bob", None, None)]
        await enough.wait()
        gate.set()
        told = await asyncio.gather(*tasks)
        assert workers.under_way[Lane.CATALOG] == 0
        workers.close()
        assert "'ada' gave the server too much to do" in told[2]
        assert "the server has too much to do" in told[5]
        return sorted(came)

    done = ["None done", "None refused", "ada done", "ada done", "ada refused", "bob done"]
    assert asyncio.run(attempt()) == done


@pytest.mark.parametrize("changes", [False, True])
def test_what_takes_too_long_goes_on_and_its_client_is_told(changes):
    async def attempt() -> None:
        workers = Workers(replace(_TIGHT, request_timeout_s=0.01))
        gate, done = threading.Event(), []

        def work() -> None:
            gate.wait(_PATIENCE_S)
            done.append(1)

        with pytest.raises(ServiceUnavailableError, match="and goes on") as told:
            await workers.run(Lane.CATALOG, work, changes=changes)
        assert isinstance(told.value, UnknownOutcomeError) is changes
        assert sum(workers.under_way.values()) == 1
        gate.set()
        workers.close()
        assert done == [1]

    asyncio.run(attempt())


# -- slow clients ------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path):
    """A catalog with a table that no buffer between two programs holds."""
    lake = mooring.connect(tmp_path / "lake")
    noise = pa.array([bytes(_MIB)] * 48, pa.binary())
    lake.create_table("t", pa.table({"noise": noise}))
    return lake


def test_slow_reader_of_a_large_answer_holds_up_nobody(large):
    query = json.dumps({"k": 0, "vector": {"single_vector": []}}).encode()
    asked = head("/lance/v1/table/t/query", f"content-length: {len(query)}") + query
    with (
        serving(create_app(large, _TIGHT), _TIGHT) as address,
        connected(address, asked) as slow,
    ):
        assert slow.recv(12) == b"HTTP/1.1 200"
        # There is one thread for each kind of request, and nobody may wait for it.
        assert post(address, _DESCRIBE).status_code == 200
        assert post(address, "/lance/v1/table/t/count_rows").json() == 48
        received = 0
        while received < 48 * _MIB:
            received += len(slow.recv(_MIB))


def test_slow_uploader_holds_up_nobody(large):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema({"noise": pa.binary()})) as writer:
        writer.write_table(large.table("t").to_arrow())
    sent = sink.getvalue()
    lines = ("content-type: application/vnd.apache.arrow.stream", f"content-length: {len(sent)}")
    begun = head("/lance/v1/table/t/insert?mode=append", *lines) + sent[: 8 * _MIB]
    with (
        serving(create_app(large, _TIGHT), _TIGHT) as address,
        connected(address, begun) as slow,
    ):
        assert post(address, _DESCRIBE).status_code == 200
        assert post(address, "/lance/v1/table/t/count_rows").json() == 48
        slow.sendall(sent[8 * _MIB :])
        assert slow.recv(12) == b"HTTP/1.1 200"
        assert post(address, "/lance/v1/table/t/count_rows").json() == 96


def test_uploader_who_stops_is_told_and_nothing_is_changed(large):
    settings = replace(_TIGHT, idle_timeout_s=0.1)
    lines = ("content-type: application/vnd.apache.arrow.stream", "content-length: 1000")
    begun = head("/lance/v1/table/t/insert?mode=append", *lines) + b"some"
    with (
        serving(create_app(large, settings), settings) as address,
        connected(address, begun) as slow,
    ):
        assert slow.recv(12) == b"HTTP/1.1 400"
        assert post(address, "/lance/v1/table/t/count_rows").json() == 48


# -- connections -------------------------------------------------------------------------------


def test_endless_head_of_a_request_is_refused(tmp_path):
    app = create_app(mooring.connect(tmp_path / "lake"))
    with serving(app, ServerSettings()) as address, connected(address) as one:
        with suppress(ConnectionError):  # what comes after the refusal is not read
            one.sendall(b"GET / HTTP/1.1\r\nx-long: " + b"x" * 300_000)
        assert one.recv(12) == b"HTTP/1.1 431"


def test_head_that_does_not_come_is_not_waited_for(tmp_path):
    settings = ServerSettings(idle_timeout_s=0.1)
    app = create_app(mooring.connect(tmp_path / "lake"), settings)
    live = head("/health/live", method="GET")
    with serving(app, settings) as address:
        with connected(address) as silent, connected(address, b"GET / HTTP/1.1\r\nx: y") as slow:
            assert silent.recv(12) == b"HTTP/1.1 408"
            assert slow.recv(12) == b"HTTP/1.1 408"
        with connected(address, live) as again:
            assert answer_of(again).startswith(b"HTTP/1.1 200")
            again.sendall(live[:-4])
            assert again.recv(12) == b"HTTP/1.1 408"


def test_thousand_connections_stay_open(tmp_path):
    app = create_app(mooring.connect(tmp_path / "lake"))
    live = head("/health/live", method="GET")
    held: list[socket.socket] = []
    with serving(app, ServerSettings()) as address:
        try:
            for _ in range(1000):
                held.append(socket.create_connection(address, _PATIENCE_S))
                held[-1].sendall(live)
            for _ in range(2):
                for one in held:
                    assert answer_of(one).startswith(b"HTTP/1.1 200")
                    one.sendall(live)
        finally:
            for one in held:
                one.close()


def test_a_change_by_iceberg_that_takes_too_long_is_of_unknown_outcome(tmp_path, monkeypatch):
    """A client that is told 503 asks again by itself, while the first one goes on."""
    lake = mooring.connect(tmp_path / "lake")
    release, create = threading.Event(), lake.backend.create_namespace

    def slowly(*args: object) -> object:
        release.wait(30)
        return create(*args)

    monkeypatch.setattr(lake.backend, "create_namespace", slowly)
    with TestClient(create_app(lake, ServerSettings(request_timeout_s=0.05))) as client:
        told = client.post("/iceberg/v1/namespaces", json={"namespace": ["a"]})
        release.set()
    assert (told.status_code, told.json()["error"]["type"]) == (500, "CommitStateUnknownException")
    assert lake.list_namespaces() == ["a"]
