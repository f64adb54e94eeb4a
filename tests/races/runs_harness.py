"""Runs that many workers write, against cleanups and against themselves, through interleavings.

The real code of runs, of their notes and of the cleanup works on a store; a version is an object
that names its data files and the run that made it, put create-only under its number.
"""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import MooringError
from mooring.store.numbered import create_once
from mooring.tables import pending
from mooring.tables.pending import PENDING_DIR, PendingRun, given_up, list_runs
from mooring.tables.place import Place
from mooring.tables.runs import Done, RunMark, Runs
from mooring.tables.versions import manifest_name, parse_manifest
from mooring.upkeep.cleaning import _Sweep

from .explorer import Explorer, Limits, Report
from .world import FrozenClock, MemoryWorld, OneByOne

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = "t"
MARK = RunMark("stream", 3)
_LATE = timedelta(days=-1)  # every run is old enough


class Worker:
    """What an actor works with: the table's directory, and a name of its own."""

    def __init__(self, store, name: str) -> None:
        self.place = Place(store, TABLE)
        self.name = name


# -- versions --------------------------------------------------------------------------------------


def _path(version: int) -> str:
    return f"{TABLE}/_versions/{manifest_name(version)}"


def _versions(store) -> dict[int, dict]:
    found = {}
    for name in store.list_dir(f"{TABLE}/_versions").files:
        body = store.get(f"{TABLE}/_versions/{name}")
        if body is not None:
            found[parse_manifest(name)] = json.loads(body)
    return found


def _commit(place: Place, body: dict, read: int, before: Callable[[int], None]) -> int:
    version = read + 1
    while True:
        before(version)
        if create_once(place.store, _path(version), json.dumps(body).encode()):
            return version
        version += 1


# -- what actors do --------------------------------------------------------------------------------


def _note(worker: Worker, file: str, *, on_disk: bool) -> PendingRun:
    """Do what an attempt does: write a file and note it, on disk the other way round."""
    run = f"run-{worker.name}"
    note = (f"{TABLE}/{PENDING_DIR}/{run}/a.json", msgspec.json.encode({"files": [file]}))
    data = (f"{TABLE}/data/{file}", b"rows")
    store = worker.place.store
    for path, body in (note, data) if on_disk else (data, note):
        store.put(path, body)
    if store.head(note[0]) is None:
        store.delete([data[0]])
        raise given_up(run)
    return PendingRun(worker.place, run)


def _write(worker: Worker, *, on_disk: bool) -> str:
    """Write one file and commit it."""
    file = f"{worker.name}.lance"
    run = _note(worker, file, on_disk=on_disk)
    read = max(_versions(worker.place.store))
    try:
        run.claim(read, {file})
    except MooringError:
        run.settle(lost={file})
        raise
    _commit(worker.place, {"files": [file], "by": worker.name}, read, lambda _: None)
    run.settle({file})
    return "ok"


def _fail(worker: Worker) -> str:
    """Write one file, and give up."""
    file = f"{worker.name}.lance"
    run = _note(worker, file, on_disk=True)
    run.settle(lost={file})
    return "ok"


def _fail_late(worker: Worker) -> str:
    """Write one file, be about to commit, and give up."""
    file = f"{worker.name}.lance"
    run = _note(worker, file, on_disk=False)
    run.claim(max(_versions(worker.place.store)), {file})
    run.settle(lost={file})
    return "ok"


def _clean(worker: Worker) -> str:
    """End every run that may be ended."""
    sweep = _Sweep(
        SimpleNamespace(place=worker.place), _LATE, dry_run=False, is_named=False, force=False
    )
    for run in list_runs(worker.place):
        sweep.end(run, None)
    return "ok"


def _repeat(worker: Worker) -> str:
    """Do a batch that another one may do at the same time."""
    runs = Runs(worker.place, MARK)
    if runs.find() is not None:
        return "was done"
    store = worker.place.store
    read = max(_versions(store))
    seen = min(read, runs.begin(read))
    done: list[int] = []

    def look(version: int) -> None:
        nonlocal seen
        for made in range(seen + 1, version):
            body = store.get(_path(made))
            if body is not None and json.loads(body)["by"] == MARK.run:
                done.append(made)
                raise _FoundError
            seen = made

    try:
        version = _commit(
            worker.place, {"files": [], "by": MARK.run, "of": worker.name}, read, look
        )
    except _FoundError:
        runs.end(Done(done[0]))
        return "was done"
    runs.end(Done(version))
    return "ok"


def _append(worker: Worker) -> str:
    """Make a version of something else."""
    read = max(_versions(worker.place.store))
    _commit(worker.place, {"files": [], "by": worker.name}, read, lambda _: None)
    return "ok"


class _FoundError(Exception):
    """The run is in a version already."""


PROGRAMS = {
    "write on disk": lambda worker: _write(worker, on_disk=True),
    "write": lambda worker: _write(worker, on_disk=False),
    "fail": _fail,
    "fail late": _fail_late,
    "clean": _clean,
    "repeat": _repeat,
    "append": _append,
}


# -- judging ---------------------------------------------------------------------------------------


def _check(store, actors) -> str | None:
    for actor in actors:
        for outcome in actor.outcomes:
            if outcome.startswith("BUG"):
                return f"{actor.name} broke: {outcome}"
    made = _versions(store)
    named = {file for version in made.values() for file in version["files"]}
    files = {path.rpartition("/")[2] for path in store.content if path.startswith(f"{TABLE}/data/")}
    if named - files:
        return f"data is lost: {sorted(named - files)}"
    if [version["by"] for version in made.values()].count(MARK.run) > 1:
        return "a batch counts twice"
    return _check_tidied(store, named, crashed=any(actor.crashed for actor in actors))


def _check_tidied(store, named: set[str], *, crashed: bool) -> str | None:
    """After a crash a cleanup has to find what was noted, and leave what is stuck."""
    _clean(Worker(store, "Z"))
    runs = list_runs(Place(store, TABLE))
    stuck = {file for run in runs for file in run.files()}
    files = {path.rpartition("/")[2] for path in store.content if path.startswith(f"{TABLE}/data/")}
    if named - files:
        return f"a cleanup lost data: {sorted(named - files)}"
    # In an object store, one that dies between its file and the note leaves what nobody knows.
    left = files - named - stuck
    if left and not crashed:
        return f"a cleanup leaves {sorted(left)}"
    if runs and not crashed:
        return f"runs are left: {[run.run for run in runs]}"
    return None


def explore_runs(monkeypatch, actors: tuple[str, ...], limits: Limits) -> Report:
    """Explore what some actors do, on a table of one version."""
    monkeypatch.setattr(pending, "SystemClock", FrozenClock)
    monkeypatch.setattr("mooring.upkeep.cleaning.SystemClock", FrozenClock)
    monkeypatch.setattr("mooring.tables.place.ThreadPoolExecutor", OneByOne)
    monkeypatch.setattr(pending, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="n")))
    programs = {name: [PROGRAMS[verb]] for name, verb in zip("ABCD", actors, strict=False)}
    content = {_path(1): json.dumps({"files": [], "by": "I"}).encode()}
    return Explorer(MemoryWorld(), content, programs, _check, Worker, limits).explore()
