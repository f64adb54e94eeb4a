"""Processes that write Lance tables of one metastore through pylance.

Every acknowledged row is there exactly once, versions have no gap, two tables change together or
not at all, and a writer that is killed leaves a commit whole or undone, and nobody blocked.

Spec: objects-and-relationships, "External Manifest Store".
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import mooring
from mooring.identifiers import ObjectId
from mooring.metastore.backend import MetastoreBackend
from mooring.namespace.home import Home
from mooring.namespace.settings import METASTORE
from mooring.namespace.table_operations import CreateVersion
from mooring.store import open_store

from .killing import KillingStore, fast_processes, run_to_its_end
from .metastore_table_worker import (
    LEFT,
    RIGHT,
    TABLE,
    StagingNamespace,
    append,
    look_at_both,
    put,
    rows_of,
    stage_move,
)

REPOSITORY = Path(__file__).parents[2]
MOST_STEPS = 100
pytestmark = pytest.mark.torture


def _properties(uri: str, options: dict[str, str] | None = None) -> dict[str, str]:
    storage = {f"storage.{key}": value for key, value in (options or {}).items()}
    return {"root": uri, **storage}


def _prepare(uri: str, options: dict[str, str] | None = None, **tables: list[int]):
    """Make a metastore with tables of one namespace, and open it."""
    catalog = mooring.connect(f"metastore+{uri}", storage_options=options or {})
    catalog.create_namespace("n")
    for name, rows in tables.items():
        catalog.create_table(f"n${name}", pa.table({"row": pa.array(rows, pa.int64())}))
    return catalog


def _start(verb: str, **job: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.torture.metastore_table_worker", verb, json.dumps(job)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE)


def _end(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * len(processes)


def _outcomes(logs: Path) -> list[tuple[int, str]]:
    lines = [line for log in logs.glob("*.log") for line in log.read_text().splitlines()]
    return [tuple(json.loads(line)) for line in lines]


def _versions(backend: MetastoreBackend, table: list[str]) -> list[int]:
    return [one.version for one in backend.list_table_versions(ObjectId(tuple(table)))]


def _must_be_whole(uri: str, options: dict[str, str] | None = None) -> None:
    """Hold the versions of all tables against their files."""
    backend = mooring.connect(f"metastore+{uri}", storage_options=options or {}).backend
    for info in backend.describe_tables():
        versions = [one.version for one in backend.list_table_versions(info.id)]
        assert versions == list(range(len(versions), 0, -1))
        directory = info.location.removeprefix(backend.store.location("")).strip("/")
        names = backend.store.list_dir(f"{directory}/_versions").files
        final = [name for name in names if name.endswith(".manifest")]
        # The newest may wait for its name until somebody builds on it.
        assert len(final) in {len(versions), len(versions) - 1}


@pytest.fixture
def timed(capsys, request):
    """Tell how long a test took."""
    started = time.monotonic()
    yield
    with capsys.disabled():
        print(f"\n{request.node.name}: {time.monotonic() - started:.0f} s")  # noqa: T201


# -- appends to one table --------------------------------------------------------------------------


def _append(uri: str, options: dict[str, str], logs: Path, writers: int, count: int) -> None:
    _prepare(uri, options, t=[0])
    properties = _properties(uri, options)
    running = [
        _start("append", properties=properties, seed=seed, count=count, log=f"{logs}/{seed}.log")
        for seed in range(1, writers + 1)
    ]
    _end(running)
    outcomes = _outcomes(logs)
    assert Counter(outcome for _, outcome in outcomes) == {"ok": writers * count}
    found = rows_of(mooring.MetastoreNamespace(**properties), TABLE)
    assert found == sorted([0, *(row for row, _ in outcomes)])
    _must_be_whole(uri, options)


def test_eight_processes_append_200_rows_on_disk(tmp_path, timed):
    _append(str(tmp_path / "lake"), {}, tmp_path, writers=8, count=25)
    backend = mooring.connect(f"metastore+{tmp_path / 'lake'}").backend
    assert _versions(backend, TABLE) == list(range(201, 0, -1))


@pytest.mark.s3
def test_four_processes_append_40_rows_on_seaweedfs(seaweedfs, prefix, tmp_path, timed):
    _append(seaweedfs.uri(prefix), seaweedfs.options, tmp_path, writers=4, count=10)


# -- two tables together ---------------------------------------------------------------------------


def test_reader_finds_every_row_in_one_table_while_processes_move_them(tmp_path, timed):
    uri = str(tmp_path / "lake")
    rows = list(range(8))
    _prepare(uri, left=rows, right=[100])
    everything = [*rows, 100]
    properties = _properties(uri)
    seen = tmp_path / "seen.json"
    watcher = _start("watch", properties=properties, rows=everything, log=str(seen))
    movers = [
        _start("move", properties=properties, row=row, count=11, log=f"{tmp_path}/{row}.log")
        for row in range(4)
    ]
    _end(movers)
    _end([watcher])
    assert Counter(outcome for _, outcome in _outcomes(tmp_path)) == {"ok": 44}
    told = json.loads(seen.read_text())
    assert told["looks"] >= 2
    assert told["states"] >= 2, "the reader came when all was over"
    left, right = look_at_both(mooring.MetastoreNamespace(**properties))
    # After an odd number of moves each of the rows is on the other side.
    assert (left, right) == ([4, 5, 6, 7], [0, 1, 2, 3, 100])
    backend = mooring.connect(f"metastore+{uri}").backend
    assert _versions(backend, LEFT) == _versions(backend, RIGHT) == list(range(45, 0, -1))
    _must_be_whole(uri)


# -- writers that are killed -----------------------------------------------------------------------


def _open_to_die(uri: str, step: int) -> MetastoreBackend:
    """Open a metastore whose store ends the process at a step that changes something."""
    store = KillingStore(open_store(uri, {}), step)
    return MetastoreBackend(Home(store, author="victim", kind=METASTORE))


def _insert(uri: str, step: int) -> None:
    backend = _open_to_die(uri, step)
    info = backend.describe_table(ObjectId(tuple(TABLE)))
    mooring.Table(backend, info).insert(pa.table({"row": [7]}))


def _stage_move(uri: str) -> list[CreateVersion]:
    """Stage a move, and name the manifests so that they are found in a copy of the lake, too."""
    namespace = StagingNamespace(**_properties(uri))
    stage_move(namespace, 1, LEFT, RIGHT)
    staged = [one.create_table_version for one in namespace.take().operations]
    return [
        CreateVersion(ObjectId(tuple(one.id)), one.version, _below(one.manifest_path))
        for one in staged
    ]


def _below(path: str) -> str:
    return "/".join(path.split("/")[-2:])


def _commit(operations: list[CreateVersion], uri: str, step: int) -> None:
    _open_to_die(uri, step).commit_tables(operations)


def _kill_at_every_step(target, master: Path, tmp_path: Path, must_hold) -> int:
    """Kill a process at every step, each on a copy of its own, and look; return how many."""
    processes = fast_processes("tests.torture.metastore_table_worker")
    for step in range(MOST_STEPS):
        uri = str(tmp_path / "lake")
        shutil.copytree(master, uri)
        killed = run_to_its_end(processes, target, uri, step)
        must_hold(uri, killed=killed)
        shutil.rmtree(uri)
        if not killed:
            return step
    raise AssertionError(f"more than {MOST_STEPS} steps")


def test_kill_at_every_step_of_an_append_leaves_it_whole_or_undone(tmp_path, timed):
    _prepare(str(tmp_path / "master"), t=[0])
    ends = Counter()

    def must_hold(uri: str, *, killed: bool) -> None:
        namespace = mooring.MetastoreNamespace(**_properties(uri))
        found = rows_of(namespace, TABLE)
        assert found in ([[0], [0, 7]] if killed else [[0, 7]])
        ends[len(found)] += 1
        assert append(namespace, 8) == "ok"
        assert rows_of(namespace, TABLE) == [*found, 8]
        _must_be_whole(uri)

    assert _kill_at_every_step(_insert, tmp_path / "master", tmp_path, must_hold) > 5
    assert set(ends) == {1, 2}


def test_kill_at_every_step_of_a_move_leaves_both_tables_or_neither_changed(tmp_path, timed):
    _prepare(str(tmp_path / "master"), left=[1, 2], right=[3])
    commit = partial(_commit, _stage_move(str(tmp_path / "master")))
    before, after = ([1, 2], [3]), ([2], [1, 3])
    ends = Counter()

    def must_hold(uri: str, *, killed: bool) -> None:
        namespace = mooring.MetastoreNamespace(**_properties(uri))
        left, right = look_at_both(namespace)
        assert (left, right) in ([before, after] if killed else [after])
        ends[len(left)] += 1
        for table in (LEFT, RIGHT):
            put(namespace, table, 9)
        assert look_at_both(namespace) == ([*left, 9], [*right, 9])
        _must_be_whole(uri)

    assert _kill_at_every_step(commit, tmp_path / "master", tmp_path, must_hold) > 5
    assert set(ends) == {1, 2}
