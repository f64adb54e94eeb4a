"""Axes: where values lie between two ends of a drawing, and which of them are marked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Axis", "fit"]

# From here on values are told apart by how many times one is the other.
_LOGARITHMIC = 20.0
_MOST_TICKS = 6


@dataclass(frozen=True)
class Axis:
    """A row of values between two places.

    Attributes:
        low: The value at the start.
        high: The value at the end.
        start: Where the drawing begins.
        end: Where it ends.
        is_logarithmic: Whether equal ratios are equally far from each other.
        ticks: The values to mark.
    """

    low: float
    high: float
    start: float
    end: float
    is_logarithmic: bool
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """Return where a value lies."""
        if self.is_logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def fit(
    values: Iterable[float],
    start: float,
    end: float,
    *,
    is_tight: bool = False,
    is_logarithmic: bool | None = None,
) -> Axis:
    """Make an axis that holds values.

    Args:
        values: What it has to hold.
        start: Where it begins.
        end: Where it ends.
        is_tight: End at the last value instead of the next round one.
        is_logarithmic: Whether it is; else it is where values are far apart.
    """
    known = sorted(values)
    low, high = known[0], known[-1]
    far = low > 0 and high / low >= _LOGARITHMIC
    if far if is_logarithmic is None else is_logarithmic:
        return _logarithmic(low, high, start, end, is_tight=is_tight)
    return _linear(high, start, end, is_tight=is_tight)


def _linear(high: float, start: float, end: float, *, is_tight: bool) -> Axis:
    step = _round_up((high or 1.0) / (_MOST_TICKS - 1))
    count = math.ceil((high or 1.0) / step - 1e-9)
    ticks = tuple(number * step for number in range(count + 1))
    if is_tight:
        ticks = tuple(tick for tick in ticks if tick <= high)
        return Axis(0.0, high, start, end, is_logarithmic=False, ticks=ticks)
    return Axis(0.0, ticks[-1], start, end, is_logarithmic=False, ticks=ticks)


def _logarithmic(low: float, high: float, start: float, end: float, *, is_tight: bool) -> Axis:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    steps = [times * 10.0**power for power in range(first, last + 1) for times in (1, 2, 5)]
    below = max((step for step in steps if step <= low * (1 + 1e-9)), default=low)
    above = min((step for step in steps if step >= high * (1 - 1e-9)), default=high)
    if is_tight or below == above:
        below, above = low, high
    if below == above:
        below, above = below / 2, above * 2
    inside = [step for step in steps if below * (1 - 1e-9) <= step <= above * (1 + 1e-9)]
    powers = [step for step in steps[::3] if step in inside]
    every = math.ceil(len(powers) / _MOST_TICKS)
    # Two powers alone would leave most of the axis without a mark.
    ticks = tuple(powers[::every] if len(powers) > 2 else inside)
    return Axis(below, above, start, end, is_logarithmic=True, ticks=ticks)


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        power * times for times in (1, 2, 2.5, 5, 10) if power * times >= value * (1 - 1e-9)
    )
