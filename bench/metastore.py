"""Transactions of the metastore beside deltacat's, and whether they grow with their history."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.interop.deltacat_peer import NotBuiltError, find_interpreter

from bench.lakes import workspace
from bench.report import Figure, Section
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


def run(*, quick: bool) -> Section:
    """Measure reads, lists and commits beside deltacat, and commits after a long history."""
    sizes = _QUICK if quick else _FULL
    operations = [
        _Operation(f"get_table, {sizes.revisions:,} revisions", "get_table", _READS),
        _Operation(f"list {sizes.tables:,} tables", "list_tables", _READS),
        _Operation(f"list {sizes.deltas:,} deltas", "list_deltas", _READS),
        _Operation(f"update_table, {sizes.revisions:,} revisions", "update_table", _COMMITS),
        _Operation(f"append a delta, {sizes.deltas:,} deltas", "append_delta", _COMMITS),
    ]
    with workspace() as space, _open_peer(space / "deltacat") as peer:
        ours = _Ours(LocalStore(space / "mooring"))
        unsynced = _Ours(LocalStore(space / "unsynced", durable=False))
        for one in (ours, unsynced, *([peer] if peer else [])):
            _seed(one, sizes)
        figures = _beside(operations, sizes, ours=ours, unsynced=unsynced, peer=peer)
        figures += _after_history(space, sizes)
        figures += _requests(operations, ours, peer)
    name = f"deltacat {peer.version}" if peer else "deltacat was not run"
    return Section(
        "Metastore beside deltacat, on disk",
        figures,
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


@contextmanager
def _open_peer(root: Path) -> Iterator[_Peer | None]:
    """Start deltacat, in the environment of the interop tests; None where there is none."""
    try:
        python = find_interpreter()
    except NotBuiltError as exc:
        print(exc, file=sys.stderr)
        yield None
        return
    # Isolated: modules of this folder have the names of others that deltacat imports.
    process = subprocess.Popen(
        [python, "-I", _PEER, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        peer = _Peer(process)
        peer.version = str(peer.answer()["version"])
        yield peer
    finally:
        process.communicate()


def _seed(one: _Ours | _Peer, sizes: _Sizes) -> None:
    one.time("update_table", sizes.revisions)
    one.time("append_delta", sizes.deltas)
    one.time("create_table", sizes.tables - 1)
    assert one.list_tables() == sizes.tables
    assert one.list_deltas() == sizes.deltas


# -- figures ---------------------------------------------------------------------------------------


def _beside(
    operations: list[_Operation],
    sizes: _Sizes,
    *,
    ours: _Ours,
    unsynced: _Ours,
    peer: _Peer | None,
) -> list[Figure]:
    figures = []
    for what, method, at_least in operations:
        took = _time_in_turn({"ours": ours, "unsynced": unsynced, "theirs": peer}, method, sizes)
        # With little to go through there is little to win.
        target = {"at_least": at_least} if peer and sizes is _FULL else {}
        beside = {"beside": "deltacat", "detail": "not run"}
        if peer:
            beside = {"beside": "deltacat", "theirs": took["theirs"]}
        figures.append(Figure(what, took["ours"], **beside, **target))
        if method == "get_table":
            anew = statistics.median(ours.time("get_table_anew", 15))
            figures.append(Figure(f"{what}, opened anew", anew, **beside))
        if at_least == _COMMITS:
            mean = statistics.fmean(ours.time(method, _TWO_CHECKPOINTS))
            figures.append(Figure(f"{what}, mean", mean, **beside))
            figures.append(Figure(f"{what}, no fsync", took["unsynced"], **beside))
    return figures


def _time_in_turn(
    contenders: dict[str, _Ours | _Peer | None], method: str, sizes: _Sizes
) -> dict[str, float]:
    """Return the median seconds of each; they take turns of some calls, the first for warmth."""
    taken: dict[str, list[float]] = {name: [] for name, one in contenders.items() if one}
    for _ in range(sizes.turns):
        for name, seconds in taken.items():
            # Else an fsync of the one writes out what the others left to the system.
            os.sync()
            seconds.extend(contenders[name].time(method, _CALLS_A_TURN)[1:])
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def _after_history(space: Path, sizes: _Sizes) -> list[Figure]:
    """Commit after few commits and after many, in turn."""
    metas = {}
    for name, length in (("short", sizes.short), ("long", sizes.long)):
        root = space / f"history-{name}"
        _Ours(LocalStore(root, durable=False)).time("update_table", length)
        metas[name] = _Reopened(LocalStore(root))
    took = time_rounds({name: one.update_table for name, one in metas.items()}, _TWO_CHECKPOINTS)
    at = f"after {sizes.long:,} commits"
    return [
        _growth(f"update_table {at}", statistics.median, took, sizes, within=_GROWTH),
        _growth(f"update_table {at}, mean", statistics.fmean, took, sizes),
    ]


class _Reopened(_Ours):
    """A metastore that others made."""

    def __init__(self, store: Store) -> None:
        self.store = ObservedStore(store)
        self._numbers = count(1)
        self.meta = self._open()


def _growth(what: str, average, took, sizes: _Sizes, **target: float) -> Figure:  # noqa: ANN001
    beside = f"after {sizes.short}"
    return Figure(
        what, average(took["long"]), beside=beside, theirs=average(took["short"]), **target
    )


def _requests(operations: list[_Operation], ours: _Ours, peer: _Peer | None) -> list[Figure]:
    figures = []
    for what, method, _ in operations:
        seen = ours.count(method)
        theirs = {} if peer is None else {"theirs": sum(peer.count(method).values())}
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(seen.items()))
        figures.append(
            Figure(
                f"requests: {what}",
                sum(seen.values()),
                kind="requests",
                beside="deltacat",
                detail=kinds if peer else f"{kinds}; deltacat not run",
                **theirs,
            )
        )
    return figures
