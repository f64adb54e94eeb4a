"""Stores around stores: counting, pausing, failing, crashing."""

from __future__ import annotations

import pytest

from mooring.errors import ServiceUnavailableError
from mooring.store.api import ObjectTag
from mooring.store.observed import ObservedStore
from mooring.store.remote import RemoteStore
from mooring.store.scripted import Crash, ScriptedStore
from mooring.store.wrapped import Call, WrappedStore

VERBS = {
    "get": lambda store: store.get("a"),
    "read": lambda store: store.read("a"),
    "head": lambda store: store.head("a"),
    "existing": lambda store: store.existing(["a", "b"]),
    "list_dir": lambda store: store.list_dir(""),
    "list_prefix": lambda store: store.list_prefix(""),
    "put_new": lambda store: store.put_new("n", b""),
    "put_if": lambda store: store.put_if("a", b"", ObjectTag(etag="0")),
    "put": lambda store: store.put("a", b""),
    "delete": lambda store: store.delete(["a", "b"]),
    "delete_prefix": lambda store: store.delete_prefix("d"),
}


class Notes:
    """A script that writes down what it sees."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Call]] = []

    def before(self, call):
        self.seen.append(("before", call))

    def after(self, call, result):
        self.seen.append(("after", call))


@pytest.fixture
def memory():
    store = RemoteStore("memory://", {})
    store.put("a", b"content")
    return store


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_counted_and_timed(memory, verb):
    observed = ObservedStore(memory)
    VERBS[verb](observed)
    assert observed.counts == {verb: 1}
    assert observed.total == 1
    assert observed.seconds[verb] >= 0


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_passes_the_script_before_and_after(memory, verb):
    script = Notes()
    VERBS[verb](ScriptedStore(memory, script))
    assert [when for when, _ in script.seen] == ["before", "after"]
    assert {call.verb for _, call in script.seen} == {verb}


def test_a_wrapper_answers_like_the_store_inside(memory):
    store = WrappedStore(memory)
    assert store.get("a") == b"content"
    assert store.existing(["a", "b"]) == {"a"}
    assert store.location("a") == memory.location("a")
    assert store.options == memory.options
    assert store.capabilities == memory.capabilities


def test_a_failing_call_is_counted_too(memory):
    class Failing(Notes):
        def before(self, call):
            raise ServiceUnavailableError("down")

    observed = ObservedStore(ScriptedStore(memory, Failing()))
    with pytest.raises(ServiceUnavailableError):
        observed.get("a")
    assert observed.counts == {"get": 1}


def test_a_crash_passes_every_handler(memory):
    class Crashing(Notes):
        def after(self, call, result):
            raise Crash

    store = ScriptedStore(memory, Crashing())

    def handle_everything():
        try:
            store.put("b", b"written")
        except Exception:  # noqa: BLE001  # the point: even this does not catch it
            pytest.fail("a crash was handled")

    with pytest.raises(Crash):
        handle_everything()
    assert memory.get("b") == b"written"
