"""Catalogs with a manifest, small and large, call by call beside pylance's defaults."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import lance.namespace
import lance_namespace as spec

import mooring
from bench.curves import OURS, Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import workspace
from bench.sections import Section
from bench.seeds import NAMESPACES, seed_pair, table_id
from bench.timing import time_rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bench.seeds import Pair

    Call = Callable[[spec.LanceNamespace], object]

__all__ = ["run"]

# Entries of the catalogs, by whether it should be quick.
_SIZES = {True: (100, 300, 1_000), False: (100, 1_000, 10_000, 100_000)}
# What is asked of a large catalog is asked of one with so many entries.
_LARGE = 100_000
_PAGE = 100
_REPEATS = 10
_LOOKS = {"describe_table", "table_exists"}
_TELLING = {"describe_table", "describe_table, fresh client", "declare_table"}
# What is drawn, by the name of its figures.
_COLD_CURVES = {
    "describe_table, fresh client": "Describe a table by a client that is opened for it"
}
_WARM_CURVES = {"describe_table": "Describe a table by a client that was asked before"}
_CHANGE_CURVES = {"declare_table": "Declare a table in a manifest"}
_OURS = "import mooring, sys; mooring.connect(sys.argv[1]).describe_table(sys.argv[2:])"
_THEIRS = (
    "import lance.namespace, lance_namespace, sys;"
    " lance.namespace.DirectoryNamespace(root=sys.argv[1]).describe_table("
    "lance_namespace.DescribeTableRequest(id=sys.argv[2:]))"
)


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure catalogs of several sizes."""
    rounds = 10 if quick else 30
    sizes = _SIZES[quick]
    notes: list[str] = []
    with workspace() as space:
        pairs = [seed_pair(space, str(entries), entries) for entries in sizes]
        cold = partial(_time_cold, rounds=5 if quick else 9)
        warm = partial(_time_warm, rounds=rounds)
        changes = partial(_time_changes, rounds=rounds, notes=notes)
        found = [
            *groups.measure("fresh clients", lambda: _over(pairs, cold, _COLD_CURVES)),
            *groups.measure("open clients", lambda: _over(pairs, warm, _WARM_CURVES)),
            *groups.measure("changes", lambda: _over(pairs, changes, _CHANGE_CURVES)),
            *groups.measure("processes", lambda: _time_processes(pairs[-1], 3 if quick else 5)),
            *groups.measure("growth", lambda: [_time_growth(pairs[0], pairs[-1], 2 * rounds)]),
        ]
    return Section(
        f"Manifest catalogs of {sizes[0]:,} to {sizes[-1]:,} entries on disk",
        found,
        [
            "both by LanceNamespace with their defaults; each on a copy of its own",
            "a fresh client is opened for the call, with nothing of the catalog in memory",
            "Mooring syncs changes to disk and its drop can be undone; pylance does neither",
            *notes,
        ],
    )


def _over(
    pairs: list[Pair], measure: Callable[[Pair], list[Figure]], curves: dict[str, str]
) -> list[Figure | Curve]:
    """Measure catalogs of all sizes, and draw what is named against their size."""
    by_size = {pair.entries: measure(pair) for pair in pairs}
    figures = [figure for some in by_size.values() for figure in some]
    return [*figures, *(_curve(title, what, by_size) for what, title in curves.items())]


def _curve(title: str, what: str, by_size: dict[int, list[Figure]]) -> Curve:
    found = {
        size: next(one for one in figures if one.what == _at(what, size))
        for size, figures in by_size.items()
    }
    ours = tuple((size, one.ours) for size, one in found.items())
    theirs = tuple((size, one.theirs) for size, one in found.items())
    lines = (Line(OURS, ours), Line("pylance", theirs))
    return Curve(title, "catalog size", "entries in the manifest", lines)


def _at(what: str, entries: int) -> str:
    return f"{what}, {entries:,} entries"


# -- reading ---------------------------------------------------------------------------------


def _time_cold(pair: Pair, rounds: int) -> list[Figure]:
    """Ask fresh clients; none is alive before, so that nothing is in memory already."""
    figures = []
    numbers = count()
    for what, call in {**_reading(pair), "declare_table": _declaring_first(numbers)}.items():
        taken = time_rounds(
            {
                "ours": lambda call=call: call(_open_ours(pair.ours)),
                "theirs": lambda call=call: call(_open_theirs(pair.theirs)),
            },
            rounds,
            before=gc.collect,
        )
        within = 1 if what in _LOOKS else None
        figures.append(_beside(f"{what}, fresh client", pair, taken, within=within))
    return figures


def _time_warm(pair: Pair, rounds: int) -> list[Figure]:
    """Ask clients that were asked before, several times a round: a call takes microseconds."""
    ours, theirs = _open_ours(pair.ours), _open_theirs(pair.theirs)
    figures = []
    for what, call in _reading(pair).items():
        taken = time_rounds(
            {
                "ours": lambda call=call: _repeat(call, ours),
                "theirs": lambda call=call: _repeat(call, theirs),
            },
            rounds,
        )
        each = {who: [took / _REPEATS for took in all_took] for who, all_took in taken.items()}
        figures.append(_beside(what, pair, each, at_least=20 if what in _LOOKS else None))
    return figures


