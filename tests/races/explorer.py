"""Walks through all interleavings of some actors, once per distinct state.

What an actor does next depends only on what its calls answered, so a run is determined by the
store's content and each actor's answers so far. Interleavings that meet in the same such state go
on alike: they are explored once and counted by the paths that lead through it. Calls
that commute with everything make no choice. Nothing is left out; a bound on preemptions, where
one is given, is the only thing that leaves schedules unexplored.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.directory.layout import FOREIGN_SUFFIX

from .scheduler import CRASH, LOSE, RUN, Actor, Run

if TYPE_CHECKING:
    from collections.abc import Callable

Choice = tuple[str, int]

_DECISION = re.compile(r"\.lance-state\.\d{20}$")
_HINT = re.compile(r"\.lance-state\.\d{20}\.")


@dataclass
class Report:
    """What an exploration did."""

    runs: int = 0
    states: int = 0
    schedules: int = 0
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Limits:
    """How far an exploration goes."""

    faults: int = 0
    preemptions: int | None = None
    runs: int | None = None
    stop_at_first: bool = False
    reduce: bool = True


class Explorer:
    """Explores the programs of some actors from one initial state."""

    def __init__(
        self,
        world,
        content: dict[str, bytes],
        programs: dict[str, list],
        check: Callable[[object, list[Actor]], str | None],
        open_backend,
        limits: Limits,
        *,
        timed: bool = False,
        commutes: Callable[..., bool] | None = None,
    ) -> None:
        """Explore.

        Args:
            world: Opens stores.
            content: What they hold at first.
            programs: The operations of every actor.
            check: Judges what is left; None is fine.
            open_backend: Opens the code under test on a store, for an actor.
            limits: How far to go.
            timed: Whether an operation has to see what ended before it began.
            commutes: Tells further calls that make no choice, given the call, the store's
                content and whether a fault may still come.
        """
        self._timed = timed
        self._commutes = commutes or (lambda _call, _content, **_: False)
        self._world = world
        self._content = content
        self._programs = programs
        self._check = check
        self._open_backend = open_backend
        self._limits = limits
        self._edges: dict[object, list[object]] = {}
        self._terminal: set[object] = set()
        self._stack: list[tuple[Choice, ...]] = [()]
        self.report = Report()

    def explore(self) -> Report:
        """Run until no schedule is left."""
        limits, report = self._limits, self.report
        root = None
        while self._stack:
            if limits.runs is not None and report.runs >= limits.runs:
                break
            if limits.stop_at_first and report.violations:
                break
            first = self._run(self._stack.pop())
            root = first if root is None else root
        report.states = len(self._edges)
        report.schedules = self._count_paths(root)
        return report

    def _run(self, prefix: tuple[Choice, ...]) -> object:
        """Replay a prefix, then go on to the end or to a state that is known."""
        self.report.runs += 1
        store = self._world.open(self._content)
        actors = [Actor(name, list(program)) for name, program in self._programs.items()]
        run = Run(actors, store, self._open_backend, threads=self._world.lance, timed=self._timed)
        try:
            self._flush(run, ())
            for at, choice in enumerate(prefix[:-1]):
                self._step(run, choice, prefix[: at + 1])
            start = self._key(run, prefix[:-1])
            if prefix:
                self._step(run, prefix[-1], prefix)
                self._edges[start].append(self._key(run, prefix))
            self._continue(run, list(prefix))
        finally:
            run.abandon()
            self._world.close(store)
        return start

    def _continue(self, run: Run, schedule: list[Choice]) -> None:
        key = self._key(run, schedule)
        while key not in self._edges:
            self._edges[key] = []
            choices = self._choices(run, schedule)
            if not choices:
                self._finish(run, schedule, key)
                return
            self._stack.extend((*schedule, other) for other in choices[1:])
            schedule.append(choices[0])
            self._step(run, choices[0], schedule)
            following = self._key(run, schedule)
            self._edges[key].append(following)
            key = following

    def _step(self, run: Run, choice: Choice, schedule) -> None:
        run.step(*choice)
        self._flush(run, schedule)

    def _flush(self, run: Run, schedule) -> None:
        """Make calls that need no choice: they commute with whatever others do.

        Reading a decision that is there always gives the same, for decisions never change or go.
        A hint is read by nobody but listings, at the end; a crash before it is a choice, though.
        Nobody here writes the marker of another program beside a table: absent, it stays so.
        """
        if not self._limits.reduce:
            return
        faults_left = _faults(schedule) < self._limits.faults
        content = run.store.content

        def is_invisible(call) -> bool:
            if self._commutes(call, content, faults_left=faults_left):
                return True
            if call.verb == "get":
                return call.path in content and _DECISION.search(call.path) is not None
            if call.verb == "read":
                return call.path.endswith(FOREIGN_SUFFIX) and call.path not in self._content
            return call.verb == "put" and not faults_left and _HINT.search(call.path) is not None

        run.flush(is_invisible)

    def _finish(self, run: Run, schedule: list[Choice], key: object) -> None:
        self._terminal.add(key)
        problem = self._check(run.store, run.actors)
        if problem:
            outcomes = {actor.name: actor.outcomes for actor in run.actors}
            self.report.violations.append(f"{problem}\n  outcomes {outcomes}\n  by {schedule}")

    def _choices(self, run: Run, schedule: list[Choice]) -> list[Choice]:
        waiting = [index for index, actor in enumerate(run.actors) if not actor.done]
        choices = [(RUN, index) for index in self._allowed(run, waiting)]
        if _faults(schedule) < self._limits.faults:
            choices += [(CRASH, index) for index in waiting]
            choices += [
                (LOSE, index) for index in waiting if run.actors[index].pending.verb == "put_new"
            ]
        return choices

    def _allowed(self, run: Run, waiting: list[int]) -> list[int]:
        limit = self._limits.preemptions
        if limit is None or run.last is None or run.last.done or run.preemptions < limit:
            return waiting
        return [run.actors.index(run.last)]

    def _key(self, run: Run, schedule) -> object:
        if self._world.lance:
            return tuple(schedule)  # Lance names files at random, so no two runs are alike
        where = tuple((actor.history, actor.done, actor.crashed) for actor in run.actors)
        faults = _faults(schedule)
        bounded = ()
        if self._limits.preemptions is not None:
            bounded = (run.last and run.last.name, run.preemptions)
        return hash(frozenset(run.store.content.items())), where, faults, bounded

    def _count_paths(self, root: object) -> int:
        sys.setrecursionlimit(10_000)
        known: dict[object, int] = {}

        def paths(key: object) -> int:
            if key not in known:
                following = self._edges.get(key, [])
                known[key] = sum(map(paths, following)) if following else key in self._terminal
            return known[key]

        return paths(root)


def _faults(schedule) -> int:
    return len(schedule) - [kind for kind, _ in schedule].count(RUN)
