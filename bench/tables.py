"""What is done to a table through the catalog, beside Lance on the same path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import lance_namespace as spec
import numpy as np
import pyarrow as pa
from lance_namespace_urllib3_client.models.query_table_request_vector import (
    QueryTableRequestVector,
)

import mooring
from bench.curves import OURS, Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import open_pylance, workspace
from bench.rows import stream
from bench.sections import Section
from bench.timing import time_rounds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["SIZES", "run"]

# Rows, alternating pairs, versions; by whether it should be quick.
SIZES = {True: (100_000, 5, 50), False: (1_000_000, 15, 1_000)}
_FILTER = "x > 0.5 AND n % 7 = 3"


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure queries, appends and looks at versions."""
    count, rounds, versions = SIZES[quick]
    with workspace() as space:
        root = space / "lake"
        catalog = mooring.connect(root)
        catalog.create_table("big", _rows(count))
        found = [
            *groups.measure("query", lambda: _query(root, rounds, count)),
            *groups.measure("append", lambda: _append(root, rounds)),
            *groups.measure("versions", lambda: _look(root, rounds, versions)),
        ]
    return Section(
        f"A table of {count:,} rows, {rounds} alternating pairs",
        found,
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

    took = time_rounds({"ours": ours, "theirs": theirs}, rounds)
    request = spec.QueryTableRequest(
        id=["big"], vector=QueryTableRequestVector(), k=count, filter=_FILTER
    )
    asked = time_rounds(_both(root, lambda names: names.query_table(request)), rounds)
    return [
        Figure(
            "Table.query with a filter",
            took["ours"],
            beside="lance.dataset(path).to_table",
            theirs=took["theirs"],
            within=1.05,
            is_telling=True,
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
    took = time_rounds(
        {
            "ours": lambda: catalog.table("a").insert(_rows(10)),
            "theirs": lambda: lance.write_dataset(_rows(10), path, mode="append"),
        },
        rounds,
    )
    body = stream(_rows(10))
    ours, theirs = mooring.DirectoryNamespace(root=str(root)), open_pylance(root)
    ask = spec.InsertIntoTableRequest
    asked = time_rounds(
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


def _look(root: Path, rounds: int, versions: int) -> list[Figure | Curve]:
    """Look at the versions of a table, at last at all of so many and the first."""
    catalog = mooring.connect(root)
    catalog.create_table("long", _rows(1))
    dataset = catalog.table("long").to_lance()
    newest = spec.ListTableVersionsRequest(id=["long"], limit=1, descending=True)
    every = spec.ListTableVersionsRequest(id=["long"], descending=True)
    made = 0
    grown: list[tuple[int, dict[str, list[float]]]] = []
    for length in (versions // 50, versions // 10, versions):
        for number in range(made, length):
            dataset.update_config({"number": str(number)})
        made = length
        look = time_rounds(_both(root, lambda names: names.list_table_versions(newest)), rounds)
        grown.append((length + 1, look))
    listing = time_rounds(_both(root, lambda names: names.list_table_versions(every)), rounds)
    lines = tuple(
        Line(name, tuple((length, took[key]) for length, took in grown))
        for name, key in ((OURS, "ours"), ("pylance", "theirs"))
    )
    return [
        Curve("Newest version of a table", "history length", "versions of the table", lines),
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
