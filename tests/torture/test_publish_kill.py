"""`kill -9` of publishers: whatever they left, each position is published once, and equal.

"One Lance version per published position, exactly once, resumable".
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import mooring
from mooring.changes import ChangeTable, create_change_table, publications, publish
from mooring.errors import MooringError
from mooring.jobs.runner import Threads
from mooring.store.local import LocalStore
from mooring.tables.publications import list_published

from .killing import CHANGING, die, fast_processes, run_to_its_end

pytestmark = pytest.mark.torture

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("word", pa.string())])
MOST_STEPS = 80
KILLS = 12
TARGETS = ("metastore", "directory")


@pytest.fixture(scope="module")
def processes():
    return fast_processes("mooring.changes", __name__)


def _open(root: str) -> ChangeTable:
    return ChangeTable(mooring.connect(f"metastore+{root}/lake"), "shop$t")


def _target(root: str, kind: str):
    if kind == "metastore":
        return None
    return mooring.connect(f"{root}/out", dir_listing_enabled=False)


def _make(root: str, kind: str) -> ChangeTable:
    lake = mooring.connect(f"metastore+{root}/lake")
    lake.create_namespace("shop")
    other = _target(root, kind)
    if other is not None:
        other.create_namespace("shop")
    table = create_change_table(lake, "shop$t", SCHEMA, keys=["id"], buckets=2)
    table.upsert([{"id": number, "n": 0, "word": "first"} for number in range(20)])
    return table


def _publish(root: str, kind: str):
    return publish(_open(root), "shop$out", catalog=_target(root, kind), runner=Threads(1))


def _killed_at(root: str, kind: str, step: int) -> None:
    """Publish, and die before one of the calls that change a store, of whatever directory."""
    left = [step]

    def counting(real):
        def call(*args, **kwargs):
            if left[0] == 0:
                die()
            left[0] -= 1
            return real(*args, **kwargs)

        return call

    for verb in CHANGING:
        setattr(LocalStore, verb, counting(getattr(LocalStore, verb)))
    _publish(root, kind)


def _positions(table: ChangeTable, kind: str, root: str) -> list[int]:
    catalog = _target(root, kind) or table.catalog
    return [one.mark.position for one in list_published(catalog.table("shop$out").handle)]


def _rows(table: ChangeTable, kind: str, root: str, version: int | None = None):
    catalog = _target(root, kind) or table.catalog
    return catalog.table("shop$out").to_lance(version).to_table().sort_by("id")


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("stage", ["first", "next"])
def test_a_publisher_killed_at_any_step_is_repeated(processes, tmp_path, kind, stage):
    master = tmp_path / "master"
    table = _make(str(master), kind)
    if stage == "next":
        _publish(str(master), kind)
        table.upsert([{"id": 3, "n": 1}, {"id": 50, "n": 1}])
        table.delete([{"id": 4}])
    kills = 0
    for step in range(MOST_STEPS):
        root = str(tmp_path / f"{step}")
        shutil.copytree(master, root)
        was_killed = run_to_its_end(processes, _killed_at, root, kind, step)
        found = _open(root)
        _publish(root, kind)
        assert _publish(root, kind).action == "nothing"
        assert _positions(found, kind, root) == ([3, 1] if stage == "next" else [1])
        assert _rows(found, kind, root) == found.to_arrow().sort_by("id")
        shutil.rmtree(root)
        kills += was_killed
        if not was_killed:
            break
    assert 5 < kills < MOST_STEPS


def _publish_for_ever(root: str, kind: str) -> None:
    while True:
        try:
            _publish(root, kind)
        except MooringError as exc:
            with Path(root, "refused").open("a") as told:
                told.write(f"{type(exc).__name__}: {exc}\n")
        time.sleep(0.005)


@pytest.mark.parametrize("kind", TARGETS)
def test_publishers_killed_again_and_again_beside_a_writer(processes, tmp_path, kind):
    """Two publishers at once; one of them is killed at any time and started anew."""
    root = str(tmp_path)
    table = _make(root, kind)
    random_ = random.Random(5)

    def write() -> None:
        while not is_over.wait(0.03):
            number = table.position
            ids = random_.sample(range(30), 4)
            table.upsert([{"id": one, "n": number, "word": f"at {number}"} for one in ids])
            table.delete([{"id": random_.randrange(30)}])

    is_over = threading.Event()
    writer = threading.Thread(target=write)
    steady = processes.Process(target=_publish_for_ever, args=(root, kind))
    steady.start()
    writer.start()
    try:
        for _ in range(KILLS):
            victim = processes.Process(target=_publish_for_ever, args=(root, kind))
            victim.start()
            time.sleep(0.3 + random_.random() * 0.7)
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
    finally:
        is_over.set()
        writer.join()
        os.kill(steady.pid, signal.SIGKILL)
        steady.join()
    _publish(root, kind)
    made = publications(table)
    positions = [one.position for one in made]
    assert positions[0] == table.position
    assert positions == sorted(set(positions), reverse=True)
    assert len(positions) > 3
    refused = Path(root, "refused")
    told = refused.read_text().splitlines() if refused.exists() else []
    assert all(line.startswith("ConcurrentModificationError") for line in told)
    for one in made:
        expected = table.to_arrow(position=one.position).sort_by("id")
        assert _rows(table, kind, root, one.version) == expected
