"""Numbered, immutable, create-only objects: the deciding put and the search for the newest."""

from __future__ import annotations

import pytest

from mooring.errors import UnknownOutcomeError
from mooring.store import numbered
from mooring.store.numbered import create_once, find_newest, format_seq
from mooring.store.observed import ObservedStore
from mooring.store.remote import RemoteStore
from mooring.store.scripted import ScriptedStore

LONGEST = 200


def _path(seq: int) -> str:
    return f"chain.{format_seq(seq)}"


class Unreliable:
    """Loses requests before they arrive, or answers after they did, for the first few puts."""

    def __init__(self, *, lost_requests: int = 0, lost_answers: int = 0) -> None:
        self.lost_requests = lost_requests
        self.lost_answers = lost_answers

    def before(self, call):
        if call.verb == "put_new" and self.lost_requests:
            self.lost_requests -= 1
            raise UnknownOutcomeError("the request was lost")

    def after(self, call, result):
        if call.verb == "put_new" and self.lost_answers:
            self.lost_answers -= 1
            raise UnknownOutcomeError("the answer was lost")


@pytest.fixture
def memory():
    return RemoteStore("memory://", {})


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Take note of pauses instead of making them."""
    made: list[float] = []
    monkeypatch.setattr(numbered, "pause", made.append)
    return made


def test_numbers_sort_as_text():
    assert format_seq(7) == "00000000000000000007"
    assert format_seq(9) < format_seq(10) < format_seq(10**19)


def test_the_newest_is_found_at_every_length(memory):
    for length in range(LONGEST + 1):
        if length:
            memory.put_new(_path(length), str(length).encode())
        expected = (length, str(length).encode()) if length else (0, None)
        assert find_newest(memory, _path) == expected


def test_the_newest_is_found_from_every_start(memory):
    length = 40
    for seq in range(1, length + 1):
        memory.put_new(_path(seq), str(seq).encode())
    for start in range(length):
        assert find_newest(memory, _path, start) == (length, b"40")
    assert find_newest(memory, _path, length) == (length, None)


def test_the_search_asks_for_few_numbers(memory):
    for seq in range(1, 1001):
        memory.put_new(_path(seq), b"x")
    observed = ObservedStore(memory)
    find_newest(observed, _path)
    assert observed.total <= 30
    observed = ObservedStore(memory)
    find_newest(observed, _path, 999)
    assert observed.total <= 3


def test_the_short_chain_costs_one_or_two_requests(memory):
    observed = ObservedStore(memory)
    find_newest(observed, _path)
    assert observed.total == 1
    memory.put_new(_path(1), b"x")
    observed = ObservedStore(memory)
    find_newest(observed, _path)
    assert observed.total == 2


def test_create_once_creates(memory):
    assert create_once(memory, _path(1), b"mine")
    assert memory.get(_path(1)) == b"mine"


def test_create_once_loses_to_somebody_else(memory):
    memory.put_new(_path(1), b"theirs")
    assert not create_once(memory, _path(1), b"mine")
    assert memory.get(_path(1)) == b"theirs"


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_lost_answer_is_settled_by_sending_the_same_again(memory, lost):
    """A create-only refusal is believed only after the content is compared."""
    store = ScriptedStore(memory, Unreliable(lost_answers=lost))
    assert create_once(store, _path(1), b"mine")
    assert memory.get(_path(1)) == b"mine"


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_lost_request_is_sent_again_to_the_same_key(memory, lost):
    store = ScriptedStore(memory, Unreliable(lost_requests=lost))
    assert create_once(store, _path(1), b"mine")
    assert memory.list_dir("").files == [_path(1)]


def test_a_lost_request_may_find_somebody_else_there(memory):
    class Slow(Unreliable):
        def before(self, call):
            try:
                super().before(call)
            except UnknownOutcomeError:
                memory.put_new(_path(1), b"theirs")
                raise

    store = ScriptedStore(memory, Slow(lost_requests=1))
    assert not create_once(store, _path(1), b"mine")


def test_a_store_that_never_answers_leaves_the_outcome_unknown(memory, pauses):
    observed = ObservedStore(ScriptedStore(memory, Unreliable(lost_requests=99)))
    with pytest.raises(UnknownOutcomeError):
        create_once(observed, _path(1), b"mine", attempts=4)
    assert observed.counts["put_new"] == 4
    assert pauses == sorted(pauses)
    assert len(pauses) == 3
