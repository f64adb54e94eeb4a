"""Many writers in one manifest catalog at once, as threads and as processes, beside pylance."""

from __future__ import annotations

import multiprocessing
import re
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

import lance
import lance.namespace
import lance_namespace as spec
from lance_namespace.errors import LanceNamespaceError

import mooring
from bench.curves import Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import workspace
from bench.sections import Section
from bench.seeds import NAMESPACES, seed_pair
from mooring.directory.manifest import MANIFEST_DIR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Protocol

    class Barrier(Protocol):
        """What threads and processes wait at for each other."""

        def wait(self, timeout: float | None = None) -> int: ...


__all__ = ["run"]

# Entries, writers, seconds and calls a writer makes at most, rounds; by whether it is quick.
_SIZES = {True: (1_000, 6, 3.0, 50, 2), False: (10_000, 24, 10.0, 100, 3)}
# How many times faster the writers of the large catalog have to be.
_TARGETS = {"threads": 10, "processes": 3}
_START_LIMIT_S = 600.0
_CLIENTS = {"mooring": mooring.DirectoryNamespace, "pylance": lance.namespace.DirectoryNamespace}
_FAILURES = (LanceNamespaceError, OSError, RuntimeError, ValueError)
_TABLE_DIRECTORY = re.compile(r"[0-9a-f]{8}_.*")
# Where the writers of this process wait for each other; set when a pool starts them.
_barriers: list[Barrier] = []
_copies = count()


@dataclass(frozen=True)
class _Job:
    """What one writer does: declare tables until its time is over or it made all its calls."""

    who: str
    root: str
    writer: int
    seconds: float
    calls: int


@dataclass(frozen=True)
class _Told:
    """What one writer did."""

    started: float
    ended: float
    declared: list[str]
    errors: Counter[str]


