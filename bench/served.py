"""Servers to measure: ``mooring serve`` and pylance's own, each a process on loopback."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Server", "serve_ours", "serve_theirs"]

_START_S = 60.0
_OURS = "import sys; from mooring.cli.app import main; sys.exit(main())"
_THEIRS = (
    "import sys, lance.namespace as found;"
    " adapter = found.RestAdapter('dir', {'root': sys.argv[1]}, port=int(sys.argv[2]));"
    " adapter.start(); sys.stdin.read()"
)


@dataclass(frozen=True)
class Server:
    """A process that serves a catalog."""

    process: subprocess.Popen[bytes]
    port: int
    prefix: str
    tables: int

    @property
    def uri(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def resident_mib(self) -> float:
        """Return how much memory it has."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text("utf-8").splitlines()
        found = next(line for line in lines if line.startswith("VmRSS:"))
        return int(found.split()[1]) / 1024


@contextmanager
def serve_ours(root: Path, tables: int) -> Iterator[Server]:
    """Serve a catalog of so many tables by Mooring."""
    port = _free_port()
    command = [sys.executable, "-c", _OURS, "serve", str(root), "--port", str(port), "--quiet"]
    with _running(command, port, "/lance", tables) as server:
        yield server


@contextmanager
def serve_theirs(root: Path, tables: int) -> Iterator[Server]:
    """Serve a catalog of so many tables by pylance."""
    port = _free_port()
    command = [sys.executable, "-c", _THEIRS, str(root), str(port)]
    with _running(command, port, "", tables) as server:
        yield server


@contextmanager
def _running(command: list[str], port: int, prefix: str, tables: int) -> Iterator[Server]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        _await(process, port)
        yield Server(process, port, prefix, tables)
    finally:
        process.terminate()
        process.wait(_START_S)
        assert process.stdin is not None
        process.stdin.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + _START_S
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_START_S)
            connection.request("GET", "/")
            connection.getresponse().read()
            connection.close()
        except (OSError, http.client.HTTPException):
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < until, "the server does not listen"
            time.sleep(0.05)
        else:
            return
