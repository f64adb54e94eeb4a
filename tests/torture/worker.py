"""One process of the torture: random operations on shared names, and a log of what was answered.

Every operation has an author of its own, so each decision in a chain names the operation that
made it and acknowledgements can be compared with decisions one by one.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
from pathlib import Path

import pyarrow as pa

from mooring.directory.listing_backend import ListingBackend
from mooring.errors import MooringError
from mooring.identifiers import ROOT
from mooring.namespace.home import Home
from mooring.namespace.settings import load_settings
from mooring.store import open_store

NAMES = ["a", "b", "c'd", "é$", "five"]
VERBS = ["create", "create", "drop", "drop", "undrop", "purge"]
ROWS = 3


def rows_of(author: str) -> pa.RecordBatchReader:
    return pa.table({"author": [author] * ROWS}).to_reader()


def perform(backend: ListingBackend, verb: str, name: str) -> None:
    table = ROOT.child(name)
    if verb == "create":
        backend.create_table(table, rows_of(backend.author))
    else:
        getattr(backend, f"{verb}_table")(table)


def main(job: dict) -> None:
    store = open_store(job["uri"], job["options"])
    settings = load_settings(store)
    choose = random.Random(job["seed"])
    with Path(job["log"]).open("w") as log:
        for number in range(job["count"]):
            author = f"{job['seed']}.{number}"
            verb, name = choose.choice(VERBS), choose.choice(NAMES)
            backend = ListingBackend(Home(store, author=author, settings=settings))
            try:
                perform(backend, verb, name)
                outcome = "ok"
            except MooringError as exc:
                outcome = type(exc).__name__
                if outcome == "ServiceUnavailableError":
                    outcome = f"TRACEBACK {exc!r} {exc.__cause__!r}"
            except Exception:  # noqa: BLE001  # the point is to find them
                outcome = "TRACEBACK " + traceback.format_exc()
            log.write(json.dumps([author, verb, name, outcome]) + "\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
