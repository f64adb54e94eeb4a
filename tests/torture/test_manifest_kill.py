"""`kill -9` at every step of every operation on a manifest catalog; then everything must work.

The steps that Lance makes in the middle of a commit are among them. In manifest-only mode tables of
the root live by their rows, in compatibility mode by their `<name>.lance` directories, too.

Spec: directory-namespace, "V2: Manifest"; ARCHITECTURE's rule that nothing acknowledged is lost.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter, defaultdict
from contextlib import suppress
from urllib.parse import unquote

import pyarrow as pa
import pytest

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.decisions import State
from mooring.directory.entries import dropped_id, is_dropped
from mooring.errors import ConcurrentModificationError, MooringError, ServiceUnavailableError
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.home import Home
from mooring.opening import open_directory
from mooring.store.local import LocalStore
from mooring.tables.opening import open_at

from .killing import KillingStore, fast_processes, run_to_its_end
from .manifest_worker import BEGUN, identity_of
from .test_manifest_processes import Entry, Place, is_by_name, read_log, rows_of, start

N, T, U = ROOT.child("n"), ObjectId(("n", "t")), ObjectId(("n", "u"))
R, S = ROOT.child("r"), ROOT.child("s")
KEPT = [ROOT.child("kept"), ObjectId(("safe", "t"))]
MOST_STEPS = 80
_POLL_S = 0.01
# How many processes of each mode are killed anywhere.
KILLS = int(os.environ.get("MOORING_TORTURE_KILLS", "2"))
MODES = ["compatibility", "manifest"]


def _rows(token: str) -> pa.RecordBatchReader:
    return pa.table({"token": [token]}).to_reader()


def _location(backend, ending: str) -> str:
    """Name the directory of a table that was deregistered."""
    (found,) = [name for name in backend.store.list_dir("").directories if name.endswith(ending)]
    return found


def _overwrite(backend, table: ObjectId) -> None:
    backend.create_table(table, _rows("made"), CreateMode.OVERWRITE)


def _register_root(backend) -> None:
    # In compatibility mode its directory is found by its name.
    backend.register_table(R, _location(backend, "_r") if not backend.listing else None)


VERBS = {
    "create": lambda backend: backend.create_table(T, _rows("made")),
    "overwrite": lambda backend: _overwrite(backend, T),
    "declare": lambda backend: backend.declare_table(T),
    "drop": lambda backend: backend.drop_table(T),
    "undrop": lambda backend: backend.undrop_table(T),
    "undrop to": lambda backend: backend.undrop_table(T, U),
    "rename": lambda backend: backend.rename_table(T, U),
    "purge": lambda backend: backend.purge_table(T),
    "purge all": lambda backend: backend.purge_tables(),
    "deregister": lambda backend: backend.deregister_table(T),
    "register": lambda backend: backend.register_table(T, _location(backend, "_n$t")),
    "set": lambda backend: backend.update_table(T, {"owner": "ann"}),
    "ns": lambda backend: backend.create_namespace(N, {}),
    "set ns": lambda backend: backend.update_namespace(N, {"owner": "ann"}),
    "drop ns": lambda backend: backend.drop_namespace(N),
    "cascade": lambda backend: backend.drop_namespace(N, cascade=True),
    "cascade for good": lambda backend: backend.drop_namespace(N, cascade=True, ttl=Ttl(0)),
    "undrop ns": lambda backend: backend.undrop_namespace(N),
    "create root": lambda backend: backend.create_table(R, _rows("made")),
    "overwrite root": lambda backend: _overwrite(backend, R),
    "declare root": lambda backend: backend.declare_table(R),
    "drop root": lambda backend: backend.drop_table(R),
    "undrop root": lambda backend: backend.undrop_table(R),
    "undrop root to": lambda backend: backend.undrop_table(R, U),
    "purge root": lambda backend: backend.purge_table(R),
    "rename root": lambda backend: backend.rename_table(R, U),
    "rename in root": lambda backend: backend.rename_table(R, S),
    "rename to root": lambda backend: backend.rename_table(T, R),
    "deregister root": lambda backend: backend.deregister_table(R),
    "register root": _register_root,
    "set root": lambda backend: backend.update_table(R, {"owner": "ann"}),
}
# What is killed comes last, after what it needs.
CASES = {
    "create": ["ns", "create"],
    "create again": ["ns", "create", "drop", "create"],
    "overwrite": ["ns", "create", "overwrite"],
    "declare": ["ns", "declare"],
    "fill": ["ns", "declare", "create"],
    "drop": ["ns", "create", "drop"],
    "undrop": ["ns", "create", "drop", "undrop"],
    "undrop to": ["ns", "create", "drop", "undrop to"],
    "rename": ["ns", "create", "rename"],
    "purge": ["ns", "create", "drop", "purge"],
    "purge all": ["ns", "create", "cascade for good", "purge all"],
    "deregister": ["ns", "create", "deregister"],
    "register": ["ns", "create", "deregister", "register"],
    "set": ["ns", "create", "set"],
    "namespace": ["ns"],
    "set namespace": ["ns", "set ns"],
    "drop namespace": ["ns", "drop ns"],
    "cascade": ["ns", "create", "cascade"],
    "undrop namespace": ["ns", "create", "cascade", "undrop ns"],
    "create root": ["create root"],
    "create root again": ["create root", "drop root", "create root"],
    "create root once more": ["create root", "drop root", "purge root", "create root"],
    "create root after a rename": ["ns", "create root", "rename root", "create root"],
    "overwrite root": ["create root", "overwrite root"],
    "declare root": ["declare root"],
    "fill root": ["declare root", "create root"],
    "drop root": ["create root", "drop root"],
    "undrop root": ["create root", "drop root", "undrop root"],
    "undrop root to": ["ns", "create root", "drop root", "undrop root to"],
    "purge root": ["create root", "drop root", "purge root"],
    "rename root": ["ns", "create root", "rename root"],
    "rename declared root": ["ns", "declare root", "rename root"],
    "rename in root": ["create root", "rename in root"],
    "rename to root": ["ns", "create", "rename to root"],
    "deregister root": ["create root", "deregister root"],
    "register root": ["create root", "deregister root", "register root"],
    "set root": ["create root", "set root"],
}
COMPATIBILITY_ONLY = {
    "undrop root after a rename": ["ns", "create root", "rename root", "undrop root"],
    "purge root after a rename": ["ns", "create root", "rename root", "purge root"],
}
FAST = [("manifest", "create"), ("compatibility", "rename root")]
# What lives by its row does so in both modes, and also in the root: killed once, unless asked.
EVERYTHING = "MOORING_TORTURE_EVERYTHING" in os.environ
ALL = [
    *(("manifest", case) for case in CASES if "root" not in case or EVERYTHING),
    *(("compatibility", case) for case in CASES if "root" in case or EVERYTHING),
    *(("compatibility", case) for case in COMPATIBILITY_ONLY),
]
# States between, as what they leave is known by its own verb: a directory with data and no version
# is a declared table by the rules of V1, and an undrop to a new name is an undrop and a rename.
BETWEEN = {"create root": "declare root", "undrop root to": "undrop root"}
# What goes on from there, where it is not the same again.
FROM_BETWEEN = {"undrop root to": "rename root"}


def _open(root: str, mode: str, author: str = "heir") -> CompatBackend:
    return open_directory(root, {}, author=author, dir_listing_enabled=mode != "manifest")


def _victim(root: str, mode: str, verb: str, step: int) -> None:
    store = KillingStore(LocalStore(root), step)
    settings = open_directory(root, {}).settings
    home = Home(store, author="victim", settings=settings)
    VERBS[verb](CompatBackend(home, listing=mode != "manifest"))


def _state(backend) -> tuple[object, object]:
    """Tell what is live, with rows and properties: no half of a table is shown."""
    tables = {}
    for table in backend.list_all_tables():
        info = backend.describe_table(table, check_declared=True)
        token = "" if info.is_only_declared else _read(info)
        tables[table] = (token, dict(info.properties))
    return tables, backend.describe_namespaces()


def _read(info) -> str:
    return open_at(info.location, info.storage_options).to_table()["token"][0].as_py()


def _go_on(root: str, mode: str, verb: str, after: object) -> None:
    """Ask for the same again: it is done then, by whomever."""
    backend = _open(root, mode)
    try:
        VERBS[verb](backend)
    except ServiceUnavailableError:
        raise
    except (MooringError, ValueError):
        # It was done already, or half of it.
        if verb in FROM_BETWEEN and _state(backend) != after:
            VERBS[FROM_BETWEEN[verb]](backend)
    assert _state(backend) == after


def _must_work(root: str, mode: str) -> None:
    """Do everything there is to do, whatever state was left."""
    backend = _open(root, mode)
    _clear(backend)
    backend.create_namespace(N, {}, CreateMode.EXIST_OK)
    for table, new in ((T, U), (R, T)):
        if table != R:  # a name of a directory that was used before cannot be declared
            backend.declare_table(table)
        backend.create_table(table, _rows("after"))
        backend.drop_table(table)
        backend.undrop_table(table)
        backend.rename_table(table, new)
        assert _state(backend)[0][new] == ("after", {})
    backend.create_table(R, _rows("again"))
    location = unquote(backend.deregister_table(U).location.rpartition("/")[2])
    backend.register_table(U, location)
    backend.drop_namespace(N, cascade=True)
    backend.undrop_namespace(N)
    found = _state(backend)[0]
    assert [found.get(table) for table in (T, U, R)] == [("after", {})] * 2 + [("again", {})]
    _clear(backend)
    assert backend.list_all_tables() == KEPT
    assert backend.list_purgable_tables() == []
    assert [_read(backend.describe_table(table)) for table in KEPT] == ["kept", "kept"]
    left = backend.delete_orphans(backend.find_orphans(-1))
    assert all(not orphan.is_table for orphan in left)


def _clear(backend) -> None:
    """Drop and purge all but what was there before; a rename that was cut off is undone first."""
    for table, hint in backend.states():
        if hint.state is State.DEREGISTERED:
            backend.register_table(table, None)
    for table in backend.list_all_tables():
        if table not in KEPT:
            try:
                backend.drop_table(table)
            except ConcurrentModificationError:
                backend.undrop_table(table)
                backend.drop_table(table)
    if "n" in backend.list_namespaces(ROOT):
        backend.drop_namespace(N, cascade=True, ttl=Ttl(0))
    for dropped in {found.id for found in backend.list_purgable_tables()}:
        backend.purge_table(dropped)
    backend.purge_tables()


def _prepare(root: str, mode: str, verbs: list[str]) -> None:
    backend = _open(root, mode, "before")
    backend.create_namespace(KEPT[1].parent, {})
    for table in KEPT:
        backend.create_table(table, _rows("kept"))
    for verb in verbs:
        VERBS[verb](backend)


class _Lakes:
    """Copies of one catalog, each to be harmed in another way."""

    def __init__(self, tmp_path, mode: str, case: str) -> None:
        *setup, self.verb = {**CASES, **COMPATIBILITY_ONLY}[case]
        self.mode = mode
        self._folder = tmp_path
        self._copies = 0
        self._master = tmp_path / "master"
        _prepare(str(self._master), mode, setup)

    def copy(self, of: str | None = None) -> str:
        """Copy a lake to a place that was never used: who knows one by its place knows it."""
        self._copies += 1
        root = str(self._folder / str(self._copies))
        shutil.copytree(of or self._master, root)
        return root

    def state_after(self, *verbs: str) -> object:
        """Tell what is there once these are done."""
        backend = _open(self.copy(), self.mode)
        for verb in verbs:
            VERBS[verb](backend)
        return _state(backend)


def kill_at_every_step(mode: str, case: str, processes, tmp_path) -> int:
    """Kill an operation at each of its steps; return how many there are."""
    lakes = _Lakes(tmp_path, mode, case)
    verb = lakes.verb
    after = lakes.state_after(verb)
    allowed = [lakes.state_after(), after]
    if verb in BETWEEN and mode == "compatibility":
        with suppress(MooringError):
            allowed.append(lakes.state_after(BETWEEN[verb]))
    for step in range(MOST_STEPS):
        left = lakes.copy()
        killed = run_to_its_end(processes, _victim, left, mode, verb, step)
        resumed = lakes.copy(left)
        assert _state(_open(left, mode)) in allowed
        _go_on(resumed, mode, verb, after)
        _must_work(left, mode)
        if EVERYTHING:
            _must_work(resumed, mode)
        if not killed:
            return step
    pytest.fail(f"{case} takes more than {MOST_STEPS} steps")


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch):
    """Processes die here, the machine does not."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def processes():
    return fast_processes(__name__)


