"""Several processes that serve one socket."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import mooring
from mooring.errors import InvalidInputError
from mooring.server.running import bind
from mooring.server.settings import digest_of
from mooring.server.supervisor import Supervisor, Worker
from tests.lakes import rows
from tests.server.processes import COMMAND, LIMIT_S, Running, is_running, serving
from tests.server.test_metrics import numbers
from tests.server.test_shutdown import is_refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECRET = "a long random string"
_TOKEN = {
    "grant_type": "client_credentials",
    "client_id": "ada",
    "client_secret": _SECRET,
}


@pytest.fixture
def lake(tmp_path):
    root = tmp_path / "lake"
    mooring.connect(root).create_table("t", rows([1]))
    return root


@pytest.fixture
def clients(tmp_path):
    path = tmp_path / "clients.toml"
    digest = digest_of(_SECRET)
    path.write_text(f'[ada]\nid = "ada"\nsecret_sha256 = "{digest}"\nrole = "writer"\n')
    path.chmod(0o600)
    return path


def described(running: Running, **more: object) -> list[int]:
    """Ask on connections of their own, of which each process gets some, sooner or later."""
    path = "/lance/v1/table/t/describe"
    return [running.post(path, **more).status_code for _ in range(40)]


def counted(running: Running, **more: object) -> float:
    """Return how many requests all processes answered together."""
    found = numbers(running.get("/metrics", **more).text)
    describe = 'dialect="lance",method="POST",operation="DescribeTable",status="200"'
    return found[f"mooring_requests_total{{{describe}}}"]


@pytest.mark.interop
def test_processes_serve_as_one_and_are_replaced(lake, clients):
    with serving(lake, "--workers", 2, "--credentials", clients) as running:
        first = running.children
        assert len(first) == 2
        issued = running.post("/iceberg/v1/oauth/tokens", json=None, data=_TOKEN).json()
        headers = {"Authorization": f"Bearer {issued['access_token']}"}
        assert set(described(running, headers=headers)) == {200}
        assert counted(running, headers=headers) == 40
        killed = min(first)
        os.kill(killed, signal.SIGKILL)
        while killed in running.children or len(running.children) < 2:
            pass
        assert set(described(running, headers=headers)) == {200}
        assert counted(running, headers=headers) == 80
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LIMIT_S) == 0
        assert is_refused(running)


@pytest.mark.torture
def test_processes_end_with_the_one_that_watches_over_them(lake):
    with serving(lake, "--workers", 2) as running:
        running.process.kill()
        running.process.wait(LIMIT_S)
        while not is_refused(running):
            pass


@pytest.mark.interop
def test_what_is_wrong_is_told_once(lake):
    mooring.connect(lake).create_namespace("root")
    command = [COMMAND, "serve", lake, "--port", "0", "--workers", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "--root-namespace" in line


_WATCHER = """
import logging, sys
from mooring.server.running import bind
from mooring.server.supervisor import Supervisor

logging.basicConfig()
command = [sys.executable, "-c", sys.argv[1]]
ready = lambda: print("ready", flush=True)
sys.exit(Supervisor(bind("127.0.0.1", 0), 2, b"k" * 32).run(command, ready))
"""
_WORKER = """
import os, signal
from mooring.server.supervisor import Supervisor, Worker

{before}
worker = Worker.here(os.environ)
assert worker.key == b"k" * 32
assert worker.taken.getsockname()[0] == "127.0.0.1"
worker.say_ready()
worker.channel.recv(1)
"""
_DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@contextmanager
def watching(before: str = "") -> Iterator[Running]:
    """Watch over workers that do nothing, and are started the faster for it."""
    command = [sys.executable, "-c", _WATCHER, _WORKER.format(before=before)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": place},
        )
        try:
            yield Running(process, "")
        finally:
            process.kill()
            process.communicate()


def test_worker_that_dies_is_replaced_until_the_end():
    with watching() as running:
        assert running.process.stdout.readline() == "ready\n"
        first = running.children
        assert len(first) == 2
        killed = max(first)
        os.kill(killed, signal.SIGKILL)
        while killed in running.children or len(running.children) < 2:
            pass
        assert min(first) in running.children
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LIMIT_S) == 0
        assert f"(process {killed}) ended by signal 9" in running.process.stderr.read()


def test_second_signal_ends_workers_that_do_not_end():
    with watching(_DEAF) as running:
        assert running.process.stdout.readline() == "ready\n"
        deaf = running.children
        running.process.send_signal(signal.SIGTERM)
        running.process.send_signal(signal.SIGINT)
        # Which of the two is heard last is up to the system.
        assert running.process.wait(LIMIT_S) - 128 in {signal.SIGINT, signal.SIGTERM}
        assert not any(is_running(pid) for pid in deaf)


def test_workers_end_with_their_watcher():
    with watching() as running:
        assert running.process.stdout.readline() == "ready\n"
        orphans = running.children
        running.process.kill()
        while any(is_running(pid) for pid in orphans):
            pass


def test_worker_that_never_serves_is_not_tried_again():
    with watching("raise SystemExit(3)") as running:
        assert running.process.stdout.readline() == ""
        assert running.process.wait(LIMIT_S) == 3


def _watch(
    monkeypatch, program: str, meanwhile: Callable[[subprocess.Popen[bytes]], object]
) -> int:
    """Watch over a worker, with something that happens right after it was started."""

    def start_worker(*words: object, **more: object) -> subprocess.Popen[bytes]:
        process = started(*words, **more)
        meanwhile(process)
        return process

    started = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start_worker)
    with bind("127.0.0.1", 0) as taken:
        command = [sys.executable, "-c", program]
        return Supervisor(taken, 1, b"k" * 32).run(command, lambda: None)


def test_worker_that_is_being_started_hears_of_the_end(monkeypatch):
    program = "import time; time.sleep(10); raise SystemExit(3)"
    assert _watch(monkeypatch, program, lambda _: signal.raise_signal(signal.SIGTERM)) == 0


def test_worker_that_ends_at_once_is_told_of_as_any_other(monkeypatch):
    assert _watch(monkeypatch, "raise SystemExit(3)", lambda process: process.wait(LIMIT_S)) == 3


def test_variable_of_workers_is_for_them_alone():
    assert Worker.here({}) is None
    for text in ("", "1:2", "a:b:c", "0:9999:9998"):
        with pytest.raises(InvalidInputError, match=re.escape("--workers")):
            Worker.here({"MOORING_WORKER": text})
