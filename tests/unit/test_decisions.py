"""Decisions and their hints, as they are stored."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mooring.directory.decisions import (
    Decision,
    Hint,
    State,
    decode_decision,
    encode_decision,
)
from mooring.errors import CatalogFormatError, MooringError

DROP = Decision(
    state=State.DELETED,
    nonce="n2",
    prev="n1",
    action="drop",
    by="alice",
    at_ms=1_800_000_000_000,
    deleted_at_ms=1_800_000_000_000,
    ttl_ms=604_800_000,
)


def test_a_decision_is_json_with_the_fields_of_the_protocol():
    """Spec: PROTOCOLS, "Lifecycle": state, nonce, prev, by, deleted_at_ms, ttl_ms."""
    import json

    assert json.loads(encode_decision(DROP)) == {
        "state": "deleted",
        "nonce": "n2",
        "prev": "n1",
        "action": "drop",
        "by": "alice",
        "at_ms": 1_800_000_000_000,
        "deleted_at_ms": 1_800_000_000_000,
        "ttl_ms": 604_800_000,
    }


def test_a_decision_is_read_back():
    assert decode_decision("p", encode_decision(DROP)) == DROP


def test_fields_of_a_later_release_are_passed_over():
    body = encode_decision(DROP)[:-1] + b',"colour":"blue"}'
    assert decode_decision("p", body) == DROP


def test_a_state_of_a_later_release_asks_for_an_upgrade():
    body = encode_decision(DROP).replace(b'"deleted"', b'"frozen"')
    with pytest.raises(CatalogFormatError, match="upgrade"):
        decode_decision("x.lance-state.1", body)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"state": "live"'])
def test_a_damaged_decision_is_named(body):
    with pytest.raises(MooringError, match=r"'x\.lance-state\.1' is damaged"):
        decode_decision("x.lance-state.1", body)


def test_the_trash_holds_what_can_still_come_back():
    in_trash = {state for state in State if state.in_trash}
    assert in_trash == {State.DELETED, State.REVIVING, State.UNDROPPING}


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (Hint(State.LIVE), "live"),
        (Hint(State.DELETED, 0), "deleted.0"),
        (Hint(State.DELETED, 36, 35), "deleted.10.z"),
        (Hint(State.DELETED, 1_800_000_000_000, 604_800_000), "deleted.mywpiww0.a02yo0"),
    ],
)
def test_a_hint_is_state_and_times_in_base_36(hint, text):
    assert hint.format() == text
    assert Hint.parse(text) == hint


@pytest.mark.parametrize("text", ["", "frozen", "live.-", "deleted.1.2.3", "deleted.", "deleted.é"])
def test_a_hint_of_a_later_release_is_no_hint(text):
    assert Hint.parse(text) is None


def test_a_hint_of_a_time_before_1970_is_written_too():
    """A marker of another program may hold any number; writing its hint must come to an end."""
    code = (
        "from mooring.directory.decisions import Hint, State;"
        "print(Hint(State.DELETED, -5, -1).format())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], timeout=10, check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith("deleted")
