"""A place where the documents' examples run: an empty directory, nothing set, the program."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.docs.sessions import mask
from tests.program import invoke


@pytest.fixture(autouse=True)
def _nothing_stays_set():
    """Documents set variables of the environment."""
    with patch.dict(os.environ):
        yield


@pytest.fixture(autouse=True)
def _nothing_is_set(_nothing_stays_set, monkeypatch, tmp_path):
    for key in [key for key in os.environ if key.startswith(("MOORING_", "AWS_"))]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("MOORING_CONFIG", str(tmp_path / "ada/.config/mooring/config.toml"))
    monkeypatch.setenv("MOORING_USER", "ada")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    place = tmp_path / "ada"
    place.mkdir()
    monkeypatch.chdir(place)


@pytest.fixture
def shell():
    """Run a command line and return what it printed, times and places masked, and its code.

    The program runs in this process, for a new one imports Lance again; the rest is bash's.
    """

    def run(line):
        words = _words(line)
        if words is None:
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
            return mask(done.stdout + done.stderr), done.returncode
        done = invoke(*words)
        return mask(done.output), done.exit_code

    return run


def _words(line):
    """Return the program's arguments; None for what only a shell can run."""
    if not line.startswith("mooring ") or any(mark in line for mark in "|<>;&"):
        return None
    return shlex.split(line)[1:]
