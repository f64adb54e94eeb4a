"""What everybody asked for and was told, in the order of time, and whether a model explains it.

A history is right if every operation can be given one moment between its begin and its end at
which it happened, so that the model, doing them one after another, says the same and ends the
same. An operation that was never answered, or with an unknown outcome, happened at some moment
after its begin, be it after the end of its process, when somebody finished what it had left, or
never. The search holds the set of catalogs that are possible after each event; the first answer
that leaves none is where the history goes wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

UNSURE = frozenset({"crashed", "UnknownOutcomeError", "ServiceUnavailableError", "ThrottledError"})


class Way(NamedTuple):
    """How a catalog may look after an operation; with ``rest``, it has a second step to come."""

    state: Hashable
    rest: Hashable = None


class Model(Protocol):
    """What operations mean one after another."""

    def ways(self, op: object, said: str, state: Hashable) -> list[Way]:
        """Return how a catalog may look after an operation that ended like this."""
        ...

    def finish(self, rest: Hashable, state: Hashable) -> Hashable:
        """Do the second step of an operation that has two."""
        ...

    def drift(self, state: Hashable, going_on: list[object]) -> list[Hashable]:
        """Return what may come to be seen by itself while these operations go on."""
        ...


@dataclass
class History:
    """Begins and ends of operations, in the order of time."""

    ops: dict[str, object] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    events: list[tuple[str, str]] = field(default_factory=list)

    def begin(self, key: str, op: object) -> None:
        self.ops[key] = op
        self.events.append(("begin", key))

    def end(self, key: str, said: str) -> None:
        self.said[key] = said
        self.events.append(("end", key))

    def is_unsure(self, key: str) -> bool:
        return self.said.get(key, "crashed") in UNSURE

    def beside(self) -> dict[str, list[str]]:
        """Return which others went on while an operation did; an unsure one never ends."""
        found: dict[str, list[str]] = {}
        going_on: list[str] = []
        for event, key in self.events:
            if event == "begin":
                for other in going_on:
                    found[other].append(key)
                found[key] = list(going_on)
                going_on.append(key)
            elif not self.is_unsure(key):
                going_on.remove(key)
        return found

    def only(self, choose: Callable[[object], object | None]) -> History:
        """Return the part that concerns one name, as operations on it."""
        chosen = {key: found for key, op in self.ops.items() if (found := choose(op)) is not None}
        told = {key: said for key, said in self.said.items() if key in chosen}
        return History(chosen, told, [event for event in self.events if event[1] in chosen])

    def lines(self) -> Iterator[str]:
        for event, key in self.events:
            yield f"{event} {key} {self.ops[key] if event == 'begin' else self.said[key]}"


class TooManyError(Exception):
    """The search was given up: more catalogs are possible than it may look at."""


_DONE = "done"
Config = tuple["Hashable", frozenset]


class Search:
    """Looks for moments at which operations happened."""

    def __init__(
        self, model: Model, history: History, *, late: bool = True, limit: int = 60_000
    ) -> None:
        """Search.

        Args:
            model: What operations mean.
            history: What was done and told.
            late: Whether what was never answered may still happen after its process has ended.
            limit: How many catalogs to look at before the search is given up.
        """
        self._late = late
        self._model = model
        self._history = history
        self._left = limit
        self._open: list[str] = []

    def problem(self, initial: Hashable, ends_well: Callable[[Hashable], bool]) -> str | None:
        """Tell where the history goes wrong; None if it does not.

        Raises:
            TooManyError: that cannot be told.
        """
        history = self._history
        configs: set[Config] = {(initial, frozenset())}
        for number, (event, key) in enumerate(history.events):
            if event == "begin":
                self._open.append(key)
            elif history.is_unsure(key):
                if not self._late:
                    configs = {_without(config, key) for config in self._reachable(configs)}
                    self._open.remove(key)
            else:
                found = self._after(configs, key)
                self._open.remove(key)
                if not found:
                    return self._told(number, key, configs)
                configs = found
        if any(ends_well(state) for state, _ in self._reachable(configs)):
            return None
        return f"no order of the operations explains the end; possible were {_some(configs)}"

    def _told(self, number: int, key: str, configs: set[Config]) -> str:
        op, said = self._history.ops[key], self._history.said[key]
        return (
            f"event {number}: {key} {op} said {said}, which no order of the operations explains;"
            f" possible were {_some(configs)}"
        )

    def _after(self, configs: set[Config], key: str) -> set[Config]:
        """Return what is possible once an operation has happened."""
        found: set[Config] = set()
        for state, steps in self._reachable(configs, key):
            known = dict(steps)
            if known.get(key) == _DONE:
                del known[key]
                found.add((state, frozenset(known.items())))
        return found

    def _reachable(self, configs: set[Config], target: str | None = None) -> set[Config]:
        """Walk on through open operations; not further once the one that is wanted has happened."""
        seen = set(configs)
        waiting = list(configs)
        while waiting:
            config = waiting.pop()
            if target is not None and (target, _DONE) in config[1]:
                continue
            self._left -= 1
            if self._left < 0:
                raise TooManyError
            for following in self._steps(config):
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
        return seen

    def _steps(self, config: Config) -> Iterator[Config]:
        state, steps = config
        known = dict(steps)
        history = self._history
        going_on = []
        for key in self._open:
            step = known.get(key)
            if step == _DONE:
                continue
            op = history.ops[key]
            going_on.append(op)
            if step is not None:
                yield self._model.finish(step, state), _with(known, key, _DONE)
                continue
            is_unsure = history.is_unsure(key)
            said = "crashed" if is_unsure else history.said.get(key, "crashed")
            for way in self._model.ways(op, said, state):
                if way.rest is not None:
                    yield way.state, _with(known, key, way.rest)
                elif not (is_unsure and way.state == state):  # it may as well come later
                    yield way.state, _with(known, key, _DONE)
        for drifted in self._model.drift(state, going_on):
            yield drifted, steps


def _without(config: Config, key: str) -> Config:
    state, steps = config
    return state, frozenset(step for step in steps if step[0] != key)


def _with(known: dict, key: str, step: Hashable) -> frozenset:
    return frozenset({**known, key: step}.items())


def _some(configs: set[Config], most: int = 3) -> str:
    states = sorted({str(state) for state, _ in configs})
    more = f" and {len(states) - most} more" if len(states) > most else ""
    return "; ".join(states[:most]) + more
