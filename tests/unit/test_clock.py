"""Durations and times as people write and read them."""

from __future__ import annotations

import pytest

from mooring.clock import (
    DAY_MS,
    RandomIds,
    SystemClock,
    format_duration,
    format_time,
    parse_ttl,
)
from mooring.errors import InvalidInputError


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("7d", 7 * DAY_MS),
        ("2w", 14 * DAY_MS),
        ("12h", 12 * 3_600_000),
        ("90m", 90 * 60_000),
        ("30s", 30_000),
        ("250ms", 250),
        ("0s", 0),
        (" 3 D ", 3 * DAY_MS),
        ("never", None),
        ("NEVER", None),
    ],
)
def test_a_ttl_is_a_number_with_a_unit_or_never(text, duration_ms):
    assert parse_ttl(text) == duration_ms


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5h", "7 days", "7d 3h", "for ever"])
def test_any_other_ttl_is_refused_with_an_example(text):
    with pytest.raises(InvalidInputError, match="7d"):
        parse_ttl(text)


@pytest.mark.parametrize("text", ["9" * 12 + "w", "9" * 30 + "d"])
def test_a_ttl_that_no_calendar_holds_is_refused(text):
    """Its end could not be written as a date by anything that shows the trash."""
    with pytest.raises(InvalidInputError):
        parse_ttl(text)


@pytest.mark.parametrize(
    ("duration_ms", "shown"),
    [
        (0, "0 s"),
        (999, "0 s"),
        (45_000, "45 s"),
        (60_000, "1 m"),
        (2 * 3_600_000 + 59_000, "2 h"),
        (3 * DAY_MS, "3 d"),
    ],
)
def test_a_duration_is_shown_in_its_largest_whole_unit(duration_ms, shown):
    assert format_duration(duration_ms) == shown


@pytest.mark.parametrize("duration_ms", [-1, -90_000, -3 * DAY_MS])
def test_a_duration_by_a_clock_that_runs_behind_is_not_negative(duration_ms):
    """Another machine's clock may be ahead: a drop of the future was dropped 0 s ago."""
    assert format_duration(duration_ms) == "0 s"


def test_a_time_is_shown_as_utc_to_the_second():
    assert format_time(0) == "1970-01-01T00:00:00Z"
    assert format_time(1_800_000_000_999) == "2027-01-15T08:00:00Z"


def test_the_system_clock_counts_milliseconds_since_1970():
    first = SystemClock().now_ms()
    assert first > 1_700_000_000_000
    assert SystemClock().now_ms() >= first


def test_ids_are_128_random_bits_in_hexadecimal():
    ids = {RandomIds().new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(found) == 32 and int(found, 16) >= 0 for found in ids)
