"""Single operations, call by call, beside pylance's namespace and bare Lance."""

from __future__ import annotations

import os
import statistics
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import lance
import lance_namespace as spec
import pyarrow as pa

import mooring
from bench.curves import OURS, Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import TINY, fill, open_pylance, workspace
from bench.sections import Section
from bench.timing import time_rounds
from mooring.directory.listing_backend import ListingBackend
from mooring.namespace.home import Home
from mooring.namespace.lance import LanceAdapter
from mooring.store.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["run"]

_REQUESTS = {
    "describe_table": spec.DescribeTableRequest,
    "table_exists": spec.TableExistsRequest,
    "declare_table": spec.DeclareTableRequest,
    "drop_table": spec.DropTableRequest,
}
# Ways to the next verb, measured already under another name.
_STEPS = {"unprotect", "drop_table", "drop again"}
_CHANGES = {"declare_table", "drop_table"}


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure operations on catalogs of a few hundred tables on disk."""
    calls = 40 if quick else 200
    large = 100_000 if quick else 1_000_000
    with workspace() as space:
        figures = [
            *groups.measure("calls", lambda: _time_beside_pylance(space, calls)),
            *groups.measure("lifecycle", lambda: _time_lifecycle(space, calls)),
            *groups.measure("creation", lambda: _time_creations(space, calls // 4, large)),
        ]
        sync_s = _time_sync(space)
    return Section(
        f"Operations on disk, median of {calls} calls",
        figures,
        [
            f"Mooring syncs changes to disk, {sync_s * 1e3:.2f} ms a file here; pylance does not",
            "pylance's drop deletes the table's files; Mooring's can be undone",
            "unsynced is the same code with fsync turned off, for comparison only",
            "by default every table also gets its row in a manifest; else there is no manifest",
        ],
    )


def _time_beside_pylance(space: Path, calls: int) -> list[Figure]:
    """The same requests to several namespaces, each on a directory of its own."""
    for who in ("synced", "unsynced", "pylance", "default", "pylance by default"):
        names = fill(space / who, calls)
    namespaces = {
        "synced": _open_ours(space / "synced", durable=True),
        "unsynced": _open_ours(space / "unsynced", durable=False),
        "pylance": open_pylance(space / "pylance"),
        "default": _open_default(space / "default"),
        "pylance by default": open_pylance(space / "pylance by default", manifest=True),
    }
    figures: list[Figure] = []
    by_default: list[Figure] = []
    for what in _REQUESTS:
        callers = {who: _caller(who, namespace, what) for who, namespace in namespaces.items()}
        took = _time_each(callers, names)
        beside = {"beside": "pylance", "theirs": took["pylance"]}
        is_telling = what in {"describe_table", "drop_table"}
        figures.append(Figure(what, took["synced"], **beside, is_telling=is_telling))
        if what in _CHANGES:
            figures.append(Figure(f"{what}, unsynced", took["unsynced"], **beside))
        beside["theirs"] = took["pylance by default"]
        by_default.append(Figure(f"{what}, by default", took["default"], **beside))
    return [*figures, *by_default]


def _open_ours(root: Path, *, durable: bool) -> LanceAdapter:
    backend = ListingBackend(Home(LocalStore(root, durable=durable), author="bench"))
    backend.initialize(adopt=True)
    return LanceAdapter(backend, str(root))


def _open_default(root: Path) -> LanceAdapter:
    """Open an adopted directory with all settings as they are for everybody."""
    catalog = mooring.connect(root)
    catalog.backend.initialize(adopt=True)
    return LanceAdapter(catalog.backend, str(root))


def _caller(who: str, namespace: spec.LanceNamespace, what: str) -> Callable[[str], object]:
    method, request = getattr(namespace, what), _REQUESTS[what]
    # By default pylance does not find a table that it should drop by its directory alone.
    is_new = what == "declare_table" or (what == "drop_table" and who.endswith("default"))
    prefix = "new-" if is_new else ""
    return lambda name: method(request(id=[prefix + name]))


def _time_lifecycle(space: Path, calls: int) -> list[Figure]:
    """What pylance has no call for, without a manifest and by default."""
    listing = _time_verbs(space / "life", calls, manifest_enabled=False)
    default = _time_verbs(space / "life-default", calls, manifest_enabled=True)
    beside = {"beside": "without a manifest"}
    figures = [Figure(what, took) for what, took in listing.items()]
    return figures + [
        Figure(f"{what}, by default", took, theirs=listing[what], **beside)
        for what, took in default.items()
    ]


def _time_verbs(root: Path, calls: int, *, manifest_enabled: bool) -> dict[str, list[float]]:
    names = fill(root, calls)
    catalog = mooring.connect(root, manifest_enabled=manifest_enabled)
    catalog.backend.initialize(adopt=True)
    verbs = {
        "table_status": catalog.table_status,
        "protect_table": catalog.protect_table,
        "unprotect": lambda name: catalog.protect_table(name, protected=False),
        "drop_table": catalog.drop_table,
        "undrop_table": catalog.undrop_table,
        "deregister_table": catalog.deregister_table,
        "register_table": catalog.register_table,
        "drop again": catalog.drop_table,
        "purge_table": catalog.purge_table,
    }
    taken = {what: _time_each({what: call}, names)[what] for what, call in verbs.items()}
    return {what: took for what, took in taken.items() if what not in _STEPS}


def _time_creations(space: Path, calls: int, large: int) -> list[Figure | Curve]:
    """Create tables of few rows and of many."""
    taken = {3: _time_creation(space, calls, TINY)}
    for size in (large // 1_000, large // 10, large):
        taken[size] = _time_creation(space, 5, _numbers(size))
    names = {OURS: "listing", f"{OURS}, by default": "default", "lance.write_dataset": "lance"}
    lines = tuple(
        Line(name, tuple((size, took[key]) for size, took in taken.items()))
        for name, key in names.items()
    )
    return [
        *_creation_figures(taken[3], "3 rows"),
        *_creation_figures(taken[large], f"{large:,} rows"),
        Curve("Create a table", "data size", "rows", lines),
    ]


def _creation_figures(took: dict[str, list[float]], what: str) -> list[Figure]:
    beside = {"beside": "write_dataset", "theirs": took["lance"]}
    return [
        Figure(f"create_table, {what}", took["listing"], **beside),
        Figure(f"create_table, {what}, by default", took["default"], **beside),
    ]


def _time_creation(space: Path, calls: int, rows: pa.Table) -> dict[str, list[float]]:
    listing = mooring.connect(space / f"created-{rows.num_rows}", manifest_enabled=False)
    default = mooring.connect(space / f"default-{rows.num_rows}")
    bare = space / f"bare-{rows.num_rows}"
    numbers = count()
    return time_rounds(
        {
            "listing": lambda: listing.create_table(f"t{next(numbers)}", rows),
            "default": lambda: default.create_table(f"t{next(numbers)}", rows),
            "lance": lambda: lance.write_dataset(rows, bare / f"t{next(numbers)}.lance"),
        },
        rounds=calls,
    )


def _numbers(size: int) -> pa.Table:
    return pa.table({"n": pa.array(range(size), pa.int64()), "x": pa.array([0.5] * size)})


def _time_each(
    contenders: dict[str, Callable[[str], object]], names: list[str]
) -> dict[str, list[float]]:
    """Call every contender once with every name, in turns."""
    bound = {who: iter(names) for who in contenders}
    calls = {who: partial(_call_next, call, bound[who]) for who, call in contenders.items()}
    return time_rounds(calls, rounds=len(names), warm=False)


def _call_next(call: Callable[[str], object], names: Iterator[str]) -> None:
    call(next(names))


def _time_sync(space: Path) -> float:
    """Return the seconds of making one small new file durable."""
    numbers = count()

    def write() -> None:
        with (space / f"sync-{next(numbers)}").open("wb") as file:
            file.write(b"x" * 200)
            file.flush()
            os.fsync(file.fileno())

    return statistics.median(time_rounds({"sync": write}, rounds=20)["sync"])
