"""Transactions of the metastore beside deltacat's, and whether they grow with their history."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.interop.deltacat_peer import NotBuiltError, find_interpreter

from bench.curves import OURS, Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import workspace
from bench.sections import Section
from bench.timing import time_once, time_rounds
from mooring.metastore.locator import Locator
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import (
    DataFile,
    Delta,
    Manifest,
    Namespace,
    Partition,
    Stream,
    Table,
    TableVersion,
)
from mooring.store.local import LocalStore
from mooring.store.observed import ObservedStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.metastore.transaction import Transaction
    from mooring.store import Store

__all__ = ["run"]

_PEER = Path(__file__).with_name("deltacat_peer.py")
_NAMESPACE = Locator.of("ns")
_TABLE = _NAMESPACE.child("t")
_PARTITION = Locator.of("ns", "t", "1", ("s", "deltacat"), "p")
_READS, _COMMITS = 20, 5
_GROWTH = 1.3
_TWO_CHECKPOINTS = 128
_CALLS_A_TURN = 4


class _Sizes(NamedTuple):
    """How much there is when calls are timed, and how many are."""

    revisions: int
    deltas: int
    tables: int
    short: int
    long: int
    turns: int


_QUICK = _Sizes(revisions=100, deltas=50, tables=20, short=10, long=500, turns=2)
_FULL = _Sizes(revisions=3_000, deltas=1_000, tables=200, short=10, long=10_000, turns=5)


class _Operation(NamedTuple):
    """What is timed, in words and as a method, and how many times faster it has to be."""

    what: str
    method: str
    at_least: float


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure reads, lists and commits beside deltacat, and commits after a long history."""
    sizes = _QUICK if quick else _FULL
    operations = [
        _Operation(f"get_table, {sizes.revisions:,} revisions", "get_table", _READS),
        _Operation(f"list {sizes.tables:,} tables", "list_tables", _READS),
        _Operation(f"list {sizes.deltas:,} deltas", "list_deltas", _READS),
        _Operation(f"update_table, {sizes.revisions:,} revisions", "update_table", _COMMITS),
        _Operation(f"append a delta, {sizes.deltas:,} deltas", "append_delta", _COMMITS),
    ]
    with workspace() as space, _open_peer(space / "deltacat") as (peer, missing):
        sides = _Sides(
            _Ours(LocalStore(space / "mooring")),
            _Ours(LocalStore(space / "unsynced", durable=False)),
            peer,
            missing,
        )
        # Objects get their histories on the way.
        grown = _grow_history(sides, sizes)
        found = groups.measure("history", lambda: grown)
        for one in sides.present.values():
            _seed(one, sizes)
        for operation in operations:
            found += groups.measure(
                operation.method, lambda one=operation: _beside(one, sizes, sides)
            )
        found += groups.measure("after commits", lambda: _after_history(space, sizes))
        found += groups.measure("requests", lambda: _requests(operations, sides))
    name = f"deltacat {peer.version}" if peer else "deltacat was not run"
    return Section(
        "Metastore beside deltacat, on disk",
        found,
        [
            f"{name}: its storage calls in a process of its own, timed there; it never syncs",
            "a process of Mooring keeps what it has read; opened anew it begins with a checkpoint",
            "as released, deltacat refuses an object's 1,000th change; here it is made to go on",
            "fsync is on where nothing else is said; the disk is synced before every turn",
            "medians; a mean includes the checkpoints that fall due",
            "requests are calls of the store, or of deltacat's file system",
        ],
    )


# -- both sides ------------------------------------------------------------------------------------


