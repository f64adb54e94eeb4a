"""Runs the real code of several actors one store call at a time.

Every actor has a lane of its own and a store that stops before each call until the scheduler
lets it go on, so exactly one actor moves at any moment and a list of choices replays a run.
"""

from __future__ import annotations

import _thread
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import greenlet

from mooring.errors import MooringError, ServiceUnavailableError, UnknownOutcomeError
from mooring.store.scripted import Crash, ScriptedStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.store.wrapped import Call

RUN, CRASH, LOSE, FAIL = "run", "crash", "lose", "fail"


@dataclass(eq=False)
class Actor:
    """One process: a program of operations, and where it stands."""

    name: str
    program: list[Callable[[object], object]]
    outcomes: list[str] = field(default_factory=list)
    pending: Call | None = None
    done: bool = False
    crashed: bool = False
    history: int = 0
    command: str = RUN
    # For each operation, how many of everybody's had ended when it made its first call.
    since: list[tuple[int, ...]] = field(default_factory=list)


class _Script:
    """Stops an actor before every call; on command the store refuses, or loses what it answers."""

    def __init__(self, actor: Actor, run: Run) -> None:
        self._actor = actor
        self._run = run

    def before(self, call: Call) -> None:
        actor = self._actor
        if actor.command == CRASH:
            raise Crash  # dead already; Lance may have swallowed the first one
        actor.pending = call
        self._run.hand_over(actor)
        actor.pending = None
        if actor.command == CRASH:
            raise Crash
        if actor.command == FAIL:
            actor.command = RUN
            actor.history = hash((actor.history, call.verb, call.path, FAIL))
            raise ServiceUnavailableError(call.path)
        if len(actor.since) == len(actor.outcomes):
            self._run.note_start(actor)

    def after(self, call: Call, result: object) -> None:
        actor = self._actor
        seen = _seen(result)
        if actor.command == LOSE:
            seen = LOSE
        actor.history = hash((actor.history, call.verb, call.path, seen))
        if actor.command == LOSE:
            actor.command = RUN
            raise UnknownOutcomeError(call.path)


def _seen(result: object) -> object:
    """Reduce a result to what an actor can act on, equal in equal runs."""
    if isinstance(result, list):
        return tuple(sorted((meta.path, meta.size_bytes) for meta in result))
    if hasattr(result, "directories"):
        return tuple(sorted(result.directories)), tuple(sorted(result.files))
    if isinstance(result, set):
        return tuple(sorted(result))
    return result


class GreenletLane:
    """Runs an actor on a stack of its own in the same thread: a switch costs next to nothing."""

    def __init__(self, body: Callable[[], None]) -> None:
        self._stack = greenlet.greenlet(body)

    def resume(self) -> None:
        """Let the actor run until it pauses or ends."""
        self._stack.switch()

    def pause(self) -> None:
        """Wait, as the actor, to be resumed."""
        self._stack.parent.switch()


class ThreadLane:
    """Runs an actor in a thread: Lance calls back from threads of its own."""

    def __init__(self, body: Callable[[], None]) -> None:
        self._turn, self._back = _locked(), _locked()
        self._body = body
        threading.Thread(target=self._run, daemon=True).start()

    def resume(self) -> None:
        """Let the actor run until it pauses or ends."""
        self._turn.release()
        self._back.acquire()

    def pause(self) -> None:
        """Wait, as the actor, to be resumed."""
        self._back.release()
        self._turn.acquire()

    def _run(self) -> None:
        self._turn.acquire()
        self._body()
        self._back.release()


class SteppingStore(ScriptedStore):
    """Deletes one object before the others, as stores do: somebody may look in between."""

    def delete(self, paths) -> None:
        doomed = list(paths)
        super().delete(doomed[:1])
        super().delete(doomed[1:])

    def delete_prefix(self, path: str) -> int:
        found = self.list_prefix(path)
        self.delete(meta.path for meta in found)
        return len(found)


class Run:
    """One execution of a set of actors.

    With ``timed``, what had ended before an operation began is part of an actor's history, so
    that an operation can be required to see it.
    """

    def __init__(
        self, actors: list[Actor], store, open_backend, *, threads: bool, timed: bool = False
    ) -> None:
        self.actors = actors
        self.store = store
        self._timed = timed
        self.preemptions = 0
        self.last: Actor | None = None
        self._open_backend = open_backend
        lane = ThreadLane if threads else GreenletLane
        self._lanes = {actor: lane(partial(self._live, actor)) for actor in actors}
        for each in self._lanes.values():
            each.resume()

    def step(self, kind: str, index: int) -> None:
        """Let one actor make its pending call, crash at it, see it fail, or lose its answer."""
        actor = self.actors[index]
        if self.last not in {None, actor} and not self.last.done:
            self.preemptions += 1
        self.last = actor
        self._grant(kind, actor)

    def flush(self, is_invisible: Callable[[Call], bool]) -> None:
        """Make the pending calls that commute with every call of every other actor."""
        for actor in self.actors:
            while not actor.done and is_invisible(actor.pending):
                self._grant(RUN, actor)

    def _grant(self, kind: str, actor: Actor) -> None:
        actor.command = kind
        self._lanes[actor].resume()

    def note_start(self, actor: Actor) -> None:
        """Note, as an actor, what had ended when an operation began."""
        actor.since.append(tuple(len(other.outcomes) for other in self.actors))
        if self._timed:
            actor.history = hash((actor.history, actor.since[-1]))

    def hand_over(self, actor: Actor) -> None:
        """Wait, as an actor, for the next turn."""
        self._lanes[actor].pause()

    def abandon(self) -> None:
        """End every actor that is still waiting."""
        for index, actor in enumerate(self.actors):
            while not actor.done:
                self.step(CRASH, index)

    def _live(self, actor: Actor) -> None:
        kind = SteppingStore if self._timed else ScriptedStore
        backend = self._open_backend(kind(self.store, _Script(actor, self)), actor.name)
        try:
            for operation in actor.program:
                actor.outcomes.append(_attempt(operation, backend))
                actor.history = hash((actor.history, actor.outcomes[-1]))
        except BaseException as exc:  # noqa: BLE001  # a crash may come wrapped by Lance's threads
            actor.crashed = True
            actor.outcomes.append("crashed" if actor.command == CRASH else f"BUG {exc!r}")
        actor.done = True


class Saw(str):
    """The outcome of an operation that reads: what it saw."""

    __slots__ = ()


def _attempt(operation: Callable[[object], object], backend) -> str:
    try:
        result = operation(backend)
    except MooringError as exc:
        return type(exc).__name__
    return result if isinstance(result, Saw) else "ok"


def _locked() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock
