"""Puts operations on a manifest catalog through their interleavings, and checks what is left."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mooring.directory.entries import read_dropped
from mooring.directory.manifest import MANIFEST_DIR
from mooring.errors import MooringError
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl

from .catalog_model import NAMESPACE, TABLE, Catalog, History, Op, Picture, apply, drops, explains
from .catalog_model import finish as finish_purge
from .explorer import Explorer, Limits, Report
from .manifests import newest_rows, open_manifest_backend, settled
from .world import MemoryWorld

if TYPE_CHECKING:
    from mooring.tables.manifest import ManifestRow

ACTORS = "ABCD"
# No race drops more namespaces than this.
_DROPS = 8
# What each initial state is made by; a name in angle brackets is the token of what it makes.
STARTS: dict[str, tuple[str, ...]] = {
    "empty": (),
    "namespace": ("ns n",),
    "table": ("ns n", "create n.t"),
    "declared": ("ns n", "declare n.t"),
    "dropped": ("ns n", "create n.t", "drop n.t"),
    "dropped twice": ("ns n", "create n.t", "drop n.t", "create n.t", "drop n.t"),
    "replaced": ("ns n", "create n.t", "drop n.t", "create n.t"),
    "alias": ("ns n", "create n.t", "alias n.a I1", "drop n.t"),
    "dropped alias": ("ns n", "create n.t", "alias n.a I1", "drop n.t", "drop n.a"),
    "dropped namespace": ("ns n", "create n.t", "cascade n"),
    "dropped empty namespace": ("ns n", "dropns n"),
    "expired": ("ns n", "create n.t", "cascade! n"),
    "leftover": ("ns n", "abandon n.t"),
    "deregistered": ("ns n", "create n.t", "deregister n.t"),
}


def parse(line: str, token: str) -> Op:
    verb, *names = line.split()
    return Op(verb, tuple(names) or ("",), token)


def object_id(name: str) -> ObjectId:
    return ObjectId(tuple(name.split("."))) if name else ROOT


def perform(op: Op, places: dict[str, str], backend) -> object:  # noqa: C901, PLR0911, PLR0912  # a table of cases
    """Call the real backend."""
    first = object_id(op.name)
    match op.verb:
        case "create":
            return backend.create_table(first, op.token)
        case "overwrite":
            return backend.create_table(first, op.token, CreateMode.OVERWRITE)
        case "declare":
            return backend.declare_table(first)
        case "drop":
            return backend.drop_table(first)
        case "drop!":
            return backend.drop_table(first, Ttl(0))
        case "undrop":
            return backend.undrop_table(first, object_id(op.new))
        case "rename":
            return backend.rename_table(first, object_id(op.new))
        case "deregister":
            return backend.deregister_table(first)
        case "alias":
            return backend.register_table(first, places[op.new])
        case "purge":
            return backend.purge_table(first)
        case "expire":
            return backend.purge_tables()
        case "ns":
            return backend.create_namespace(first, {})
        case "dropns":
            return backend.drop_namespace(first)
        case "cascade":
            return backend.drop_namespace(first, cascade=True)
        case "cascade!":
            return backend.drop_namespace(first, cascade=True, ttl=Ttl(0))
        case "undropns":
            return backend.undrop_namespace(first)
        case "abandon":  # a creator crashed between its data and its name
            return backend.home.open_tables().stage(_abandoned(op), op.token)
        case "sweep":
            return backend.delete_orphans(backend.find_orphans(0))
    raise AssertionError(op)


def _abandoned(op: Op) -> str:
    return f"0badc0de_{op.name}"


@dataclass(frozen=True)
class Race:
    """Some actors, each with a few operations, from a named initial state."""

    start: str
    actors: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return f"{self.start}: " + " | ".join(" + ".join(ops) for ops in self.actors)

    def programs(self) -> dict[str, list[Op]]:
        return {
            owner: [parse(line, f"{owner}{at}") for at, line in enumerate(lines)]
            for owner, lines in zip(ACTORS, self.actors, strict=False)
        }


def race(start: str, *actors: str) -> Race:
    """Write a race: operations of one actor are joined by a plus sign."""
    return Race(start, tuple(tuple(actor.split(" + ")) for actor in actors))


@dataclass(frozen=True)
class Start:
    """An initial state: the store's content, the model's catalog, and where things lie."""

    content: dict[str, bytes]
    catalog: Catalog
    places: dict[str, str]


def prepare(name: str, world, open_one) -> Start:
    """Build an initial state with the real code, and by the model."""
    store = world.open({})
    backend = open_one(store, "I")
    catalog = Catalog()
    places: dict[str, str] = {}
    for at, line in enumerate(STARTS[name]):
        op = parse(line, f"I{at}")
        perform(op, places, backend)
        (after,) = [found for found in apply(op, catalog) if found.said == "ok"]
        catalog = finish_purge(after.pending, after.catalog) if after.pending else after.catalog
        if op.verb == "abandon":
            places[op.token] = _abandoned(op)
        if op.verb in {"create", "declare"}:
            row = newest_rows(store.content)["$".join(op.name.split("."))]
            places[op.token] = row.location or ""
    content = dict(store.content)
    world.close(store)
    return Start(content, catalog, places)


class Checker:
    """Judges what a schedule leaves."""

    def __init__(self, race: Race, start: Start, world, open_one) -> None:
        self._programs = race.programs()
        self._start = start
        self._world = world
        self._open = open_one
        self._known: dict[object, str | None] = {}

    def __call__(self, store, actors) -> str | None:
        told = tuple((tuple(actor.outcomes), tuple(actor.since)) for actor in actors)
        key = (told, frozenset(store.content.items()))
        if key not in self._known:
            self._known[key] = self._judge(dict(store.content), actors)
        return self._known[key]

    def _judge(self, content: dict[str, bytes], actors) -> str | None:
        for actor in actors:
            for outcome in actor.outcomes:
                if outcome.startswith("BUG"):
                    return f"{actor.name} broke: {outcome}"
        rows = newest_rows(content)
        problem = _orphan_row(rows)
        if problem:
            return problem
        return self._explain(content, actors) or self._must_be_usable(content)

    def _explain(self, content: dict[str, bytes], actors) -> str | None:
        final = self._see(content, newest_rows(content))
        histories = tuple(self._history(actor) for actor in actors)
        if not explains(self._start.catalog, histories, final):
            return f"no order of the operations explains the end: {final}"
        return self._listing_problem(content, final)

    def _history(self, actor) -> History:
        ops = tuple(zip(self._programs[actor.name], actor.outcomes, strict=False))
        return History(ops, tuple(actor.since))

    def _see(self, content: dict[str, bytes], rows: dict[str, ManifestRow]) -> Picture:
        """Draw what is left, by its rows and files."""
        backend = self._open(self._world.open(content), "Z")
        read = backend.home.open_tables().read
        live, groups = set(), {}
        for row in rows.values():
            gone = read_dropped(row)
            if gone is None:
                found = read(row.location) if row.location else None
                live.add((row.object_id.replace("$", "."), row.object_type, found))
                continue
            purging = gone.record.purging
            found = None if purging or not row.location else read(row.location)
            group = groups.setdefault(gone.drop_id, [gone.record.top.replace("$", "."), []])
            name = gone.object_id.replace("$", ".")
            group[1].append((name, row.object_type, found, purging))
        loose = [str(read(place)) for place in loose_places(content, rows)]
        return Picture(frozenset(live), drops(groups.values()), tuple(sorted(loose)))

    def _listing_problem(self, content: dict[str, bytes], final: Picture) -> str | None:
        """Compare what listings say with what the rows say."""
        backend = self._open(self._world.open(content), "Z")
        tables = {str(found).replace("$", ".") for found in backend.list_all_tables()}
        if tables != {name for name, kind, _ in final.live if kind == TABLE}:
            return f"list_all_tables says {tables}"
        names = set()
        waiting = [ROOT]
        while waiting:
            parent = waiting.pop()
            below = [parent.child(name) for name in backend.list_namespaces(parent)]
            names |= {str(found).replace("$", ".") for found in below}
            waiting += below
        if names != {name for name, kind, _ in final.live if kind == NAMESPACE}:
            return f"list_namespaces says {names}"
        return None

    def _must_be_usable(self, content: dict[str, bytes]) -> str | None:
        """Whatever was left can be finished, and every name can be used again."""
        store = self._world.open(content)
        backend = self._open(store, "Z")
        try:
            exercise(backend)
        except MooringError as exc:
            return f"stuck afterwards: {exc!r}"
        rows = newest_rows(store.content)
        if rows:
            return f"rows are left after everything was dropped and purged: {sorted(rows)}"
        return None


def exercise(backend) -> None:
    """Clear everything away, use every name anew, and clear that away, too."""
    _clear(backend)
    namespace = ROOT.child("n")
    tables = [namespace.child(name) for name in "tua"]
    backend.create_namespace(namespace, {})
    for table in tables:
        backend.create_table(table, "after")
    backend.drop_namespace(namespace, cascade=True)
    backend.undrop_namespace(namespace)
    for table in tables:
        location = backend.find(table).location
        found = backend.home.open_tables().read(location)
        if found != "after":
            msg = f"a later table reads {found}"
            raise MooringError(msg)
    _clear(backend)


def _clear(backend) -> None:
    for name in backend.list_tables(ROOT):
        backend.drop_table(ROOT.child(name))
    for name in backend.list_namespaces(ROOT):
        backend.drop_namespace(ROOT.child(name), cascade=True)
    for table in {found.id for found in backend.list_purgable_tables()}:
        backend.purge_table(table)
    backend.purge_tables()
    # Namespaces of the trash whose time is not over go by coming back and being dropped again.
    for _ in range(_DROPS):
        tops = {row.record.top for row in backend._trash.rows()}
        if not tops:
            return
        namespace = object_id(min(tops).replace("$", "."))
        backend.undrop_namespace(namespace)
        backend.drop_namespace(namespace, cascade=True, ttl=Ttl(0))
        backend.purge_tables()


def _orphan_row(rows: dict[str, ManifestRow]) -> str | None:
    """Find a live row whose namespace is not there."""
    for key, row in rows.items():
        parent = key.rpartition("$")[0]
        if read_dropped(row) is not None or not parent:
            continue
        if parent not in rows or rows[parent].object_type != NAMESPACE:
            return f"{key} lies in a namespace that is not there"
    return None


def loose_places(content: dict[str, bytes], rows: dict[str, ManifestRow]) -> list[str]:
    """Find directories of the root that no row mentions."""
    mentioned = {(row.location or "").partition("/")[0] for row in rows.values()}
    directories = {path.partition("/")[0] for path in content if "/" in path}
    return sorted(directories - mentioned - {MANIFEST_DIR})


def _settled_but_swept(call, content: dict[str, bytes], *, faults_left: bool) -> bool:
    """A sweep looks into directories that no version mentions: nothing in them is settled."""
    del faults_left
    return settled(call, content, faults_left=True)


def explore(
    race: Race,
    *,
    limits: Limits | None = None,
    open_one=open_manifest_backend,
    commutes=settled,
) -> Report:
    """Explore a race in memory and return what was found."""
    world = MemoryWorld()
    start = prepare(race.start, world, open_one)
    programs = {
        name: [partial(perform, op, start.places) for op in ops]
        for name, ops in race.programs().items()
    }
    checker = Checker(race, start, world, open_one)
    if commutes is settled and any("sweep" in ops for ops in race.actors):
        commutes = _settled_but_swept
    return Explorer(
        world,
        start.content,
        programs,
        checker,
        open_one,
        limits or Limits(),
        timed=True,
        commutes=commutes,
    ).explore()
