"""`kill -9` at every store call of operations on a manifest catalog; then everything must work.

Calls of the store that Lance makes in the middle of a commit are among them.

Spec: directory-namespace, "V2: Manifest"; ARCHITECTURE's rule that nothing acknowledged is lost.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

import pyarrow as pa
import pytest

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.home import Home
from mooring.directory.manifest_backend import open_manifest
from mooring.errors import ConcurrentModificationError, TableNotFoundError
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.opening import open_directory
from mooring.store.local import LocalStore
from mooring.store.scripted import ScriptedStore
from mooring.tables.opening import open_at

from .test_manifest_processes import REPOSITORY, read_log, rows_of

N, T, U = ROOT.child("n"), ObjectId(("n", "t")), ObjectId(("n", "u"))
R = ROOT.child("r")
KEPT = ObjectId(("kept", "t"))
MOST_CALLS = 120
_POLL_S = 0.01
SETUPS = {
    "create": ["ns"],
    "declare": ["ns"],
    "fill": ["ns", "declare"],
    "drop": ["ns", "create"],
    "undrop": ["ns", "create", "drop"],
    "rename": ["ns", "create"],
    "purge": ["ns", "create", "drop"],
    "ns": [],
    "cascade": ["ns", "create"],
    "undropns": ["ns", "create", "cascade"],
    "create root": [],
    "drop root": ["create root"],
    "rename root": ["ns", "create root"],
}
FAST = ["create", "cascade"]


def _rows(token: str) -> pa.RecordBatchReader:
    return pa.table({"token": [token]}).to_reader()


def _perform(backend, verb: str) -> None:  # noqa: C901, PLR0912  # a table of cases
    match verb:
        case "create" | "fill":
            backend.create_table(T, _rows("made"))
        case "declare":
            backend.declare_table(T)
        case "drop":
            backend.drop_table(T)
        case "undrop":
            backend.undrop_table(T)
        case "rename":
            backend.rename_table(T, U)
        case "purge":
            backend.purge_table(T)
        case "ns":
            backend.create_namespace(N, {})
        case "cascade":
            backend.drop_namespace(N, cascade=True)
        case "undropns":
            backend.undrop_namespace(N)
        case "create root":
            backend.create_table(R, _rows("made"))
        case "drop root":
            backend.drop_table(R)
        case "rename root":
            backend.rename_table(R, U)
        case _:
            raise AssertionError(verb)


class _KillAt:
    """Ends this very process before its n-th store call, or right after it."""

    def __init__(self, number: int) -> None:
        self._left = number

    def before(self, call) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def after(self, call, result) -> None:
        """Nothing to do: the next call is the next chance."""


def _victim(root: str, verb: str, number: int) -> None:
    store = ScriptedStore(LocalStore(root), _KillAt(number))
    settings = open_directory(root, {}).settings
    home = Home(store, author="victim", settings=settings)
    _perform(CompatBackend(home, manifest=open_manifest(home)), verb)


@pytest.fixture(scope="module")
def processes():
    """Processes that start fast: the modules are loaded once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lance", "mooring.tables.lance_manifest", __name__])
    return context


def _read(backend, table: ObjectId) -> str:
    info = backend.describe_table(table)
    return open_at(info.location, info.storage_options).to_table()["token"][0].as_py()


def _must_work(root: str) -> None:
    """Do everything there is to do, whatever state was left."""
    backend = open_directory(root, {}, author="heir")
    assert _read(backend, KEPT) == "kept"
    _require_readable(backend)
    _clear(backend)
    backend.create_namespace(N, {}, CreateMode.EXIST_OK)
    for table in (T, R):
        backend.create_table(table, _rows("after"))
        backend.drop_table(table)
        backend.undrop_table(table)
        assert _read(backend, table) == "after"
    backend.rename_table(T, U)
    backend.drop_namespace(N, cascade=True)
    backend.undrop_namespace(N)
    assert _read(backend, U) == "after"
    _clear(backend)
    assert backend.list_all_tables() == [KEPT]
    assert _read(backend, KEPT) == "kept"


def _require_readable(backend) -> None:
    """Whatever is live and has a version can be read: no half of a table is shown."""
    for table in backend.list_all_tables():
        info = backend.describe_table(table, check_declared=True)
        if not info.is_only_declared:
            assert _read(backend, table)


def _clear(backend) -> None:
    """Drop and purge all but what was there before; a rename that was cut off is ended first."""
    if R in backend.list_all_tables():
        try:
            backend.drop_table(R)
        except (ConcurrentModificationError, TableNotFoundError):
            backend.rename_table(R, U)
    for table in backend.list_all_tables():
        if table != KEPT:
            backend.drop_table(table)
    if "n" in backend.list_namespaces(ROOT):
        backend.drop_namespace(N, cascade=True, ttl=Ttl(0))
    for dropped in {found.id for found in backend.list_purgable_tables()}:
        backend.purge_table(dropped)
    backend.purge_tables()


def _prepare(master: str, verb: str) -> None:
    backend = open_directory(master, {}, author="before")
    backend.create_namespace(KEPT.parent, {})
    backend.create_table(KEPT, _rows("kept"))
    for step in SETUPS[verb]:
        _perform(backend, step)


def _kill_at_every_call(verb: str, processes, tmp_path) -> int:
    master = tmp_path / "master"
    _prepare(str(master), verb)
    for number in range(MOST_CALLS):
        root = str(tmp_path / str(number))
        shutil.copytree(master, root)
        victim = processes.Process(target=_victim, args=(root, verb, number))
        victim.start()
        victim.join()
        _must_work(root)
        shutil.rmtree(root)
        if victim.exitcode == 0:
            return number
        assert victim.exitcode == -signal.SIGKILL
    pytest.fail(f"{verb} makes more than {MOST_CALLS} calls")


@pytest.mark.parametrize("verb", FAST)
def test_kill_at_any_call_leaves_a_catalog_that_works(verb, processes, tmp_path):
    assert _kill_at_every_call(verb, processes, tmp_path) > 3


@pytest.mark.torture
@pytest.mark.parametrize("verb", SETUPS.keys() - set(FAST))
def test_kill_at_any_call_of_the_other_operations(verb, processes, tmp_path):
    assert _kill_at_every_call(verb, processes, tmp_path) > 3


@pytest.mark.torture
@pytest.mark.parametrize("calls", range(5, 65, 5))
def test_kill_in_the_middle_of_anything_leaves_a_catalog_that_works(calls, tmp_path):
    """The process ends wherever it just is, also inside Lance, once so many calls are answered."""
    root, log = str(tmp_path / "lake"), tmp_path / "1.log"
    _prepare(root, "ns")
    job = {"play": "mix", "uri": root, "options": {}, "seed": calls, "count": 10_000}
    victim = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.torture.manifest_worker",
            json.dumps({**job, "log": str(log)}),
        ],
        cwd=REPOSITORY,
    )
    while not log.exists() or len(log.read_text().splitlines()) < 2 * calls:
        assert victim.poll() is None
        with suppress(subprocess.TimeoutExpired):
            victim.wait(_POLL_S)
    victim.kill()
    victim.wait()
    entries = read_log(log)
    backend = open_directory(root, {}, author="heir")
    kept = {row.location for row in rows_of(backend)}
    purged = {place for *_, deleted in entries for place in deleted}
    made = {
        place
        for _, verb, _, outcome, place, _ in entries
        if (verb, outcome) == ("create", "ok") and place not in purged
    }
    was_purging = entries[-1][1] == "purge"
    assert was_purging or made <= kept
    _must_work(root)
