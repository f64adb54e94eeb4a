"""Any sequence of operations, against a model of a few lines.

Spec: soft-delete, all of it; directory-namespace, "Marker Files".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from mooring.clock import RandomIds
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.entries import dropped_id, is_dropped
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.manifest import Manifest
from mooring.directory.shared_manifest import SharedManifest
from mooring.errors import (
    MooringError,
    ProtectedError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.identifiers import ROOT
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.home import Home
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.store.numbered import create_once
from mooring.store.remote import RemoteStore
from mooring.tables.api import StagedTable
from mooring.tables.versions import list_versions
from tests.lakes import FakeClock, rows, table_id
from tests.races.manifests import StoreManifest

NAMES = ("a", "日本 %")
names = st.sampled_from(NAMES)
TTLS_MS = (None, 0, 1000, 1_000_000)


class PaperTables:
    """Tables whose versions are a line of JSON each: as strict as Lance, and much faster."""

    def __init__(self, store) -> None:
        self._store = store
        self._count = 0

    def stage(self, table_dir, data):
        self._count += 1
        nonce = f"{self._count:032x}"
        path = f"{table_dir}/data/{nonce}"
        self._store.put(path, json.dumps(data.read_all()["n"].to_pylist()).encode())
        return StagedTable(table_dir, None, (path,), (path,), nonce)

    def commit(self, staged, version):
        return self._put(staged.table_dir, version, staged.files[0], staged.nonce)

    def discard(self, staged):
        self._store.delete(staged.files)

    def restore(self, table_dir, version, as_version):
        self._count += 1
        old = json.loads(self._store.get(list_versions(self._store, table_dir)[version]))
        return self._put(table_dir, as_version, old["data"], f"{self._count:032x}")

    def writes(self, table_dir):
        return []

    def read(self, table_dir):
        versions = list_versions(self._store, table_dir)
        newest = json.loads(self._store.get(versions[max(versions)]))
        return max(versions), json.loads(self._store.get(newest["data"]))

    def _put(self, table_dir, version, data, nonce):
        body = json.dumps({"data": data, "nonce": nonce}).encode()
        return create_once(self._store, f"{table_dir}/_versions/{version}.manifest", body)


@dataclass
class Expected:
    """What one name should be."""

    state: str = "absent"
    values: list[int] | None = None
    version: int = 0
    protected: bool = False
    deleted_at_ms: int = 0
    ttl_ms: int | None = None
    chained: bool = False
    by_others: set[str] = field(default_factory=set)


class Lifecycle(RuleBasedStateMachine):
    """Runs operations on a catalog and on the model, and compares after each."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.store = RemoteStore("memory://", {})
        self.tables = PaperTables(self.store)
        self.model = {name: Expected() for name in NAMES}
        self.backend = self._open()

    def _open(self) -> ListingBackend | CompatBackend:
        return ListingBackend(self._home())

    def _home(self) -> Home:
        return Home(self.store, author="alice", clock=self.clock, tables=self.tables)

    @initialize(theirs=st.booleans())
    def others_may_have_filled_it(self, theirs):
        """A directory with something in it is never adopted by a write."""
        if theirs:
            self.store.put("readme.txt", b"not a table")

    def _try(self, allowed: bool, act, *refusals: type[MooringError]) -> bool:
        """Run an operation that the model allows or refuses."""
        if allowed:
            act()
            return True
        with pytest.raises(refusals):
            act()
        return False

    # -- what we do ------------------------------------------------------------------------------

    @rule(
        name=names, values=st.lists(st.integers(0, 9), max_size=3), mode=st.sampled_from(CreateMode)
    )
    def create(self, name, values, mode):
        now, table = self.model[name], table_id(name)

        def act() -> None:
            info = self.backend.create_table(table, rows(values), mode)
            assert info.version == now.version + 1

        if now.state == "live" and now.values is not None:
            if mode is CreateMode.EXIST_OK:
                self.backend.create_table(table, rows(values), mode)
                return
            if not self._try(mode is CreateMode.OVERWRITE, act, TableAlreadyExistsError):
                return
        elif not self._try(now.state != "deregistered", act, TableAlreadyExistsError):
            return
        now.chained = now.chained or now.state in {"dropped", "purged"}
        now.state, now.values, now.version = "live", values, now.version + 1
        now.by_others.clear()

    @rule(name=names)
    def declare(self, name):
        now = self.model[name]
        allowed = now.state == "absent" and not now.chained
        if self._try(allowed, lambda: self.backend.declare_table(table_id(name)), MooringError):
            now.state = "live"

    @rule(name=names, ttl_ms=st.sampled_from(TTLS_MS))
    def drop(self, name, ttl_ms):
        now = self.model[name]
        refusal = ProtectedError if now.state == "live" else TableNotFoundError
        allowed = now.state == "live" and not now.protected
        act = lambda: self.backend.drop_table(table_id(name), Ttl(ttl_ms))  # noqa: E731
        if self._try(allowed, act, refusal):
            now.state, now.chained = "dropped", True
            now.deleted_at_ms, now.ttl_ms = self.clock.now_ms(), ttl_ms

    @rule(name=names)
    def undrop(self, name):
        now = self.model[name]
        act = lambda: self.backend.undrop_table(table_id(name))  # noqa: E731
        if self._try(now.state == "dropped", act, TableNotFoundError):
            now.state, now.chained = "live", True
            now.by_others.clear()

    @rule(name=names)
    def deregister(self, name):
        now = self.model[name]
        refusal = ProtectedError if now.state == "live" else TableNotFoundError
        act = lambda: self.backend.deregister_table(table_id(name))  # noqa: E731
        if self._try(now.state == "live" and not now.protected, act, refusal):
            now.state, now.chained = "deregistered", True

    @rule(name=names)
    def register(self, name):
        now = self.model[name]
        refusal = TableAlreadyExistsError if now.state == "live" else TableNotFoundError
        allowed = now.state == "deregistered" or (
            now.state == "dropped" and "nested" in now.by_others
        )
        act = lambda: self.backend.register_table(table_id(name), f"{name}.lance")  # noqa: E731
        if now.state == "live" and self._takes_in(name):
            act()
        elif self._try(allowed, act, refusal):
            now.state, now.chained = "live", True
            now.by_others.clear()

    @rule(name=names, protected=st.booleans())
    def protect(self, name, protected):
        now = self.model[name]
        act = lambda: self.backend.protect_table(table_id(name), protected=protected)  # noqa: E731
        if self._try(now.state == "live", act, TableNotFoundError):
            now.chained = now.chained or now.protected != protected
            now.protected = protected

    @rule(name=names)
    def purge(self, name):
        now = self.model[name]
        act = lambda: self.backend.purge_table(table_id(name))  # noqa: E731
        if self._try(now.state == "dropped", act, TableNotFoundError):
            self._now_purged(now)

    @rule()
    def purge_expired(self):
        report = self.backend.purge_tables()
        expired = {
            name
            for name, now in self.model.items()
            if now.state == "dropped"
            and now.ttl_ms is not None
            and now.deleted_at_ms + now.ttl_ms <= self.clock.now_ms()
        }
        assert {found.name for found in report.purged} == expired
        assert report.failed == {}
        for name in expired:
            self._now_purged(self.model[name])

    @staticmethod
    def _now_purged(now: Expected) -> None:
        now.state, now.values, now.chained, now.protected = "purged", None, True, False
        now.by_others.clear()

    def _takes_in(self, name: str) -> bool:
        """Whether to register a live table gives it a row that it does not have."""
        return False

    # -- what others do --------------------------------------------------------------------------

    @rule(name=names, ttl_ms=st.sampled_from(TTLS_MS))
    def others_drop_beside(self, name, ttl_ms):
        now = self.model[name]
        if now.state != "live":
            return
        stamp = {"deleted_at_ms": self.clock.now_ms(), "ttl_ms": ttl_ms}
        self.store.put(f"{name}.deleted", json.dumps(stamp).encode())
        now.state, now.by_others = "dropped", {"root"}
        now.deleted_at_ms, now.ttl_ms = self.clock.now_ms(), ttl_ms

    @precondition(lambda self: not self.backend.settings.adopted)
    @rule(name=names)
    def others_deregister_inside(self, name):
        now = self.model[name]
        if now.state != "live":
            return
        path = f"{name}.lance/.lance-deregistered"
        self.store.put(path, b"")
        now.state, now.by_others, now.ttl_ms = "dropped", {"nested"}, None
        now.deleted_at_ms = self.store.head(path).modified_ms

    @rule(duration_ms=st.integers(0, 5000))
    def time_passes(self, duration_ms):
        self.clock.advance(duration_ms)

    @rule()
    def another_process_goes_on(self):
        self.backend = self._open()

    # -- what must hold --------------------------------------------------------------------------

    def _in_state(self, state: str) -> list[str]:
        return sorted(name for name, now in self.model.items() if now.state == state)

    @invariant()
    def listings_show_the_model(self):
        assert self.backend.list_tables(ROOT) == self._in_state("live")
        trash = {found.id.name: found for found in self.backend.list_purgable_tables()}
        assert sorted(trash) == self._in_state("dropped")
        for name, found in trash.items():
            now = self.model[name]
            assert found.deleted_at_ms == now.deleted_at_ms
            expected = None if now.ttl_ms is None else now.deleted_at_ms + now.ttl_ms
            assert found.expires_at_ms == expected

    @invariant()
    def looks_show_the_model(self):
        kinds = {"live": Exists, "dropped": SoftDeleted}
        for name, now in self.model.items():
            status = self.backend.table_status(table_id(name))
            assert isinstance(status, kinds.get(now.state, NotFound)), (name, now)
            if now.state == "live":
                info = self.backend.describe_table(table_id(name), check_declared=True)
                assert (info.properties.get("mooring.protected") == "true") == now.protected
                assert info.is_only_declared == (now.values is None)

    @invariant()
    def no_acknowledged_row_is_lost(self):
        for name, now in self.model.items():
            if now.values is not None:
                version, values = self.tables.read(f"{name}.lance")
                assert values == now.values
                assert version == now.version


