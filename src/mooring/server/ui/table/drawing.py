"""Where the lines of drawings go: plain numbers, of which a template makes SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.clock import format_time
from mooring.server.ui.formats import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.table.storage import Growth

__all__ = ["Drawing", "Layer", "Mark", "draw_growth"]

_WIDTH, _HEIGHT = 720, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 10, 12, 28
_NICE = (1, 2, 2.5, 5, 10)
_LINES = 4
_DAY_MS = 86_400_000


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A place on an axis, with what is written there."""

    at: float
    text: str
    anchor: str = "end"


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """An area of a kind, as the corners of a polygon."""

    kind: str
    points: str


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """Areas on each other over time, each as high as what it stands for.

    Attributes:
        width: Of the whole.
        height: Of the whole.
        left: Where the areas begin.
        right: Where they end.
        top: Where they end above.
        bottom: What they stand on.
        layers: The areas, the lowest first.
        sizes: What is written beside them.
        times: What is written below them.
    """

    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = _HEIGHT - _BOTTOM
    layers: list[Layer]
    sizes: list[Mark]
    times: list[Mark]


def draw_growth(growth: Growth) -> Drawing | None:
    """Draw what files took over time; None where there are none."""
    if not growth.at_ms or not growth.kinds:
        return None
    totals = [sum(column) for column in zip(*growth.size_bytes, strict=True)]
    step = _nice_step(max(totals) or 1)
    highest = step * -(-(max(totals) or 1) // step)
    xs = _across(growth.at_ms)
    lower = [0] * len(totals)
    layers = []
    for kind, sizes in zip(growth.kinds, growth.size_bytes, strict=True):
        upper = [below + own for below, own in zip(lower, sizes, strict=True)]
        layers.append(Layer(kind=kind, points=_polygon(xs, lower, upper, highest)))
        lower = upper
    marks = [
        Mark(at=_up(value, highest), text=size(int(value)))
        for value in (step * line for line in range(int(highest / step) + 1))
    ]
    return Drawing(layers=layers, sizes=marks, times=_times(growth.at_ms))


def _nice_step(highest: float) -> float:
    """Choose a round number, a few of which reach so high."""
    rough = highest / _LINES
    power = 10.0 ** (len(str(int(rough))) - 1) if rough >= 1 else 1.0
    return max(next(power * nice for nice in _NICE if power * nice >= rough), 1.0)


def _across(at_ms: Sequence[int]) -> list[float]:
    first, span = at_ms[0], max(at_ms[-1] - at_ms[0], 1)
    width = _WIDTH - _LEFT - _RIGHT
    if len(at_ms) == 1:
        return [float(_LEFT)]
    return [round(_LEFT + (at - first) / span * width, 1) for at in at_ms]


def _up(value: float, highest: float) -> float:
    height = _HEIGHT - _TOP - _BOTTOM
    return round(_HEIGHT - _BOTTOM - value / highest * height, 1)


def _polygon(
    xs: Sequence[float], lower: Sequence[int], upper: Sequence[int], highest: float
) -> str:
    """Go along the upper edge and back along the lower: each height holds until the next."""
    end = float(_WIDTH - _RIGHT)
    there = _stairs(xs, [_up(value, highest) for value in upper], end)
    back = _stairs(xs, [_up(value, highest) for value in lower], end)
    return " ".join(f"{x:g},{y:g}" for x, y in [*there, *reversed(back)])


def _stairs(xs: Sequence[float], ys: Sequence[float], end: float) -> list[tuple[float, float]]:
    found = [(xs[0], ys[0])]
    for x, y in zip(xs[1:], ys[1:], strict=True):
        if y != found[-1][1]:
            found += [(x, found[-1][1]), (x, y)]
    return [*found, (end, found[-1][1])]


def _times(at_ms: Sequence[int]) -> list[Mark]:
    first, last = at_ms[0], at_ms[-1]
    whole_days = last - first > 2 * _DAY_MS
    middle = (first + last) // 2
    places = ((_LEFT, first, "start"), ((_LEFT + _WIDTH - _RIGHT) / 2, middle, "middle"))
    marks = [*places, (_WIDTH - _RIGHT, last, "end")]
    return [
        Mark(at=at, text=_day(ms) if whole_days else _hour(ms), anchor=anchor)
        for at, ms, anchor in marks
    ]


def _day(at_ms: int) -> str:
    return format_time(at_ms)[:10]


def _hour(at_ms: int) -> str:
    return format_time(at_ms)[:16].replace("T", " ")
