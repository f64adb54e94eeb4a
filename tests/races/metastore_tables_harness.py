"""Lance tables of a metastore through interleavings of those who change them.

A history is right if some order of its calls, one after another, explains every outcome and what is
left. Beside that every state on the way has to be one that a reader can live with, and whatever was
left, one more writer has to get through.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from mooring.errors import ConcurrentModificationError, InvalidInputError, MooringError
from mooring.identifiers import ObjectId
from mooring.metastore.backend import MetastoreBackend
from mooring.metastore.lance_table import branch_locator, tables_in
from mooring.metastore.layout import COMMITS_DIR, TABLES_DIR, commit_path
from mooring.metastore.locator import ROOT
from mooring.namespace.api import Ttl
from mooring.namespace.home import Home
from mooring.namespace.settings import METASTORE, Settings
from mooring.namespace.table_operations import CreateVersion
from mooring.store.numbered import create_once
from mooring.store.wrapped import WrappedStore
from mooring.tables.api import StagedTable, VersionRange

from .explorer import Explorer, Limits, Report
from .metastore_harness import LOST, HexIds
from .scheduler import CRASH, FAIL, RUN, Saw
from .world import FrozenClock, MemoryStore, MemoryWorld, manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SETTINGS = Settings(adopted=False, revision=1, kind=METASTORE)
N, M = ObjectId(("n",)), ObjectId(("m",))
OUTSIDE = "x"
_ATTEMPTS = 5
_ROOT = "memory:///"
_FINAL = re.compile(rf"{OUTSIDE}/_versions/[0-9]+\.manifest")


# -- the real thing --------------------------------------------------------------------------------


class Halving(WrappedStore):
    """Deletes one object before the others, as stores do: somebody may look in between."""

    def delete(self, paths: Iterable[str]) -> None:
        doomed = list(paths)
        for half in (doomed[:1], doomed[1:]):
            if half:
                self.inner.delete(half)

    def delete_prefix(self, path: str) -> int:
        found = self.inner.list_prefix(path)
        self.delete(meta.path for meta in found)
        return len(found)


class ListedTables:
    """Tables whose manifests list the rows: one object is the whole version."""

    def __init__(self, store) -> None:
        self._store = store

    def stage(self, table_dir: str, rows: str) -> StagedTable:
        return StagedTable(table_dir, None, (), (), rows)

    def commit(self, staged: StagedTable, version: int) -> bool:
        path = manifest(staged.table_dir, version)
        return create_once(self._store, path, encode([staged.nonce]))


def encode(rows: list[str]) -> bytes:
    """Write the manifest of a version."""
    return json.dumps({"rows": rows}).encode()


def decode(body: bytes) -> tuple[str, ...]:
    """Read the rows of a version."""
    return tuple(json.loads(body)["rows"])


def open_backend(store, owner: str) -> MetastoreBackend:
    """Open the backend for one actor."""
    halving = Halving(store)
    home = Home(
        halving,
        author=owner,
        clock=FrozenClock(),
        ids=HexIds(owner),
        tables=ListedTables(halving),
        settings=SETTINGS,
        kind=METASTORE,
    )
    return MetastoreBackend(home)


def table(name: str) -> ObjectId:
    """Return the identifier of a table: of namespace ``n`` where none is said."""
    space, _, own = name.rpartition(".")
    return ObjectId((space or "n", own))


def append(names: tuple[str, ...], token: str, backend: MetastoreBackend, *more: str) -> None:
    """Append a row as Lance does, to one table or to several together; again after a lost race.

    More rows are more versions of the same batch.
    """
    for attempt in range(_ATTEMPTS):
        nonce = f"{token}{attempt}"
        operations = [
            one for name in names for one in _stage(backend, table(name), nonce, [token, *more])
        ]
        try:
            backend.commit_tables(operations)
        except (ConcurrentModificationError, InvalidInputError):
            continue  # the name may mean a table elsewhere by now, where this manifest is not
        return
    raise ConcurrentModificationError(token)


def _stage(
    backend: MetastoreBackend, name: ObjectId, nonce: str, added: list[str]
) -> Iterator[CreateVersion]:
    """Write the manifests of the versions after the newest."""
    location = _key(backend.describe_table(name).location)
    newest = backend.list_table_versions(name, limit=1)
    version = newest[0].version + 1 if newest else 1
    body = backend.store.get(newest[0].manifest_path) if newest else encode([])
    # Of a table that is purged by now nothing can be read, and nothing becomes a version.
    rows = [] if body is None else list(decode(body))
    for count in range(len(added)):
        staged = f"{manifest(location, version + count)}-{nonce}"
        backend.store.put(staged, encode([*rows, *added[: count + 1]]))
        yield CreateVersion(name, version + count, staged)


def _key(location: str) -> str:
    return location.removeprefix(_ROOT)


def _read(name: ObjectId, backend: MetastoreBackend) -> Saw:
    """Read the newest version of a table."""
    newest = backend.list_table_versions(name, limit=1)
    body = backend.store.get(newest[0].manifest_path) if newest else encode([])
    return Saw(f"saw {'nothing' if body is None else decode(body)}")


def _read_all(name: ObjectId, backend: MetastoreBackend) -> Saw:
    """Read every version of a table, one after another."""
    found = backend.list_table_versions(name)
    bodies = [backend.store.get(one.manifest_path) for one in reversed(found)]
    told = ["nothing" if body is None else len(decode(body)) for body in bodies]
    return Saw(f"saw versions {told}")


def _trim(name: ObjectId, backend: MetastoreBackend) -> None:
    """Delete the records of all versions but the newest."""
    newest = backend.list_table_versions(name, limit=1)
    if newest:
        backend.delete_table_versions(name, [VersionRange(0, newest[0].version)])


def perform(verb: str, token: str, backend: MetastoreBackend) -> object:  # noqa: PLR0911, C901, PLR0912  # a table of cases
    """Call the backend."""
    match verb.split():
        case ["append", *names]:
            return append(tuple(names), token, backend)
        case ["twice", name]:
            return append((name,), token, backend, f"{token}+")
        case ["create", name]:
            return backend.create_table(table(name), token)
        case ["rename", name, new]:
            return backend.rename_table(table(name), table(new))
        case ["undrop", name, new]:
            return backend.undrop_table(table(name), table(new))
        case ["drop", "n"]:
            return backend.drop_namespace(N, cascade=True)
        case ["expire", "n"]:
            return backend.drop_namespace(N, cascade=True, ttl=Ttl(0))
        case ["purge", "expired"]:
            return backend.purge_tables()
        case ["undrop", "n"]:
            return backend.undrop_namespace(N)
        case ["make", space]:
            return backend.create_namespace(ObjectId((space,)), {})
        case ["write", place]:  # as a program does that knows nothing of catalogs
            return backend.store.put(manifest(place, 1), encode([f"{place}{token}"]))
        case ["register", name, place]:
            return backend.register_table(table(name), place)
        case ["trim", name]:
            return _trim(table(name), backend)
        case ["read", name]:
            return _read(table(name), backend)
        case ["readall", name]:
            return _read_all(table(name), backend)
        case ["vacuum"]:
            return backend.metastore.vacuum(older_than_ms=-1)
        case [call, name]:
            return getattr(backend, f"{call}_table")(table(name))
    raise AssertionError(verb)


# -- the model -------------------------------------------------------------------------------------

Rows = tuple[str, ...]


@dataclass
class Model:
    """What a catalog holds: tables by their names, dropped ones too, and which namespaces live.

    Attributes:
        live: Rows by namespace and name.
        trash: For each name the rows of what was dropped, the newest last.
        spaces: The namespaces that live; those that do not are in the trash, with their tables.
        places: Rows of what lies in directories that no name leads to.
    """

    live: dict[tuple[str, str], Rows] = field(default_factory=dict)
    trash: dict[tuple[str, str], tuple[Rows, ...]] = field(default_factory=dict)
    spaces: dict[str, bool] = field(default_factory=dict)
    places: dict[str, Rows] = field(default_factory=dict)

    def freeze(self) -> tuple:
        """Return it as a key."""
        return (
            frozenset(self.live.items()),
            frozenset((key, drops) for key, drops in self.trash.items() if drops),
            frozenset(self.spaces.items()),
            frozenset(self.places.items()),
        )

    @classmethod
    def thaw(cls, frozen: tuple) -> Model:
        """Read a key."""
        return cls(*(dict(part) for part in frozen))


NO_TABLE, NO_SPACE = "TableNotFoundError", "NamespaceNotFoundError"
TAKEN = "TableAlreadyExistsError"


def _split(name: str) -> tuple[str, str]:
    return table(name).names


def step(verb: str, token: str, frozen: tuple) -> list[tuple[str, tuple]]:  # noqa: C901, PLR0911, PLR0912, PLR0915  # a table of cases
    """Return the outcomes that a call may have alone, with the states after it."""
    model = Model.thaw(frozen)

    def rows_of(name: str) -> Rows | None:
        key = _split(name)
        return model.live.get(key) if model.spaces.get(key[0]) else None

    def trash_of(name: str) -> tuple[Rows, ...]:
        """Return what was dropped under a name, its namespace's drop included, the newest last."""
        key = _split(name)
        drops = model.trash.get(key, ())
        inside = key in model.live and not model.spaces.get(key[0])
        return (*drops, model.live[key]) if inside else drops

    def pop_trash(name: str, *, everything: bool = False) -> None:
        key = _split(name)
        if key in model.live and not model.spaces.get(key[0]):
            del model.live[key]
            if not everything:
                return
        model.trash[key] = () if everything else model.trash[key][:-1]

    def stay(outcome: str) -> list[tuple[str, tuple]]:
        return [(outcome, frozen)]

    match verb.split():
        case ["append", *names]:
            if any(rows_of(name) is None for name in names):
                return stay(NO_TABLE)
            for name in names:
                model.live[_split(name)] += (token,)
        case ["twice", name]:
            if rows_of(name) is None:
                return stay(NO_TABLE)
            model.live[_split(name)] += (token, f"{token}+")
        case ["create" | "declare" as call, name]:
            if not model.spaces.get(_split(name)[0]):
                return stay(NO_SPACE)
            known = rows_of(name)
            if known is not None and (call == "declare" or known):
                return stay(TAKEN)
            model.live[_split(name)] = (token,) if call == "create" else ()
        case ["drop", "n"]:
            if not model.spaces.get("n"):
                return stay(NO_SPACE)
            model.spaces["n"] = False
        case ["undrop", "n"]:
            if "n" not in model.spaces:
                return stay(NO_SPACE)
            if model.spaces["n"]:
                return stay(NO_SPACE)
            model.spaces["n"] = True
            # Not while a table in it is being purged, which counts as gone here.
            return [("ok", model.freeze()), ("InvalidTableStateError", frozen)]
        case ["drop", name]:
            rows = rows_of(name)
            if rows is None:
                return stay(NO_TABLE)
            key = _split(name)
            model.trash[key] = (*model.trash.get(key, ()), rows)
            del model.live[key]
        case ["undrop", name, *new]:
            target = new[0] if new else name
            if not trash_of(name):
                return stay(NO_TABLE)
            if not model.spaces.get(_split(target)[0]):
                return stay(NO_SPACE)
            if rows_of(target) is not None:
                return stay(TAKEN)
            rows = trash_of(name)[-1]
            pop_trash(name)
            model.live[_split(target)] = rows
        case ["rename", name, new]:
            rows = rows_of(name)
            if rows is None:
                return stay(NO_TABLE)
            if not model.spaces.get(_split(new)[0]):
                return stay(NO_SPACE)
            if rows_of(new) is not None:
                return stay(TAKEN)
            del model.live[_split(name)]
            model.live[_split(new)] = rows
        case ["purge", "expired"]:
            gone = [key for key in model.live if not model.spaces.get(key[0])]
            for key in gone:
                del model.live[key]
            partly = model.freeze()
            model.spaces = {name: True for name, is_live in model.spaces.items() if is_live}
            # Tables are marked first. What another purge has marked meanwhile is left to it, and to
            # the next one where it came to an end.
            return [("ok", model.freeze()), ("ok", partly)]
        case ["purge", name]:
            if not trash_of(name):
                # Somebody else's purge that is under way is helped.
                return [(NO_TABLE, frozen), ("ok", frozen)]
            pop_trash(name, everything=True)
        case ["deregister", name]:
            rows = rows_of(name)
            if rows is None:
                return stay(NO_TABLE)
            del model.live[_split(name)]
            if rows and rows[0].startswith(OUTSIDE):
                model.places[OUTSIDE] = rows
        case ["register", name, place]:
            if not model.spaces.get(_split(name)[0]):
                return stay(NO_SPACE)
            # A place that another table has, or that was purged, is refused.
            refused = stay("InvalidInputError") + stay("InvalidTableStateError")
            if rows_of(name) is not None:
                return stay(TAKEN) + refused
            if place not in model.places:
                return stay(NO_TABLE) + refused
            model.live[_split(name)] = model.places.pop(place)
            return [("ok", model.freeze()), *refused]
        case ["write", place]:
            users = [*model.live.values(), *sum(model.trash.values(), ())]
            if not any(rows and rows[0].startswith(place) for rows in users):
                model.places[place] = (f"{place}{token}",)
        case ["trim", name]:
            return stay(NO_TABLE if rows_of(name) is None else "ok")
        case ["read", name]:
            rows = rows_of(name)
            return stay(NO_TABLE if rows is None else f"saw {rows}")
        case ["readall", name]:
            rows = rows_of(name)
            counts = list(range(1, 1 + len(rows or ())))
            return stay(NO_TABLE if rows is None else f"saw versions {counts}")
        case ["vacuum"]:
            return stay("ok")
        case _:
            raise AssertionError(verb)
    return [("ok", model.freeze())]


