"""Lance tables of an Iceberg catalog through interleavings of those who change them.

The server is a model; what speaks to it is the real backend.

A history is right if some order of its calls, one after another, explains every outcome and what is
left. Beside that every state on the way has to be one that a reader can live with, and whatever was
left, one more writer has to get through, and a purge that was cut off to come to its end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.iceberg import making, trash, version_commit
from mooring.iceberg import table as tables
from mooring.iceberg.backend import IcebergBackend
from mooring.iceberg.connection import TRASH, Connection
from mooring.iceberg.making import Making
from mooring.iceberg.properties import MANAGED_BY
from mooring.iceberg.snapshots import current_version, read_snapshots
from mooring.iceberg.trash import Dropped
from mooring.identifiers import ObjectId
from mooring.namespace.table_operations import CreateVersion
from mooring.tables import field_ids, first_version, opening
from mooring.tables.api import StagedTable, VersionRange
from mooring.tables.place import Place
from mooring.tables.versions import list_versions

from .explorer import Explorer, Limits, Report
from .iceberg_model import IMPL, WRITTEN, Model, Steps, explains
from .iceberg_server import EMPTY, ON_THE_WAY, REQUEST, SERVER, ModelClient, ServedWorld
from .metastore_tables_harness import Halving, ListedTables, decode, encode
from .scheduler import CRASH, FAIL, LOSE, RUN, Saw
from .world import MemoryStore, manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.iceberg.properties import ManagedBy

    from .iceberg_model import Rows, Step

LATE = "late"
# Whose turn it is when a request arrives that was given up on.
NETWORK = -1
N = ObjectId(("n",))
OUTSIDE = "x"
_ATTEMPTS = 5
_ROOT = "memory:///"
_NOW_MS = 1_700_000_000_000


# -- the real thing --------------------------------------------------------------------------------


class Stamps:
    """A clock that stands still: before the race for those who prepare it."""

    def __init__(self, owner: str) -> None:
        self._now_ms = _NOW_MS - (owner == "I")

    def now_ms(self) -> int:
        return self._now_ms


class ShortIds:
    """Gives each actor its own row of ids, which differ in their first letters."""

    def __init__(self, owner: str) -> None:
        self._owner = ord(owner)
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return f"{self._owner:02x}{self._count:010x}".ljust(32, "0")


class ModelConnection(Connection):
    """A connection whose tables lie in the store of an actor, and are none of Lance's."""

    def schema_of(self, table) -> object:
        """Tell nothing: nobody depends on the schema that is shown."""
        raise UnsupportedError(table.what)


class Written:
    """What a program wrote that knows nothing of catalogs, as Lance opens it."""

    version = len(WRITTEN)
    schema = pa.schema([])


class RowTables(ListedTables):
    """Tables whose manifests list the rows."""

    def discard(self, staged: StagedTable) -> None:
        """Leave it: there are no data files."""


def open_backend(store, owner: str, by: ManagedBy) -> IcebergBackend:
    """Open the backend for one actor."""
    halving = Halving(store)
    connection = ModelConnection(
        ModelClient(halving),
        author=owner,
        clock=Stamps(owner),
        ids=ShortIds(owner),
        storage_options={"store": halving},
    )
    # Whether entries can go without their files is tried out once; some race begins with that.
    connection.keeps_bytes = True
    backend = IcebergBackend(connection, root=f"{_ROOT}t", managed_by=by)
    backend.store = halving
    return backend


def patch(monkeypatch) -> None:
    """Let tables lie in stores of actors, and let nobody wait."""

    def place(location: str, options) -> Place:
        return Place(options["store"], _key(location))

    monkeypatch.setattr(tables, "open_place", place)
    monkeypatch.setattr(making, "open_place", place)
    monkeypatch.setattr(making, "_schema", lambda _: {})
    monkeypatch.setattr(Making, "_tables", lambda _, place: RowTables(place.store))
    monkeypatch.setattr(first_version, "commit_first", _commit_first)
    monkeypatch.setattr(opening, "open_at", lambda *_: Written)
    monkeypatch.setattr(field_ids, "field_ids", lambda _: None)
    monkeypatch.setattr(version_commit, "pause", lambda _: None)
    monkeypatch.setattr(trash, "pause", lambda _: None)


