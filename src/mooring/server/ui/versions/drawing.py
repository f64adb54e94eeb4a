"""Versions as a drawing: lines of them over time, their tags, and how rows and bytes went.

Only numbers and texts are made here; the template writes them down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.server.ui.formats import count, size
from mooring.server.ui.versions.axis import Axis, Key, Tick, even_axis, tell_moment, time_axis
from mooring.server.ui.versions.flags import FLAG_HEIGHT, Flag, Flagged, raise_flags
from mooring.server.ui.versions.operations import PLAIN, Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

__all__ = ["Drawing", "Line", "Point", "draw"]

WIDTH = 960.0
_LEFT, _RIGHT = 112.0, WIDTH - 28.0
_TOP = 6.0
_LANE = 30.0
_BAND = 34.0
_BAND_GAP = 12.0
_HALF_BAR = 3.0
_AXIS = 26.0
# Marks that would be closer are one with a number: less could not be told apart, or touched.
_CLOSEST = 24.0
_LONGEST_NAME = 15


@dataclass(frozen=True, slots=True)
class Point:
    """A version to draw.

    Attributes:
        number: Its number.
        at_ms: When it was made.
        label: What it is, in a sentence.
        href: Where it is told.
        mark: What made it; None where nobody looked into it.
        tags: Its tags.
        rows: How many rows it has, where that is known.
        size_bytes: What they take.
    """

    number: int
    at_ms: int
    label: str
    href: str
    mark: Mark | None = None
    tags: Sequence[str] = ()
    rows: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """Versions one after another: a branch, or main.

    Attributes:
        name: Its name.
        points: Its versions, the oldest first.
        href: Where it is shown; nothing for the one that is.
        parent: The version that it comes from.
        goes_back: Whether there are older ones that are not drawn.
        are_amounts: Whether the numbers of a point are what it brought, and not what is there
            from then on.
    """

    name: str
    points: Sequence[Point]
    href: str = ""
    parent: Key | None = None
    goes_back: bool = False
    are_amounts: bool = False


@dataclass(frozen=True, slots=True)
class Spot:
    """A mark, for one version or for several that fall together."""

    x: float
    y: float
    mark: Mark
    label: str
    href: str
    count: int = 1

    @property
    def half(self) -> float:
        """Half the width of a mark with a number."""
        return 7.0 + 3.3 * len(str(self.count))


@dataclass(frozen=True, slots=True)
class Lane:
    """A line as it is drawn: where it comes from, and its marks."""

    name: str
    short: str
    href: str
    y: float
    path: str
    spots: Sequence[Spot]
    flags: Sequence[Flag]


@dataclass(frozen=True, slots=True)
class Band:
    """How a number went: a stepped area below the axis."""

    name: str
    most: str
    y: float
    base: float
    path: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a template draws."""

    width: float
    height: float
    right: float
    label: str
    span: str
    lanes: Sequence[Lane] = ()
    ticks: Sequence[Tick] = ()
    axis_y: float = 0.0
    bands: Sequence[Band] = ()
    legend: Sequence[Mark] = ()

    @property
    def has_groups(self) -> bool:
        """Whether some versions share a mark."""
        return any(spot.count > 1 for lane in self.lanes for spot in lane.spots)

    @property
    def fits(self) -> bool:
        """Whether all of it can be seen at once."""
        return self.width <= WIDTH


def draw(lines: Sequence[Line], *, is_even: bool = False) -> Drawing | None:
    """Draw lines of versions; the first is the one that is told. None where there is nothing.

    Args:
        lines: The lines; each but the first comes from another, or begins on its own.
        is_even: Whether versions are one after another, instead of to scale in time.
    """
    times = {(line.name, one.number): one.at_ms for line in lines for one in line.points}
    if not times:
        return None
    axis = (even_axis if is_even else time_axis)(times, _LEFT, _RIGHT)
    lanes, span = _lanes(lines, axis), _span(times.values())
    bottom = max(lane.y for lane in lanes) + _LANE / 2
    bands = _bands(lines[0], axis, bottom + _AXIS)
    marks = {one.mark: None for line in lines for one in line.points if one.mark}
    plain = any(spot.mark is PLAIN and spot.count == 1 for lane in lanes for spot in lane.spots)
    return Drawing(
        width=axis.right + WIDTH - _RIGHT,
        height=(bands[-1].base + 6 if bands else bottom + _AXIS),
        right=axis.right,
        label=f"Versions of {lines[0].name} {span}; listed below",
        span=span,
        lanes=lanes,
        ticks=axis.ticks,
        axis_y=bottom,
        bands=bands,
        legend=[*marks, *([PLAIN] if plain else [])],
    )


def _span(times: Collection[int]) -> str:
    first, last = tell_moment(min(times)), tell_moment(max(times))
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


# -- lines -----------------------------------------------------------------------------------------


