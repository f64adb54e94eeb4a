"""Numbers, times and messages as pages write them."""

from __future__ import annotations

import pytest

from mooring.server.ui.formats import ago, sentence, time_left, when, whole_duration

_DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("length_ms", "text"),
    [
        (7 * _DAY_MS - 1, "7 days"),
        (6 * _DAY_MS, "6 days"),
        (_DAY_MS - 1, "1 day"),
        (3_599_000, "1 hour"),
        (90_000, "2 minutes"),
        (59_600, "1 minute"),
        (1_400, "1 second"),
        (0, "0 seconds"),
    ],
)
def test_what_is_left_is_told_to_the_nearest(length_ms, text):
    assert time_left(length_ms) == text


def test_what_is_past_is_never_told_as_more_than_it_is():
    assert ago(0, 7 * _DAY_MS - 1) == "6 days ago"
    assert ago(7 * _DAY_MS - 1, 0) == "in 7 days"
    assert ago(1, 0) == "just now"


@pytest.mark.parametrize(
    ("length_ms", "text"),
    [
        (7 * _DAY_MS, "7 days"),
        (36 * 3_600_000, "36 hours"),
        (60_000, "1 minute"),
        (90_000, "90 seconds"),
        (1, "1 ms"),
        (0, "0 ms"),
    ],
)
def test_what_is_promised_is_told_exactly(length_ms, text):
    assert whole_duration(length_ms) == text


def test_times_are_written_for_people():
    assert when(0) == "1970-01-01 00:00:00 UTC"
    assert when(None) == "\N{EN DASH}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("there is no table", "There is no table"),
        ("'ben' may not", "'ben' may not"),
        ("a$t is gone", "a$t is gone"),
        ("JSON is", "JSON is"),
        ("", ""),
    ],
)
def test_messages_begin_as_sentences_and_names_stay(text, shown):
    assert sentence(text) == shown
