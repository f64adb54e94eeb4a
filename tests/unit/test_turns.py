"""Turns among processes: one at a time, none for ever."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading

import pytest

from mooring.store import turns
from mooring.store.turns import take_turn

HOLD = """
import sys
from mooring.store.turns import take_turn
with take_turn(sys.argv[1]):
    print("mine", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def _own_place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.fixture
def other():
    """Another process that has its turn until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, "lake"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"mine\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def _taken(key: str) -> threading.Event:
    """Take a turn in another thread; the event tells that it has come."""
    come = threading.Event()

    def take() -> None:
        with take_turn(key):
            come.set()

    threading.Thread(target=take, daemon=True).start()
    return come


def test_a_turn_comes_when_the_other_process_ends(other, monkeypatch):
    """The operating system ends a turn with its process, however it ends."""
    monkeypatch.setattr(turns, "_PATIENCE_S", 60.0)
    come = _taken("lake")
    assert not come.is_set()
    other.kill()
    assert come.wait(30)


@pytest.mark.usefixtures("other")
def test_whoever_waits_too_long_goes_ahead(monkeypatch):
    monkeypatch.setattr(turns, "_PATIENCE_S", 0.01)
    assert _taken("lake").wait(30)


@pytest.mark.usefixtures("other")
def test_another_catalog_is_another_turn(monkeypatch):
    monkeypatch.setattr(turns, "_PATIENCE_S", 60.0)
    assert _taken("elsewhere").wait(30)


def test_a_turn_can_be_taken_again(monkeypatch):
    monkeypatch.setattr(turns, "_PATIENCE_S", 60.0)
    for _ in range(3):
        with take_turn("lake"):
            pass


def test_without_a_place_for_turns_nobody_waits(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    with take_turn("lake"):
        pass
