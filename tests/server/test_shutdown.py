"""What a signal ends, and when."""

from __future__ import annotations

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.ipc
import pytest

import mooring
from tests.server.processes import LIMIT_S, Running, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

_CREATE = "/lance/v1/namespace/a/create"
_ROWS = "/lance/v1/table/a$t/create"
_WRITES = 'mooring_work{lane="upload",state="working"} 1.0'


@pytest.fixture
def pipes(tmp_path):
    """Two named pipes: who comes to a gate, and who opens it."""
    came, gate = tmp_path / "came", tmp_path / "open"
    os.mkfifo(came)
    os.mkfifo(gate)
    return came, gate


@contextmanager
def gated(pipes, *words: object) -> Iterator[Running]:
    came, gate = pipes
    where = f"impl+tests.server.gated.FileGate?came={came}&open={gate}"
    with serving(where, *words) as running:
        yield running


def is_refused(running: Running) -> bool:
    """Whether nobody listens any more."""
    parts = urlsplit(running.base)
    try:
        socket.create_connection((parts.hostname, parts.port), LIMIT_S).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # nobody took it before the end
        return False
    return False


def test_what_was_begun_is_finished_and_nothing_new_is_taken(pipes):
    came, gate = pipes
    with gated(pipes) as running, ThreadPoolExecutor() as threads:
        begun = threads.submit(running.post, _CREATE)
        assert came.read_text() == "create_namespace"
        running.process.send_signal(signal.SIGTERM)
        while not is_refused(running):
            pass
        gate.write_text("open")
        assert begun.result(LIMIT_S).status_code == 200
        assert running.process.wait(LIMIT_S) == 0


def test_rows_that_never_come_do_not_keep_it_from_ending(tmp_path):
    mooring.connect(tmp_path / "lake").create_namespace("a")
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"x": pa.array(range(1 << 20))})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(2):
            writer.write_batch(batch)
    rows = sink.getvalue().to_pybytes()
    head = f"POST {_ROWS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(rows)}"
    with serving(tmp_path / "lake", "--grace", 1) as running:
        parts = urlsplit(running.base)
        with socket.create_connection((parts.hostname, parts.port), LIMIT_S) as client:
            client.sendall(head.encode() + b"\r\n\r\n" + rows[: 9 << 20])
            while _WRITES not in running.get("/metrics").text:
                pass
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(LIMIT_S) == 0
    assert mooring.connect(tmp_path / "lake").list_tables("a", include_declared=False) == []


@pytest.mark.interop
def test_second_signal_ends_at_once(pipes):
    came, _ = pipes
    with gated(pipes) as running, ThreadPoolExecutor() as threads:
        begun = threads.submit(running.post, _CREATE)
        assert came.read_text() == "create_namespace"
        running.process.send_signal(signal.SIGINT)
        while not is_refused(running):
            pass
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(LIMIT_S) == 128 + signal.SIGINT
        assert begun.exception(LIMIT_S) is not None


@pytest.mark.interop
def test_requests_are_taken_for_a_while_after_it_is_ready_no_more(tmp_path):
    mooring.connect(tmp_path / "lake").create_namespace("a")
    with serving(tmp_path / "lake", "--drain", LIMIT_S) as running:
        assert running.get("/health/ready").status_code == 200
        running.process.send_signal(signal.SIGTERM)
        while running.get("/health/ready").status_code == 200:
            pass
        assert running.get("/health/ready").json() == {"status": "ending"}
        assert running.get("/health/live").status_code == 200
        assert running.post("/lance/v1/namespace/a/exists").status_code == 200
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LIMIT_S) == 128 + signal.SIGTERM
