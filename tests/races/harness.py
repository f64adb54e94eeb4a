"""Puts operations through their interleavings and checks what is left after each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial

from mooring.directory.decisions import State
from mooring.directory.layout import foreign_marker_path, nested_marker_path
from mooring.errors import ConcurrentModificationError, MooringError, TableNotFoundError
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode

from .explorer import Explorer, Limits, Report
from .model import ABSENT, MARKED_INSIDE, Op, dropped, explains, forgotten, live
from .world import NAME, MemoryWorld, PosixWorld, TimelessStore, manifest, open_backend

TABLE = ObjectId((NAME,))
TABLE_DIR = f"{NAME}.lance"

CREATE, OVERWRITE, DECLARE = "create", "overwrite", "declare"
_WRITING = {"create", "overwrite", "write"}
_ATTEMPTS = 4


def perform(op: Op, backend) -> object:  # noqa: PLR0911  # a table of cases
    """Call the real backend."""
    match op.verb:
        case "mark beside":  # another program's drop
            return backend.store.put(foreign_marker_path(NAME), b"{}")
        case "mark inside":  # another program's deregistration
            return backend.store.put(nested_marker_path(NAME), b"reserved")
        case "create":
            return backend.create_table(TABLE, op.token)
        case "overwrite":
            return backend.create_table(TABLE, op.token, CreateMode.OVERWRITE)
        case "write":
            return write(backend, op.token)
        case "unprotect":
            return backend.protect_table(TABLE, protected=False)
        case "register":
            return backend.register_table(TABLE, TABLE_DIR)
        case verb:
            return getattr(backend, f"{verb}_table")(TABLE)


def write(backend, token: str) -> None:
    """Append as Lance does where a catalog manages versions: stage, register, else rebase."""
    location = backend.describe_table(TABLE).location.rpartition("/")[2]
    data = f"data/{token}.lance"
    backend.store.put(f"{location}/{data}", token.encode())
    for attempt in range(_ATTEMPTS):
        newest = backend.list_table_versions(TABLE, limit=1)
        if not newest:
            raise TableNotFoundError(location)
        version = newest[0].version
        body = backend.store.get(manifest(location, version))
        if body is None:
            raise TableNotFoundError(location)
        files = [*json.loads(body)["files"], data]
        staged = f"{manifest(location, version + 1)}-{token}{attempt}"
        nonce = f"{token}{attempt}"
        backend.store.put(staged, json.dumps({"files": files, "nonce": nonce}).encode())
        try:
            backend.create_table_version(TABLE, version + 1, staged)
        except ConcurrentModificationError:
            backend.describe_table_version(TABLE, version + 1)
        else:
            return
    raise ConcurrentModificationError(location)


INITIAL = {
    "absent": ((), ABSENT),
    "live": (("create",), live("old")),
    "declared": (("declare",), live(None)),
    "dropped": (("create", "drop"), dropped("old")),
    "revived": (("create", "drop", "undrop"), live("old")),
    "purged": (("create", "drop", "purge"), ABSENT),
    "protected": (("create", "protect"), live("old", True)),
    "deregistered": (("create", "deregister"), forgotten("old")),
    "marked beside": (("create", "mark beside"), dropped("old")),
    "marked inside": (("create", "mark inside"), ("dropped", "old", MARKED_INSIDE)),
}


@dataclass(frozen=True)
class Race:
    """Some actors, each with a few operations, from a named initial state."""

    start: str
    actors: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return f"{self.start}: " + " | ".join("+".join(ops) for ops in self.actors)

    def programs(self) -> dict[str, list[Op]]:
        names = "ABCD"
        return {
            names[index]: [
                Op(verb, f"{names[index]}{at}" if verb in _WRITING else None)
                for at, verb in enumerate(verbs)
            ]
            for index, verbs in enumerate(self.actors)
        }


class Checker:
    """Judges the state that a schedule leaves; ``also`` looks at what only some catalogs have."""

    def __init__(self, race: Race, world, open_one, also=None) -> None:
        self._race = race
        self._world = world
        self._open = open_one
        self._also = also or _nothing
        self._programs = race.programs()
        self._known: dict[object, str | None] = {}

    def __call__(self, store: TimelessStore, actors) -> str | None:
        outcomes = tuple(tuple(actor.outcomes) for actor in actors)
        key = (outcomes, frozenset(store.content.items()))
        if key not in self._known or self._world.lance:
            self._known[key] = self._judge(store, actors)
        return self._known[key]

    def _judge(self, store: TimelessStore, actors) -> str | None:
        for actor in actors:
            for outcome in actor.outcomes:
                if outcome.startswith("BUG"):
                    return f"{actor.name} broke: {outcome}"
        content = self._content(store)
        final, problem = self._final_state(content)
        if problem:
            return problem
        histories = tuple(
            tuple(zip(self._programs[actor.name], actor.outcomes, strict=False)) for actor in actors
        )
        initial = INITIAL[self._race.start][1]
        if not explains(initial, histories, final, adopts=self._also is not _nothing):
            return f"no order of the operations explains the end: {final}"
        with Copy(self, content) as backend:
            problem = self._also(backend, actors)
        return problem or self._must_be_usable(content)

    def _content(self, store: TimelessStore) -> dict[str, bytes]:
        return self._world.content_of(store) if self._world.lance else dict(store.content)

    def _final_state(self, content: dict[str, bytes]):  # noqa: PLR0911  # a table of cases
        """Read what is left, bringing hidden tables back to see what they hold."""
        with Copy(self, content) as backend:
            state = view_of(backend).state
            listed = backend.list_tables(ROOT)
            if (state is State.LIVE) != (listed == [NAME]):
                return None, f"a listing says {listed}, a look says {state}"
            if state is State.LIVE:
                protected = view_of(backend).is_protected
                return _readable(live(backend.home.open_tables().read(TABLE_DIR), protected))
            if state is State.DEREGISTERED:
                backend.register_table(TABLE, TABLE_DIR)
                return _readable(forgotten(backend.home.open_tables().read(TABLE_DIR)))
            if state is None or not state.in_trash:
                return ABSENT, None
            try:
                backend.undrop_table(TABLE)
            except MooringError as exc:
                if "had no data" in str(exc):
                    return dropped(None), None
                return None, f"a dropped table cannot be undropped: {exc!r}"
            return _readable(dropped(backend.home.open_tables().read(TABLE_DIR)))

    def _must_be_usable(self, content: dict[str, bytes]) -> str | None:
        """Whatever was left can be finished: purged if need be, created, dropped, undropped."""
        with Copy(self, content) as backend:
            try:
                self._exercise(backend)
            except MooringError as exc:
                return f"stuck afterwards: {exc!r}"
            found = backend.home.open_tables().read(TABLE_DIR)
            return None if found == "after" else f"a later table reads {found}"

    def _exercise(self, backend) -> None:
        state = view_of(backend).state
        if state is State.DEREGISTERED:
            backend.register_table(TABLE, TABLE_DIR)
        if state in {State.LIVE, State.DEREGISTERED}:
            backend.protect_table(TABLE, protected=False)
            backend.drop_table(TABLE)
            backend.purge_table(TABLE)
        try:
            backend.create_table(TABLE, "after")
        except ConcurrentModificationError:
            backend.purge_table(TABLE)
            backend.create_table(TABLE, "after")
        backend.drop_table(TABLE)
        backend.undrop_table(TABLE)


def _nothing(backend, actors) -> None:
    """Look at nothing else: a plain directory has no rows."""


def view_of(backend):
    """Look at the table, in a plain directory or in compatibility mode."""
    return getattr(backend, "_listed", backend).view(NAME)


class Copy:
    """A backend on a copy of a state, to try things on."""

    def __init__(self, checker: Checker, content: dict[str, bytes]) -> None:
        self._checker = checker
        self._content = content

    def __enter__(self):
        self._store = self._checker._world.open(self._content)
        return self._checker._open(self._store, "Z")

    def __exit__(self, *_: object) -> None:
        self._checker._world.close(self._store)


def _readable(state):
    problem = f"the data of {state} is gone" if state[1] == "LOST" else None
    return state, problem


def prepare(world, start: str, open_one) -> dict[str, bytes]:
    """Build an initial state with the real code."""
    store = world.open({})
    backend = open_one(store, "I")
    for verb in INITIAL[start][0]:
        perform(Op(verb, "old"), backend)
    content = world.content_of(store) if world.lance else dict(store.content)
    world.close(store)
    return content


def explore(
    race: Race,
    *,
    world=None,
    limits: Limits | None = None,
    open_one=None,
    also=None,
    commutes=None,
) -> Report:
    """Explore a race on a world and return what was found."""
    world = world or MemoryWorld()
    open_one = open_one or partial(open_backend, lance=world.lance)
    content = prepare(world, race.start, open_one)
    programs = {name: [partial(perform, op) for op in ops] for name, ops in race.programs().items()}
    checker = Checker(race, world, open_one, also)
    return Explorer(
        world, content, programs, checker, open_one, limits or Limits(), commutes=commutes
    ).explore()


__all__ = ["INITIAL", "MemoryWorld", "PosixWorld", "Race", "explore"]
