"""The deltacat library as a peer: in an environment and a process of its own.

The environment is built once from pinned versions, beside the project's own, and kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["Deltacat", "DeltacatError", "NotBuiltError", "find_interpreter"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REQUIREMENTS = HERE / "deltacat_requirements.txt"
DRIVER = HERE / "deltacat_driver.py"
# What the pinned versions have wheels for.
SUPPORTED = "import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 11))"


class NotBuiltError(Exception):
    """The environment cannot be built here; the message says why."""


class DeltacatError(Exception):
    """The library raised; the message is its own, after the name of its class."""


class Deltacat:
    """A process that does with the library what it is told."""

    def __init__(self) -> None:
        """Start it; with `start` it opens a catalog.

        Raises:
            NotBuiltError: there is no environment, and none can be built.
        """
        self._process = subprocess.Popen(
            [find_interpreter(), DRIVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "RAY_DISABLE_IMPORT_WARNING": "1"},
        )

    def __call__(self, verb: str, **arguments):
        """Do something and return what the library said.

        Raises:
            DeltacatError: it raised.
        """
        self._process.stdin.write(json.dumps({"do": verb, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            msg = f"the process ended at {verb} with {self._process.wait()}"
            raise DeltacatError(msg)
        answer = json.loads(line)
        if "error" in answer:
            raise DeltacatError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def find_interpreter() -> Path:
    """Return the interpreter of the library's environment, which is built where it is missing.

    Raises:
        NotBuiltError: it cannot be.
    """
    python = _python()
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True)
    key = hashlib.sha256(REQUIREMENTS.read_bytes() + version.stdout.encode()).hexdigest()[:12]
    home = Path(os.environ.get("MOORING_PEERS", ROOT / ".peers")) / f"deltacat-{key}"
    found = home / "bin" / "python"
    if not (home / ".ready").exists():
        _build(python, home)
        (home / ".ready").touch()
    return found


def _python() -> str:
    """Find a Python that the pinned versions run on."""
    versions = sorted(Path.home().glob(".pyenv/versions/3.10*/bin/python3.10"))
    candidates = ["python3.10", *map(str, versions), "python3.11", sys.executable]
    for candidate in candidates:
        path = shutil.which(candidate)
        if path and not subprocess.run([path, "-c", SUPPORTED], capture_output=True).returncode:  # noqa: PLW1510  # the code is the answer
            return path
    msg = "deltacat runs on Python 3.10 and 3.11, and neither is here"
    raise NotBuiltError(msg)


def _build(python: str, home: Path) -> None:
    _run([python, "-m", "venv", "--clear", home])
    inside = home / "bin" / "python"
    uv = shutil.which("uv", path=Path(sys.executable).parent)
    arguments = ["--quiet", "--no-deps", "-r", REQUIREMENTS]
    try:
        _run([uv or "uv", "pip", "install", "--python", inside, *arguments])
    except (NotBuiltError, FileNotFoundError):
        _run([inside, "-m", "pip", "install", *arguments])  # slower
    _run([inside, "-c", "import deltacat"])


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: PLW1510  # told below
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        msg = f"the environment of deltacat cannot be built: {' '.join(last)}"
        raise NotBuiltError(msg)