class CompatLifecycle(Lifecycle):
    """The same with a manifest beside the directories, whose rows follow."""

    def _open(self) -> ListingBackend | CompatBackend:
        return self._open_compat()

    def _open_compat(self) -> CompatBackend:
        home = self._home()
        shared = SharedManifest(self.store, lambda: StoreManifest(self.store, RandomIds()))
        manifest = Manifest(shared, "alice")
        return CompatBackend(home, manifest=manifest)

    def _takes_in(self, name: str) -> bool:
        backend = self.backend
        return isinstance(backend, CompatBackend) and backend.manifest.find(name) is None

    @invariant()
    def rows_name_live_tables_only_where_they_lie(self):
        with self._open_compat().manifest.reading() as draft:
            everything = list(draft.rows())
        parked = {dropped_id(row.object_id) for row in everything if is_dropped(row.object_id)}
        assert parked <= {*self._in_state("dropped"), *self._in_state("deregistered")}
        found = {row.object_id: row for row in everything if not is_dropped(row.object_id)}
        for name, row in found.items():
            assert row.location == f"{name}.lance"
            # Only markers that others leave are behind the back of the manifest.
            assert self.model[name].state == "live" or self.model[name].by_others
        assert set(found) >= {
            name for name, now in self.model.items() if now.state == "live" and now.chained
        }


class MixedLifecycle(CompatLifecycle):
    """Clients with a manifest and without one take turns: a root table is the same for both."""

    @rule(with_manifest=st.booleans())
    def another_process_of_another_mode_goes_on(self, with_manifest):
        self.backend = self._open_compat() if with_manifest else Lifecycle._open(self)

    @invariant()
    def rows_name_live_tables_only_where_they_lie(self):
        """Those of a client without a manifest are left to whoever looks at the directory."""


def _test_case(machine: type[Lifecycle], examples: int) -> type:
    case = machine.TestCase
    case.settings = settings(max_examples=examples, stateful_step_count=50, deadline=None)
    return case


TestLifecycle = _test_case(Lifecycle, 400)
TestCompatLifecycle = _test_case(CompatLifecycle, 100)
TestMixedLifecycle = _test_case(MixedLifecycle, 100)
