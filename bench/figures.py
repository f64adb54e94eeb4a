"""Figures, what stands beside them, and the targets they are held against."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from bench.units import Average, Kind, Rounds, average_of, rounds_of, show, spread_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Figure"]


@dataclass(frozen=True)
class Figure:
    """One measured value, if possible beside another one of the same run.

    Attributes:
        what: What was done.
        ours: Mooring's seconds, requests or how many: one value, or that of each round.
        kind: Which of them.
        beside: Whose value stands beside it.
        theirs: That value, or that of each round; the rounds of both are pairs.
        at_least: How many times faster than the other it has to be.
        within: How many times the other's time it may take.
        at_most: The most it may be by itself.
        detail: Shown beside the ratio.
        average: What stands for all rounds.
        missing: Why the other, or where ours is empty both, could not be measured.
        is_failure: Whether that is no fact about the machine but an error.
        is_telling: Whether it is one of the few that are told first.
        group: What it was measured with; set where that is done.
    """

    what: str
    ours: Rounds = ()
    kind: Kind = "seconds"
    beside: str = ""
    theirs: Rounds | None = None
    at_least: float | None = None
    within: float | None = None
    at_most: float | None = None
    detail: str = ""
    average: Average = "median"
    missing: str = ""
    is_failure: bool = False
    is_telling: bool = False
    group: str = ""

    @property
    def our_value(self) -> float | None:
        """What stands for all rounds of Mooring's; None where there is none."""
        rounds = rounds_of(self.ours)
        return average_of(rounds, self.average) if rounds else None

    @property
    def their_value(self) -> float | None:
        """What stands for all rounds of the other's; None where there is none."""
        rounds = rounds_of(self.theirs)
        return average_of(rounds, self.average) if rounds else None

    @property
    def ratios(self) -> tuple[float, ...]:
        """How many times as long the other took: in each round, or each beside each."""
        ours, theirs = rounds_of(self.ours), rounds_of(self.theirs)
        if not all(ours):
            return ()
        if len(ours) == len(theirs):
            return tuple(other / mine for mine, other in zip(ours, theirs, strict=True))
        return tuple(other / mine for mine in ours for other in theirs)

    @property
    def faster(self) -> float | None:
        """How many times as long the other takes, by what stands for all rounds of each."""
        if not self.our_value or self.their_value is None:
            return None
        return self.their_value / self.our_value

    @property
    def spread(self) -> tuple[float, float] | None:
        """Between what the ratios of the rounds lie; None where there was one."""
        return spread_of(self.ratios)

    @property
    def target(self) -> str:
        """The target in words; empty where there is none."""
        if self.at_least is not None:
            return f">= {self.at_least:g}x faster"
        if self.within is not None:
            return f"within {self.within:g}x of it"
        return "" if self.at_most is None else f"<= {show(self.at_most, self.kind)}"

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None where there is none, or nothing to hold against it."""
        if self.our_value is None:
            return None
        if self.at_most is not None and self.at_least is None and self.within is None:
            return self.our_value <= self.at_most
        if self.faster is None:
            return None
        if self.at_least is not None:
            return self.faster >= self.at_least
        return None if self.within is None else self.faster >= 1 / self.within

    def to_json(self) -> dict[str, Any]:
        """Return the figure with what follows from it."""
        found = {key: value for key, value in asdict(self).items() if value or value == 0}
        more = {"times_faster": self.faster, "spread": self.spread}
        return found | more | {"target": self.target, "met": self.is_met}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read a figure back."""
        own = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in found.items() if key in own})
