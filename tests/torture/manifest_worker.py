"""One process of the torture of manifest catalogs, with a log of what was answered.

``fill`` makes namespaces and tables in them, a few of which other processes want, too. ``mix``
makes random calls on few shared names. Every table with data holds the token of the call that made
it, every namespace bears its, and every decision about a root table names the call as its author.
With each call is logged where the table lies, which files were deleted, and how rows moved: from
which identifier to which, by commits that were acknowledged.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

import pyarrow as pa

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.entries import properties_of, read_dropped
from mooring.directory.manifest import MANIFEST_DIR
from mooring.directory.manifest_opening import open_manifest
from mooring.errors import MooringError
from mooring.identifiers import ObjectId
from mooring.namespace.api import CreateMode, TableInfo
from mooring.namespace.home import Home
from mooring.namespace.settings import load_settings
from mooring.store import open_store
from mooring.store.wrapped import WrappedStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.directory.draft import Draft
    from mooring.directory.manifest import Manifest
    from mooring.tables.manifest import ManifestRow

T = TypeVar("T")

NAMESPACES = [
    ("sales",),
    ("sales", "2026"),
    ("sales", "2026", "海"),
    ("o'brien",),
    ("o'brien", "50%"),
]
WITH_DATA = 5  # every so manieth table
CONTESTED = 20
CONTESTANTS = ["create", "declare"]
NESTED = [("n", "a"), ("n", "b'%"), ("n", "海", "a"), ("n", "海", "c")]
ROOTS = [("r",), ("s'%",)]
TREES = [("n",), ("n", "海")]
BEGUN = "begun"
VERBS = [
    *["create"] * 5,
    "declare",
    *["drop"] * 4,
    *["undrop"] * 3,
    "undrop to",
    *["rename"] * 3,
    "purge",
]
TREE_VERBS = ["ns", "ns", "dropns", "cascade", "undropns", "undropns"]
TREE_SHARE = 0.25
TOKEN = "token"


def rows_of(token: str) -> pa.RecordBatchReader:
    return pa.table({"token": [token]}).to_reader()


class WatchedStore(WrappedStore):
    """Notes whose files are deleted."""

    def __init__(self, inner) -> None:
        super().__init__(inner)
        self.deleted: list[str] = []

    def delete(self, paths) -> None:
        doomed = list(paths)
        tables = {path.partition("/")[0] for path in doomed if "/data/" in path}
        self.deleted += sorted(tables - {MANIFEST_DIR})
        super().delete(doomed)

    def delete_prefix(self, path: str) -> int:
        self.deleted.append(path)
        return super().delete_prefix(path)


class WatchedManifest:
    """Notes how rows moved by changes that were acknowledged; all else is the manifest's."""

    def __init__(self, inner: Manifest) -> None:
        self._inner = inner
        self.moves: list[tuple[str, str, str]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def change(self, plan: Callable[[Draft], T]) -> T:
        tried: list[tuple[str, str, str]] = []

        def watched(draft: Draft) -> T:
            tried.clear()
            before = dict(draft._edits)
            found = plan(draft)
            keys = [key for key, row in draft._edits.items() if before.get(key, draft) != row]
            gone = [before.get(key, draft._rows.get(key)) for key in keys]
            tried.extend(moves_between(gone, [draft._edits[key] for key in keys]))
            return found

        result = self._inner.change(watched)
        self.moves += tried
        return result


def moves_between(gone: list, come: list) -> list[tuple[str, str, str]]:
    """Tell what moved, from which identifier to which; one that is empty is none."""
    before = {identity_of(row): row.object_id for row in gone if row is not None}
    after = {identity_of(row): row.object_id for row in come if row is not None}
    ways = [(what, before.get(what, ""), after.get(what, "")) for what in {*before, *after} - {""}]
    return [(what, old, new) for what, old, new in ways if old != new]


def identity_of(row: ManifestRow) -> str:
    """Tell what stays the same of an object wherever its row moves: its place or its token."""
    if row.location:
        return row.location
    dropped = read_dropped(row)
    kept = properties_of(dropped.restored(dropped.object_id) if dropped else row)
    return kept.get(TOKEN, "")


class Worker:
    """Makes calls and writes down what came of them."""

    def __init__(self, job: dict, manifest: Manifest | None = None) -> None:
        self._store = WatchedStore(open_store(job["uri"], job["options"]))
        self._settings = load_settings(self._store)
        self._manifest = WatchedManifest(manifest or open_manifest(self._home(str(job["seed"]))))
        self._listing = job["listing"]
        self._seed = job["seed"]
        self._choose = random.Random(job["seed"])
        self._number = 0
        self._log = Path(job["log"])

    def _home(self, author: str) -> Home:
        return Home(self._store, author=author, settings=self._settings)

    def fill(self, count: int) -> None:
        """Make all namespaces, then tables in them, and now and then one that others want."""
        for names in NAMESPACES:
            self._attempt("ns", names, mode=CreateMode.EXIST_OK)
        for number in range(count):
            parent = NAMESPACES[number % len(NAMESPACES)]
            verb = "create" if number % WITH_DATA == 0 else "declare"
            self._attempt(verb, (*parent, f"t{self._seed}-{number}"))
            if number % CONTESTED < len(CONTESTANTS):
                verb = CONTESTANTS[number % CONTESTED]
                self._attempt(verb, (*parent, f"for-all-{number}"))

    def mix(self, count: int) -> None:
        """Make random calls on names that others use as well."""
        tables = [*NESTED, *ROOTS]
        for _ in range(count):
            if self._choose.random() < TREE_SHARE:
                self._attempt(self._choose.choice(TREE_VERBS), self._choose.choice(TREES))
            else:
                new = self._choose.choice(tables)
                self._attempt(self._choose.choice(VERBS), self._choose.choice(tables), new=new)

    def _attempt(self, verb: str, names: tuple[str, ...], **how) -> None:
        self._store.deleted.clear()
        self._manifest.moves.clear()
        self._number += 1
        token = f"{self._seed}.{self._number}"
        place = ""
        new = how.get("new", ())
        self._note(token, verb, names, BEGUN, place, new)
        try:
            place = self._perform(verb, ObjectId(names), token, **how)
            outcome = "ok"
        except MooringError as exc:
            outcome = type(exc).__name__
            if outcome in {"ServiceUnavailableError", "UnknownOutcomeError"}:
                outcome = f"TRACEBACK {exc!r} {exc.__cause__!r} {traceback.format_exc()}"
        except Exception:  # noqa: BLE001  # the point is to find them
            outcome = "TRACEBACK " + traceback.format_exc()
        self._note(token, verb, names, outcome, place, new)

    def _note(self, token: str, verb: str, names: tuple[str, ...], *rest) -> None:
        outcome, place, new = rest
        deleted = sorted(set(self._store.deleted))
        entry = [token, verb, names, outcome, place, deleted, self._manifest.moves, new]
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")

    def _perform(self, verb: str, target: ObjectId, token: str, **how) -> str:
        backend = CompatBackend(self._home(token), manifest=self._manifest, listing=self._listing)
        new, mode = ObjectId(how.get("new", ())), how.get("mode", CreateMode.CREATE)
        verbs = {
            "create": lambda: backend.create_table(target, rows_of(token)),
            "declare": lambda: backend.declare_table(target),
            "drop": lambda: backend.drop_table(target),
            "undrop": lambda: backend.undrop_table(target),
            "undrop to": lambda: backend.undrop_table(target, new),
            "rename": lambda: backend.rename_table(target, new),
            "purge": lambda: backend.purge_table(target),
            "ns": lambda: backend.create_namespace(target, {TOKEN: token}, mode),
            "dropns": lambda: backend.drop_namespace(target),
            "cascade": lambda: backend.drop_namespace(target, cascade=True),
            "undropns": lambda: backend.undrop_namespace(target),
        }
        found = verbs[verb]()
        return unquote(found.location.rpartition("/")[2]) if isinstance(found, TableInfo) else ""


def main(job: dict) -> None:
    """Play alone, or in several threads that share a manifest and with it their commits."""
    threads = job.get("threads", 0)
    if not threads:
        getattr(Worker(job), job["play"])(job["count"])
        return
    store = open_store(job["uri"], job["options"])
    manifest = open_manifest(Home(store, author=str(job["seed"]), settings=load_settings(store)))
    jobs = [
        {**job, "seed": f"{job['seed']}-{number}", "log": f"{job['log']}.{number}"}
        for number in range(threads)
    ]
    with ThreadPoolExecutor(threads) as pool:
        played = [
            pool.submit(getattr(Worker(one, manifest), one["play"]), one["count"]) for one in jobs
        ]
        for one in played:
            one.result()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
