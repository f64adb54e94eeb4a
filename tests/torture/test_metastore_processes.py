"""Processes that commit to one metastore at the same time: every acknowledgement counts.

Counters and deltas of many processes, whatever their clocks say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import libfaketime
import pytest

from mooring.metastore.metastore import Metastore
from mooring.metastore.model import Namespace, Partition, Stream, Table, TableVersion
from mooring.store import open_store

from .metastore_worker import COUNTER, PARTITION, appended_without_a_gap, counted

REPOSITORY = Path(__file__).parents[2]
DAY_S = 86_400
SHIFTS_S = (-DAY_S, -DAY_S // 2, -3600, -20, 20, 3600, DAY_S // 2, DAY_S)
# What a process may take from the start of the test to its stamp.
MARGIN_S = 600


@dataclass
class Lake:
    """A metastore that processes work on."""

    uri: str
    options: dict[str, str] = field(default_factory=dict)

    def open(self) -> Metastore:
        return Metastore(open_store(self.uri, self.options), author="test")


def _prepare(lake: Lake) -> None:
    stream = PARTITION.parent
    version = stream.parent
    with lake.open().transaction() as txn:
        txn.create(version.parent.parent, Namespace())
        txn.create(COUNTER, Table(properties={"count": "0"}))
        txn.create(version.parent, Table())
        txn.create(version, TableVersion(version="1"))
        txn.create(stream, Stream(stream_id="s"))
        txn.create(PARTITION, Partition(partition_id="p"))


def _start(lake: Lake, author: str, verb: str, count: int | None, shift_s: int = 0):
    job = {"uri": lake.uri, "options": lake.options, "author": author, "verb": verb, "count": count}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.torture.metastore_worker", json.dumps(job)],
        cwd=REPOSITORY,
        env=_shifted(shift_s) if shift_s else None,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _shifted(shift_s: int) -> dict[str, str]:
    """Return an environment in which the system's clock is ahead or behind."""
    _, faking = libfaketime.get_reload_information()
    return os.environ | faking | {"FAKETIME": f"{shift_s:+d}"}


def _end(processes) -> list[list[object]]:
    """Wait for processes, the watcher last, and return what they told."""
    told = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [[json.loads(line) for line in lines.splitlines()] for lines in told]


def _run(
    lake: Lake, verb: str, processes: int, count: int, shifts_s: tuple[int, ...] = ()
) -> list[int]:
    """Run processes and a watcher, and return everything that they were acknowledged."""
    shifts_s = shifts_s or (0,) * processes
    started = time.time()
    watcher = _start(lake, "watcher", verb, None)
    running = [
        _start(lake, f"w{number}", verb, count, shift_s) for number, shift_s in enumerate(shifts_s)
    ]
    *told, (_, seen) = _end([*running, watcher])
    for (clock_s, *_), shift_s in zip(told, shifts_s, strict=True):
        assert 0 <= clock_s - shift_s - started < MARGIN_S
    acknowledged = sorted(done for _, *values in told for done in values)
    assert seen["newest"] == len(acknowledged)
    # Opening the metastore from the very first look on, while the processes were at work.
    assert seen["looks"] >= 2
    return acknowledged


def _count(lake: Lake, processes: int, count: int, shifts_s: tuple[int, ...] = ()) -> None:
    _prepare(lake)
    told = _run(lake, "increment", processes, count, shifts_s)
    assert told == list(range(1, processes * count + 1))
    assert counted(lake.open().begin()) == processes * count


def _stamps_s(lake: Lake) -> dict[str, list[float]]:
    """Return the times that everybody's commits were stamped with, in the order of the chain."""
    stamps = defaultdict(list)
    for _, record in reversed(list(lake.open().transactions())):
        stamps[record.by].append(record.end_ms / 1000)
    return stamps


@pytest.fixture
def disk(tmp_path) -> Lake:
    return Lake(str(tmp_path / "meta"))


@pytest.fixture
def timed(capsys, request):
    """Tell how long a test took."""
    started = time.monotonic()
    yield
    with capsys.disabled():
        print(f"\n{request.node.name}: {time.monotonic() - started:.0f} s")  # noqa: T201


def test_processes_that_count_lose_nothing(disk):
    _count(disk, 3, 10)


@pytest.mark.torture
def test_eight_processes_count_to_800_on_disk(disk, timed):
    _count(disk, 8, 100)


@pytest.mark.torture
def test_eight_processes_with_clocks_a_day_apart_count_to_800_on_disk(disk, timed):
    started = time.time()
    _count(disk, len(SHIFTS_S), 100, SHIFTS_S)
    stamps = _stamps_s(disk)
    for number, shift_s in enumerate(SHIFTS_S):
        own = stamps[f"w{number}"]
        assert len(own) == 100
        assert all(0 <= stamp - shift_s - int(started) < MARGIN_S for stamp in own)


@pytest.mark.torture
@pytest.mark.s3
def test_eight_processes_count_to_160_on_moto(moto, prefix, timed):
    _count(Lake(moto.uri(prefix), moto.options), 8, 20)


@pytest.mark.torture
@pytest.mark.s3
def test_four_processes_count_to_20_on_seaweedfs(seaweedfs, prefix, timed):
    _count(Lake(seaweedfs.uri(prefix), seaweedfs.options), 4, 5)


@pytest.mark.torture
@pytest.mark.parametrize("shifts_s", [(0,) * 8, SHIFTS_S], ids=["true clocks", "a day apart"])
def test_eight_processes_append_400_deltas_without_a_gap(disk, shifts_s, timed):
    _prepare(disk)
    told = _run(disk, "append", 8, 50, shifts_s)
    assert told == list(range(1, 401))
    assert appended_without_a_gap(disk.open().begin()) == 400
