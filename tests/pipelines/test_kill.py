"""Runs that are killed with `kill -9`: all of them is visible or nothing, and they go on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import mooring
from mooring.catalog import Catalog
from mooring.metastore.backend import MetastoreBackend
from mooring.namespace.home import Home
from mooring.namespace.settings import METASTORE
from mooring.pipelines import list_runs
from mooring.store import open_store
from tests.pipelines.direct import do, rows_of
from tests.torture.killing import KillingStore, fast_processes, run_to_its_end

pytestmark = pytest.mark.torture

ORDERS, ITEMS = [(1, 10), (2, 20)], [(1, "tea"), (2, "gin"), (2, "rum")]
MOST_STEPS = 80
LIMIT_S = 120


def _run_to_die(uri: str, path: str, step: int) -> None:
    """Run a pipeline in a process that ends at a step that changes something."""
    root = uri.removeprefix("metastore+")
    store = KillingStore(open_store(root, {}), step)
    backend = MetastoreBackend(Home(store, author="victim", kind=METASTORE))
    do(Catalog(backend, uri), path)


def test_kill_at_every_step_leaves_all_outputs_or_none(lake, plain, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # processes die here, the machine does not
    master = tmp_path / "lake"
    processes = fast_processes("tests.pipelines.direct")
    ends = Counter()
    for step in range(MOST_STEPS):
        place = tmp_path / f"copy-{step}"
        shutil.copytree(master, place)
        copy = mooring.connect(f"metastore+{place}")
        killed = run_to_its_end(processes, _run_to_die, copy.uri, str(plain), step)
        found = rows_of(copy, "shop$orders"), rows_of(copy, "shop$items")
        assert found in ([(None, None), (ORDERS, ITEMS)] if killed else [(ORDERS, ITEMS)])
        is_done = found[0] is not None
        assert [one.state for one in list_runs(copy)] == (["done"] if is_done else [])
        report, written = do(copy, plain)
        assert report.is_new is not is_done
        ends[is_done, len(written)] += 1
        assert (rows_of(copy, "shop$orders"), rows_of(copy, "shop$items")) == (ORDERS, ITEMS)
        assert len(list_runs(copy)) == 1
        shutil.rmtree(place)
        if not killed:
            break
    else:
        raise AssertionError(f"more than {MOST_STEPS} steps")
    # Killed before the first note, between the notes, after both, and after the commit.
    assert set(ends) == {(False, 2), (False, 1), (False, 0), (True, 0)}


STEPS = """
    import os
    from pathlib import Path

    def counted(orders, parameters):
        with open(parameters["log"], "a") as log:
            log.write("x")
        return orders

    def waits(items, parameters):
        while Path(parameters["log"] + ".wait").exists():
            Path(parameters["log"] + ".reached").write_text("")
        return items
"""
WAITING = """
    name: waiting
    catalog: metastore+lake
    parameters: {log: log}
    sources: {orders: {files: orders.csv}, items: {files: items.csv}}
    steps:
      first: {python: "steps.py:counted"}
      second: {python: "steps.py:waits"}
    outputs:
      - {from: first, table: shop$orders, change: upsert, create: {keys: id, buckets: 2}}
      - {from: second, table: shop$items, change: append, create: {}}
"""


def test_command_that_is_killed_goes_on_where_it_was(lake, plain, write, tmp_path):
    """Spark's own process, killed while the second output is computed."""
    write("steps.py", STEPS)
    path = write("waiting.yaml", WAITING)
    (tmp_path / "log.wait").write_text("")
    command = [str(Path(sys.executable).parent / "mooring"), "run", str(path)]
    command += ["--master", "local[2]", "-p", f"log={tmp_path}/log"]
    victim = subprocess.Popen(command, start_new_session=True)
    ends_at = time.monotonic() + LIMIT_S
    while not (tmp_path / "log.reached").exists():
        assert victim.poll() is None
        assert time.monotonic() < ends_at
        time.sleep(0.1)
    os.killpg(victim.pid, signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    assert rows_of(lake, "shop$orders") is rows_of(lake, "shop$items") is None
    (tmp_path / "log.wait").unlink()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text() == "x"
    assert (rows_of(lake, "shop$orders"), rows_of(lake, "shop$items")) == (ORDERS, ITEMS)
    (record,) = list_runs(lake)
    assert [one.was_kept for one in record.outputs] == [True, False]
    again = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "is done already: nothing changed" in again.stderr
    assert len(list_runs(lake)) == 1
