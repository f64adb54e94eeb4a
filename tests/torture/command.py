"""Random operations on every kind of catalog under every fault, held against a model.

A simulation runs in one process on a store in memory, one store call at a time, and its seed is
all that decides: it replays to the byte. Runs with processes are real: many of them on a real
store, killed, with clocks that are off, full disks and failing stores. There the seed decides what
is done to whom, and the machine decides when.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import count, product
from multiprocessing import get_context
from pathlib import Path

from .places import PLACES
from .simulation import simulate
from .subjects import SUBJECTS
from .tally import PROCESSES, SIMULATION, Tally, Verdict, command_line

MEMORY = "memory"
_BLOCK = 50
_MARGIN_S = 60
OUTPUT = Path("build/torture")


@dataclass(frozen=True)
class Wanted:
    """What to run, and for how long.

    Attributes:
        seed: The first seed; the only one where there is no end.
        ends_at_s: When nothing more begins; None for one seed.
    """

    kinds: tuple[str, ...]
    backends: tuple[str, ...]
    stores: tuple[str, ...]
    seed: int
    jobs: int
    ends_at_s: float | None


def say(line: object) -> None:
    """Tell something at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def simulate_block(backend: str, seeds: range) -> list[Verdict]:
    """Run some seeds of a backend; what fails leaves its trace."""
    found = []
    for seed in seeds:
        outcome = simulate(SUBJECTS[backend](), seed)
        one = Verdict(
            SIMULATION,
            backend,
            MEMORY,
            seed,
            outcome.operations,
            outcome.faults,
            outcome.verdict,
            outcome.undecided,
        )
        if one.problem or len(seeds) == 1:
            keep(one, outcome.trace)
        found.append(one)
    return found


def keep(one: Verdict, trace: list[str]) -> Path:
    """Keep the trace of a run."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / f"{one.kind}-{one.backend}-{one.store}-{one.seed}.txt"
    path.write_text("\n".join([one.replay, *trace]) + "\n")
    return path


class Session:
    """Runs what is wanted, and tells of it."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self.tally = Tally()
        OUTPUT.mkdir(parents=True, exist_ok=True)
        self._log = (OUTPUT / "runs.log").open("w")

    def run(self) -> None:
        wanted = self._wanted
        backends = [one for one in wanted.backends if one in SUBJECTS]
        simulated = SIMULATION in wanted.kinds and MEMORY in wanted.stores and bool(backends)
        places = [
            place
            for place in product(wanted.backends, wanted.stores)
            if PROCESSES in wanted.kinds and place in PLACES
        ]
        if simulated:
            share = 2 if places else 1
            self._simulate(backends, self._share_of_time(share))
        if places:
            self._run_processes(places)
        if not simulated and not places:
            self.tally.not_run.append("no backend and store that were named go together")
        self._log.close()

    def _share_of_time(self, share: int) -> float | None:
        ends_at_s = self._wanted.ends_at_s
        return None if ends_at_s is None else time.time() + (ends_at_s - time.time()) / share

    # -- simulations -------------------------------------------------------------------------------

    def _simulate(self, backends: list[str], ends_at_s: float | None) -> None:
        first = self._wanted.seed
        if ends_at_s is None:
            for backend in backends:
                self._take(simulate_block(backend, range(first, first + 1)))
            return
        blocks = (
            (backend, range(first + number * _BLOCK, first + (number + 1) * _BLOCK))
            for number in count()
            for backend in backends
        )
        with ProcessPoolExecutor(self._wanted.jobs, get_context("spawn")) as pool:
            under_way = {pool.submit(simulate_block, *next(blocks)) for _ in range(2)}
            while under_way:
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for one in done:
                    self._take(one.result())
                while time.time() < ends_at_s and len(under_way) < self._wanted.jobs:
                    under_way.add(pool.submit(simulate_block, *next(blocks)))

    def _take(self, found: list[Verdict]) -> None:
        for one in found:
            self._tell(one, aloud=len(found) == 1)
        if len(found) > 1:
            say(_together(found))

    def _tell(self, one: Verdict, *, aloud: bool) -> None:
        self.tally.add(one)
        self._log.write(f"{one}\n")
        if aloud or one.problem:
            say(one)
        if one.problem:
            say(f"  {one.problem}\n  again: {one.replay}")

    # -- processes ---------------------------------------------------------------------------------

    def _run_processes(self, places: list[tuple[str, str]]) -> None:
        from . import processes  # it loads Lance

        wanted = self._wanted
        if wanted.ends_at_s is None:
            rounds = [(place, wanted.seed) for place in places]
        else:
            rounds = ((place, wanted.seed + at) for at in count() for place in places)
        waiting = set(places)
        with processes.Servers() as servers:
            for place, seed in rounds:
                if wanted.ends_at_s is not None and time.time() > wanted.ends_at_s:
                    break
                one, trace = processes.torture(*place, seed, servers)
                waiting.discard(place)
                if one.problem or wanted.ends_at_s is None:
                    keep(one, trace)
                self._tell(one, aloud=True)
        for backend, store in sorted(waiting):
            self.tally.not_run.append(f"{PROCESSES} {backend} {store}: the time was over")


