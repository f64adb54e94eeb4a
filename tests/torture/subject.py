"""What the torture needs of a kind of catalog: operations to choose from, and a judgement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from mooring.errors import ServiceUnavailableError
from tests.races.catalog_model import Op

if TYPE_CHECKING:
    import random

    from .history import History

HOUR_MS = 3_600_000
_NOON_MS = 1_700_000_000_000


@dataclass(frozen=True)
class ShiftedClock:
    """Stands still, some hours from noon."""

    hours: int = 0

    def now_ms(self) -> int:
        return _NOON_MS + self.hours * HOUR_MS


@dataclass(frozen=True)
class Verb:
    """A kind of operation, how often it is chosen, and what its names are chosen from."""

    word: str
    weight: int
    names: tuple[tuple[str, ...], ...] = ((),)


@dataclass
class Ending:
    """What is left after a run.

    Attributes:
        content: The objects of the store.
        history: What everybody did.
        hours: By the token of every operation, how far the clock of its process was off.
    """

    content: dict[str, bytes]
    history: History
    hours: dict[str, int] = field(default_factory=dict)

    def is_over(self, dropped: str, now: str) -> bool:
        """Whether what one operation dropped for no time is over for another."""
        return self.hours.get(dropped, 0) <= self.hours.get(now, 0)


class Subject(Protocol):
    """A kind of catalog under torture."""

    name: str
    start: tuple[str, ...]
    verbs: ClassVar[tuple[Verb, ...]]

    def open(self, store, owner: str, hours: int):
        """Open the catalog as one process, whose clock is off."""
        ...

    def perform(self, op: Op, backend) -> object:
        """Do an operation."""
        ...

    def watch(self, store) -> str | None:
        """Tell what is wrong with a state on the way."""
        ...

    def problem(self, ending: Ending) -> str | None:
        """Tell what is wrong in the end."""
        ...


def choose(verbs: tuple[Verb, ...], rng: random.Random, token: str) -> Op:
    """Choose an operation."""
    verb = rng.choices(verbs, [one.weight for one in verbs])[0]
    names: tuple[str, ...] = ()
    for pool in verb.names:
        names += (rng.choice([name for name in pool if name not in names]),) if pool else ()
    return Op(verb.word, names or ("",), token)


def parse(line: str, token: str) -> Op:
    """Read an operation of a start."""
    word, *names = line.split()
    return Op(word, tuple(names) or ("",), token)


def require_done(report) -> None:
    """Take a purge of many for what its worst part is.

    Raises:
        ServiceUnavailableError: a part of it failed.
    """
    for exc in report.failed.values():
        raise ServiceUnavailableError(str(exc)) from exc
