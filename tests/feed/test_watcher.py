"""A watcher tells what changed in a catalog of any kind, whoever changed it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import lance
import lance.namespace
import pyarrow as pa
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DropTableRequest,
)

from mooring.errors import ServiceUnavailableError
from mooring.feed import Event, Kind, Watcher
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.store.scripted import ScriptedStore
from tests.feed.conftest import Watched
from tests.lakes import COMPAT_DISK, DISK, MANIFEST_DISK, METASTORE_DISK, Lake

if TYPE_CHECKING:
    from mooring.store.wrapped import Call

SPACE = ROOT.child("n")


class _Outage:
    """A store that answers nothing for a while."""

    is_on = False

    def __init__(self, below: str = "") -> None:
        self._below = below

    def before(self, call: Call) -> None:
        if self.is_on and call.path.startswith(self._below):
            raise ServiceUnavailableError(f"the store is down: {call.verb}")

    def after(self, call: Call, result: object) -> None:
        pass


class TestLifecycle:
    def test_tells_a_created_table(self, watched: Watched):
        info = watched.lake.create("t")
        (event,) = watched.watcher.poll()
        assert (event.kind, event.id) == (Kind.TABLE_CREATED, watched.lake.id("t"))
        assert event.details["location"] == info.location
        assert event.at_ms == watched.lake.clock.now_ms()
        assert watched.watcher.poll() == []

    def test_tells_a_declared_table(self, watched: Watched):
        watched.lake.backend.declare_table(watched.lake.id("t"))
        assert watched.seen() == [("table.declared", watched.name("t"))]

    def test_tells_a_drop_with_its_times_and_who_it_was(self, watched: Watched):
        lake = watched.lake
        lake.create("t")
        watched.seen()
        lake.backend.drop_table(lake.id("t"), Ttl(1000))
        (event,) = watched.watcher.poll()
        now_ms = lake.clock.now_ms()
        assert (event.kind, event.id, event.by) == (Kind.TABLE_DROPPED, lake.id("t"), "alice")
        assert event.details == {"deleted_at_ms": now_ms, "expires_at_ms": now_ms + 1000}

    def test_tells_an_undrop(self, watched: Watched):
        watched.lake.create("t")
        watched.lake.drop("t")
        watched.seen()
        watched.lake.backend.undrop_table(watched.lake.id("t"))
        assert watched.seen() == [("table.undropped", watched.name("t"))]

    def test_tells_a_purge(self, watched: Watched):
        watched.lake.create("t")
        watched.lake.drop("t")
        watched.seen()
        watched.lake.backend.purge_table(watched.lake.id("t"))
        assert watched.seen() == [("table.purged", watched.name("t"))]

    def test_tells_a_table_that_takes_the_name_of_a_dropped_one(self, watched: Watched):
        watched.lake.create("t")
        watched.lake.drop("t")
        watched.seen()
        watched.lake.create("t")
        assert watched.seen() == [("table.created", watched.name("t"))]

    def test_tells_a_table_that_left_the_catalog(self, watched: Watched):
        watched.lake.create("t")
        watched.seen()
        watched.lake.backend.deregister_table(watched.lake.id("t"))
        assert watched.seen() == [("table.removed", watched.name("t"))]

    def test_tells_a_protected_table(self, watched: Watched):
        watched.lake.create("t")
        watched.seen()
        for protected, value in ((True, "true"), (False, None)):
            watched.lake.backend.protect_table(watched.lake.id("t"), protected=protected)
            (event,) = watched.watcher.poll()
            assert event.kind is Kind.TABLE_CHANGED
            assert event.details == {"changed": {"mooring.protected": value}}

    def test_a_drop_that_is_undone_between_two_polls_leaves_nothing(self, watched: Watched):
        watched.lake.create("t")
        watched.seen()
        watched.lake.drop("t")
        watched.lake.backend.undrop_table(watched.lake.id("t"))
        assert watched.seen() == []

    def test_tells_many_changes_of_one_poll(self, watched: Watched):
        lake = watched.lake
        for name in ("a", "b", "c"):
            lake.create(name)
        watched.seen()
        lake.drop("a", "b")
        lake.backend.undrop_table(lake.id("b"))
        lake.create("d")
        assert watched.seen() == [
            ("table.dropped", watched.name("a")),
            ("table.created", watched.name("d")),
        ]

    @pytest.mark.parametrize("kind", [DISK, COMPAT_DISK], ids=lambda kind: kind.name)
    def test_tells_a_table_that_is_registered_again(self, make_watched, kind):
        watched = make_watched(kind)
        watched.lake.create("t")
        watched.lake.backend.deregister_table(watched.lake.id("t"))
        watched.seen()
        watched.lake.backend.register_table(watched.lake.id("t"), None)
        assert watched.seen() == [("table.registered", "t")]

    @pytest.mark.parametrize("kind", [MANIFEST_DISK, METASTORE_DISK], ids=lambda kind: kind.name)
    def test_tells_a_table_that_lay_there_already(self, make_watched, kind):
        watched = make_watched(kind)
        watched.lake.write_elsewhere("there")
        watched.lake.backend.register_table(watched.lake.id("t"), "there.lance")
        assert watched.seen() == [("table.registered", watched.name("t"))]


class TestNames:
    def test_tells_a_rename(self, spaced: Watched):
        lake = spaced.lake
        lake.create("t")
        spaced.seen()
        lake.backend.rename_table(lake.id("t"), lake.id("u"))
        (event,) = spaced.watcher.poll()
        assert (event.kind, event.id, event.old_id) == (
            Kind.TABLE_RENAMED,
            lake.id("u"),
            lake.id("t"),
        )

    def test_tells_a_table_that_came_back_under_another_name(self, spaced: Watched):
        lake, old, new = spaced.lake, SPACE.child("t"), SPACE.child("u")
        lake.make("n")
        lake.create(old)
        lake.drop(old)
        spaced.seen()
        lake.backend.undrop_table(old, new)
        (event,) = spaced.watcher.poll()
        assert (event.kind, event.id, event.old_id) == (Kind.TABLE_UNDROPPED, new, old)

    def test_tells_properties(self, spaced: Watched):
        lake = spaced.lake
        lake.create("t")
        lake.backend.update_table(lake.id("t"), {"a": "1", "b": "2"})
        spaced.seen()
        lake.backend.update_table(lake.id("t"), {"a": None, "c": "3"})
        (event,) = spaced.watcher.poll()
        assert event.kind is Kind.TABLE_CHANGED
        assert event.details == {"changed": {"a": None, "c": "3"}}

    def test_tells_a_replaced_table_as_dropped_and_created(self, spaced: Watched):
        table = SPACE.child("t")
        spaced.lake.make("n")
        spaced.lake.create(table)
        spaced.seen()
        spaced.lake.drop(table)
        spaced.lake.create(table)
        assert spaced.seen() == [("table.dropped", "n$t"), ("table.created", "n$t")]

    def test_tells_the_version_where_the_catalog_keeps_it(self, make_watched):
        watched = make_watched(METASTORE_DISK)
        watched.lake.create("t")
        watched.seen()
        watched.lake.create("t", mode=CreateMode.OVERWRITE)
        (event,) = watched.watcher.poll()
        assert (event.kind, event.details) == (Kind.TABLE_WRITTEN, {"version": 2})
        assert event.by == "alice"

    def test_tells_who_did_each_of_several_changes(self, make_watched):
        lake = (watched := make_watched(METASTORE_DISK)).lake
        lake.create("t")
        lake.create("u", backend=lake.open(author="bob"))
        assert {event.id.name: event.by for event in watched.watcher.poll()} == {
            "t": "alice",
            "u": "bob",
        }


class TestNamespaces:
    def test_tells_the_life_of_a_namespace(self, spaced: Watched):
        backend = spaced.lake.backend
        backend.create_namespace(SPACE, {"k": "v"})
        assert spaced.seen() == [("namespace.created", "n")]
        backend.update_namespace(SPACE, {"k": "w"})
        (event,) = spaced.watcher.poll()
        assert (event.kind, event.details) == (Kind.NAMESPACE_CHANGED, {"changed": {"k": "w"}})
        backend.drop_namespace(SPACE)
        (event,) = spaced.watcher.poll()
        assert (event.kind, event.details) == (Kind.NAMESPACE_DROPPED, {"in_trash": True})
        backend.undrop_namespace(SPACE)
        assert spaced.seen() == [("namespace.undropped", "n")]

    def test_tells_all_that_goes_and_comes_with_a_namespace(self, spaced: Watched):
        spaced.lake.make("n")
        spaced.lake.create(SPACE.child("t"))
        spaced.seen()
        spaced.lake.backend.drop_namespace(SPACE, cascade=True)
        assert spaced.seen() == [("table.dropped", "n$t"), ("namespace.dropped", "n")]
        spaced.lake.backend.undrop_namespace(SPACE)
        assert spaced.seen() == [("namespace.undropped", "n"), ("table.undropped", "n$t")]

    @pytest.mark.parametrize("kind", [COMPAT_DISK, MANIFEST_DISK], ids=lambda kind: kind.name)
    def test_a_new_one_beside_a_dropped_one_of_its_name_is_created(self, make_watched, kind):
        watched = make_watched(kind)
        watched.lake.make("n")
        watched.lake.backend.drop_namespace(SPACE)
        watched.seen()
        watched.lake.make("n")
        assert watched.seen() == [("namespace.created", "n")]


class TestForeignWriters:
    def test_sees_tables_that_lance_writes_into_the_directory(self, make_watched):
        watched = make_watched(DISK)
        watched.lake.write_elsewhere("t")
        assert watched.seen() == [("table.created", "t")]

    @pytest.mark.parametrize("kind", [COMPAT_DISK, MANIFEST_DISK], ids=lambda kind: kind.name)
    def test_sees_what_pylances_namespace_does(self, make_watched, kind):
        watched = make_watched(kind)
        theirs = lance.namespace.DirectoryNamespace(
            root=watched.lake.uri,
            manifest_enabled="true",
            dir_listing_enabled=str(kind.listing).lower(),
        )
        theirs.create_namespace(CreateNamespaceRequest(id=["n"]))
        declared = theirs.declare_table(DeclareTableRequest(id=["n", "t"]))
        assert watched.seen() == [("namespace.created", "n"), ("table.declared", "n$t")]
        lance.write_dataset(pa.table({"n": [1]}), declared.location)
        theirs.drop_table(DropTableRequest(id=["n", "t"]))
        assert watched.seen() == [("table.removed", "n$t")]

    def test_sees_a_marker_of_another_program(self, make_watched):
        watched = make_watched(DISK)
        watched.lake.create("t")
        watched.seen()
        watched.lake.mark_deleted("t", b"")
        assert watched.seen() == [("table.dropped", "t")]


class TestCost:
    @pytest.mark.parametrize(
        ("kind", "asked"),
        [
            (MANIFEST_DISK, {"list_dir": 1}),
            (COMPAT_DISK, {"list_dir": 2}),
            (METASTORE_DISK, {"get": 1}),
        ],
        ids=lambda given: getattr(given, "name", ""),
    )
    def test_a_poll_in_which_nothing_changed_is_a_request_or_two(
        self, tmp_path, clock, kind, asked
    ):
        lake = Lake(kind, str(tmp_path / "lake"), {}, clock)
        for name in ("a", "b", "c"):
            lake.create(name)
        watched = Watched(lake)
        watched.lake.create("d")
        watched.seen()
        watched.store.counts.clear()
        assert watched.seen() == []
        assert watched.store.counts == asked

    def test_a_poll_of_a_directory_is_one_listing(self, tmp_path, clock):
        lake = Lake(DISK, str(tmp_path / "lake"), {}, clock)
        for name in ("a", "b", "c"):
            lake.create(name)
        watched = Watched(lake)
        watched.store.counts.clear()
        assert watched.seen() == []
        assert watched.store.counts == {"list_dir": 1}

    def test_a_change_among_many_tables_takes_no_request_for_each(self, watched: Watched):
        for number in range(20):
            watched.lake.backend.declare_table(watched.lake.id(f"t{number}"))
        watched.seen()
        watched.store.counts.clear()
        watched.lake.drop("t7")
        assert watched.seen() == [("table.dropped", watched.name("t7"))]
        assert watched.store.total < 20


class TestResuming:
    def test_events_after_a_cursor_are_told_again(self, make_watched):
        watched = make_watched(DISK)
        begin = watched.watcher.cursor
        for name in ("a", "b", "c"):
            watched.lake.create(name)
            watched.watcher.poll()
        told = watched.watcher.since(begin)
        assert [str(event.id) for event in told] == ["a", "b", "c"]
        first = told[0].cursor
        assert first is not None
        assert [str(event.id) for event in watched.watcher.since(first)] == ["b", "c"]
        assert watched.watcher.since(watched.watcher.cursor) == []

    def test_a_cursor_that_is_too_old_is_a_reset(self, tmp_path, clock):
        lake = Lake(DISK, str(tmp_path / "lake"), {}, clock)
        watcher = Watcher(lake.open(), kept=2)
        watcher.poll()
        begin = watcher.cursor
        for name in ("a", "b", "c"):
            lake.create(name)
            watcher.poll()
        (event,) = watcher.since(begin)
        assert (event.kind, event.cursor) == (Kind.RESET, watcher.cursor)

    def test_a_cursor_of_another_watcher_is_a_reset(self, make_watched):
        watched = make_watched(DISK)
        other = Watcher(watched.lake.open())
        other.poll()
        assert [event.kind for event in watched.watcher.since(other.cursor)] == [Kind.RESET]

    def test_what_happens_while_the_store_fails_is_told_later(self, tmp_path, clock):
        lake = Lake(DISK, str(tmp_path / "lake"), {}, clock)
        lake.create("a")
        outage = _Outage()
        watcher = Watcher(lake.open(store=ScriptedStore(lake.store, outage)))
        watcher.poll()
        lake.create("b")
        outage.is_on = True
        with pytest.raises(ServiceUnavailableError):
            watcher.poll()
        outage.is_on = False
        assert [str(event.id) for event in watcher.poll()] == ["b"]

    def test_a_decision_that_cannot_be_read_keeps_nothing_from_being_told(self, tmp_path, clock):
        lake = Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)
        lake.create("t")
        outage = _Outage("t.lance-state")
        watcher = Watcher(lake.open(store=ScriptedStore(lake.store, outage)))
        watcher.poll()
        lake.drop("t")
        outage.is_on = True
        (event,) = watcher.poll()
        assert (event.kind, event.by) == (Kind.TABLE_DROPPED, None)


class TestEvents:
    def test_an_event_is_json_and_back(self, make_watched):
        watched = make_watched(DISK)
        watched.lake.create("t")
        (event,) = watched.watcher.poll()
        body = json.loads(event.encode())
        assert body["kind"] == "table.created"
        assert body["object"] == ["t"]
        assert body["id"] == str(event.cursor)
        assert Event.decode(event.encode()) == event

    def test_a_rename_into_sight_is_a_creation_and_out_of_it_a_removal(self):
        old, new = ObjectId.of(["a", "t"]), ObjectId.of(["b", "t"])
        event = Event(Kind.TABLE_RENAMED, new, 1, details={"old_id": list(old.names)})
        assert event.shown_to(lambda _: True) is event
        assert event.shown_to(lambda _: False) is None
        into = event.shown_to(lambda one: one == new)
        assert into is not None
        assert (into.kind, into.id, dict(into.details)) == (Kind.TABLE_CREATED, new, {})
        out = event.shown_to(lambda one: one == old)
        assert out is not None
        assert (out.kind, out.id, dict(out.details)) == (Kind.TABLE_REMOVED, old, {})
