"""One process of the torture of manifest catalogs, with a log of what was answered.

``fill`` makes namespaces and tables in them, a few of which other processes want, too. ``mix``
makes random calls on few shared names. Every table with data holds the token of the call that made
it, its place is logged, and every deletion of a table's files with the call that did it.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.home import Home
from mooring.directory.manifest import MANIFEST_DIR
from mooring.directory.manifest_backend import open_manifest
from mooring.directory.settings import load_settings
from mooring.errors import MooringError
from mooring.identifiers import ObjectId
from mooring.namespace.api import CreateMode
from mooring.store import open_store
from mooring.store.wrapped import WrappedStore

if TYPE_CHECKING:
    from mooring.directory.manifest import Manifest

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
NAMES = [("n", "a"), ("n", "b"), ("n", "m", "a"), ("n", "m", "c'd")]
TREES = [("n",), ("n", "m")]
BEGUN = "begun"
VERBS = ["create"] * 4 + ["drop"] * 4 + ["undrop"] * 3 + ["undrop to", "rename", "rename", "purge"]
TREE_VERBS = ["ns", "ns", "dropns", "cascade", "undropns"]


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


class Worker:
    """Makes calls and writes down what came of them."""

    def __init__(self, job: dict, manifest: Manifest | None = None) -> None:
        self._store = WatchedStore(open_store(job["uri"], job["options"]))
        self._home = Home(self._store, author=str(job["seed"]), settings=load_settings(self._store))
        self._backend = CompatBackend(self._home, manifest=manifest or open_manifest(self._home))
        self._seed = job["seed"]
        self._choose = random.Random(job["seed"])
        self._number = 0
        self._log = Path(job["log"])

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
        for _ in range(count):
            if self._choose.random() < 0.25:
                self._attempt(self._choose.choice(TREE_VERBS), self._choose.choice(TREES))
            else:
                new = self._choose.choice(NAMES)
                self._attempt(self._choose.choice(VERBS), self._choose.choice(NAMES), new=new)

    def _attempt(self, verb: str, names: tuple[str, ...], **how) -> None:
        self._store.deleted.clear()
        self._number += 1
        token = f"{self._seed}.{self._number}"
        place = ""
        self._note(token, verb, names, BEGUN, place)
        try:
            place = self._perform(verb, ObjectId(names), token, **how)
            outcome = "ok"
        except MooringError as exc:
            outcome = type(exc).__name__
            if outcome == "ServiceUnavailableError":
                outcome = f"TRACEBACK {exc!r} {exc.__cause__!r}"
        except Exception:  # noqa: BLE001  # the point is to find them
            outcome = "TRACEBACK " + traceback.format_exc()
        self._note(token, verb, names, outcome, place)

    def _note(
        self, token: str, verb: str, names: tuple[str, ...], outcome: str, place: str
    ) -> None:
        entry = [token, verb, list(names), outcome, place, sorted(set(self._store.deleted))]
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")

    def _perform(self, verb: str, target: ObjectId, token: str, **how) -> str:  # noqa: C901  # cases
        backend, new = self._backend, ObjectId(how.get("new", ()))
        match verb:
            case "create":
                info = backend.create_table(target, rows_of(token))
                return unquote(info.location.rpartition("/")[2])
            case "declare":
                backend.declare_table(target)
            case "drop":
                backend.drop_table(target)
            case "undrop":
                backend.undrop_table(target)
            case "undrop to":
                backend.undrop_table(target, new)
            case "rename":
                backend.rename_table(target, new)
            case "purge":
                backend.purge_table(target)
            case "ns":
                backend.create_namespace(target, {}, how.get("mode", CreateMode.CREATE))
            case "dropns":
                backend.drop_namespace(target)
            case "cascade":
                backend.drop_namespace(target, cascade=True)
            case "undropns":
                backend.undrop_namespace(target)
        return ""


def main(job: dict) -> None:
    """Play alone, or in several threads that share a manifest and with it their commits."""
    threads = job.get("threads", 0)
    if not threads:
        getattr(Worker(job), job["play"])(job["count"])
        return
    store = open_store(job["uri"], job["options"])
    home = Home(store, author=str(job["seed"]), settings=load_settings(store))
    manifest = open_manifest(home)
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
