"""What is done to a table through the catalog, beside Lance on the same path."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import lance
import lance_namespace as spec
import numpy as np
import pyarrow as pa
import pyarrow.ipc
from lance_namespace_urllib3_client.models.query_table_request_vector import (
    QueryTableRequestVector,
)

import mooring
from bench.lakes import open_pylance, workspace
from bench.report import Figure, Section
from bench.timing import time_pairs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["SIZES", "run"]

# Rows, alternating pairs, versions; by whether it should be quick.
SIZES = {True: (100_000, 5, 50), False: (1_000_000, 15, 1_000)}
_FILTER = "x > 0.5 AND n % 7 = 3"


def run(*, quick: bool) -> Section:
    """Measure queries, appends and looks at versions."""
    count, rounds, versions = SIZES[quick]
    with workspace() as space:
        root = space / "lake"
        catalog = mooring.connect(root)
        catalog.create_table("big", _rows(count))
        figures = [
            *_query(root, rounds, count),
            *_append(root, rounds),
            *_look(root, rounds, versions),
        ]
    return Section(
        f"A table of {count:,} rows, {rounds} alternating pairs",
        figures,
        [
            f"the filter is {_FILTER}; both sides find the table and open it anew each time",
            "an append through the catalog is durable when it is acknowledged; Lance's is not",
        ],
    )


def _rows(count: int) -> pa.Table:
    chance = np.random.default_rng(1)
    return pa.table(
        {
            "n": np.arange(count, dtype=np.int64),
            "x": chance.random(count),
            "word": pa.array([f"word {number % 1000}" for number in range(count)]),
        }
    )


def _query(root: Path, rounds: int, count: int) -> list[Figure]:
    catalog = mooring.connect(root)
    path = catalog.describe_table("big").location
    wanted = lance.dataset(path).count_rows(_FILTER)

    def ours() -> pa.Table:
        found = catalog.table("big").query(where=_FILTER).read_all()
        assert found.num_rows == wanted
        return found

    def theirs() -> pa.Table:
        found = lance.dataset(path).to_table(filter=_FILTER)
        assert found.num_rows == wanted
        return found

    took = time_pairs({"ours": ours, "theirs": theirs}, rounds)
    request = spec.QueryTableRequest(
        id=["big"], vector=QueryTableRequestVector(), k=count, filter=_FILTER
    )
    asked = time_pairs(_both(root, lambda names: names.query_table(request)), rounds)
    return [
        Figure(
            "Table.query with a filter",
            took["ours"],
            beside="lance.dataset(path).to_table",
            theirs=took["theirs"],
            within=1.05,
        ),
        Figure(
            "query_table with a filter",
            asked["ours"],
            beside="pylance query_table",
            theirs=asked["theirs"],
        ),
    ]


def _both(root: Path, call: Callable[[spec.LanceNamespace], object]) -> dict[str, Callable]:
    ours, theirs = mooring.DirectoryNamespace(root=str(root)), open_pylance(root)
    return {"ours": lambda: call(ours), "theirs": lambda: call(theirs)}


def _append(root: Path, rounds: int) -> list[Figure]:
    catalog = mooring.connect(root)
    for name in ("a", "b", "c", "d"):
        catalog.create_table(name, _rows(10))
    path = catalog.describe_table("b").location
    took = time_pairs(
        {
            "ours": lambda: catalog.table("a").insert(_rows(10)),
            "theirs": lambda: lance.write_dataset(_rows(10), path, mode="append"),
        },
        rounds,
    )
    body = _ipc(_rows(10))
    ours, theirs = mooring.DirectoryNamespace(root=str(root)), open_pylance(root)
    ask = spec.InsertIntoTableRequest
    asked = time_pairs(
        {
            "ours": lambda: ours.insert_into_table(ask(id=["c"]), body),
            "theirs": lambda: theirs.insert_into_table(ask(id=["d"]), body),
        },
        rounds,
    )
    return [
        Figure(
            "Table.insert of 10 rows",
            took["ours"],
            beside="lance.write_dataset(path)",
            theirs=took["theirs"],
        ),
        Figure(
            "insert_into_table of 10 rows",
            asked["ours"],
            beside="pylance insert_into_table",
            theirs=asked["theirs"],
        ),
    ]


def _ipc(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _look(root: Path, rounds: int, versions: int) -> list[Figure]:
    catalog = mooring.connect(root)
    catalog.create_table("long", _rows(1))
    dataset = catalog.table("long").to_lance()
    for number in range(versions):
        dataset.update_config({"number": str(number)})
    newest = spec.ListTableVersionsRequest(id=["long"], limit=1, descending=True)
    every = spec.ListTableVersionsRequest(id=["long"], descending=True)
    look = time_pairs(_both(root, lambda names: names.list_table_versions(newest)), rounds)
    listing = time_pairs(_both(root, lambda names: names.list_table_versions(every)), rounds)
    return [
        Figure(
            f"newest of {versions + 1:,} versions",
            look["ours"],
            beside="pylance list_table_versions",
            theirs=look["theirs"],
        ),
        Figure(
            f"all {versions + 1:,} versions",
            listing["ours"],
            beside="pylance list_table_versions",
            theirs=listing["theirs"],
        ),
    ]
