"""A catalog that has its manifest alone under torture: every version is one state of all names."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from mooring.clock import DAY_MS
from mooring.directory.manifest import Manifest
from mooring.directory.manifest_backend import ManifestBackend
from mooring.directory.shared_manifest import SharedManifest
from mooring.errors import MooringError, NamespaceNotFoundError
from mooring.identifiers import ROOT
from mooring.namespace.api import Ttl
from mooring.namespace.home import Home
from tests.races import catalog_model, manifest_harness
from tests.races.catalog_model import NO_NAMESPACE, TABLE, TABLE_EXISTS, Catalog, Outcome
from tests.races.manifest_harness import Race, Start, object_id
from tests.races.manifests import HashIds, StoreManifest, newest_rows
from tests.races.world import SETTINGS, MemoryStore, MemoryWorld, StoreTables

from .history import History, Search, Way
from .plain_subject import saw_status, saw_tables
from .subject import Ending, ShiftedClock, Verb, require_done

TABLES = ("n.t", "n.u", "r", "n.s.t")
SPACES = ("n", "n.s")
_ONE, _TWO, _SPACE = (TABLES,), (TABLES, TABLES), (SPACES,)
_NOBODY = Race("empty", ())
_MONTH_H = 30 * DAY_MS // 3_600_000
_PURGING = {"purge", "expire"}


def home_of(store, owner: str, hours: int, *, seals: bool) -> Home:
    ids = HashIds(owner)
    tables = StoreTables(store, ids, seals=seals)
    clock = ShiftedClock(hours)
    return Home(store, author=owner, clock=clock, ids=ids, tables=tables, settings=SETTINGS)


def manifest_of(home: Home) -> Manifest:
    return Manifest(SharedManifest(home.store, lambda: StoreManifest(home.store, home.ids)), "it")


def perform(op, backend, places: dict[str, str]) -> object:
    """Call the real backend."""
    match op.verb:
        case "list":
            return saw_tables(backend)
        case "status":
            return saw_status(backend, object_id(op.name))
        case "note":
            return backend.update_namespace(object_id(op.name), {"noted": op.token})
        case "expire":
            return require_done(backend.purge_tables())
        case _:
            return manifest_harness.perform(op, places, backend)


def seen(op, said: str, catalog: Catalog) -> bool | None:
    """Whether what was seen is what is there; None where nothing was looked at."""
    if op.verb == "list":
        found = sorted(entry.name for entry in catalog.live if entry.kind == TABLE)
        return said == " ".join(["saw", *found])
    if op.verb == "status":
        return said == _status(op.name, catalog)
    if op.verb == "note":
        return said == ("ok" if catalog.has_namespace(op.name) else NO_NAMESPACE)
    return None


def _status(name: str, catalog: Catalog) -> str:
    if catalog.table(name):
        return "saw live"
    gone = [one for one in catalog.trash if one.entry.name == name and one.entry.kind == TABLE]
    return "saw dropped" if any(not one.purging for one in gone) else "saw none"


@dataclass(frozen=True)
class RowsModel:
    """What operations on rows mean."""

    ending: Ending
    helped: bool
    served: bool = False

    def ways(self, op, said: str, state: Catalog) -> list[Way]:
        looked = seen(op, said, state)
        if looked is not None:
            return [Way(state)] if looked else []
        timed = self.timed(op, state)
        found = catalog_model._ways(op, said, timed, helped=self.helped)
        found += met_declared(op, said, timed)
        if self.served and said == NO_NAMESPACE and op.verb in {"undrop", "rename"}:
            # A server looks for where something is to go before it looks for what.
            is_missing = not state.has_namespace(catalog_model.parent_of(op.new))
            found += [Outcome(said, timed)] if is_missing else []
        return [Way(untimed(after.catalog), after.pending) for after in found]

    def timed(self, op, catalog: Catalog) -> Catalog:
        """Tell what is over by the clock of whoever looks."""
        if op.verb != "expire":
            return catalog
        ops = self.ending.history.ops
        trash = {
            gone._replace(
                over=ops[gone.drop].verb.endswith("!") and self.ending.is_over(gone.drop, op.token)
            )
            for gone in catalog.trash
        }
        return replace(catalog, trash=frozenset(trash))

    def finish(self, rest, state: Catalog) -> Catalog:
        return catalog_model.finish(rest, state)

    def drift(self, state: Catalog, going_on: list) -> list[Catalog]:
        return []


def met_declared(op, said: str, catalog: Catalog) -> list[Outcome]:
    """A creator that met a table which was only declared, and is gone again, says it was there."""
    known = catalog.table(op.name)
    is_declared = known is not None and catalog.content(known.place) is None
    is_met = op.verb == "create" and said == TABLE_EXISTS and is_declared
    return [Outcome(said, catalog)] if is_met else []


def untimed(catalog: Catalog) -> Catalog:
    return replace(catalog, trash=frozenset(gone._replace(over=False) for gone in catalog.trash))


def is_helped(history: History) -> bool:
    return sum(op.verb in _PURGING for op in history.ops.values()) > 1


class ManifestSubject:
    """A catalog that has its manifest alone."""

    name = "manifest"
    start = ("ns n", "create n.t")
    verbs: ClassVar[tuple[Verb, ...]] = (
        Verb("create", 8, _ONE),
        Verb("overwrite", 1, _ONE),
        Verb("declare", 1, _ONE),
        Verb("drop", 6, _ONE),
        Verb("drop!", 3, _ONE),
        Verb("undrop", 4, _ONE),
        Verb("undrop", 2, _TWO),
        Verb("rename", 4, _TWO),
        Verb("purge", 3, _ONE),
        Verb("expire", 3),
        Verb("deregister", 1, _ONE),
        Verb("alias", 1, (TABLES, ("I1",))),
        Verb("ns", 4, _SPACE),
        Verb("dropns", 1, _SPACE),
        Verb("cascade", 2, _SPACE),
        Verb("cascade!", 1, _SPACE),
        Verb("undropns", 3, _SPACE),
        Verb("note", 1, _SPACE),
        Verb("list", 2),
        Verb("status", 1, _ONE),
    )

    def __init__(self) -> None:
        self._places: dict[str, str] = {}

    def open(self, store, owner: str, hours: int = 0):
        home = home_of(store, owner, hours, seals=False)
        return ManifestBackend(home, manifest=manifest_of(home))

    def perform(self, op, backend) -> object:
        result = perform(op, backend, self._places)
        if op.token == "I1":
            row = backend.find(object_id(op.name))
            self._places[op.token] = row.location or ""
        return result

    def watch(self, store) -> str | None:
        """Nobody ever sees a row whose namespace is not there."""
        return manifest_harness._orphan_row(newest_rows(store.content))

    def problem(self, ending: Ending) -> str | None:
        content = ending.content
        start = Start({}, Catalog(), {})
        checker = manifest_harness.Checker(_NOBODY, start, MemoryWorld(), self.open)
        final = checker._see(content, newest_rows(content))
        lost = [name for name, _, found in final.live if found == "LOST"]
        if lost:
            return f"the data of {lost} is gone"
        model = RowsModel(ending, is_helped(ending.history))

        def ends_well(state: Catalog) -> bool:
            drawn = catalog_model.picture(state)
            return (drawn.live, drawn.trash) == (final.live, final.trash)

        search = Search(model, ending.history)
        return (
            search.problem(Catalog(), ends_well)
            or checker._listing_problem(content, final)
            or self._must_be_usable(content)
        )

    def _must_be_usable(self, content: dict[str, bytes]) -> str | None:
        """Everything goes, a month from now; then every name can be used anew."""
        store = MemoryStore(content)
        backend = self.open(store, "Z", _MONTH_H)
        try:
            self._clear(backend)
            left = self._left(store)
            if left:
                return f"left after everything was dropped and purged: {left}"
            self._use(backend)
        except MooringError as exc:
            return f"stuck afterwards: {exc!r}"
        return None

    def _clear(self, backend) -> None:
        clear(backend)

    def _left(self, store) -> list[str]:
        return sorted(newest_rows(store.content))

    def _use(self, backend) -> None:
        use(backend, SPACES, TABLES)


def clear(backend) -> None:
    """Drop everything and purge it."""
    for table in backend.list_all_tables():
        backend.drop_table(table)
    for name in backend.list_namespaces(ROOT):
        backend.drop_namespace(ROOT.child(name), cascade=True)
    for table in {found.id for found in backend.list_purgable_tables()}:
        backend.purge_table(table)
    backend.purge_tables()  # ends what was begun: a namespace does not come back before
    # What was dropped a moment ago by a clock that is a month ahead comes back and goes for good.
    with suppress(NamespaceNotFoundError):
        backend.undrop_namespace(object_id(SPACES[0]))
        backend.drop_namespace(object_id(SPACES[0]), cascade=True, ttl=Ttl(0))
    backend.purge_tables()


def use(backend, spaces, tables) -> None:
    """Use every name, drop all, and bring it back."""
    for space in spaces:
        backend.create_namespace(object_id(space), {})
    for table in tables:
        backend.create_table(object_id(table), "after")
        backend.drop_table(object_id(table))
        backend.undrop_table(object_id(table))
    top = object_id(spaces[0])
    backend.drop_namespace(top, cascade=True)
    backend.undrop_namespace(top)
    read = backend.home.open_tables().read
    for table in tables:
        location = backend.describe_table(object_id(table)).location.removeprefix("memory:///")
        if read(location) != "after":
            msg = f"a later table reads {read(location)}"
            raise MooringError(msg)
