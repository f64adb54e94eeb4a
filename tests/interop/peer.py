"""Other people's libraries as peers: each in an environment and a process of its own.

An environment is built once from pinned versions, beside the project's own, and kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "FOUND",
    "PEERS",
    "NotBuiltError",
    "Peer",
    "PeerError",
    "alone",
    "find_environment",
    "find_python",
]

ROOT = Path(__file__).parents[2]
PEERS = Path(os.environ.get("MOORING_PEERS", ROOT / ".peers"))
# The interpreters that were asked for in this process, by name of their environment.
FOUND: dict[str, Path] = {}


class NotBuiltError(Exception):
    """The environment cannot be built here; the message says why."""


class PeerError(Exception):
    """The library raised; the message is its own, after the name of its class."""


class Peer:
    """A process that does with a library what it is told, by one line of JSON after the other."""

    def __init__(
        self,
        python: Path | str,
        driver: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Start it.

        Args:
            python: Of the library's environment.
            driver: What it runs.
            env: Variables beside those that are there.
            cwd: Where it runs, if not here.
        """
        self._process = subprocess.Popen(
            [python, driver],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )

    def __call__(self, verb: str, **arguments):
        """Do something and return what the library said.

        Raises:
            PeerError: it raised.
        """
        self._process.stdin.write(json.dumps({"do": verb, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            msg = f"the process ended at {verb} with {self._process.wait()}"
            raise PeerError(msg)
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def find_python(name: str, candidates: Iterable[str], supported: str) -> str:
    """Find a Python that pinned versions run on.

    Args:
        name: Of the peer, for messages.
        candidates: Names and paths of interpreters, the best first.
        supported: Code that ends with 0 on those that will do.

    Raises:
        NotBuiltError: there is none.
    """
    for candidate in candidates:
        path = shutil.which(candidate)
        if path and not subprocess.run([path, "-c", supported], capture_output=True).returncode:  # noqa: PLW1510  # the code is the answer
            return path
    msg = f"no Python that {name} runs on is here (tried: {', '.join(candidates)})"
    raise NotBuiltError(msg)


def find_environment(name: str, python: str, requirements: Path, check: str) -> Path:
    """Return the interpreter of a peer's environment, which is built where it is missing.

    Args:
        name: Of the peer.
        python: What to build it with.
        requirements: All that is in it, pinned.
        check: Code that fails where it does not work.

    Raises:
        NotBuiltError: it cannot be built.
    """
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True)
    key = hashlib.sha256(requirements.read_bytes() + version.stdout.encode()).hexdigest()[:12]
    home = PEERS / f"{name}-{key}"
    inside = home / "bin" / "python"
    with alone(name):
        if not (home / ".ready").exists():
            _build(name, python, home, requirements)
            _run(name, [inside, "-c", check])
            (home / ".ready").touch()
    FOUND[name] = inside
    return inside


@contextmanager
def alone(what: str) -> Iterator[None]:
    """Let one process at a time bring something: tests run in several."""
    PEERS.mkdir(parents=True, exist_ok=True)
    with (PEERS / f"{what}.lock").open("w") as held:
        flock(held, LOCK_EX)
        yield


def _build(name: str, python: str, home: Path, requirements: Path) -> None:
    _run(name, [python, "-m", "venv", "--clear", home])
    inside = home / "bin" / "python"
    uv = shutil.which("uv", path=Path(sys.executable).parent)
    arguments = ["--quiet", "--no-deps", "-r", requirements]
    try:
        _run(name, [uv or "uv", "pip", "install", "--python", inside, *arguments])
    except (NotBuiltError, FileNotFoundError):
        _run(name, [inside, "-m", "pip", "install", *arguments])  # slower


def _run(name: str, command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: PLW1510  # told below
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        msg = f"the environment of {name} cannot be built: {' '.join(last)}"
        raise NotBuiltError(msg)
