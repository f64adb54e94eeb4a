"""Ratios as a picture: a bar for each figure, to the right where it is faster, else to the left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.axes import Axis, fit
from bench.drawing import line, picture, rectangle, shorten, text
from bench.report import tell_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.figures import Figure

__all__ = ["draw_ratios"]

_WIDTH = 940.0
_LEFT, _RIGHT = 430.0, 830.0
_TOP, _ROW, _BAR = 70.0, 24.0, 13.0
_LONGEST = 70
_ONE = 1.0
# However alike all are, the axis goes from half to twice.
_LEAST = (0.5, 2.0)


def draw_ratios(title: str, figures: Sequence[Figure]) -> str:
    """Draw ratios as SVG; empty where no figure has another beside it."""
    shown = [figure for figure in figures if figure.faster]
    if not shown:
        return ""
    axis = fit([*_LEAST, *_ends(shown)], _LEFT, _RIGHT, is_logarithmic=True)
    bottom = _TOP + _ROW * len(shown)
    parts = [text(20, 28, title, "title"), *_grid(axis, bottom)]
    for number, figure in enumerate(shown):
        parts += _row(figure, _TOP + _ROW * number, axis)
    base = axis.place(_ONE)
    parts.append(line((base, _TOP - 6), (base, bottom + 2), "base"))
    told = (f"{one.what}, beside {one.beside}: {tell_ratio(one)}" for one in shown)
    return picture(
        width=_WIDTH,
        height=bottom + 18,
        title=title,
        description="; ".join(told),
        parts=parts,
    )


def _ends(figures: Sequence[Figure]) -> list[float]:
    found = [figure.faster or _ONE for figure in figures]
    return found + [end for figure in figures for end in figure.spread or () if end]


def _grid(axis: Axis, bottom: float) -> list[str]:
    base = axis.place(_ONE)
    parts = [
        text(base - 8, 48, "slower, or more", "soft small", anchor="end"),
        text(base + 8, 48, "faster, or fewer", "soft small"),
    ]
    for tick in axis.ticks:
        x = axis.place(tick)
        parts.append(line((x, _TOP - 6), (x, bottom + 2), "grid"))
        words = f"{tick:,g}x" if tick >= 1 else f"1/{1 / tick:,g}"
        parts.append(text(x, _TOP - 10, words, "soft small", anchor="middle"))
    return parts


def _row(figure: Figure, y: float, axis: Axis) -> list[str]:
    faster = figure.faster or _ONE
    base, end = axis.place(_ONE), axis.place(faster)
    top = y + (_ROW - _BAR) / 2
    middle = y + _ROW / 2
    look = "bar f0" if faster >= 1 else "bar f1"
    words = shorten(f"{figure.what}, beside {figure.beside}", _LONGEST)
    parts = [
        text(_LEFT - 12, middle + 4, words, "small", anchor="end"),
        rectangle((min(base, end), top), (max(abs(end - base), 1.0), _BAR), look),
        text(_RIGHT + 10, middle + 4, tell_ratio(figure), "small"),
    ]
    if figure.spread and all(figure.spread):
        low, high = (axis.place(value) for value in figure.spread)
        parts.append(line((low, middle), (high, middle), "whisker"))
        parts += [line((x, middle - 4), (x, middle + 4), "whisker") for x in (low, high)]
    return parts
