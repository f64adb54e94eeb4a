"""One process of the torture: does what its job says, and tells of each operation as it goes.

It writes a line before an operation begins and one after it has ended, to a pipe that all of a run
share, so the order of the lines is an order of time. Its store may fail and dawdle, its disk may be
full, and it may end itself at a step that changes something.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

import mooring
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.listing_backend import ListingBackend
from mooring.errors import MooringError, ServiceUnavailableError, UnknownOutcomeError
from mooring.metastore.backend import MetastoreBackend
from mooring.namespace.home import Home
from mooring.namespace.settings import DIRECTORY, METASTORE
from mooring.store import open_store
from mooring.store.wrapped import WrappedStore
from tests.races import metastore_tables_harness
from tests.races.catalog_model import Op
from tests.races.scheduler import Saw

from . import plain_subject, rows_subject
from .killing import CHANGING, KillingStore
from .places import SERVED
from .subject import require_done

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

ROWS = 3
# How often a catalog is opened before its store counts as gone.
_OPENINGS = 5
_SMALL, _LARGE = 10, 40_000
_LONGEST_S = 0.03


class FlakyStore(WrappedStore):
    """Dawdles, fails before a call, and loses what it answers to one that changes something."""

    def __init__(self, inner, rng: random.Random) -> None:
        super().__init__(inner)
        self._rng = rng

    def _around(self, call, run: Callable[[], T]) -> T:
        chance = self._rng.random()
        if chance < 0.3:
            time.sleep(self._rng.random() * _LONGEST_S)
        if chance < 0.02:
            _tell("fault", "failed call")
            raise ServiceUnavailableError(call.path)
        result = run()
        if chance < 0.06 and call.verb in CHANGING:
            _tell("fault", "lost answer")
            raise UnknownOutcomeError(call.path)
        return result


def rows_of(token: str, size: int = _SMALL) -> pa.RecordBatchReader:
    """Return rows that hold a token, of so many bytes each that do not compress."""
    filling = [random.Random(f"{token}{row}").randbytes(size) for row in range(ROWS)]
    return pa.table({"token": [token] * ROWS, "filling": filling}).to_reader()


def open_backend(backend: str, uri: str, options: dict[str, str], author: str, wrap=None):
    """Open a catalog, on a store that may be wrapped."""
    if backend == SERVED:
        return mooring.connect(uri, author=author).backend
    store = open_store(uri, options)
    kind = METASTORE if backend == "metastore" else DIRECTORY
    home = Home(wrap(store) if wrap else store, author=author, kind=kind)
    if backend == "metastore":
        return MetastoreBackend(home)
    if backend == "listing":
        return ListingBackend(home)
    return CompatBackend(home, listing=backend == "compat")


def perform(backend: str, op: Op, opened) -> object:
    """Do an operation."""
    if backend == "listing":
        return plain_subject.perform(op, opened)
    if backend != "metastore":
        return rows_subject.perform(op, opened, {})
    if op.verb == "expire":
        return require_done(opened.purge_tables())
    line = " ".join([op.verb, *(name for name in op.names if name)])
    return metastore_tables_harness.perform(line, op.token, opened)


def _tell(*words: str) -> None:
    os.write(1, (json.dumps(words) + "\n").encode())


def _open(job: dict):
    """Open the catalog, again where the store fails, as people would."""
    chances = random.Random(job["flaky"])

    def wrap(store):
        if job["flaky"] is not None:
            store = FlakyStore(store, chances)
        return store if job["step"] is None else KillingStore(store, job["step"])

    opening = (job["backend"], job["uri"], job["options"], job["author"], wrap)
    for _ in range(_OPENINGS - 1):
        with suppress(ServiceUnavailableError):
            return open_backend(*opening)
    return open_backend(*opening)


def main(job: dict) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if job["quota"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["quota"], resource.RLIM_INFINITY))
    backend = job["backend"]
    opened = _open(job)
    for verb, names, token in job["ops"]:
        op = Op(verb, tuple(names), token)
        _tell("begin", token)
        size = _LARGE if job["quota"] else _SMALL
        rows = rows_of(token, size) if verb in {"create", "overwrite"} else token
        try:
            result = perform(backend, op._replace(token=rows), opened)
            said = str(result) if isinstance(result, Saw) else "ok"
        except MooringError as exc:
            said = type(exc).__name__
            if job["quota"] and said == "ServiceUnavailableError":
                _tell("fault", "full disk")
        except Exception:  # noqa: BLE001  # the point is to find them
            said = "BUG " + traceback.format_exc()[-1500:]
        _tell("end", token, said)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