Step = tuple[str, str, str]


def explains(initial: tuple, actors: tuple[tuple[Step, ...], ...], final: tuple) -> bool:
    """Whether some order of the calls leads to these outcomes and this state, as far as it goes."""

    @lru_cache(None)
    def reach(positions: tuple[int, ...], state: tuple) -> bool:
        if all(at == len(history) for at, history in zip(positions, actors, strict=True)):
            return state[: len(final)] == final
        for index, at in enumerate(positions):
            if at == len(actors[index]):
                continue
            verb, token, outcome = actors[index][at]
            moved = (*positions[:index], at + 1, *positions[index + 1 :])
            ends = step(verb, token, state)
            follow = [new for expected, new in ends if outcome in {expected, *_UNSURE}]
            if outcome in {LOST, REFUSED, *_UNSURE}:
                follow.append(state)
            if outcome == REFUSED and verb.startswith("purge"):  # which is to be tried again
                follow += [new for _, new in ends]
            if any(reach(moved, each) for each in follow):
                return True
        return False

    return reach((0,) * len(actors), initial)


_UNSURE = ("crashed", "UnknownOutcomeError")
REFUSED = "ServiceUnavailableError"


# -- looking at a state ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A table as the chain of commits has it.

    Attributes:
        names: Its namespace and name, or those it had.
        is_live: Whether it was not dropped, by itself or with its namespace.
        is_space_live: Whether its namespace was not dropped.
        dropped_at: The order of its own drop; None where it was not dropped itself.
        is_purging: Whether nothing of it comes back.
        location: Where it lies.
        versions: The manifests of its versions, in the store.
    """

    names: tuple[str, str]
    is_space_live: bool
    dropped_at: int | None
    is_purging: bool
    location: str
    versions: dict[int, str]

    @property
    def is_live(self) -> bool:
        return self.is_space_live and self.dropped_at is None

    @property
    def newest(self) -> str | None:
        return self.versions[max(self.versions)] if self.versions else None


class Looker:
    """Looks at contents of a store, each once; it sees all that any reader may."""

    def __init__(self) -> None:
        self._chains: dict[tuple[bytes, ...], tuple[list[Known], dict[str, bool]]] = {}

    def tables(self, content: dict[str, bytes]) -> tuple[list[Known], dict[str, bool]]:
        """Return the tables and namespaces."""
        entries = []
        while (body := content.get(commit_path(len(entries) + 1))) is not None:
            entries.append(body)
        key = tuple(entries)
        if key not in self._chains:
            self._chains[key] = _look(content)
        return self._chains[key]


def _look(content: dict[str, bytes]) -> tuple[list[Known], dict[str, bool]]:
    view = open_backend(MemoryStore(content), "Z").metastore.begin()
    spaces, tables = {}, []
    for space in view.children(ROOT):
        drop = space.value.dropped
        name = drop.name if drop else space.locator.parts[0]
        spaces[name] = drop is None
        for found in tables_in(view, space.locator):
            own = found.value.dropped
            main = view.find(branch_locator(found.locator, None))
            deltas = view.children(main.locator) if main else []
            tables.append(
                Known(
                    (name, own.name if own else found.id.name),
                    drop is None,
                    own.seq if own else None,
                    bool(own and own.purging),
                    found.location,
                    {one.value.stream_position: one.value.manifest.files[0].path for one in deltas},
                )
            )
    return tables, spaces


def read_state(looker: Looker, content: dict[str, bytes]) -> tuple:
    """Read what is there, as the model writes it."""
    tables, spaces = looker.tables(content)
    model = Model(spaces=dict(spaces))
    for one in sorted(tables, key=lambda one: one.dropped_at or 0):
        if one.is_purging:
            continue
        rows = decode(content[one.newest]) if one.newest else ()
        if one.dropped_at is None:
            model.live[one.names] = rows
        else:
            model.trash[one.names] = (*model.trash.get(one.names, ()), rows)
    if not any(one.location == OUTSIDE for one in tables):
        found = [path for path in sorted(content) if _FINAL.fullmatch(path)]
        if found:
            model.places[OUTSIDE] = decode(content[found[0]])
    return model.freeze()


# -- judging ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableRace:
    """Some actors, each with calls, from a state that a few calls make."""

    start: tuple[str, ...]
    actors: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return f"{'+'.join(self.start)}: " + " | ".join("+".join(verbs) for verbs in self.actors)

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

    def __init__(self, race: TableRace, initial: tuple, looker: Looker) -> None:
        self._race = race
        self._initial = initial
        self._looker = looker
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
        content = store.content
        key = hash(frozenset((path, body) for path, body in content.items() if _matters(path)))
        if key not in self._known:
            self._known[key] = self._judge(content)
        return self._known[key]

    def _judge(self, content: dict[str, bytes]) -> str | None:
        tables, _ = self._looker.tables(content)
        kept = [one for one in tables if not one.is_purging]
        for one in kept:
            problem = self._must_be_readable(one, content)
            if problem:
                return f"table {one.names} at {one.location}: {problem}"
        places = [one.location for one in tables]
        if len(set(places)) < len(places):
            return f"two tables lie at one of {sorted(places)}"
        return self._must_be_together(kept, content)

    def _must_be_readable(self, one: Known, content: dict[str, bytes]) -> str | None:
        versions = sorted(one.versions)
        if not versions:
            return None
        if not self._race.has("trim") and versions != list(range(1, len(versions) + 1)):
            return f"versions {versions} have a gap"
        newest = versions.pop()
        if one.versions[newest] not in content:
            return f"the newest version {newest} is gone"
        is_last = manifest(one.location, newest) not in content
        for version in reversed(versions):
            final = content.get(manifest(one.location, version))
            # Versions of one batch get their names one after another; until then copies do.
            is_last = is_last and final is None and one.versions[version] in content
            if final is None and not is_last:
                return f"version {version} before the newest is not where readers look"
            if final is not None and len(decode(final)) != version:
                return f"version {version} has the rows {decode(final)}"
        return None

    def _must_be_together(self, kept: list[Known], content: dict[str, bytes]) -> str | None:
        found = [decode(content[one.newest]) for one in kept if one.newest]
        for token, count in self._together.items():
            holding = sum(token in rows for rows in found)
            # A table that is gone holds nothing.
            if holding not in {0, count} and not self._race.has("purge", "deregister"):
                return f"{token} is in {holding} of {count} tables"
        return None

    # -- in the end --------------------------------------------------------------------------------

    def __call__(self, store, actors) -> str | None:
        for actor in actors:
            for outcome in actor.outcomes:
                if outcome.startswith("BUG"):
                    return f"{actor.name} broke: {outcome}"
        problem = self.look(store)
        if problem:
            return None  # told on the way
        final = read_state(self._looker, store.content)
        histories = tuple(
            tuple(
                (verb, token, outcome)
                for (verb, token), outcome in zip(verbs, actor.outcomes, strict=False)
            )
            for verbs, actor in zip(self._race.tokens(), actors, strict=True)
        )
        if self._race.has("purge"):
            final = final[:-1]  # nothing is promised of a place that no table may have any more
        if not explains(self._initial, histories, final):
            return f"no order of the calls explains the end: {Model(*map(dict, final))}"
        return self._must_be_usable(store)

    def _must_be_usable(self, store) -> str | None:
        """Whatever was left, one more writer gets through, and versions are where they belong."""
        tables, _ = self._looker.tables(store.content)
        writer = open_backend(store, "Y")
        for one in tables:
            if not one.is_live:
                continue
            before = decode(store.content[one.newest]) if one.newest else ()
            try:
                append((".".join(one.names),), "Y", writer)
            except MooringError as exc:
                return f"stuck afterwards: {exc!r}"
            problem = self._must_be_final(one, (*before, "Y"), store.content)
            if problem:
                return f"table {one.names}: {problem}"
        return None

    def _must_be_final(self, one: Known, rows: Rows, content: dict[str, bytes]) -> str | None:
        for version in (*sorted(one.versions), len(rows)):
            found = content.get(manifest(one.location, version))
            if found is None or decode(found) != rows[:version]:
                return f"version {version} is {found!r} to readers, and not {rows[:version]}"
        return None


def _matters(path: str) -> bool:
    return path.startswith((f"{COMMITS_DIR}/", f"{TABLES_DIR}/", f"{OUTSIDE}/"))


# -- exploring -------------------------------------------------------------------------------------


def _commutes(call, content, *, faults_left: bool) -> bool:
    """Tell calls that make no choice.

    An entry of the chain that is there never changes, and nobody saves settings. Whoever reads
    several at once stops at the first that is absent, whatever came behind it since. Files that a
    transaction stages, and its log, hold its id in their names and are read by nobody: a crash
    before one is the same as one after it.
    """
    if call.path.startswith("_mooring-catalog."):
        return True
    if call.verb == "get":
        return call.path.startswith(f"{COMMITS_DIR}/") and (
            call.path in content or _is_behind(call.path, content)
        )
    if call.verb == "list_dir" and call.path == "txn/_checkpoints":
        return True
    return call.verb in {"put", "delete"} and not _matters(call.path)


def _is_behind(path: str, content) -> bool:
    """Whether an entry is absent that comes before this one."""
    before = int(path.rpartition("/")[2]) - 1
    return before > 0 and commit_path(before) not in content


class TableExplorer(Explorer):
    """Judges every state on the way, too."""

    look: Callable[[object], str | None]
    fails = False

    def _choices(self, run, schedule) -> list:
        """Where a store may refuse, it may do so at every call; else processes end at any."""
        choices = super()._choices(run, schedule)
        if not self.fails:
            return choices
        running = [choice for choice in choices if choice[0] == RUN]
        return running + [(FAIL, index) for kind, index in choices if kind == CRASH]

    def _step(self, run, choice, schedule) -> None:
        super()._step(run, choice, schedule)
        problem = self.look(run.store)
        if problem:
            told = f"{problem}\n  by {list(schedule)}"
            if not any(known.startswith(problem) for known in self.report.violations):
                self.report.violations.append(told)


def explore(race: TableRace, limits: Limits | None = None, *, fails: bool = False) -> Report:
    """Explore a race in memory; with ``fails`` the store refuses where processes would end."""
    world = MemoryWorld()
    store = world.open({})
    starting = open_backend(store, "I")
    for at, verb in enumerate(race.start):
        perform(verb, f"I{at}", starting)
    looker = Looker()
    initial = read_state(looker, store.content)
    judge = Judge(race, initial, looker)
    programs = {
        name: [partial(perform, verb, token) for verb, token in verbs]
        for name, verbs in zip("ABCD", race.tokens(), strict=False)
    }
    explorer = TableExplorer(
        world,
        dict(store.content),
        programs,
        judge,
        open_backend,
        limits or Limits(),
        commutes=_commutes,
    )
    explorer.look = judge.look
    explorer.fails = fails
    return explorer.explore()
