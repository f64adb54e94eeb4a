"""Streams whose driver is killed with all its processes: every row is there exactly once.

Three streams run in one driver, into a V1 directory, a V2 directory and a metastore; the third
reads another table. Each kill ends all three.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import mooring
from mooring.tables.pending import list_runs

pytestmark = pytest.mark.torture

DRIVER = Path(__file__).with_name("streaming_driver.py")
POINTS = ("written", "committed", "returned")
KILLS_AT_EACH = 5
# Each of these ends three streams.
RANDOM_KILLS = 7
LIMIT_S = 300.0
POLL_S = 0.05
FEED_S = 1.0


class Driver:
    """A driver that has started Spark, and waits to be told what to do."""

    def __init__(self, home: Path, number: int) -> None:
        self._ready, self._go = home / f"ready-{number}", home / f"go-{number}"
        self._log = home / f"log-{number}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(DRIVER), str(self._ready), str(self._go)],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(DRIVER.parents[2])},
            )

    def go(self, plans: list[dict[str, object]]) -> None:
        wait_for(self._ready.exists, self)
        staged = self._go.with_suffix(".new")
        staged.write_text(json.dumps(plans), encoding="utf-8")
        staged.rename(self._go)

    def kill(self) -> None:
        """End the driver, its Java and all their workers, as a machine that goes down does."""
        doomed = family(self._process.pid)
        send(signal.SIGSTOP, doomed)
        send(signal.SIGKILL, doomed | family(self._process.pid))
        self._process.wait()

    def finish(self) -> None:
        assert self._process.wait(LIMIT_S) == 0, self.said()

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-4000:]


def family(pid: int) -> set[int]:
    """Find a process and all that it started; those that end meanwhile do not matter."""
    found = {pid}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in (task / "children").read_text(encoding="ascii").split():
                found |= family(int(child))
    return found


def send(number: signal.Signals, pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_for(is_there, driver: Driver) -> None:
    ends_at = time.monotonic() + LIMIT_S
    while not is_there():
        assert not driver.is_over, driver.said()
        assert time.monotonic() < ends_at, driver.said()
        time.sleep(POLL_S)


class Feed:
    """Adds rows to what the streams read, all the time."""

    def __init__(self, directories: list[Path], table) -> None:
        self._directories = directories
        self._table = table
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(FEED_S):
            rows = [2 * self.count, 2 * self.count + 1]
            for directory in self._directories:
                staged = directory.with_name(f".{self.count}.new")
                staged.write_text("\n".join(json.dumps({"n": row}) for row in rows))
                staged.rename(directory / f"{self.count}.json")
            self._table.insert(pa.table({"n": rows}))
            self.count += 1

    @property
    def rows(self) -> list[int]:
        return list(range(2 * self.count))


class Streams:
    """The three streams, what they read and what they write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read = mooring.connect(root / "read")
        self._read.create_table("feed", pa.table({"n": pa.array([], pa.int64())}))
        directories = [self._make(f"in-{number}") for number in range(2)]
        self.feed = Feed(directories, self._read.table("feed"))
        flags = {"manifest_enabled": "false"}
        self._targets = [
            {"catalog": str(root / "v1"), "table": "t", **flags},
            {"catalog": str(root / "v2"), "table": "t"},
            {"catalog": f"metastore+{root / 'metastore'}", "table": "ns$t"},
        ]
        self._catalogs = [
            mooring.connect(root / "v1", manifest_enabled=False),
            mooring.connect(root / "v2"),
            mooring.connect(f"metastore+{root / 'metastore'}"),
        ]
        self._catalogs[2].create_namespace("ns")
        self._sources = [
            *({"directory": str(directory)} for directory in directories),
            {"catalog": str(root / "read"), "table": "feed"},
        ]
        self.homes = [self._make(f"query-{number}") for number in range(3)]

    def _make(self, name: str) -> Path:
        directory = self.root / name
        directory.mkdir()
        return directory

    def plans(self, points: list[str]) -> list[dict[str, object]]:
        """Say what a driver does, and forget how far the one before it came."""
        for home in self.homes:
            for mark in ("done", "stopped"):
                (home / mark).unlink(missing_ok=True)
        return [
            {"home": str(home), "query": home.name, "source": source, "target": target, "at": at}
            for home, source, target, at in zip(
                self.homes, self._sources, self._targets, points, strict=True
            )
        ]

    def have_all(self, mark: str) -> bool:
        return all((home / mark).exists() for home in self.homes)

    @property
    def tables(self):
        return [
            catalog.table(target["table"])
            for catalog, target in zip(self._catalogs, self._targets, strict=True)
        ]

    def clean(self) -> None:
        for table in self.tables:
            table.compact(older_than=timedelta(0), keep=1)


@pytest.fixture
def drivers(tmp_path):
    """Hand out drivers that are ready, the next one starting meanwhile."""
    made = []

    def start() -> Driver:
        made.append(Driver(tmp_path, len(made)))
        return made[-1]

    def take() -> Driver:
        driver = made[-1] if made else start()
        start()
        return driver

    yield take
    for driver in made:
        if not driver.is_over:
            driver.kill()


def test_every_row_is_there_once_whenever_the_driver_is_killed(tmp_path, drivers):
    streams = Streams(tmp_path)
    moments = random.Random(6)
    with streams.feed:
        for kill in range(KILLS_AT_EACH):
            driver = drivers()
            # One stream at each point; over the kills every stream is at every one.
            driver.go(streams.plans([POINTS[(kill + at) % 3] for at in range(3)]))
            wait_for(lambda: streams.have_all("stopped"), driver)
            driver.kill()
            if kill % 2:
                streams.clean()
        for kill in range(RANDOM_KILLS):
            driver = drivers()
            driver.go(streams.plans(["nowhere"] * 3))
            wait_for(lambda: streams.have_all("done"), driver)
            time.sleep(moments.uniform(0, 3))
            driver.kill()
            if kill % 3 == 0:
                streams.clean()
    # Spark may end with the batch that was interrupted, where the source is one in Python.
    for _ in range(2):
        driver = drivers()
        driver.go(streams.plans(["end"] * 3))
        driver.finish()
    for table in streams.tables:
        assert sorted(table.to_arrow()["n"].to_pylist()) == streams.feed.rows
        assert not list_runs(table.handle.place)
        table.to_lance().validate()
