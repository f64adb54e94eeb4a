"""`kill -9` at every store call of every operation; then everything must still work.

Spec: soft-delete; ARCHITECTURE's rule that nothing acknowledged is lost.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal

import pyarrow as pa
import pytest

from mooring.directory.listing_backend import ListingBackend
from mooring.errors import MooringError
from mooring.identifiers import ROOT
from mooring.namespace.home import Home
from mooring.opening import open_directory
from mooring.store.local import LocalStore
from mooring.store.scripted import ScriptedStore
from mooring.tables.opening import open_at

TABLE = ROOT.child("t")
SETUPS = {
    "create": ([], ["create", "drop"], ["create", "drop", "purge"]),
    "drop": (["create"],),
    "undrop": (["create", "drop"],),
    "purge": (["create", "drop"],),
    "deregister": (["create"],),
}
MOST_CALLS = 60


class _KillAt:
    """Ends this very process before its n-th store call."""

    def __init__(self, number: int) -> None:
        self._left = number

    def before(self, call) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def after(self, call, result) -> None:
        """Nothing to do."""


def _perform(backend, verb: str, rows: str = "old") -> None:
    if verb == "create":
        backend.create_table(TABLE, pa.table({"token": [rows]}).to_reader())
    else:
        getattr(backend, f"{verb}_table")(TABLE)


def _victim(root: str, verb: str, number: int) -> None:
    store = ScriptedStore(LocalStore(root), _KillAt(number))
    backend = ListingBackend(
        Home(
            store,
            author="victim",
            settings=open_directory(root, {}, manifest_enabled=False).settings,
        )
    )
    _perform(backend, verb, "new")


@pytest.fixture(scope="module")
def processes():
    """Processes that start fast: the modules are loaded once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lance", "mooring.tables.data", __name__])
    return context


def _read(backend) -> str:
    info = backend.describe_table(TABLE)
    return open_at(info.location, info.storage_options).to_table()["token"][0].as_py()


def _must_work(root: str) -> None:
    """Do everything there is to do, whatever state was left."""
    backend = open_directory(root, {}, manifest_enabled=False)
    if backend.list_tables(ROOT) == ["t"]:
        backend.drop_table(TABLE)
    try:
        backend.create_table(TABLE, pa.table({"token": ["after"]}).to_reader())
    except MooringError:
        _finish(backend)
        backend.create_table(TABLE, pa.table({"token": ["after"]}).to_reader())
    assert _read(backend) == "after"
    backend.drop_table(TABLE)
    backend.undrop_table(TABLE)
    assert _read(backend) == "after"
    backend.drop_table(TABLE)
    backend.purge_table(TABLE)
    assert backend.list_tables(ROOT) == []


def _finish(backend) -> None:
    """End what the killed process left unfinished."""
    if backend.scan().other["t"].state == "deregistered":
        backend.register_table(TABLE, "t.lance")
        backend.drop_table(TABLE)
    backend.purge_table(TABLE)


@pytest.mark.parametrize("verb", SETUPS)
def test_kill_at_any_call_leaves_a_catalog_that_works(verb, processes, tmp_path):
    for at, setup in enumerate(SETUPS[verb]):
        master = tmp_path / f"master{at}"
        prepared = open_directory(str(master), {})
        prepared.initialize()
        for step in setup:
            _perform(prepared, step)
        for number in range(MOST_CALLS):
            root = str(tmp_path / f"{at}-{number}")
            shutil.copytree(master, root)
            victim = processes.Process(target=_victim, args=(root, verb, number))
            victim.start()
            victim.join()
            _must_work(root)
            if victim.exitcode == 0:
                break
            assert victim.exitcode == -signal.SIGKILL
        else:
            pytest.fail(f"{verb} makes more than {MOST_CALLS} calls")


def test_reader_that_opened_a_table_before_its_drop_reads_to_the_end(tmp_path):
    """Spec: soft-delete, "Concurrent drop + read fails"."""
    backend = open_directory(str(tmp_path / "lake"), {})
    batches = [
        pa.record_batch({"n": range(start, start + 1000)}) for start in range(0, 50_000, 1000)
    ]
    rows = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    info = backend.create_table(TABLE, rows)
    reading = iter(open_at(info.location, {}).to_batches(batch_size=1000))
    seen = next(reading)["n"].to_pylist()
    backend.drop_table(TABLE)
    for batch in reading:
        seen += batch["n"].to_pylist()
    assert seen == list(range(50_000))
