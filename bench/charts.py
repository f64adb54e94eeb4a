"""Curves as pictures: lines against what grows, each with its name at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.axes import Axis, fit
from bench.drawing import dot, line, path, picture, shorten, text
from bench.units import rounds_of, show, spread_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.curves import Curve, Line
    from bench.units import Kind

__all__ = ["describe", "draw_curve"]

_WIDTH, _HEIGHT = 800.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 560.0, 66.0, 318.0
_APART = 17.0
_LONGEST_NAME = 20
_MANY = 10_000
_UNITS: dict[Kind, str] = {
    "seconds": "time",
    "requests": "requests",
    "count": "how many",
    "rate": "in a second",
}


def draw_curve(curve: Curve) -> str:
    """Draw a curve as SVG."""
    across = fit([x for one in curve.lines for x, _ in one.points], _LEFT, _RIGHT, is_tight=True)
    upward = fit(list(_values(curve)), _BOTTOM, _TOP)
    parts = [
        text(20, 28, curve.title, "title"),
        text(20, 48, _axis_words(curve, upward), "soft small"),
        *_grid(upward, across, curve),
    ]
    for look, one in zip(curve.looks, curve.lines, strict=True):
        parts += _draw_line(one, look, across, upward)
    parts += _name_lines(curve, upward)
    return picture(
        width=_WIDTH,
        height=_HEIGHT,
        title=curve.title,
        description=describe(curve),
        parts=parts,
    )


def describe(curve: Curve) -> str:
    """Tell a curve in words."""
    told = []
    for one in curve.lines:
        points = ", ".join(f"{show(y, curve.kind)} at {x:,g}" for x, y in one.averages)
        told.append(f"{one.name}: {points}.")
    return f"By {curve.along}. {' '.join(told)}"


def _values(curve: Curve) -> list[float]:
    """Return all values that have to be in the picture, their spread too."""
    found: list[float] = []
    for one in curve.lines:
        for _, y in one.points:
            rounds = rounds_of(y)
            found += spread_of(rounds) or rounds
    return found


def _axis_words(curve: Curve, upward: Axis) -> str:
    better = "higher is better" if curve.kind == "rate" else "lower is better"
    scale = ", logarithmic" if upward.is_logarithmic else ""
    return f"{_UNITS[curve.kind]}{scale}; {better}"


def _grid(upward: Axis, across: Axis, curve: Curve) -> list[str]:
    parts = []
    for tick in upward.ticks:
        y = upward.place(tick)
        parts.append(line((_LEFT, y), (_RIGHT, y), "grid"))
        parts.append(text(_LEFT - 8, y + 4, _tick(tick, curve.kind), "soft small", anchor="end"))
    for tick in _places(curve, across):
        x = across.place(tick)
        parts.append(line((x, _BOTTOM), (x, _BOTTOM + 5), "base"))
        parts.append(text(x, _BOTTOM + 20, _number(tick), "soft small", anchor="middle"))
    parts.append(line((_LEFT, _BOTTOM), (_RIGHT, _BOTTOM), "base"))
    scale = " (logarithmic)" if across.is_logarithmic else ""
    parts.append(
        text((_LEFT + _RIGHT) / 2, _BOTTOM + 42, curve.along + scale, "small", anchor="middle")
    )
    return parts


def _places(curve: Curve, across: Axis) -> list[float]:
    """Mark where there are values, as far as their numbers have room."""
    chosen: list[float] = []
    for x in sorted({x for one in curve.lines for x, _ in one.points}, reverse=True):
        if not chosen or across.place(chosen[-1]) - across.place(x) >= 44:
            chosen.append(x)
    return chosen


def _draw_line(one: Line, look: int, across: Axis, upward: Axis) -> list[str]:
    places = [(across.place(x), upward.place(y)) for x, y in one.averages]
    parts = [path(places, f"curve s{look}")]
    for (x, y), (_, values) in zip(places, one.points, strict=True):
        spread = spread_of(rounds_of(values))
        if spread:
            low, high = (upward.place(value) for value in spread)
            parts.append(line((x, low), (x, high), f"range s{look}"))
        parts.append(dot(x, y, look, f"f{look}"))
    return parts


def _name_lines(curve: Curve, upward: Axis) -> list[str]:
    """Write each name beside the end of its line, and none over another."""
    parts = []
    last = [one.averages[-1][1] for one in curve.lines]
    for number, y in _spread_out([upward.place(value) for value in last]):
        name = shorten(curve.lines[number].name, _LONGEST_NAME)
        words = f"{name}: {show(last[number], curve.kind)}"
        parts.append(text(_RIGHT + 14, y + 4, words, f"f{curve.looks[number]}"))
    return parts


def _spread_out(places: Sequence[float]) -> list[tuple[int, float]]:
    """Move places apart, those below downwards; give each with its number."""
    order = sorted(range(len(places)), key=lambda number: places[number])
    found: list[tuple[int, float]] = []
    for number in order:
        lowest = found[-1][1] + _APART if found else 0.0
        found.append((number, max(places[number], lowest)))
    over = found[-1][1] - _BOTTOM
    return [(number, y - max(0.0, over)) for number, y in found]


def _tick(value: float, kind: Kind) -> str:
    if kind == "rate":
        return f"{_number(value)}/s"
    if kind != "seconds":
        return _number(value)
    if value == 0:
        return "0"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size * (1 - 1e-9):
            return f"{value / size:,.4g} {unit}"
    return f"{value * 1e9:,.4g} ns"


def _number(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.4g} M"
    if value >= _MANY * 10:
        return f"{value / 1e3:,.4g} k"
    return f"{value:,.6g}"