class _Ours:
    """The same catalog in a metastore."""

    def __init__(self, store: Store) -> None:
        self.store = ObservedStore(store)
        self._numbers = count(1)
        self.meta = self._open()
        self.meta.run(_create_first)

    def _open(self) -> Metastore:
        return Metastore(self.store, author="bench")

    def time(self, operation: str, times: int) -> list[float]:
        """Time calls of an operation."""
        return [time_once(getattr(self, operation)) for _ in range(times)]

    def count(self, operation: str) -> dict[str, int]:
        """Count what one call of an operation asks of the store."""
        self.store.counts.clear()
        getattr(self, operation)()
        return dict(self.store.counts)

    def create_table(self) -> int:
        table = _NAMESPACE.child(f"t{next(self._numbers):04d}")
        self.meta.run(lambda txn: _create_table(txn, table, "s"))
        return 1

    def update_table(self) -> int:
        properties = {"count": str(next(self._numbers))}
        self.meta.run(lambda txn: txn.update(_TABLE, Table(properties=properties)))
        return 1

    def get_table(self) -> int:
        return int(self.meta.begin().get(_TABLE).value.kind is Table.kind)

    def get_table_anew(self) -> int:
        return int(self._open().begin().get(_TABLE).value.kind is Table.kind)

    def append_delta(self) -> int:
        number = next(self._numbers)
        return self.meta.run(lambda txn: _append(txn, f"data/{number}.parquet"))

    def list_tables(self) -> int:
        return len(self.meta.begin().children(_NAMESPACE))

    def list_deltas(self) -> int:
        return len(self.meta.begin().children(_PARTITION))


def _create_first(txn: Transaction) -> None:
    txn.create(_NAMESPACE, Namespace())
    _create_table(txn, _TABLE, "s")
    txn.create(_PARTITION, Partition(partition_id="p"))


def _create_table(txn: Transaction, table: Locator, stream_id: str) -> None:
    """Create a table with a version and a stream, as deltacat does."""
    txn.create(table, Table(latest_version="1"))
    txn.create(table.child("1"), TableVersion(version="1"))
    txn.create(table.child("1").child(stream_id, "deltacat"), Stream(stream_id=stream_id))


def _append(txn: Transaction, path: str) -> int:
    previous = txn.get(_PARTITION).value.stream_position
    position = (previous or 0) + 1
    manifest = Manifest(files=(DataFile(path=path, rows=10, size_bytes=1000),))
    delta = Delta(stream_position=position, manifest=manifest, previous_position=previous)
    txn.create(_PARTITION.child(str(position)), delta)
    txn.update(_PARTITION, Partition(partition_id="p", stream_position=position))
    return position


