"""What is measured, and how a value of it is written."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

__all__ = [
    "Average",
    "Kind",
    "Rounds",
    "average_of",
    "rounds_of",
    "show",
    "show_spread",
    "spread_of",
]

Kind = Literal["seconds", "requests", "count", "rate"]
Average = Literal["median", "mean"]
# One value, or that of each round.
Rounds = float | Sequence[float]
# With fewer rounds the whole range is told; with more, one that was disturbed says little.
_ENOUGH_FOR_QUARTILES = 8


def rounds_of(value: Rounds | None) -> tuple[float, ...]:
    """Return the values of all rounds; none where nothing was measured."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, Sequence) else (value,)


def average_of(rounds: Sequence[float], how: Average = "median") -> float:
    """Return what stands for all rounds."""
    return statistics.fmean(rounds) if how == "mean" else statistics.median(rounds)


def spread_of(rounds: Sequence[float]) -> tuple[float, float] | None:
    """Return between what the rounds lie: the middle half of many, all of few, None of one."""
    if len(rounds) < 2:
        return None
    if len(rounds) < _ENOUGH_FOR_QUARTILES:
        return min(rounds), max(rounds)
    low, _, high = statistics.quantiles(rounds, n=4, method="inclusive")
    return low, high


def show(value: float, kind: Kind) -> str:
    """Write a value with its unit."""
    if kind == "rate":
        return f"{value:,.0f}/s" if value >= 10 else f"{value:.1f}/s"
    if kind != "seconds":
        return f"{value:,.10g}"
    if value >= 10:
        return f"{value:.1f} s"
    return f"{value * 1e3:,.1f} ms" if value >= 1e-3 else f"{value * 1e6:,.0f} us"


def show_spread(spread: tuple[float, float], kind: Kind) -> str:
    """Write from where to where values go."""
    low, high = (show(value, kind) for value in spread)
    return low if low == high else f"{low} to {high}"