@dataclass(frozen=True)
class _Outcome:
    """What all writers of a program did, and what they left."""

    seconds: float
    declared: int
    errors: Counter[str]
    orphans: int
    lost: int

    @property
    def each_s(self) -> float:
        """Seconds for each declared table."""
        return self.seconds / self.declared if self.declared else self.seconds

    def __str__(self) -> str:
        """Tell everything."""
        kinds = ", ".join(f"{times} {kind}" for kind, times in sorted(self.errors.items()))
        return (
            f"{self.declared / self.seconds:.1f}/s ({self.declared} in {self.seconds:.1f} s),"
            f" {self.errors.total()} errors{f' ({kinds})' if kinds else ''},"
            f" {self.orphans} orphan directories, {self.lost} acknowledged and lost"
        )


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure how fast many writers declare tables, and what goes wrong."""
    entries, writers, seconds, calls, rounds = _SIZES[quick]
    job = _Job("", "", 0, seconds, calls)
    notes = [
        "seconds are those of the whole run for each table that was declared",
        f"a writer declares up to {calls} tables and begins none after {seconds:g} s",
    ]
    with workspace() as space:
        seeded = seed_pair(space, "seeded", entries)
        roots = {"mooring": seeded.ours, "pylance": seeded.theirs}

        def measure(kind: str) -> list[Figure]:
            outcomes = _compete(kind, writers, job, roots, rounds=rounds)
            notes.extend(
                f"{writers} {kind}, {who}: {one}" for who, told in outcomes.items() for one in told
            )
            return _figures(f"{writers} {kind}", outcomes, None if quick else _TARGETS[kind])

        found = [
            *groups.measure("threads", lambda: measure("threads")),
            *groups.measure("processes", lambda: measure("processes")),
            *groups.measure("growth", lambda: [_grow(writers, job, roots)]),
        ]
    return Section(f"{writers} writers in a manifest of {entries:,} entries on disk", found, notes)


def _compete(
    kind: str, writers: int, job: _Job, roots: dict[str, Path], *, rounds: int = 1
) -> dict[str, list[_Outcome]]:
    """Have so many writers go, Mooring's and pylance's in turns."""
    found: dict[str, list[_Outcome]] = {who: [] for who in roots}
    with _POOLS[kind](writers) as pool:
        for _ in range(rounds):
            for who, root in roots.items():
                found[who].append(_measure(pool, replace(job, who=who), root, writers))
    return found


def _grow(most: int, job: _Job, roots: dict[str, Path]) -> Curve:
    """Have more and more writers declare tables."""
    rates: dict[str, list[tuple[float, float]]] = {who: [] for who in roots}
    for writers in sorted({1, max(2, most // 6), most // 2, most}):
        for who, (told,) in _compete("threads", writers, job, roots).items():
            rates[who].append((writers, told.declared / told.seconds))
    lines = tuple(Line(who, tuple(points)) for who, points in rates.items())
    return Curve("Declare tables, many writers at once", "concurrency", "threads", lines, "rate")


def _figures(
    what: str, outcomes: dict[str, list[_Outcome]], at_least: float | None
) -> list[Figure]:
    ours, theirs = outcomes["mooring"], outcomes["pylance"]
    counts: dict[str, Callable[[_Outcome], int]] = {
        "errors": lambda one: one.errors.total(),
        "orphan directories": lambda one: one.orphans,
        "acknowledged and lost": lambda one: one.lost,
    }
    return [
        Figure(
            f"declare_table, {what}",
            [one.each_s for one in ours],
            beside="pylance",
            theirs=[one.each_s for one in theirs],
            at_least=at_least,
            is_telling=True,
        ),
        *(
            Figure(
                f"{name}, {what}",
                sum(map(count_of, ours)),
                "count",
                beside="pylance",
                theirs=sum(map(count_of, theirs)),
                at_most=0,
            )
            for name, count_of in counts.items()
        ),
    ]


# -- a run -----------------------------------------------------------------------------------


def _measure(pool: Executor, job: _Job, seeded: Path, writers: int) -> _Outcome:
    """Let all writers go on a copy of the seeded catalog, and look at it afterwards."""
    root = seeded.with_name(f"{seeded.name}-copy{next(_copies)}")
    shutil.copytree(seeded, root)
    jobs = [replace(job, root=str(root), writer=number) for number in range(writers)]
    told = list(pool.map(_write, jobs))
    declared = [key for one in told for key in one.declared]
    manifest = lance.dataset(root / MANIFEST_DIR).to_table(["object_id", "location"])
    locations = set(manifest["location"].to_pylist())
    directories = {path.name for path in root.iterdir() if _TABLE_DIRECTORY.fullmatch(path.name)}
    return _Outcome(
        max(one.ended for one in told) - min(one.started for one in told),
        len(declared),
        sum((one.errors for one in told), Counter()),
        orphans=len(directories - locations),
        lost=len(set(declared) - set(manifest["object_id"].to_pylist())),
    )


def _write(job: _Job) -> _Told:
    """Declare tables, after everybody has a client."""
    namespace = _CLIENTS[job.who](root=job.root)
    namespace.namespace_exists(spec.NamespaceExistsRequest(id=["ns0"]))
    declared: list[str] = []
    errors: Counter[str] = Counter()
    _barriers[-1].wait(_START_LIMIT_S)
    # The same clock for all processes of a machine.
    started = time.monotonic()
    for call in range(job.calls):
        if time.monotonic() - started > job.seconds:
            break
        table = [f"ns{job.writer % NAMESPACES}", f"writer{job.writer}-{call}"]
        try:
            namespace.declare_table(spec.DeclareTableRequest(id=table))
        except _FAILURES as exc:
            errors[type(exc).__name__] += 1
        else:
            declared.append("$".join(table))
    return _Told(started, time.monotonic(), declared, errors)


# -- pools whose workers wait for each other, so that each gets one job -------------------------


@contextmanager
def _open_threads(writers: int) -> Iterator[Executor]:
    _set_barrier(threading.Barrier(writers))
    with ThreadPoolExecutor(writers) as pool:
        yield pool


@contextmanager
def _open_processes(writers: int) -> Iterator[Executor]:
    # Lance has threads of its own, which a fork would lose.
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(writers)
    with ProcessPoolExecutor(
        writers, mp_context=context, initializer=_set_barrier, initargs=(barrier,)
    ) as pool:
        yield pool


def _set_barrier(barrier: Barrier) -> None:
    _barriers.append(barrier)


_POOLS = {"threads": _open_threads, "processes": _open_processes}
