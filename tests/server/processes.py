"""``mooring serve`` as a process of its own, on a free port."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COMMAND", "LIMIT_S", "Running", "is_running", "serving", "start"]

LIMIT_S = 60
ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sys.executable).with_name("mooring"))


@dataclass
class Running:
    """A server that answers."""

    process: subprocess.Popen[str]
    base: str
    told: list[str] = field(default_factory=list)

    @property
    def children(self) -> set[int]:
        """The processes that it started and that run."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return {int(pid) for pid in listed.read_text().split() if is_running(int(pid))}

    def get(self, path: str, **more: object) -> httpx2.Response:
        return httpx2.get(f"{self.base}{path}", timeout=LIMIT_S, **more)

    def post(self, path: str, **more: object) -> httpx2.Response:
        more.setdefault("json", {})
        return httpx2.post(f"{self.base}{path}", timeout=LIMIT_S, **more)


def is_running(pid: int) -> bool:
    """Whether a process runs; one that only waits to be buried does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def start(*words: object, place: str, **more: object) -> Running:
    """Serve, and wait until it says so.

    Args:
        words: Of the command.
        place: Where its temporary files are.
        more: How the process is started.
    """
    process = subprocess.Popen(
        [COMMAND, "serve", *map(str, words), "--port", "0", "-q", "-o", "ndjson"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MOORING_USER": "ada", "PYTHONPATH": str(ROOT), "TMPDIR": place},
        **more,
    )
    line = process.stdout.readline()
    if not line:
        process.communicate()
        raise ChildProcessError(process.returncode)
    return Running(process, json.loads(line)["lance"].removesuffix("/lance"))


@contextmanager
def serving(*words: object, **more: object) -> Iterator[Running]:
    """Serve until the context ends."""
    # What one that is killed leaves behind goes with it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        running = start(*words, place=place, **more)
        try:
            yield running
        finally:
            running.process.kill()
            running.process.communicate()
