"""Any sequence of operations on namespaces and the tables in them, against a model of rows.

Spec: directory-namespace, "V2: Manifest"; soft-delete, all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mooring.clock import RandomIds
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.manifest import Manifest
from mooring.directory.manifest_backend import ManifestBackend
from mooring.directory.shared_manifest import SharedManifest
from mooring.errors import (
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    ProtectedError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.home import Home
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.store.remote import RemoteStore
from tests.lakes import FakeClock, rows
from tests.property.test_lifecycle_machine import PaperTables
from tests.races.manifests import StoreManifest

SPACES = ("a", "b%", "a$c", "a$t")
TABLES = ("a$t", "a$u", "b%$t", "a$c$t'")
spaces = st.sampled_from(SPACES)
tables = st.sampled_from(TABLES)
ttls = st.sampled_from((None, 0, 1000))


def _parent(key: str) -> str:
    return key.rpartition("$")[0]


def _id(key: str) -> ObjectId:
    return ObjectId.parse(key)


@dataclass
class Thing:
    """A row: a table with its location, or a namespace without one."""

    location: str | None = None
    protected: bool = False
    note: str | None = None


@dataclass
class Drop:
    """What was dropped at once: the first identifier took the others along."""

    top: str
    members: dict[str, Thing]
    at_ms: int
    ttl_ms: int | None

    def is_over(self, now_ms: int) -> bool:
        return self.ttl_ms is not None and self.at_ms + self.ttl_ms <= now_ms


@dataclass
class Model:
    """What the catalog should hold; files by location."""

    live: dict[str, Thing] = field(default_factory=dict)
    trash: list[Drop] = field(default_factory=list)
    files: dict[str, list[int] | None] = field(default_factory=dict)

    def is_space(self, key: str) -> bool:
        return key == "" or (key in self.live and self.live[key].location is None)

    def is_table(self, key: str) -> bool:
        return key in self.live and self.live[key].location is not None

    def below(self, key: str) -> list[str]:
        return [found for found in self.live if found.startswith(f"{key}$")]

    def is_protected(self, key: str) -> bool:
        while key:
            if self.live[key].protected:
                return True
            key = _parent(key)
        return False

    def newest_drop(self, key: str, *, of_space: bool) -> Drop | None:
        found = [
            drop
            for drop in self.trash
            if key in drop.members and (drop.members[key].location is None) == of_space
        ]
        return found[-1] if found else None

    def used(self) -> set[str]:
        """Return every location that a name, live or dropped, stands for."""
        things = [*self.live.values()]
        for drop in self.trash:
            things += drop.members.values()
        return {thing.location for thing in things if thing.location}


class Catalog(RuleBasedStateMachine):
    """Runs operations on a catalog and on the model, and compares after each."""

    backend_class: type = ManifestBackend

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.store = RemoteStore("memory://", {})
        self.tables = PaperTables(self.store)
        self.model = Model()
        self.backend = self._open()

    def _open(self):
        home = Home(self.store, author="alice", clock=self.clock, tables=self.tables)
        shared = SharedManifest(self.store, lambda: StoreManifest(self.store, RandomIds()))
        manifest = Manifest(shared, "alice")
        return self.backend_class(home, manifest=manifest)

    def _try(self, refusal: type[MooringError] | None, act) -> bool:
        """Run an operation that the model allows, or refuses in a certain way."""
        if refusal is None:
            act()
            return True
        with pytest.raises(refusal):
            act()
        return False

    def _why_not_new(self, key: str) -> type[MooringError] | None:
        if not self.model.is_space(_parent(key)):
            return NamespaceNotFoundError
        if self.model.is_table(key):
            return TableAlreadyExistsError
        return NamespaceAlreadyExistsError if key in self.model.live else None

    def _path(self, info) -> str:
        return unquote(info.location).rpartition("/")[2]

    # -- namespaces ------------------------------------------------------------------------------

    @rule(key=spaces, mode=st.sampled_from(CreateMode), note=st.sampled_from(("x", "y")))
    def create_namespace(self, key, mode, note):
        model = self.model
        exists = key in model.live and model.is_space(key)
        refusal = self._why_not_new(key)
        if exists and mode is not CreateMode.CREATE and model.is_space(_parent(key)):
            refusal = None
        act = lambda: self.backend.create_namespace(_id(key), {"note": note}, mode)  # noqa: E731
        if not self._try(refusal, act):
            return
        if not exists or mode is CreateMode.OVERWRITE:
            model.live[key] = Thing(note=note)

    @rule(key=spaces, cascade=st.booleans(), ttl_ms=ttls)
    def drop_namespace(self, key, cascade, ttl_ms):
        model = self.model
        refusal = None
        if not (key in model.live and model.is_space(key)):
            refusal = NamespaceNotFoundError
        elif model.below(key) and not cascade:
            refusal = NamespaceNotEmptyError
        elif any(model.is_protected(found) for found in [key, *model.below(key)]):
            refusal = ProtectedError
        act = lambda: self.backend.drop_namespace(  # noqa: E731
            _id(key), cascade=cascade, ttl=Ttl(ttl_ms)
        )
        if self._try(refusal, act):
            self._drop(key, [key, *model.below(key)], ttl_ms)

    def _drop(self, top: str, keys: list[str], ttl_ms: int | None) -> None:
        members = {key: self.model.live.pop(key) for key in keys}
        self.model.trash.append(Drop(top, members, self.clock.now_ms(), ttl_ms))

    @rule(key=spaces)
    def undrop_namespace(self, key):
        model = self.model
        drop = model.newest_drop(key, of_space=True)
        refusal: type[MooringError] | None = None
        if drop is None or drop.top != key or not model.is_space(_parent(key)):
            refusal = NamespaceNotFoundError
        elif any(found in model.live for found in drop.members):
            refusal = MooringError
        if self._try(refusal, lambda: self.backend.undrop_namespace(_id(key))):
            model.trash.remove(drop)
            model.live.update(drop.members)

    @rule(key=spaces, protected=st.booleans())
    def protect_namespace(self, key, protected):
        model = self.model
        is_there = key in model.live and model.is_space(key)
        updates = {"mooring.protected": "true" if protected else None}
        act = lambda: self.backend.update_namespace(_id(key), updates)  # noqa: E731
        if self._try(None if is_there else NamespaceNotFoundError, act):
            model.live[key].protected = protected

    # -- tables ----------------------------------------------------------------------------------

    @rule(key=tables, value=st.integers(0, 9), mode=st.sampled_from(CreateMode))
    def create(self, key, value, mode):
        model = self.model
        known = model.live[key].location if model.is_table(key) else None
        if known and model.files[known] is not None and mode is not CreateMode.CREATE:
            info = self.backend.create_table(_id(key), rows([value]), mode)
            assert self._path(info) == known
            if mode is CreateMode.OVERWRITE:
                model.files[known] = [value]
            return
        refusal = self._why_not_new(key)
        if known and model.files[known] is None:
            refusal = None  # it was only declared
        made = []
        act = lambda: made.append(  # noqa: E731
            self.backend.create_table(_id(key), rows([value]), mode)
        )
        if not self._try(refusal, act):
            return
        location = self._path(made[0])
        assert made[0].version == 1
        assert location == known if known else location not in model.used()
        model.live.setdefault(key, Thing(location))
        model.files[location] = [value]

    @rule(key=tables)
    def declare(self, key):
        made = []
        act = lambda: made.append(self.backend.declare_table(_id(key)))  # noqa: E731
        if self._try(self._why_not_new(key), act):
            location = self._path(made[0])
            self.model.live[key] = Thing(location)
            self.model.files[location] = None

    @rule(key=tables, new=tables)
    def register_another_name(self, key, new):
        """A second name for the location of a live table."""
        model = self.model
        if not model.is_table(key) or model.files[model.live[key].location] is None:
            return
        location = model.live[key].location
        act = lambda: self.backend.register_table(_id(new), location)  # noqa: E731
        if self._try(self._why_not_new(new), act):
            model.live[new] = Thing(location)

    @rule(key=tables, new=tables)
    def rename(self, key, new):
        model = self.model
        if not model.is_table(key):
            refusal = TableNotFoundError
        elif key == new:
            refusal = None
        else:
            refusal = self._why_not_new(new)
        if self._try(refusal, lambda: self.backend.rename_table(_id(key), _id(new))):
            model.live[new] = model.live.pop(key)

    @rule(key=tables, ttl_ms=ttls)
    def drop(self, key, ttl_ms):
        if self._try(self._why_not_gone(key), self._dropping(key, ttl_ms)):
            self._drop(key, [key], ttl_ms)

    def _dropping(self, key: str, ttl_ms: int | None):
        return lambda: self.backend.drop_table(_id(key), Ttl(ttl_ms))

    def _why_not_gone(self, key: str) -> type[MooringError] | None:
        if not self.model.is_table(key):
            return TableNotFoundError
        return ProtectedError if self.model.is_protected(key) else None

    @rule(key=tables, new=st.none() | tables)
    def undrop(self, key, new):
        model = self.model
        drop = model.newest_drop(key, of_space=False)
        refusal = self._why_not_new(new or key)
        if drop is None:
            refusal = MooringError if model.is_table(key) else TableNotFoundError
        act = lambda: self.backend.undrop_table(_id(key), new and _id(new))  # noqa: E731
        if self._try(refusal, act):
            model.live[new or key] = drop.members.pop(key)
            if not drop.members:
                model.trash.remove(drop)

    @rule(key=tables, protected=st.booleans())
    def protect(self, key, protected):
        is_there = self.model.is_table(key)
        act = lambda: self.backend.protect_table(_id(key), protected=protected)  # noqa: E731
        if self._try(None if is_there else TableNotFoundError, act):
            self.model.live[key].protected = protected

    @rule(key=tables)
    def purge(self, key):
        drops = [
            drop
            for drop in self.model.trash
            if key in drop.members and drop.members[key].location is not None
        ]
        act = lambda: self.backend.purge_table(_id(key))  # noqa: E731
        if self._try(None if drops else TableNotFoundError, act):
            self._purged([(drop, key) for drop in drops])

    @rule()
    def purge_expired(self):
        report = self.backend.purge_tables()
        assert report.failed == {}
        over = [drop for drop in self.model.trash if drop.is_over(self.clock.now_ms())]
        gone = [(drop, key) for drop in over for key in drop.members]
        tables = [key for drop, key in gone if drop.members[key].location]
        assert sorted(map(str, report.purged)) == sorted(tables)
        self._purged(gone)

    def _purged(self, gone: list[tuple[Drop, str]]) -> None:
        locations = {drop.members.pop(key).location for drop, key in gone}
        self.model.trash = [drop for drop in self.model.trash if drop.members]
        for location in locations - self.model.used() - {None}:
            del self.model.files[location]

    # -- around ----------------------------------------------------------------------------------

    @rule(duration_ms=st.sampled_from((0, 1, 1000, -1000)))
    def time_passes(self, duration_ms):
        """Clocks may also go back: nothing but expiry depends on them."""
        self.clock.advance(duration_ms)

    @rule()
    def another_process_goes_on(self):
        self.backend = self._open()

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def listings_show_the_model(self):
        model = self.model
        for parent in ["", *(key for key in model.live if model.is_space(key))]:
            children = {key.rpartition("$")[2]: key for key in model.live if _parent(key) == parent}
            namespace = _id(parent) if parent else ROOT
            expected = sorted(name for name, key in children.items() if model.is_table(key))
            assert self.backend.list_tables(namespace) == expected
            expected = sorted(name for name, key in children.items() if model.is_space(key))
            assert self.backend.list_namespaces(namespace) == expected
        live = sorted(_id(key) for key in model.live if model.is_table(key))
        assert self.backend.list_all_tables() == live

    @invariant()
    def looks_show_the_model(self):
        for key in TABLES:
            status = self.backend.table_status(_id(key))
            if self.model.is_table(key):
                assert status == Exists()
                info = self.backend.describe_table(_id(key), check_declared=True)
                thing = self.model.live[key]
                assert self._path(info) == thing.location
                assert info.is_only_declared == (self.model.files[thing.location] is None)
                assert (info.properties.get("mooring.protected") == "true") == thing.protected
                continue
            drop = self.model.newest_drop(key, of_space=False)
            if drop is None:
                assert status == NotFound()
            else:
                expires = None if drop.ttl_ms is None else drop.at_ms + drop.ttl_ms
                assert status == SoftDeleted(drop.at_ms, expires)

    @invariant()
    def namespaces_show_the_model(self):
        for key in SPACES:
            if not (key in self.model.live and self.model.is_space(key)):
                with pytest.raises(NamespaceNotFoundError):
                    self.backend.describe_namespace(_id(key))
                continue
            thing = self.model.live[key]
            protected = {"mooring.protected": "true"} if thing.protected else {}
            expected = {"note": thing.note, **protected}
            assert self.backend.describe_namespace(_id(key)) == expected

    @invariant()
    def the_trash_shows_the_model(self):
        expected = sorted(
            key
            for drop in self.model.trash
            for key, thing in drop.members.items()
            if thing.location
        )
        found = [str(table.id) for table in self.backend.list_purgable_tables()]
        assert sorted(found) == expected

    @invariant()
    def no_acknowledged_row_is_lost_and_no_directory_left(self):
        for location, values in self.model.files.items():
            if values is not None:
                assert self.tables.read(location)[1] == values
        directories = set(self.store.list_dir("").directories) - {"__manifest"}
        assert directories == set(self.model.files)


class CompatCatalog(Catalog):
    """The same where root tables may lie in directories of their names."""

    backend_class = CompatBackend


def _test_case(machine: type[Catalog], examples: int) -> type:
    case = machine.TestCase
    case.settings = settings(max_examples=examples, stateful_step_count=40, deadline=None)
    return case


TestCatalog = _test_case(Catalog, 100)
TestCompatCatalog = _test_case(CompatCatalog, 40)