def _lanes(lines: Sequence[Line], axis: Axis) -> list[Lane]:
    """Lay lines out below each other: those that come from no other at the top."""
    spots = {line.name: _spots(line, axis) for line in lines}
    raised = {line.name: raise_flags(_flagged(spots[line.name]), axis.right) for line in lines}
    heights: dict[str, float] = {}
    top = _TOP
    for line in sorted(lines, key=lambda line: line.parent is not None):
        heights[line.name] = top + raised[line.name][1] * FLAG_HEIGHT + _LANE / 2
        top = heights[line.name] + _LANE / 2
    return [
        Lane(
            name=line.name,
            short=_shorten(line.name),
            href=line.href,
            y=heights[line.name],
            path=_path(line, axis, heights),
            spots=[_at(spot, heights[line.name]) for spot in spots[line.name]],
            flags=[flag.at(heights[line.name]) for flag in raised[line.name][0]],
        )
        for line in lines
    ]


def _path(line: Line, axis: Axis, heights: dict[str, float]) -> str:
    """Draw where a line goes, and how it leaves the one that it comes from."""
    if not line.points:
        return ""
    places = [axis.places[line.name, one.number] for one in line.points]
    first, last, y = min(places), max(places), heights[line.name]
    begin = f"M{_LEFT - 14 if line.goes_back else first:.1f} {y:.1f}"
    if line.parent and line.parent in axis.places and line.parent[0] in heights:
        x, above = axis.places[line.parent], heights[line.parent[0]]
        bend = min(x + 16, first)
        begin = f"M{x:.1f} {above:.1f}C{x:.1f} {y:.1f} {x:.1f} {y:.1f} {bend:.1f} {y:.1f}"
    return f"{begin}H{last:.1f}"


def _spots(line: Line, axis: Axis) -> list[tuple[float, list[Point]]]:
    """Put versions together that are too close to each other, each group at its middle."""
    groups: list[tuple[float, list[Point]]] = []
    for point in line.points:
        groups.append((axis.places[line.name, point.number], [point]))
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < _CLOSEST:
            x, own = groups.pop()
            before, others = groups.pop()
            total = len(own) + len(others)
            middle = (x * len(own) + before * len(others)) / total
            groups.append((middle, [*others, *own]))
    return groups


def _at(group: tuple[float, list[Point]], y: float) -> Spot:
    x, points = group
    newest = points[-1]
    if len(points) == 1:
        return Spot(x, y, newest.mark or PLAIN, newest.label, newest.href)
    kinds = {one.mark for one in points}
    mark = points[0].mark if len(kinds) == 1 and points[0].mark else PLAIN
    first, last = tell_moment(points[0].at_ms), tell_moment(newest.at_ms)
    label = f"{len(points)} versions, {points[0].number} to {newest.number}: {first} to {last} UTC"
    return Spot(x, y, mark, label, newest.href, len(points))


def _flagged(groups: Sequence[tuple[float, list[Point]]]) -> list[Flagged]:
    return [
        Flagged(x, tag, f"{tag}: {point.label}", point.href)
        for x, points in groups
        for point in points
        for tag in point.tags
    ]


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


# -- numbers below the axis ------------------------------------------------------------------------


def _bands(line: Line, axis: Axis, top: float) -> list[Band]:
    wanted: list[tuple[str, Callable[[Point], int | None], Callable[[int | None], str]]] = [
        ("rows", lambda point: point.rows, count),
        ("size", lambda point: point.size_bytes, size),
    ]
    bands: list[Band] = []
    for name, value, write in wanted:
        known = [
            (axis.places[line.name, one.number], number)
            for one in line.points
            if (number := value(one)) is not None
        ]
        if not known:
            continue
        most = max(number for _, number in known)
        base = top + _BAND
        scale = (_BAND - 2) / most if most else 0.0
        heights = [(x, number * scale) for x, number in known]
        path = _bars(heights, base) if line.are_amounts else _steps(heights, base, axis.right)
        bands.append(Band(name, write(most), top, base, path))
        top = base + _BAND_GAP
    return bands


def _steps(heights: Sequence[tuple[float, float]], base: float, right: float) -> str:
    """Hold each number until the next one; the last goes a little further."""
    parts = [f"M{heights[0][0]:.1f} {base:.1f}"]
    parts += [f"H{x:.1f}V{base - height:.1f}" for x, height in heights]
    parts.append(f"H{right + 14:.1f}V{base:.1f}Z")
    return "".join(parts)


def _bars(heights: Sequence[tuple[float, float]], base: float) -> str:
    """Draw each number on its own."""
    return "".join(
        f"M{x - _HALF_BAR:.1f} {base:.1f}v{-height:.1f}h{_HALF_BAR * 2:.1f}V{base:.1f}Z"
        for x, height in heights
    )
