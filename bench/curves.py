"""Curves: how a value goes where something grows, ours beside others'."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from bench.units import Kind, Rounds, average_of, rounds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OURS", "Curve", "Growth", "Line"]

Growth = Literal["catalog size", "history length", "concurrency", "data size"]
OURS = "mooring"


@dataclass(frozen=True)
class Line:
    """The values of one side.

    Attributes:
        name: Whose they are.
        points: Where each was measured, and its value or that of each round.
    """

    name: str
    points: tuple[tuple[float, Rounds], ...]

    @property
    def is_ours(self) -> bool:
        """Whether it is one of Mooring's."""
        return self.name.startswith(OURS)

    @property
    def averages(self) -> tuple[tuple[float, float], ...]:
        """The median at each place."""
        return tuple((x, average_of(rounds_of(y))) for x, y in self.points)


@dataclass(frozen=True)
class Curve:
    """How a value goes where something grows.

    Attributes:
        title: What was done.
        grows: What grows.
        along: The same in the words of the axis.
        lines: Ours first.
        kind: What was measured.
        missing: Why another's line is not there.
        group: What it was measured with; set where that is done.
    """

    title: str
    grows: Growth
    along: str
    lines: tuple[Line, ...]
    kind: Kind = "seconds"
    missing: str = ""
    group: str = ""

    @property
    def looks(self) -> tuple[int, ...]:
        """The look of each line: 0 and 4 are Mooring's, 1 to 3 are others'."""
        ours, others = iter((0, 4)), iter((1, 2, 3))
        return tuple(next(ours if line.is_ours else others) for line in self.lines)

    def to_json(self) -> dict[str, Any]:
        """Return the curve as what JSON knows."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read a curve back."""
        lines = tuple(
            Line(line["name"], tuple((x, y) for x, y in line["points"])) for line in found["lines"]
        )
        return cls(**{**found, "lines": lines})
