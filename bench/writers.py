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
from typing import TYPE_CHECKING

import lance
import lance.namespace
import lance_namespace as spec
from lance_namespace.errors import LanceNamespaceError

import mooring
from bench.lakes import workspace
from bench.report import Figure, Section
from bench.seeds import NAMESPACES, seed_pair
from mooring.directory.manifest import MANIFEST_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Protocol

    class Barrier(Protocol):
        """What threads and processes wait at for each other."""

        def wait(self, timeout: float | None = None) -> int: ...


__all__ = ["run"]

# Entries, writers, seconds and calls a writer makes at most, by whether it should be quick.
_SIZES = {True: (1_000, 6, 3.0, 50), False: (10_000, 24, 10.0, 100)}
# How many times faster the writers of the large catalog have to be.
_TARGETS = {"threads": 10, "processes": 3}
_START_LIMIT_S = 600.0
_CLIENTS = {"mooring": mooring.DirectoryNamespace, "pylance": lance.namespace.DirectoryNamespace}
_FAILURES = (LanceNamespaceError, OSError, RuntimeError, ValueError)
_TABLE_DIRECTORY = re.compile(r"[0-9a-f]{8}_.*")
# Where the writers of this process wait for each other; set when a pool starts them.
_barriers: list[Barrier] = []


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
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.errors.items()))
        return (
            f"{self.declared / self.seconds:.1f}/s ({self.declared} in {self.seconds:.1f} s),"
            f" {self.errors.total()} errors{f' ({kinds})' if kinds else ''},"
            f" {self.orphans} orphan directories, {self.lost} acknowledged and lost"
        )


def run(*, quick: bool) -> Section:
    """Measure how fast many writers declare tables, and what goes wrong."""
    entries, writers, seconds, calls = _SIZES[quick]
    job = _Job("", "", 0, seconds, calls)
    figures: list[Figure] = []
    notes = [
        "seconds are those of the whole run for each table that was declared",
        f"a writer declares up to {calls} tables and begins none after {seconds:g} s",
    ]
    with workspace() as space:
        seeded = seed_pair(space, "seeded", entries)
        roots = {"mooring": seeded.ours, "pylance": seeded.theirs}
        for kind, open_pool in (("threads", _open_threads), ("processes", _open_processes)):
            with open_pool(writers) as pool:
                outcomes = {
                    who: _measure(pool, replace(job, who=who), root, writers)
                    for who, root in roots.items()
                }
            figures += _figures(f"{writers} {kind}", outcomes, None if quick else _TARGETS[kind])
            notes += [f"{writers} {kind}, {who}: {told}" for who, told in outcomes.items()]
    return Section(
        f"{writers} writers in a manifest of {entries:,} entries on disk", figures, notes
    )


def _figures(what: str, outcomes: dict[str, _Outcome], at_least: float | None) -> list[Figure]:
    ours, theirs = outcomes["mooring"], outcomes["pylance"]
    counts = {
        "errors": (ours.errors.total(), theirs.errors.total()),
        "orphan directories": (ours.orphans, theirs.orphans),
        "acknowledged and lost": (ours.lost, theirs.lost),
    }
    return [
        Figure(
            f"declare_table, {what}",
            ours.each_s,
            beside="pylance",
            theirs=theirs.each_s,
            at_least=at_least,
        ),
        *(
            Figure(f"{name}, {what}", mine, "count", beside="pylance", theirs=other, at_most=0)
            for name, (mine, other) in counts.items()
        ),
    ]


# -- a run -----------------------------------------------------------------------------------


def _measure(pool: Executor, job: _Job, seeded: Path, writers: int) -> _Outcome:
    """Let all writers go on a copy of the seeded catalog, and look at it afterwards."""
    root = seeded.with_name(f"{seeded.name}-{type(pool).__name__}")
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
