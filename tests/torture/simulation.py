"""A simulation: everything in one process, every store call chosen by a seeded generator.

Slots take turns, one store call at a time. A slot is a row of processes: where one crashes, the
next one opens the catalog anew and goes on with what is left to do. At each call the generator
chooses who goes on, and whether the call fails, is done but not acknowledged, or is the last of
its process; for a while the disk may be full, or a slot may be slow. Nothing else decides anything,
so a seed is a run, to the byte.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

from mooring.errors import MooringError, ServiceUnavailableError, UnknownOutcomeError
from mooring.store.scripted import Crash
from tests.races.scheduler import CRASH, FAIL, LOSE, RUN, Actor, Run, Saw, SteppingStore
from tests.races.world import MemoryStore, OneByOne, seal_of, sealed_copy

from .history import History, TooManyError
from .subject import Ending, Subject, choose, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mooring.store.wrapped import Call

FULL, SLOW = "full disk", "slow"
FAULTS = {CRASH: "crash", LOSE: "lost answer", FAIL: "failed call", FULL: FULL, SLOW: SLOW}
_WRITES = frozenset({"put", "put_new", "put_if", "copy"})
_CHANGES = _WRITES | {"delete"}
_OFTEN = 4
_MOST_HOURS = 48
_LONGEST = 40
# More than a run ever makes: past it, somebody runs in circles.
_MOST_STEPS = 20_000


class Shape(NamedTuple):
    """How large a run is, and how often something goes wrong."""

    slots: int
    operations: int
    faults: int
    fault_rate: float
    shifted: bool


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        verdict: What is wrong; None if nothing is.
        undecided: Whether the search for an explanation was given up.
        trace: Every choice and every answer, a line each.
    """

    operations: int
    faults: Counter[str]
    verdict: str | None
    trace: list[str]
    undecided: bool = False


@dataclass(eq=False)
class Slot(Actor):
    """A row of processes, and where the present one stands."""

    rng: random.Random = field(default_factory=random.Random)
    hours: int = 0
    sleeps: int = 0
    key: str | None = None
    op: object = None
    has_begun: bool = True


class _Script:
    """Stops a slot before every call, and does to it what was chosen."""

    def __init__(self, slot: Slot, run: Simulation) -> None:
        self._slot = slot
        self._run = run

    def before(self, call: Call) -> None:
        slot = self._slot
        if slot.command == CRASH:
            raise Crash  # dead already
        slot.pending = call
        self._run.hand_over(slot)
        slot.pending = None
        if slot.command == CRASH:
            raise Crash
        self._run.begin(slot)
        if slot.command == FAIL:
            slot.command = RUN
            raise ServiceUnavailableError(call.path)

    def after(self, call: Call, result: object) -> None:
        if self._slot.command == LOSE:
            self._slot.command = RUN
            raise UnknownOutcomeError(call.path)