def _commit_first(handle, staged: StagedTable) -> bool:
    """Commit a first version through a ledger, as Lance does."""
    store = handle.options["store"]
    path = f"{manifest(staged.table_dir, 1)}-{staged.nonce}"
    store.put(path, encode([staged.nonce]))
    try:
        handle.ledger.create(1, path, None)
    except ConcurrentModificationError:
        return False
    return True


def table(name: str) -> ObjectId:
    """Return the identifier of a table."""
    return N.child(name)


def append(names: tuple[str, ...], token: str, backend: IcebergBackend) -> None:
    """Append a row as Lance does, to one table or to several together; again after a lost race.

    Where it was not told what became of a version, Lance asks for it, and takes an answer for a
    lost race.
    """
    for attempt in range(_ATTEMPTS):
        operations = [_stage(backend, table(name), f"{token}{attempt}", token) for name in names]
        try:
            if len(operations) > 1:
                backend.commit_tables([one for one, _ in operations])
            else:
                one, known = operations[0]
                backend.create_table_version(one.table, one.version, one.manifest_path, known=known)
        except (ConcurrentModificationError, InvalidInputError):
            continue  # the name may mean a table elsewhere by now, where this manifest is not
        except UnknownOutcomeError:
            if _exist([one for one, _ in operations], backend):
                continue
            raise
        return
    raise ConcurrentModificationError(token)


def _exist(operations: list[CreateVersion], backend: IcebergBackend) -> bool:
    try:
        for one in operations:
            backend.describe_table_version(one.table, one.version)
    except MooringError:
        return False
    return True


def _stage(backend: IcebergBackend, name: ObjectId, nonce: str, added: str):
    """Write the manifest of the version after the newest."""
    info = backend.describe_table(name)
    newest = backend.list_table_versions(name, limit=1, known=info)
    version = newest[0].version + 1 if newest else 1
    body = backend.store.get(newest[0].manifest_path) if newest else encode([])
    # Of a table that is purged by now nothing can be read, and nothing becomes a version.
    rows = [] if body is None else list(decode(body))
    staged = f"{manifest(_key(info.location), version)}-{nonce}"
    backend.store.put(staged, encode([*rows, added]))
    return CreateVersion(name, version, staged), info


def _key(location: str) -> str:
    return location.removeprefix(_ROOT)


def _read(name: ObjectId, backend: IcebergBackend) -> Saw:
    """Read the newest version of a table."""
    newest = backend.list_table_versions(name, limit=1)
    body = backend.store.get(newest[0].manifest_path) if newest else encode([])
    return Saw(f"saw {'nothing' if body is None else decode(body)}")


def _read_all(name: ObjectId, backend: IcebergBackend) -> Saw:
    """Read every version of a table, one after another."""
    found = backend.list_table_versions(name)
    bodies = [backend.store.get(one.manifest_path) for one in reversed(found)]
    told = ["nothing" if body is None else len(decode(body)) for body in bodies]
    return Saw(f"saw versions {told}")


def _trim(name: ObjectId, backend: IcebergBackend) -> None:
    """Delete the records of all versions but the newest."""
    newest = backend.list_table_versions(name, limit=1)
    if newest:
        backend.delete_table_versions(name, [VersionRange(0, newest[0].version)])


def perform(verb: str, token: str, backend: IcebergBackend) -> object:  # noqa: C901, PLR0911, PLR0912  # a table of cases
    """Call the backend."""
    match verb.split():
        case ["append", *names]:
            return append(tuple(names), token, backend)
        case ["create", name]:
            return backend.create_table(table(name), token)
        case ["rename", name, new]:
            return backend.rename_table(table(name), table(new))
        case ["undrop", name, new]:
            return backend.undrop_table(table(name), table(new))
        case ["trim", name]:
            return _trim(table(name), backend)
        case ["place", name]:
            return backend.declare_table(table(name), location=f"{_ROOT}{OUTSIDE}/{name}")
        case ["write", name]:  # as a program does that knows nothing of catalogs
            for count in (1, 2):
                body = encode(list(WRITTEN[:count]))
                backend.store.put(manifest(f"{OUTSIDE}/{name}", count), body)
            return None
        case ["register", name]:
            return backend.register_table(table(name), f"{_ROOT}{OUTSIDE}/{name}")
        case ["forget", name]:
            backend.connection.keeps_bytes = None
            return backend.deregister_table(table(name))
        case ["tidy", name]:
            return backend.tidy_versions(table(name))
        case ["read", name]:
            return _read(table(name), backend)
        case ["readall", name]:
            return _read_all(table(name), backend)
        case [call, name]:
            return getattr(backend, f"{call}_table")(table(name))
    raise AssertionError(verb)