def _reading(pair: Pair) -> dict[str, Call]:
    """Return what is asked, about a table in the middle."""
    table = table_id(pair.entries // 2)
    describing = spec.DescribeTableRequest(id=table)
    looking = spec.TableExistsRequest(id=table)
    listing = spec.ListTablesRequest(id=["ns0"], limit=_PAGE)
    page = min(_PAGE, pair.entries // NAMESPACES - 1)

    def list_page(namespace: spec.LanceNamespace) -> None:
        assert len(namespace.list_tables(listing).tables) >= page

    return {
        "describe_table": lambda namespace: namespace.describe_table(describing),
        "table_exists": lambda namespace: namespace.table_exists(looking),
        f"list_tables, page of {_PAGE}": list_page,
    }


def _repeat(call: Call, namespace: spec.LanceNamespace) -> None:
    for _ in range(_REPEATS):
        call(namespace)


def _time_processes(pair: Pair, rounds: int) -> list[Figure]:
    """Ask from a new process, as a script does."""
    table = table_id(pair.entries // 2)
    took = time_rounds(
        {
            "ours": lambda: _run_python(_OURS, str(pair.ours), *table),
            "theirs": lambda: _run_python(_THEIRS, str(pair.theirs), *table),
        },
        rounds,
    )
    what = f"a Python process that describes a table, {pair.entries:,} entries"
    return [Figure(what, took["ours"], beside="pylance", theirs=took["theirs"], within=1)]


def _run_python(code: str, *args: str) -> None:
    subprocess.run([sys.executable, "-c", code, *args], check=True)


# -- changing --------------------------------------------------------------------------------


def _time_changes(pair: Pair, *, rounds: int, notes: list[str]) -> list[Figure]:
    ours, theirs = _open_ours(pair.ours), _open_theirs(pair.theirs)
    changes: dict[str, Callable[[int], tuple[str, Any]]] = {
        "create_namespace": lambda turn: (
            "create_namespace",
            spec.CreateNamespaceRequest(id=["ns0", f"new{turn}"]),
        ),
        "declare_table": _declaring,
        "drop_table": lambda turn: ("drop_table", spec.DropTableRequest(id=_new_table(turn))),
    }
    figures = []
    for what, change in changes.items():
        callers = {"ours": _changing(ours, change), "theirs": _changing(theirs, change)}
        taken = time_rounds(callers, rounds, warm=False)
        is_declare = what == "declare_table"
        figures.append(_beside(what, pair, taken, at_least=5 if is_declare else None))
        if is_declare:
            notes.append(_tell_means(pair, taken))
    return figures


def _time_growth(small: Pair, large: Pair, rounds: int) -> Figure:
    """Declare tables in a small and in a large catalog, in turns."""
    clients = {pair.entries: _open_ours(pair.ours) for pair in (small, large)}

    def growing(turn: int) -> tuple[str, Any]:
        return _declaring(turn + 1_000)

    callers = {str(size): _changing(client, growing) for size, client in clients.items()}
    took = time_rounds(callers, rounds)
    return Figure(
        f"growth: {_at('declare_table', large.entries)}",
        took[str(large.entries)],
        beside=f"mooring, {small.entries:,} entries",
        theirs=took[str(small.entries)],
        within=2,
    )


def _changing(
    namespace: spec.LanceNamespace, change: Callable[[int], tuple[str, Any]]
) -> Callable[[], None]:
    """Return what makes the next change at every call."""
    turns = count()

    def call() -> None:
        method, request = change(next(turns))
        getattr(namespace, method)(request)

    return call


def _declaring(turn: int) -> tuple[str, Any]:
    return "declare_table", spec.DeclareTableRequest(id=_new_table(turn))


def _declaring_first(numbers: Iterator[int]) -> Call:
    def declare(namespace: spec.LanceNamespace) -> None:
        table = ["ns0", f"first-table{next(numbers)}"]
        namespace.declare_table(spec.DeclareTableRequest(id=table))

    return declare


def _new_table(turn: int) -> list[str]:
    return [f"ns{turn % NAMESPACES}", f"new-table{turn}"]


def _tell_means(pair: Pair, taken: dict[str, list[float]]) -> str:
    """Tell the mean as well: a median does not show what every sixteenth commit tidies."""
    ours, theirs = (statistics.mean(taken[who]) * 1e3 for who in ("ours", "theirs"))
    return (
        f"declare_table at {pair.entries:,} entries on average, tidying included:"
        f" {ours:.1f} ms, pylance {theirs:.1f} ms"
    )


# -- small things ----------------------------------------------------------------------------


def _beside(
    what: str, pair: Pair, taken: dict[str, list[float]], **targets: float | None
) -> Figure:
    """Set medians beside each other; targets are those of the large catalog."""
    is_large = pair.entries >= _LARGE
    return Figure(
        _at(what, pair.entries),
        taken["ours"],
        beside="pylance",
        theirs=taken["theirs"],
        is_telling=is_large and what in _TELLING,
        **(targets if is_large else {}),
    )


def _open_ours(root: Path) -> spec.LanceNamespace:
    return mooring.DirectoryNamespace(root=str(root))


def _open_theirs(root: Path) -> spec.LanceNamespace:
    return lance.namespace.DirectoryNamespace(root=str(root))
