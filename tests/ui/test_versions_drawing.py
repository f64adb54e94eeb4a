"""The geometry of timelines: nothing overlaps, whatever the times are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.server.ui.versions.axis import even_axis, time_axis
from mooring.server.ui.versions.drawing import Line, Point, draw
from mooring.server.ui.versions.flags import Flagged, raise_flags
from mooring.server.ui.versions.operations import mark_of

NOON_MS = 1_772_452_800_000  # 2 March 2026, a Monday
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
YEAR = 365 * DAY
TIMES = st.lists(st.integers(0, 200 * YEAR), min_size=1, max_size=120)


def times(*offsets: int) -> dict[tuple[str, int], int]:
    return {("main", number): NOON_MS + at for number, at in enumerate(offsets)}


def points(offsets: list[int]) -> list[Point]:
    return [
        Point(number, at, f"version {number}", f"#v{number}", mark_of("Append"), rows=number)
        for number, at in enumerate(sorted(offsets), 1)
    ]


@pytest.mark.parametrize(
    ("length_ms", "labels"),
    [
        (40, ["00.000 s", "00.005 s", "00.010 s"]),
        (10 * SECOND, ["12:00:00", "12:00:02", "12:00:04"]),
        (40 * MINUTE, ["12:00", "12:05", "12:10"]),
        (30 * HOUR, ["12:00", "18:00", "3 Mar"]),
        (6 * DAY, ["3 Mar", "4 Mar", "5 Mar"]),
        (50 * DAY, ["9 Mar", "16 Mar", "23 Mar"]),
        (300 * DAY, ["May 2026", "Jul 2026", "Sep 2026"]),
        (12 * YEAR, ["2028", "2030", "2032"]),
    ],
)
def test_ticks_are_what_people_count_by(length_ms, labels):
    axis = time_axis(times(0, length_ms), 0, 820)
    assert [tick.label for tick in axis.ticks[:3]] == labels


@given(TIMES)
@settings(max_examples=60, deadline=None)
def test_labels_of_the_axis_never_touch(offsets):
    axis = time_axis(times(*offsets), 100, 900)
    places = [tick.x for tick in axis.ticks]
    # Months are of several lengths.
    assert all(right - left >= 75 for left, right in pairwise(places))
    assert all(99 <= x <= 901 for x in [*places, *axis.places.values()])


@given(TIMES)
@settings(max_examples=60, deadline=None)
def test_marks_are_far_enough_apart_and_none_is_lost(offsets):
    drawing = draw([Line("main", points(offsets))])
    spots = drawing.lanes[0].spots
    assert sum(spot.count for spot in spots) == len(offsets)
    assert all(right.x - left.x >= 24 for left, right in pairwise(spots))


@given(st.lists(st.tuples(st.integers(0, 800), st.text(min_size=1, max_size=30)), max_size=40))
@settings(max_examples=60, deadline=None)
def test_flags_never_hide_each_other(wanted):
    flags, rows = raise_flags([Flagged(float(x), text, "", "") for x, text in sorted(wanted)], 820)
    assert rows <= 4
    for y in {flag.y for flag in flags}:
        own = sorted((flag.left, flag.left + flag.width) for flag in flags if flag.y == y)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(own))


def test_evenly_a_long_line_goes_on_to_the_right():
    axis = even_axis(times(*range(0, 100 * DAY, DAY)), 100, 900)
    assert axis.right == 100 + 99 * 26
    assert draw([Line("main", points([1, 2]))], is_even=True).fits


def test_a_single_version_is_in_the_middle():
    drawing = draw([Line("main", points([NOON_MS]))])
    assert [spot.x for spot in drawing.lanes[0].spots] == [522]
    assert [tick.label for tick in drawing.ticks] == ["2026-03-02 12:00"]


def test_nothing_makes_no_drawing():
    assert draw([]) is None
    assert draw([Line("main", [])]) is None