@dataclass
class _Peer:
    """deltacat, in a process of its own."""

    process: subprocess.Popen[str]
    version: str = ""

    def ask(self, *command: object) -> dict[str, object]:
        """Send a command and wait for its answer."""
        self.process.stdin.write(f"{json.dumps(command)}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, object]:
        """Wait for an answer."""
        line = self.process.stdout.readline()
        if not line:
            message = f"deltacat ended with {self.process.wait()}"
            raise RuntimeError(message)
        return json.loads(line)

    def time(self, operation: str, times: int) -> list[float]:
        """Time calls of an operation."""
        return self.ask("time", operation, times)["seconds"]

    def count(self, operation: str) -> dict[str, int]:
        """Count what one call of an operation asks of the file system."""
        return self.ask("count", operation)

    def __getattr__(self, operation: str) -> object:
        """Call an operation and return how much it found."""
        return lambda: self.ask("time", operation, 1)["found"]


@dataclass(frozen=True)
class _Sides:
    """All that is measured.

    Attributes:
        ours: A metastore that syncs.
        unsynced: One that does not.
        peer: deltacat, where it can be run.
        missing: Why it cannot.
    """

    ours: _Ours
    unsynced: _Ours
    peer: _Peer | None
    missing: str

    @property
    def present(self) -> dict[str, _Ours | _Peer]:
        """Those that can be asked."""
        found = {"ours": self.ours, "unsynced": self.unsynced, "theirs": self.peer}
        return {name: one for name, one in found.items() if one}


@contextmanager
def _open_peer(root: Path) -> Iterator[tuple[_Peer | None, str]]:
    """Start deltacat, in the environment of the interop tests; without one, tell why."""
    try:
        python = find_interpreter()
    except NotBuiltError as exc:
        yield None, f"deltacat: {exc}"
        return
    # Isolated: modules of this folder have the names of others that deltacat imports.
    process = subprocess.Popen(
        [python, "-I", _PEER, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        peer = _Peer(process)
        peer.version = str(peer.answer()["version"])
        yield peer, ""
    finally:
        process.communicate()


def _seed(one: _Ours | _Peer, sizes: _Sizes) -> None:
    one.time("append_delta", sizes.deltas)
    one.time("create_table", sizes.tables - 1)
    assert one.list_tables() == sizes.tables
    assert one.list_deltas() == sizes.deltas


# -- figures ---------------------------------------------------------------------------------------


def _grow_history(sides: _Sides, sizes: _Sizes) -> list[Curve]:
    """Change a table over and over, and time changes and looks on the way."""
    taken: dict[str, list[tuple[int, dict[str, list[float]]]]] = {
        "update_table": [],
        "get_table": [],
    }
    made = 0
    for length in sorted({10, sizes.revisions // 30, sizes.revisions // 3, sizes.revisions}):
        for one in sides.present.values():
            one.time("update_table", max(0, length - made))
        for method, points in taken.items():
            points.append((length, _time_in_turn(sides.present, method, sizes)))
        made = length + sizes.turns * _CALLS_A_TURN
    titles = {"update_table": "Change a table", "get_table": "Get a table"}
    return [_curve(titles[method], points, sides) for method, points in taken.items()]


def _curve(title: str, points: list[tuple[int, dict[str, list[float]]]], sides: _Sides) -> Curve:
    names = {OURS: "ours", f"{OURS}, no fsync": "unsynced", "deltacat": "theirs"}
    lines = tuple(
        Line(name, tuple((length, took[key]) for length, took in points))
        for name, key in names.items()
        if key in sides.present
    )
    along = "earlier changes of the table"
    return Curve(title, "history length", along, lines, missing=sides.missing)


def _beside(operation: _Operation, sizes: _Sizes, sides: _Sides) -> list[Figure]:
    what, method, at_least = operation
    took = _time_in_turn(sides.present, method, sizes)
    # With little to go through there is little to win.
    target = {"at_least": at_least} if sizes is _FULL else {}
    beside = {"beside": "deltacat", "theirs": took.get("theirs"), "missing": sides.missing}
    figures = [Figure(what, took["ours"], **beside, **target, is_telling=True)]
    if method == "get_table":
        anew = sides.ours.time("get_table_anew", 15)
        figures.append(Figure(f"{what}, opened anew", anew, **beside))
    if at_least == _COMMITS:
        many = sides.ours.time(method, _TWO_CHECKPOINTS)
        figures.append(Figure(f"{what}, mean", many, **beside, average="mean"))
        figures.append(Figure(f"{what}, no fsync", took["unsynced"], **beside))
    return figures


def _time_in_turn(
    contenders: dict[str, _Ours | _Peer], method: str, sizes: _Sizes
) -> dict[str, list[float]]:
    """Return the seconds of all calls; they take turns of some calls, the first for warmth."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(sizes.turns):
        for name, seconds in taken.items():
            # Else an fsync of the one writes out what the others left to the system.
            os.sync()
            seconds.extend(contenders[name].time(method, _CALLS_A_TURN)[1:])
    return taken


def _after_history(space: Path, sizes: _Sizes) -> list[Figure]:
    """Commit after few commits and after many, in turn."""
    metas = {}
    for name, length in (("short", sizes.short), ("long", sizes.long)):
        root = space / f"history-{name}"
        _Ours(LocalStore(root, durable=False)).time("update_table", length)
        metas[name] = _Reopened(LocalStore(root))
    took = time_rounds({name: one.update_table for name, one in metas.items()}, _TWO_CHECKPOINTS)
    what = f"update_table after {sizes.long:,} commits"
    sides = {"ours": took["long"], "theirs": took["short"], "beside": f"after {sizes.short}"}
    return [
        Figure(what, **sides, within=_GROWTH),
        Figure(f"{what}, mean", **sides, average="mean"),
    ]


class _Reopened(_Ours):
    """A metastore that others made."""

    def __init__(self, store: Store) -> None:
        self.store = ObservedStore(store)
        self._numbers = count(1)
        self.meta = self._open()


def _requests(operations: list[_Operation], sides: _Sides) -> list[Figure]:
    figures = []
    for what, method, _ in operations:
        seen = sides.ours.count(method)
        theirs = sum(sides.peer.count(method).values()) if sides.peer else None
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(seen.items()))
        figures.append(
            Figure(
                f"requests: {what}",
                sum(seen.values()),
                kind="requests",
                beside="deltacat",
                theirs=theirs,
                detail=kinds,
                missing=sides.missing,
            )
        )
    return figures
