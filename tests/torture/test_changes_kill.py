"""Writers, a compactor and a reader at once, and `kill -9` for some of them.

Four writers and a compactor are at work until 200 batches are acknowledged; the compactor and one
writer are killed five times each. Every acknowledged row is there exactly once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table
from mooring.changes.compaction_policy import CompactionPolicy
from mooring.metastore.layout import DATA_DIR
from tests.changes.model import KEYS, SCHEMA, Model, canonical

from .changes_worker import NAME, batch_of, compact, digest, notes, read, write
from .killing import fast_processes

if TYPE_CHECKING:
    from pathlib import Path

WRITERS = ("w0", "w1", "w2", "w3")
BATCHES = 200
KILLS = 5
LIMIT_S = 300


class Crew:
    """The processes, of which some are killed and come again."""

    def __init__(self, uri: str, home: Path) -> None:
        self._processes = fast_processes("tests.torture.changes_worker")
        self._uri, self._home = uri, home
        self._at_work = {}
        self.kills: dict[str, int] = {}

    def start(self, name: str, work) -> None:
        process = self._processes.Process(target=work, args=(self._uri, str(self._home), name))
        process.start()
        self._at_work[name] = (process, work)

    def kill(self, name: str) -> None:
        """End a process in the middle of whatever it does, and start it again."""
        process, work = self._at_work[name]
        assert process.exitcode is None, f"{name} is not at work: {process.exitcode}"
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        self.kills[name] = self.kills.get(name, 0) + 1
        self.start(name, work)

    def check(self) -> None:
        broken = {name: one.exitcode for name, (one, _) in self._at_work.items() if one.exitcode}
        assert not broken, f"ended on their own: {broken}"

    def end(self) -> None:
        """Tell all to end, and wait until they do."""
        (self._home / "over").touch()
        for process, _ in self._at_work.values():
            process.join(60)
        codes = {name: process.exitcode for name, (process, _) in self._at_work.items()}
        assert codes == dict.fromkeys(codes, 0)

    def abandon(self) -> None:
        for process, _ in self._at_work.values():
            if process.exitcode is None:
                process.kill()
                process.join()


def _acknowledged(home: Path) -> dict[str, int]:
    """Return the positions of the runs that were acknowledged."""
    return {
        f"{writer}-{number}": position
        for writer in WRITERS
        for kind, number, position in notes(home / f"{writer}.log")
        if kind == "acknowledged"
    }


def _torment(crew: Crew, home: Path) -> None:
    """Kill whenever some more batches are acknowledged, until enough of both happened."""
    random_, started = random.Random(7), time.monotonic()
    victims = ["compactor", "w0"] * KILLS
    every = BATCHES // (len(victims) + 1)
    next_at = every
    while len(acknowledged := _acknowledged(home)) < BATCHES or victims:
        assert time.monotonic() - started < LIMIT_S, f"only {len(acknowledged)} batches"
        crew.check()
        if victims and len(acknowledged) >= next_at:
            time.sleep(random_.uniform(0, 0.2))
            crew.kill(victims.pop())
            next_at += every
        time.sleep(0.02)


@pytest.mark.torture
def test_every_acknowledged_row_is_there_once_whoever_is_killed(tmp_path, capsys):
    uri, home = f"metastore+{tmp_path / 'lake'}", tmp_path / "notes"
    home.mkdir()
    lake = mooring.connect(uri)
    lake.create_namespace("shop")
    create_change_table(
        lake, NAME, SCHEMA, keys=KEYS, partition_by=["truncate(1, part)"], buckets=2
    )
    crew, started = Crew(uri, home), time.monotonic()
    try:
        for writer in WRITERS:
            crew.start(writer, write)
        crew.start("compactor", compact)
        crew.start("reader", read)
        _torment(crew, home)
        crew.end()
    finally:
        crew.abandon()
    assert crew.kills == {"compactor": KILLS, "w0": KILLS}
    table = ChangeTable(mooring.connect(uri), NAME)
    seen = _must_equal_the_model(table, home)
    rounds = notes(home / "compactor.log")
    assert rounds
    with capsys.disabled():
        told = {
            "batches": table.position,
            "rounds": len(rounds),
            "reads": seen,
            "seconds": round(time.monotonic() - started),
        }
        print(f"\nwriters and a compactor, killed: {json.dumps(told)}")  # noqa: T201


def _must_equal_the_model(table: ChangeTable, home: Path) -> int:
    """Hold the table, and all that was read meanwhile, against the batches by their positions."""
    acknowledged = _acknowledged(home)
    # Each batch has a position of its own, and no position came of anything else.
    assert sorted(acknowledged.values()) == list(range(1, len(acknowledged) + 1))
    assert table.position == len(acknowledged) >= BATCHES
    model, digests = Model(), {0: digest([])}
    for run, position in sorted(acknowledged.items(), key=lambda one: one[1]):
        model.apply(*batch_of(run))
        digests[position] = digest(model.rows())
    reads = notes(home / "reader.log")
    assert reads
    wrong = [position for position, found, _ in reads if found != digests[position]]
    assert not wrong, f"reads at {wrong} of {len(reads)} were not what was acknowledged"
    _must_be(table, model)
    table.compact(CompactionPolicy(force=True))
    _must_be(table, model)
    store = table.catalog.metastore.store
    before = {one.path for one in store.list_prefix(DATA_DIR)}
    table.catalog.metastore.vacuum(older_than_ms=0)
    _must_be(table, model)
    left = {one.path for one in store.list_prefix(DATA_DIR)}
    assert left <= before
    assert left == {
        file.path
        for log in table.at().partitions.values()
        for one in (*log.deltas, *log.bases)
        for file in one.files
    }
    return len(reads)


def _must_be(table: ChangeTable, model: Model) -> None:
    assert canonical(table.to_arrow().to_pylist()) == model.rows()
