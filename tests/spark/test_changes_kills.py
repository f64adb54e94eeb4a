"""Streams into and out of change tables whose driver is killed: every row counts exactly once.

Two streams run in one driver: files become rows of a table, and the changes of another table
become rows of a third. Each kill ends both, at a point before or after the commit of a batch.
"""

from __future__ import annotations

import json
import random
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table
from tests.spark.changes_tables import data_files, named_files
from tests.spark.test_streaming_kills import Driver, wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.torture

POINTS = ("written", "returned")
KILLS_AT_EACH = 2
RANDOM_KILLS = 1
FEED_S = 1.0
ROWS = pa.schema([("n", pa.int64())])
FEED = pa.schema([("n", pa.int64()), ("word", pa.string())])
OUT = pa.schema([("n", pa.int64()), ("kind", pa.string()), ("position", pa.int64())])


class Streams:
    """The two streams, what they read and what they write."""

    def __init__(self, root: Path) -> None:
        self._uri = f"metastore+{root / 'lake'}"
        self.catalog = mooring.connect(self._uri)
        self.catalog.create_namespace("ns")
        # Without keys, so that a row that counts twice is there twice.
        self.rows = create_change_table(self.catalog, "ns$rows", ROWS)
        self.out = create_change_table(self.catalog, "ns$out", OUT)
        self._feed = create_change_table(self.catalog, "ns$feed", FEED, keys=["n"])
        self._inbox = root / "inbox"
        self.homes = [root / "query-0", root / "query-1"]
        for directory in (self._inbox, *self.homes):
            directory.mkdir()
        self.count = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def plans(self, points: tuple[str, str]) -> list[dict[str, object]]:
        """Say what a driver does, and forget how far the one before it came."""
        for home in self.homes:
            for mark in ("done", "stopped"):
                (home / mark).unlink(missing_ok=True)
        columns = ["n", "_change_type as kind", "_change_position as position"]
        sources = [
            {"directory": str(self._inbox)},
            {"catalog": self._uri, "table": "ns$feed", "select": columns},
        ]
        tables = ["ns$rows", "ns$out"]
        return [
            {
                "home": str(home),
                "query": home.name,
                "source": source,
                "target": {"catalog": self._uri, "table": table, "change": "append"},
                "at": at,
            }
            for home, source, table, at in zip(self.homes, sources, tables, points, strict=True)
        ]

    def have_all(self, mark: str) -> bool:
        return all((home / mark).exists() for home in self.homes)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        """Add rows to what the streams read, all the time: an upsert, or a deletion of it."""
        while not self._over.wait(FEED_S):
            staged = self._inbox.with_name(".new")
            staged.write_text(json.dumps({"n": self.count}))
            staged.rename(self._inbox / f"{self.count}.json")
            if self.count % 2:
                self._feed.delete([{"n": self.count - 1}])
            else:
                self._feed.upsert([{"n": self.count, "word": "w"}])
            self.count += 1

    @property
    def expected(self) -> list[tuple[int, str, int]]:
        """What the changes were, in the order of their positions."""
        return [(at - at % 2, "delete" if at % 2 else "upsert", at + 1) for at in range(self.count)]


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


def test_every_row_counts_once_whenever_the_driver_is_killed(tmp_path, drivers):
    streams = Streams(tmp_path)
    moments = random.Random(7)
    with streams:
        for kill in range(2 * KILLS_AT_EACH):
            driver = drivers()
            driver.go(streams.plans((POINTS[kill % 2], POINTS[(kill + 1) % 2])))
            wait_for(lambda: streams.have_all("stopped"), driver)
            driver.kill()
            if kill % 2:
                streams.catalog.metastore.vacuum(older_than_ms=0)
        for _ in range(RANDOM_KILLS):
            driver = drivers()
            driver.go(streams.plans(("nowhere", "nowhere")))
            wait_for(lambda: streams.have_all("done"), driver)
            time.sleep(moments.uniform(0, 2))
            driver.kill()
    # Spark may end with the batch that was interrupted, where the source is one in Python.
    for _ in range(2):
        driver = drivers()
        driver.go(streams.plans(("end", "end")))
        driver.finish()
    assert sorted(streams.rows.to_arrow()["n"].to_pylist()) == list(range(streams.count))
    found = [tuple(row.values()) for row in streams.out.to_arrow().to_pylist()]
    assert sorted(found, key=lambda row: row[2]) == streams.expected
    streams.catalog.metastore.vacuum(older_than_ms=-60_000)
    feed = ChangeTable(streams.catalog, "ns$feed")
    assert data_files(streams.catalog) == named_files(streams.rows, streams.out, feed)
