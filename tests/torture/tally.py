"""What runs came to: a line each, sums by backend and store, and the report of them all."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SIMULATION, PROCESSES = "simulation", "processes"
_FAULTS = ("crash", "lost answer", "failed call", "full disk", "slow", "shifted clock")


@dataclass(frozen=True)
class Verdict:
    """What one run came to; ``problem`` is None where nothing is wrong."""

    kind: str
    backend: str
    store: str
    seed: int
    operations: int
    faults: Counter[str]
    problem: str | None = None
    undecided: bool = False

    @property
    def word(self) -> str:
        if self.problem:
            return "VIOLATION"
        return "undecided" if self.undecided else "ok"

    @property
    def replay(self) -> str:
        """The command that runs it again."""
        return (
            f"python -m tests.torture --kind {self.kind} --seed {self.seed}"
            f" --backend {self.backend} --store {self.store}"
        )

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.backend} {self.store} seed {self.seed}:"
            f" {self.operations} operations, {told(self.faults)}, {self.word}"
        )


def told(faults: Counter[str]) -> str:
    """Write faults as a sentence does."""
    found = [f"{count} {word}" for word, count in sorted(faults.items()) if count]
    return "faults: " + ", ".join(found) if found else "no faults"


@dataclass
class Row:
    """The sums of a kind, a backend and a store."""

    runs: int = 0
    operations: int = 0
    undecided: int = 0
    seeds: list[int] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    problems: list[Verdict] = field(default_factory=list)


@dataclass
class Tally:
    """All runs of a command."""

    rows: dict[tuple[str, str, str], Row] = field(default_factory=lambda: defaultdict(Row))
    not_run: list[str] = field(default_factory=list)

    def add(self, one: Verdict) -> None:
        row = self.rows[one.kind, one.backend, one.store]
        row.runs += 1
        row.operations += one.operations
        row.undecided += one.undecided
        row.seeds.append(one.seed)
        row.faults += one.faults
        if one.problem:
            row.problems.append(one)

    @property
    def problems(self) -> list[Verdict]:
        return [one for row in self.rows.values() for one in row.problems]

    def lines(self) -> Iterator[str]:
        """Sum up, a line for each kind, backend and store."""
        for (kind, backend, store), row in sorted(self.rows.items()):
            verdict = f"{len(row.problems)} violations" if row.problems else "ok"
            undecided = f", {row.undecided} undecided" if row.undecided else ""
            yield (
                f"{kind} {backend} {store}: {row.runs} runs, seeds {min(row.seeds)} to"
                f" {max(row.seeds)}, {row.operations} operations, {told(row.faults)},"
                f" {verdict}{undecided}"
            )
        for one in self.not_run:
            yield f"not run: {one}"

    def report(self, command: str) -> str:
        """Write the report."""
        return "\n".join([*_head(command), *self._table(), *self._notes()]) + "\n"

    def _table(self) -> Iterator[str]:
        head = ["kind", "backend", "store", "runs", "seeds", "operations", *_FAULTS]
        head += ["undecided", "violations"]
        yield "| " + " | ".join(head) + " |"
        yield "|" + " --- |" * 3 + " ---: |" * (len(head) - 3)
        for key, row in sorted(self.rows.items()):
            seeds = f"{min(row.seeds)} to {max(row.seeds)}"
            cells = [*key, row.runs, seeds, row.operations, *(row.faults[one] for one in _FAULTS)]
            cells += [row.undecided, len(row.problems)]
            yield "| " + " | ".join(map(str, cells)) + " |"

    def _notes(self) -> Iterator[str]:
        yield ""
        yield "A run is *undecided* where more catalogs were possible than the search looks at."
        for one in self.problems:
            yield f"\nViolation: `{one.replay}`\n\n    {one.problem}"
        for one in self.not_run:
            yield f"\nNot run: {one}"


def _head(command: str) -> list[str]:
    now = datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    packages = ", ".join(f"{name} {version(name)}" for name in ("mooring", "pylance", "pyarrow"))
    machine = f"{platform.system()} {platform.machine()} with {os.cpu_count()} cores"
    return [
        "# Torture",
        "",
        "<!-- Written by python -m tests.torture --report. -->",
        "",
        "Random operations by several actors on one catalog, while the store, the disk and the",
        "clock fail them; what each was answered, and what is there at the end, must fit a model",
        "of the catalog. `make torture MINUTES=60 REPORT=1` goes on for an hour and writes this.",
        "",
        f"This is what `{command}` found on {now}: {packages},",
        f"Python {platform.python_version()}, {machine}.",
        "",
        "A *simulation* runs on a store in memory, one store call at a time, and replays to the",
        "byte by its seed. A run by *processes* has several of them on a real store; their choices",
        "replay, their timing does not. A *crash* ends an actor between two calls, or kills its",
        "process; of a *lost answer* the call was done, of a *failed call* not.",
        "",
    ]


def command_line() -> str:
    """Return the command that runs now."""
    return " ".join(["python -m tests.torture", *sys.argv[1:]])
