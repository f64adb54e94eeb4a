"""What is drawn of the versions of a table: lines of points, each with what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.ui.formats import count
from mooring.server.ui.versions.axis import tell_moment
from mooring.server.ui.versions.drawing import Line, Point

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mooring.server.ui.versions.page import BranchRow, Moment, VersionRow, VersionsView
    from mooring.server.ui.versions.positions import PositionRow, Positions

__all__ = ["lines_of"]

_NEVER_MS = 2**62


def lines_of(view: VersionsView) -> list[Line]:
    """Return the lines of a page; the first is the one that is told."""
    if view.positions is not None:
        return _position_lines(view.positions)
    told = {one.version: one for one in view.versions}
    drawn = [one for one in view.branches if one.versions]
    window = _window(view, drawn)
    return [_Line(row, told if row.is_shown else {}, window).draw(view) for row in drawn]


def _window(view: VersionsView, drawn: Sequence[BranchRow]) -> tuple[int, int]:
    """Return the time that is drawn: that of the versions of the line that is told."""
    # One after another, only those have a place that are told.
    rows = view.versions if view.scale == "even" else drawn[0].versions if drawn else []
    times = [one.at_ms for one in rows if one.at_ms is not None]
    if not times:
        return 0, _NEVER_MS
    first = min([*times, *_origin(drawn)]) if view.older is None else min(times)
    return first, _NEVER_MS if view.newer is None else max(times)


def _origin(drawn: Sequence[BranchRow]) -> list[int]:
    """Return when the version was made that the line comes from."""
    told = drawn[0]
    parents = [one for one in drawn if one.name == told.parent]
    return [
        moment.at_ms
        for parent in parents
        for moment in parent.versions
        if moment.version == told.parent_version and moment.at_ms is not None
    ]


class _Line:
    """Makes a line of a branch, as far as it is within the time that is drawn."""

    def __init__(
        self, row: BranchRow, told: Mapping[int, VersionRow], window: tuple[int, int]
    ) -> None:
        self._row = row
        self._told = told
        self._window = window
        self._tags: dict[int, list[str]] = {}
        for name, version in row.tags.items():
            self._tags.setdefault(version, []).append(name)

    def draw(self, view: VersionsView) -> Line:
        row = self._row
        points = list(self._points())
        parent = None
        if row.parent is not None and row.parent_version is not None:
            parent = (row.parent, row.parent_version)
        return Line(
            name=row.name,
            points=points,
            href="" if row.is_shown else row.href,
            parent=parent,
            goes_back=len(points) < len(row.versions) or (row.is_shown and view.goes_back),
        )

    def _points(self) -> Iterator[Point]:
        first, last = self._window
        latest = first
        for one in reversed(self._row.versions):
            at_ms = latest if one.at_ms is None else one.at_ms
            if not first <= at_ms <= last:
                continue
            # Clocks differ, and stores that tell whole seconds would mix versions up.
            latest = max(latest, at_ms)
            yield self._point(one, latest)

    def _point(self, one: Moment, at_ms: int) -> Point:
        told, tags = self._told.get(one.version), self._tags.get(one.version, [])
        return Point(
            number=one.version,
            at_ms=at_ms,
            label=self._label(one.version, at_ms, told, tags),
            href=f"#v{one.version}" if told else self._elsewhere(one.version),
            mark=told.mark if told else None,
            tags=tags,
            rows=told.rows if told else None,
            size_bytes=told.size_bytes if told else None,
        )

    def _label(self, version: int, at_ms: int, told: VersionRow | None, tags: Sequence[str]) -> str:
        whose = "" if self._row.is_shown else f"{self._row.name}: "
        parts = [f"{whose}version {version}", f"{tell_moment(at_ms)} UTC"]
        if told:
            parts += [told.word, f"{count(told.rows)} rows"]
            parts += [f"by {told.by}"] if told.by else []
        if tags:
            parts.append(f"tagged {', '.join(tags)}")
        return ", ".join(parts)

    def _elsewhere(self, version: int) -> str:
        """Return where a version is told that this page only draws."""
        mark = "&" if "?" in self._row.href else "?"
        return f"{self._row.href}{mark}before={version + 1}#v{version}"


# -- tables of changes -----------------------------------------------------------------------------


def _position_lines(found: Positions) -> list[Line]:
    lines = (("changes", "p", found.changes), ("compaction", "c", found.rounds))
    return [
        Line(name, [_position_point(one, anchor) for one in reversed(rows)], are_amounts=True)
        for name, anchor, rows in lines
        if rows
    ]


def _position_point(one: PositionRow, anchor: str) -> Point:
    at_ms = one.at_ms or 0
    what = f"{one.word}, {count(one.rows)} rows, {tell_moment(at_ms)} UTC"
    return Point(
        number=one.number,
        at_ms=at_ms,
        label=f"position {one.number}: {what}" + (f", by {one.by}" if one.by else ""),
        href=f"#{anchor}{one.number}",
        mark=one.mark,
        rows=one.rows,
        size_bytes=one.size_bytes,
    )
