"""Where a moment lies on a drawing: to scale in time, or one after another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Axis", "Key", "Tick", "even_axis", "tell_moment", "time_axis"]

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
# What people divide time by, up to days; months and years are of several lengths.
_STEPS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(one * _SECOND for one in (1, 2, 5, 10, 15, 30)),
    *(one * _MINUTE for one in (1, 2, 5, 10, 15, 30)),
    *(one * _HOUR for one in (1, 2, 3, 6, 12)),
    *(one * _DAY for one in (1, 2, 4, 7, 14)),
)
_STEPS_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
_YEAR = 12
_MONTH_MS = 30.4 * _DAY
# Labels are so far apart, and the marks of an even axis.
_APART = 88.0
_STEP = 26.0
_HALF_LETTER, _BEYOND = 3.2, 26.0
_FIRST_MONDAY_MS = 4 * _DAY

# The line that a version is in, and its number.
Key: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on the axis, and when that is."""

    x: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Axis:
    """Places of moments.

    Attributes:
        places: Where each is.
        ticks: What stands along it.
        right: Where it ends.
    """

    places: Mapping[Key, float]
    ticks: Sequence[Tick]
    right: float


def time_axis(times_ms: Mapping[Key, int], left: float, right: float) -> Axis:
    """Lay moments out to scale; a single one is in the middle."""
    first, last = min(times_ms.values()), max(times_ms.values())
    if first == last:
        middle = (left + right) / 2
        return Axis(dict.fromkeys(times_ms, middle), [Tick(middle, tell_moment(first))], right)
    scale = (right - left) / (last - first)
    places = {key: left + (at_ms - first) * scale for key, at_ms in times_ms.items()}
    told = [(left + (at - first) * scale, label) for at, label in _ticks(first, last, scale)]
    return Axis(places, [_tick(x, label, right) for x, label in told], right)


def even_axis(times_ms: Mapping[Key, int], left: float, right: float) -> Axis:
    """Lay moments out one after another; what has no room goes on to the right."""
    keys = sorted(times_ms, key=lambda key: (times_ms[key], key[1]))
    step = max(_STEP, (right - left) / max(len(keys) - 1, 1))
    if len(keys) == 1:
        return time_axis(times_ms, left, right)
    places = {key: left + step * number for number, key in enumerate(keys)}
    end = places[keys[-1]]
    ticks: list[Tick] = []
    for key in keys:
        if not ticks or places[key] - ticks[-1].x >= _APART * 1.5:
            ticks.append(_tick(places[key], tell_moment(times_ms[key]), end))
    return Axis(places, ticks, end)


def tell_moment(at_ms: int) -> str:
    """Write a moment in UTC, to the minute."""
    return _at(at_ms).strftime("%Y-%m-%d %H:%M")


def _tick(x: float, label: str, right: float) -> Tick:
    """Place a label, within the drawing also where the axis ends."""
    overhang = x + len(label) * _HALF_LETTER - right
    return Tick(x, label, "end" if overhang > _BEYOND else "middle")


# -- what stands along the axis --------------------------------------------------------------------


def _ticks(first: int, last: int, scale: float) -> Iterator[tuple[int, str]]:
    """Choose moments that people count by, far enough apart to be read."""
    step = next((one for one in _STEPS_MS if one * scale >= _APART), None)
    if step is None:
        return _month_ticks(first, last, scale)
    # Weeks begin on Mondays.
    begin = _FIRST_MONDAY_MS if step % (7 * _DAY) == 0 else 0
    at = begin + -((begin - first) // step) * step
    return ((one, _label(one, step)) for one in range(at, last + 1, step))


def _month_ticks(first: int, last: int, scale: float) -> Iterator[tuple[int, str]]:
    fits = (one for one in _STEPS_MONTHS if one * _MONTH_MS * scale >= _APART)
    step = next(fits, _STEPS_MONTHS[-1])
    start, end = _at(first), _at(last)
    month = -(-(start.year * _YEAR + start.month - 1) // step) * step
    for one in range(month, end.year * _YEAR + end.month, step):
        moment = datetime(one // _YEAR, one % _YEAR + 1, 1, tzinfo=UTC)
        at = int(moment.timestamp() * _SECOND)
        if first <= at <= last:
            yield at, moment.strftime("%Y" if step % _YEAR == 0 else "%b %Y")


def _label(at_ms: int, step: int) -> str:
    at = _at(at_ms)
    if step >= _DAY:
        return f"{at.day} {at:%b %Y}" if at.timetuple().tm_yday <= step // _DAY else _day(at)
    if at_ms % _DAY == 0:
        return _day(at)
    if step >= _MINUTE:
        return f"{at:%H:%M}"
    return f"{at:%H:%M:%S}" if step >= _SECOND else f"{at:%S}.{at_ms % _SECOND:03d} s"


def _day(at: datetime) -> str:
    return f"{at.day} {at:%b}"


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / _SECOND, UTC)