class Simulation(Run):
    """One run of one seed."""

    def __init__(self, subject: Subject, seed: int) -> None:
        self._subject = subject
        self._rng = random.Random(f"{subject.name} {seed}")
        self._shape = _shape(self._rng)
        self.history = History()
        self.trace: list[str] = []
        self.faults: Counter[str] = Counter()
        self.hours: dict[str, int] = {}
        self._owners = iter(range(ord("A"), 256))
        self._full = 0
        store = MemoryStore({})
        self._prepare(store)
        slots = [
            Slot(str(number), [], rng=random.Random(self._rng.random()))
            for number in range(self._shape.slots)
        ]
        super().__init__(slots, store, subject.open, threads=False)

    def _prepare(self, store: MemoryStore) -> None:
        backend = self._subject.open(store, "@", 0)
        for number, line in enumerate(self._subject.start):
            op = parse(line, f"I{number}")
            self.history.begin(op.token, op)
            self._subject.perform(op, backend)
            self.history.end(op.token, "ok")

    # -- choosing ----------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Let the slots run to their ends, and judge."""
        problem = None
        steps = 0
        while (waiting := [slot for slot in self.actors if not slot.done]) and not problem:
            steps += 1
            if steps > _MOST_STEPS:
                problem = f"no end after {_MOST_STEPS} calls"
                break
            slot = self._next(waiting)
            kind = self._command(slot)
            call = slot.pending
            self.trace.append(f"{slot.name} {kind} {call.verb} {call.path}")
            self._grant(FAIL if kind == FULL else kind, slot)
            problem = self._subject.watch(self.store)
        self.abandon()
        return self._judge(problem)

    def _next(self, waiting: list[Slot]) -> Slot:
        awake = [slot for slot in waiting if not slot.sleeps] or waiting
        for slot in waiting:
            slot.sleeps = max(0, slot.sleeps - 1)
        return self._rng.choice(awake)

    def _command(self, slot: Slot) -> str:
        verb = slot.pending.verb
        if self._full:
            self._full -= 1
            if verb in _WRITES:
                self.faults[FULL] += 1
                return FULL
        if self.faults.total() >= self._shape.faults:
            return RUN
        # Calls that change something are few, and the ones where it matters.
        likelihood = self._shape.fault_rate * (_OFTEN if verb in _CHANGES else 1)
        if self._rng.random() >= likelihood:
            return RUN
        kind = self._rng.choice([CRASH, CRASH, LOSE, FAIL, FULL, SLOW])
        if kind == LOSE and verb not in _CHANGES:
            kind = FAIL
        if kind == SLOW:
            self.faults[SLOW] += 1
            slot.sleeps = self._rng.randrange(_LONGEST)
            return RUN
        if kind == FULL:
            self._full = self._rng.randrange(_LONGEST)
            return RUN
        self.faults[FAULTS[kind]] += 1
        return kind

    # -- as a slot ---------------------------------------------------------------------------------

    def begin(self, slot: Slot) -> None:
        """Note that an operation has begun, by its first call."""
        if not slot.has_begun:
            slot.has_begun = True
            self.history.begin(slot.key, slot.op)
            self.hours[slot.op.token] = slot.hours

    def _live(self, actor: Actor) -> None:
        slot: Slot = actor
        left = self._shape.operations
        while left:
            owner = chr(next(self._owners))
            slot.hours = slot.rng.randint(-_MOST_HOURS, _MOST_HOURS) if self._shape.shifted else 0
            left = self._work(slot, owner, left)
            slot.command = RUN
        slot.done = True

    def _work(self, slot: Slot, owner: str, left: int) -> int:
        """Be one process; return how many operations it left to do."""
        try:
            store = SteppingStore(self.store, _Script(slot, self))
            backend = self._subject.open(store, owner, slot.hours)
            self.trace.append(f"{slot.name} is {owner}, {slot.hours:+d} h")
            for number in range(left):
                left -= 1
                self._do(slot, choose(self._subject.verbs, slot.rng, f"{owner}{number}."), backend)
        except BaseException as exc:  # noqa: BLE001  # also what is no crash must be told
            said = "crashed" if slot.command == CRASH else f"BUG {exc!r}"
            self.trace.append(f"{slot.name} {said}")
            if slot.has_begun and slot.key is not None:
                self.history.end(slot.key, said)
            elif said != "crashed":
                self.history.begin(f"{owner}!", slot.op)
                self.history.end(f"{owner}!", said)
            slot.has_begun, slot.key = True, None
        return left

    def _do(self, slot: Slot, op, backend) -> None:
        slot.key, slot.op, slot.has_begun = op.token, op, False
        self.trace.append(f"{slot.name} wants {op.verb} {' '.join(op.names)} as {op.token}")
        try:
            result = self._subject.perform(op, backend)
            said = str(result) if isinstance(result, Saw) else "ok"
        except MooringError as exc:
            said = type(exc).__name__
        self.begin(slot)
        self.history.end(slot.key, said)
        self.trace.append(f"{slot.name} {op.token} {said}")
        slot.has_begun, slot.key = True, None

    # -- judging -----------------------------------------------------------------------------------

    def _judge(self, problem: str | None) -> Outcome:
        history = self.history
        bugs = [f"{key} {said}" for key, said in history.said.items() if said.startswith("BUG")]
        undecided = False
        if bugs:
            problem = f"{bugs[0]} in {history.ops[bugs[0].split()[0]]}"
        if problem is None:
            ending = Ending(dict(self.store.content), history, self.hours)
            try:
                problem = self._subject.problem(ending)
            except TooManyError:
                undecided = True
        self.trace.append(f"verdict: {problem or ('undecided' if undecided else 'ok')}")
        return Outcome(len(history.ops), self.faults, problem, self.trace, undecided)


def _shape(rng: random.Random) -> Shape:
    return Shape(
        slots=rng.randint(2, 4),
        operations=rng.randint(3, 10),
        faults=rng.choice([0, 1, 2, 3, 5]),
        fault_rate=rng.choice([0.01, 0.03, 0.1]),
        shifted=rng.random() < 0.5,
    )


@contextmanager
def quiet_world() -> Iterator[None]:
    """No pauses, no threads, no Lance: as in races, every call is one of the store."""
    replaced: dict[str, Callable] = {
        "mooring.store.numbered.pause": lambda _: None,
        "mooring.directory.shared_manifest.sleep": lambda _: None,
        "mooring.metastore.metastore.pause": lambda _: None,
        "mooring.metastore.transaction.ThreadPoolExecutor": OneByOne,
        "mooring.metastore.chain.ThreadPoolExecutor": OneByOne,
        "mooring.tables.seal._copy": sealed_copy,
        "mooring.tables.seal._nonce_of": seal_of,
    }
    patches = [mock.patch(name, new) for name, new in replaced.items()]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def simulate(subject: Subject, seed: int) -> Outcome:
    """Run one seed."""
    with quiet_world():
        return Simulation(subject, seed).run()