@pytest.mark.interop
@pytest.mark.parametrize(("mode", "case"), FAST)
def test_kill_at_any_step_leaves_a_catalog_that_works(mode, case, processes, tmp_path):
    assert kill_at_every_step(mode, case, processes, tmp_path) > 2


@pytest.mark.torture
@pytest.mark.parametrize(("mode", "case"), [pair for pair in ALL if pair not in FAST])
def test_kill_at_any_step_of_the_other_operations(mode, case, processes, tmp_path, capsys):
    steps = kill_at_every_step(mode, case, processes, tmp_path)
    assert steps > 1
    with capsys.disabled():
        print(f"\n{mode}, {case}: killed at {steps} steps")  # noqa: T201  # the figure is the point


# -- anywhere --------------------------------------------------------------------------------------


def places_of(backend) -> dict[str, str]:
    """Tell under which identifier each table and namespace is."""
    return {identity_of(row): row.object_id for row in rows_of(backend) if identity_of(row)}


def check_killed(entries: list[Entry], before: dict[str, str], ends: dict[str, str]) -> None:
    """What was acknowledged holds; only what the last call was about may have gone on."""
    *_, last = entries
    wanted = ["$".join(last.names), "$".join(last.new)]
    known = defaultdict(Counter, {what: Counter({key: 1}) for what, key in before.items()})
    for entry in entries:
        for what, old, new in entry.moves:
            known[what].update({new: 1})
            known[what].subtract({old: 1})
    for what in {*known, *ends}:
        told = next((key for key, n in known[what].items() if key and n), "")
        if not is_by_name(what) and told != ends.get(what, ""):
            assert last.outcome == BEGUN
            keys = {dropped_id(key) if is_dropped(key) else key for key in (told, ends.get(what))}
            assert any(key and key.startswith(tuple(filter(None, wanted))) for key in keys), what


@pytest.mark.torture
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("calls", range(8, 8 + 13 * KILLS, 13))
def test_kill_in_the_middle_of_anything_leaves_a_catalog_that_works(mode, calls, tmp_path):
    """The process ends wherever it just is, also inside Lance, once so many calls are answered."""
    place = Place(str(tmp_path / "lake"), {}, mode != "manifest")
    log = tmp_path / "1.log"
    _prepare(place.uri, mode, ["ns"])
    before = places_of(place.open())
    job = {**place._asdict(), "play": "mix", "seed": calls, "count": 10_000, "log": str(log)}
    victim = start(job)
    while not log.exists() or len(log.read_text().splitlines()) < 2 * calls:
        assert victim.poll() is None
        with suppress(subprocess.TimeoutExpired):
            victim.wait(_POLL_S)
    victim.kill()
    victim.wait()
    check_killed(read_log(log), before, places_of(place.open()))
    _must_work(place.uri, mode)