def _together(found: list[Verdict]) -> str:
    faults = sum((one.faults for one in found), Counter())
    words = Counter(one.word for one in found)
    verdict = ", ".join(f"{number} {word}" for word, number in sorted(words.items()))
    first, last = found[0], found[-1]
    return (
        f"{first.kind} {first.backend} {first.store} seeds {first.seed} to {last.seed}:"
        f" {sum(one.operations for one in found)} operations, {faults.total()} faults, {verdict}"
    )


def parse(arguments: list[str]) -> tuple[Wanted, Path | None]:
    """Read the command line."""
    backends = sorted({*SUBJECTS, *(backend for backend, _ in PLACES)})
    stores = [MEMORY, *sorted({store for _, store in PLACES})]
    parser = argparse.ArgumentParser(
        "python -m tests.torture",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("--minutes", type=float, help="how long to go on; 2 unless a seed is named")
    add("--seed", type=int, help="the first seed; without --minutes the only one")
    add("--backend", action="append", choices=backends, help="only this one; may be repeated")
    add("--store", action="append", choices=stores, help="only this one; may be repeated")
    add("--kind", action="append", choices=[SIMULATION, PROCESSES], help="only this kind of run")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="simulations at a time (%(default)s)")
    add("--report", type=Path, help="write a summary of all runs into this file, as Markdown")
    given = parser.parse_args(arguments)
    minutes = given.minutes
    if minutes is None and given.seed is None:
        minutes = 2.0
    seed = given.seed if given.seed is not None else int(time.time()) % 1_000_000 * 1000
    ends_at_s = None if minutes is None else time.time() + 60 * minutes
    wanted = Wanted(
        tuple(given.kind or [SIMULATION, PROCESSES]),
        tuple(given.backend or backends),
        tuple(given.store or stores),
        seed,
        given.jobs,
        ends_at_s,
    )
    return wanted, given.report


def within_limit(wanted: Wanted) -> tuple[Wanted, str | None]:
    """End in time for whoever has only so long for the long suites; tell what that leaves out."""
    limit = os.environ.get("MOORING_TESTS_END_AT")
    if not limit:
        return wanted, None
    latest_s = float(limit) - _MARGIN_S
    if time.time() > latest_s:
        return wanted, "everything: the time is over"
    if wanted.ends_at_s is None or wanted.ends_at_s <= latest_s:
        return wanted, None
    fewer = round((wanted.ends_at_s - latest_s) / 60, 1)
    cut = replace(wanted, ends_at_s=latest_s)
    return cut, f"{fewer} of the minutes asked for: the time is over then"


def main() -> int:
    """Run."""
    asked, report = parse(sys.argv[1:])
    wanted, left_out = within_limit(asked)
    session = Session(wanted)
    say(f"first seed {wanted.seed}; traces of failures go to {OUTPUT}/")
    if left_out:
        session.tally.not_run.append(left_out)
    if not (left_out or "").startswith("everything"):
        session.run()
    for line in session.tally.lines():
        say(line)
    if report:
        report.write_text(session.tally.report(command_line()))
    return 1 if session.tally.problems else 0