# -- looking at a state ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A table as the server and the store have it.

    Attributes:
        name: What it is called, or was.
        dropped: Where it is in the trash, what its name there tells.
        location: Its directory.
        by: Who manages it.
        versions: The manifests that the server names, or that there are where it does not count.
        finals: The manifests by which readers of the directory find versions.
    """

    name: str
    dropped: Dropped | None
    location: str
    by: str
    versions: dict[int, str]
    finals: dict[int, str]

    @property
    def is_purging(self) -> bool:
        return self.dropped is not None and self.dropped.is_purging

    @property
    def newest(self) -> int:
        return max(self.versions, default=0)

    def told(self, version: int) -> str:
        """Return where readers are sent."""
        return self.finals.get(version, self.versions[version])

    def rows(self, content: dict[str, bytes]) -> Rows:
        """Return the rows of the newest version."""
        return decode(content[self.told(self.newest)]) if self.versions else ()


def look(content: dict[str, bytes]) -> list[Known]:
    """Return all tables."""
    found = []
    for name, metadata in json.loads(content[SERVER])["tables"].items():
        space, _, own = name.partition("/")
        dropped = Dropped.parse(own) if space == TRASH else None
        if space == TRASH and dropped is None:
            continue  # forgotten
        location = _key(metadata["location"])
        finals = list_versions(MemoryStore(content), location)
        by = metadata["properties"][MANAGED_BY]
        versions = finals
        if by == IMPL:
            newest = current_version(metadata) or 0
            versions = {
                one.version: f"{location}/{one.manifest_path}"
                for one in read_snapshots(metadata)
                if one.version <= newest
            }
        found.append(
            Known(dropped.id.name if dropped else own, dropped, location, by, versions, finals)
        )
    return found


def read_state(content: dict[str, bytes], *, is_old: bool = False) -> tuple:
    """Read what is there, as the model writes it."""
    model = Model()
    for one in look(content):
        if one.is_purging:
            continue
        rows = one.rows(content)
        if one.dropped is None:
            model.live[one.name] = rows
        else:
            model.trash[one.name] = (*model.trash.get(one.name, ()), (rows, is_old))
    return model.freeze() if is_old else model.shown()


# -- judging ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IcebergRace:
    """Some actors, each with calls, from a state that a few calls make."""

    start: tuple[str, ...]
    actors: tuple[tuple[str, ...], ...]
    by: ManagedBy = IMPL

    def __str__(self) -> str:
        programs = " | ".join("+".join(verbs) for verbs in self.actors)
        return f"{self.by}: {'+'.join(self.start)}: {programs}"

    def tokens(self) -> list[list[tuple[str, str]]]:
        """Return the verbs of every actor, each with a row of its own."""
        return [
            [(verb, f"{name}{at}") for at, verb in enumerate(verbs)]
            for name, verbs in zip("ABCD", self.actors, strict=False)
        ]

    def has(self, *calls: str) -> bool:
        """Whether somebody makes one of these calls."""
        return any(verb.split()[0] in calls for verbs in self.actors for verb in verbs)


class Judge:
    """Judges states on the way, and the one that a schedule leaves."""

    def __init__(self, race: IcebergRace, content: dict[str, bytes], *, loses: bool) -> None:
        self._race = race
        self._initial = read_state(content, is_old=True)
        self._outside = {path for path in content if path.startswith(f"{OUTSIDE}/")}
        self._steps = Steps(race.by, loses=loses)
        self._together = {
            token: len(verb.split()) - 1
            for verbs in race.tokens()
            for verb, token in verbs
            if verb.startswith("append") and len(verb.split()) > 2
        }
        self._known: dict[object, str | None] = {}

    # -- on the way --------------------------------------------------------------------------------

    def look(self, store) -> str | None:
        """Judge a state on the way."""
        key = hash(frozenset(store.content.items()))
        if key not in self._known:
            self._known[key] = self._judge(store.content)
        return self._known[key]

    def _judge(self, content: dict[str, bytes]) -> str | None:
        found = look(content)
        kept = [one for one in found if not one.is_purging]
        for one in kept:
            problem = self._must_be_readable(one, content)
            if problem:
                return f"table {one.name} at {one.location}: {problem}"
        places = [one.location for one in found]
        if len(set(places)) < len(places):
            return f"two tables lie at one of {sorted(places)}"
        if not self._outside <= content.keys():
            return f"what was not made for a table is gone: {self._outside - content.keys()}"
        return self._must_be_together(kept, content)

    def _must_be_readable(self, one: Known, content: dict[str, bytes]) -> str | None:
        versions = sorted(one.versions)
        # What is being registered is there to others before.
        is_early = max(one.finals, default=0) > one.newest
        if is_early and (versions or not one.location.startswith(f"{OUTSIDE}/")):
            return f"version {max(one.finals)} is there to readers before it is decided"
        if not versions:
            return None
        # Of what is registered, the newest is all that is recorded.
        if not self._race.has("trim", "register") and versions != list(range(1, len(versions) + 1)):
            return f"versions {versions} have a gap"
        if one.told(one.newest) not in content:
            return f"the newest version {one.newest} is gone"
        rows = one.rows(content)
        if len(set(rows)) < len(rows) or len(rows) != one.newest:
            return f"version {one.newest} has the rows {rows}"
        return self._must_be_final(one, versions[:-1], rows, content)

    def _must_be_final(
        self, one: Known, versions: list[int], rows: Rows, content: dict[str, bytes]
    ) -> str | None:
        for version in versions:
            if version not in one.finals:
                return f"version {version} before the newest is not where readers look"
            if decode(content[one.finals[version]]) != rows[:version]:
                return f"version {version} has the rows {decode(content[one.finals[version]])}"
        return None

    def _must_be_together(self, kept: list[Known], content: dict[str, bytes]) -> str | None:
        found = [one.rows(content) for one in kept]
        for token, count in self._together.items():
            holding = sum(token in rows for rows in found)
            # A table that is gone holds nothing.
            if holding not in {0, count} and not self._race.has("purge", "deregister", "forget"):
                return f"{token} is in {holding} of {count} tables"
        return None

    # -- in the end --------------------------------------------------------------------------------

    def __call__(self, store, actors) -> str | None:
        for actor in actors:
            for outcome in actor.outcomes:
                if outcome.startswith("BUG"):
                    return f"{actor.name} broke: {outcome}"
        if self.look(store):
            return None  # told on the way
        final = read_state(store.content)
        if not explains(self._steps, self._initial, self._histories(actors), final):
            return f"no order of the calls explains the end: {tuple(map(dict, final))}"
        return self._must_be_usable(store)

    def _histories(self, actors) -> tuple[tuple[Step, ...], ...]:
        """Return who did what, a call with an unknown outcome by itself: it may be done later."""
        known, unknown = [], []
        for verbs, actor in zip(self._race.tokens(), actors, strict=True):
            history: list[Step] = []
            for (verb, token), outcome in zip(verbs, actor.outcomes, strict=False):
                steps = [(part, token, outcome) for part in self._steps.parts(verb)]
                if outcome == UnknownOutcomeError.__name__:
                    unknown.append(tuple(steps))
                else:
                    history += steps
            known.append(tuple(history))
        return (*known, *unknown)

    def _must_be_usable(self, store) -> str | None:
        """Whatever was left, one more writer gets through, and a purge comes to its end."""
        backend = open_backend(store, "Y", self._race.by)
        for one in look(store.content):
            try:
                if one.is_purging:
                    problem = self._must_be_purged(one, backend, store)
                elif one.dropped is None:
                    problem = self._must_be_written(one, backend, store)
                else:
                    continue
            except MooringError as exc:
                return f"stuck afterwards: {exc!r}"
            if problem:
                return f"table {one.name}: {problem}"
        return None

    def _must_be_purged(self, one: Known, backend: IcebergBackend, store) -> str | None:
        backend.purge_table(table(one.name))
        is_left = any(path.startswith(f"{one.location}/") for path in store.content)
        if is_left and not one.location.startswith(f"{OUTSIDE}/"):
            return "files are left of a purge that was cut off"
        is_there = any(other.location == one.location for other in look(store.content))
        return "the next purge leaves it in the trash" if is_there else None

    def _must_be_written(self, one: Known, backend: IcebergBackend, store) -> str | None:
        if one.finals and not one.versions:
            return None  # a registration was cut off: whoever wants the table registers it again
        rows = (*one.rows(store.content), "Y")
        append((one.name,), "Y", backend)
        for version in (*sorted(one.versions), len(rows)):
            found = store.content.get(manifest(one.location, version))
            if found is None or decode(found) != rows[:version]:
                return f"version {version} is {found!r} to readers, and not {rows[:version]}"
        return None


# -- exploring -------------------------------------------------------------------------------------


def _commutes_for(by: ManagedBy) -> Callable[..., bool]:
    """Tell calls that make no choice.

    Nobody makes or drops a namespace but the trash. A manifest that is staged for the server to
    decide has a name of its own, and is read by nobody else before it was: a crash before it is
    written is the same as one after it.
    """

    def commutes(call, content, *, faults_left: bool) -> bool:
        del content, faults_left
        if call.verb == "get":
            return "load_namespace" in call.path and TRASH not in call.path
        return by is IMPL and call.verb == "put" and ".manifest-" in call.path

    return commutes


class IcebergExplorer(Explorer):
    """Judges every state on the way, too, and has requests arrive late."""

    look: Callable[[object], str | None]
    by = IMPL
    fails = False
    delays: frozenset[str] = frozenset()

    def _choices(self, run, schedule) -> list:
        choices = super()._choices(run, schedule)
        if self.fails:  # refused at any call, where else processes end
            ended = [index for kind, index in choices if kind == CRASH]
            choices = [choice for choice in choices if choice[0] == RUN]
            choices += [(FAIL, index) for index in ended if self._can_fail(run.actors[index])]
        elif self.delays:
            lost = [index for kind, index in choices if kind == LOSE]
            choices = [choice for choice in choices if choice[0] == RUN]
            choices += [(LATE, index) for index in lost if self._can_be_late(run.actors[index])]
        if ON_THE_WAY in run.store.content:
            choices.append((RUN, NETWORK))
        return choices

    def _can_fail(self, actor) -> bool:
        """Whether the pending call may be refused.

        Where files are the versions, what their records do when the store refuses is their matter.
        """
        return self.by is IMPL or actor.pending.path.startswith(REQUEST)

    def _can_be_late(self, actor) -> bool:
        return actor.pending.path.removeprefix(REQUEST) in self.delays

    def _step(self, run, choice, schedule) -> None:
        kind, index = choice
        if index == NETWORK:
            run.store.arrive()
        else:
            run.store.is_late = kind == LATE
            super()._step(run, (LOSE if kind == LATE else kind, index), schedule)
        problem = self.look(run.store)
        if problem and not any(known.startswith(problem) for known in self.report.violations):
            outcomes = {actor.name: actor.outcomes for actor in run.actors}
            told = f"{problem}\n  outcomes {outcomes}\n  by {list(schedule)}"
            self.report.violations.append(told)


def explore(
    race: IcebergRace,
    limits: Limits | None = None,
    *,
    fails: bool = False,
    delays: frozenset[str] = frozenset(),
) -> Report:
    """Explore a race in memory.

    Args:
        race: Who does what.
        limits: How far to go.
        fails: Whether calls are refused where else processes end.
        delays: Requests that are done long after their sender gave up on them.
    """
    world = ServedWorld()
    store = world.open({SERVER: EMPTY})
    starting = open_backend(store, "I", race.by)
    for at, verb in enumerate(race.start):
        perform(verb, f"I{at}", starting)
    limits = limits or Limits()
    judge = Judge(race, dict(store.content), loses=limits.faults > 0)
    programs = {
        name: [partial(perform, verb, token) for verb, token in verbs]
        for name, verbs in zip("ABCD", race.tokens(), strict=False)
    }
    explorer = IcebergExplorer(
        world,
        dict(store.content),
        programs,
        judge,
        partial(open_backend, by=race.by),
        limits,
        commutes=_commutes_for(race.by),
    )
    explorer.look = judge.look
    explorer.by = race.by
    explorer.fails = fails
    explorer.delays = delays
    return explorer.explore()
