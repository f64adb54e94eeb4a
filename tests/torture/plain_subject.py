"""A plain directory under torture: every name lives by its own chain of decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mooring.directory.decisions import State
from mooring.directory.listing_backend import ListingBackend
from mooring.errors import ConcurrentModificationError, MooringError
from mooring.identifiers import ROOT
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.home import Home
from mooring.namespace.states import Exists, SoftDeleted
from tests.races import model as plain
from tests.races.scheduler import Saw
from tests.races.world import SETTINGS, CountedIds, MemoryStore, StoreTables

from .history import History, Search, Way
from .subject import Ending, ShiftedClock, Verb, require_done

NAMES = ("t", "u")
# A directory without a version, as a creation has it that goes on or was given up.
PHANTOM = ("phantom", None, False)
# One that was dropped, and its files with it when its creation failed: nothing can come back.
HOLLOW = ("hollow", None, False)
# Nothing is left of one that was protected but this: the next table of the name may be, too.
ECHO = ("echo", None, True)
_BOTH = (False, True)
_ONE = (NAMES,)
_CREATING = {"create", "overwrite"}


def perform(op, backend) -> object:  # noqa: PLR0911  # a table of cases
    """Call the real backend."""
    table = ROOT.child(op.name) if op.name else ROOT
    match op.verb:
        case "create":
            return backend.create_table(table, op.token)
        case "overwrite":
            return backend.create_table(table, op.token, CreateMode.OVERWRITE)
        case "drop!":
            return backend.drop_table(table, Ttl(0))
        case "register":
            return backend.register_table(table, f"{op.name}.lance")
        case "unprotect":
            return backend.protect_table(table, protected=False)
        case "expire":
            return require_done(backend.purge_tables())
        case "list":
            return saw_tables(backend)
        case "status":
            return saw_status(backend, table)
        case verb:
            return getattr(backend, f"{verb}_table")(table)


def saw_tables(backend) -> Saw:
    """List all tables."""
    found = sorted(str(table).replace("$", ".") for table in backend.list_all_tables())
    return Saw(" ".join(["saw", *found]))


def saw_status(backend, table) -> Saw:
    """Tell what a table is."""
    match backend.table_status(table):
        case Exists():
            return Saw("saw live")
        case SoftDeleted():
            return Saw("saw dropped")
        case _:
            return Saw("saw none")


@dataclass(frozen=True)
class NameModel:
    """What operations on one name mean.

    Attributes:
        name: The name.
        ending: What is left in the end.
        purges: How many may end a purge.
    """

    name: str
    ending: Ending
    purges: int

    def ways(self, op, said: str, state: tuple) -> list[Way]:
        if state == ECHO:
            found = self._after(op, said, plain.ABSENT)
            lives = [Way((*new[:2], is_on)) for new in found if new[0] == "live" for is_on in _BOTH]
            return [*lives, *(Way(ECHO) for new in found if new[0] != "live")]
        if state[0] == "hollow":
            found = self._after(op, said, plain.dropped(None)[:2] + state[2:])
            nothing = [state] if (op.verb, said) == ("undrop", "TableNotFoundError") else []
            return [Way(new) for new in [*map(_hollow, found), *nothing]]
        if state[0] != "phantom":
            return [
                Way(new) for new in self._after(op, said, state) for new in _or_nothing(op, new)
            ]
        found = self._after(op, said, plain.live(None, state[2]))
        if plain.forgotten(None) in found:
            found.append(plain.ABSENT)  # as soon as its creator takes its files away
        found += [_hollow(new) for new in found if new[:2] == plain.dropped(None)[:2]]
        return [Way(("phantom", *new[1:]) if new[:2] == ("live", None) else new) for new in found]

    def _after(self, op, said: str, state: tuple) -> list[tuple]:
        kind = state[0]
        match op.verb:
            case "list":
                listed = self.name in said.split()
                return [state] if listed == (kind == "live") else []
            case "status":
                told = {"live": "saw live", "dropped": "saw dropped"}.get(kind, "saw none")
                return [state] if said == told else []
            case "expire":
                over = kind == "dropped" and state[2] and self.ending.is_over(state[2], op.token)
                gone = [plain.ABSENT] if over else [state]
                return [state, *gone] if said != "ok" else gone
            case "drop!":
                drop = plain.Op("drop")
                found = plain._after(drop, said, state, self.purges)
                return [
                    (*new[:2], op.token) if new[0] == "dropped" and new is not state else new
                    for new in found
                ]
        return plain._after(plain.Op(op.verb, op.token), said, state, self.purges)

    def finish(self, rest, state):
        raise AssertionError(rest)

    def drift(self, state: tuple, going_on: list) -> list[tuple]:
        """V1 shows a table as soon as its directory has a file; a creator that fails takes it."""
        if state[0] == "phantom":
            return [ECHO if state[2] else plain.ABSENT]
        if state == plain.ABSENT and any(op.verb in _CREATING for op in going_on):
            return [PHANTOM]
        return []


def _hollow(state: tuple) -> tuple:
    return (HOLLOW[0], *state[1:]) if state[:2] == plain.dropped(None)[:2] else state


def _or_nothing(op, state: tuple) -> list[tuple]:
    """A name that was hidden while a creation was under way may come back with nothing."""
    if op.verb in {"register", "undrop"} and state == plain.live(None):
        return [state, PHANTOM]
    return [state]


class PlainSubject:
    """A plain directory in memory."""

    name = "listing"
    start = ()
    verbs: ClassVar[tuple[Verb, ...]] = (
        Verb("create", 8, _ONE),
        Verb("overwrite", 2, _ONE),
        Verb("declare", 1, _ONE),
        Verb("drop", 6, _ONE),
        Verb("drop!", 2, _ONE),
        Verb("undrop", 5, _ONE),
        Verb("purge", 3, _ONE),
        Verb("expire", 2),
        Verb("deregister", 1, _ONE),
        Verb("register", 2, _ONE),
        Verb("protect", 1, _ONE),
        Verb("unprotect", 1, _ONE),
        Verb("list", 2),
        Verb("status", 1, _ONE),
    )

    def open(self, store, owner: str, hours: int = 0) -> ListingBackend:
        ids = CountedIds(owner)
        tables = StoreTables(store, ids)
        clock = ShiftedClock(hours)
        home = Home(store, author=owner, clock=clock, ids=ids, tables=tables, settings=SETTINGS)
        return ListingBackend(home)

    def perform(self, op, backend) -> object:
        return perform(op, backend)

    def watch(self, store) -> None:
        """Nothing can be told of a directory that others are at work in."""

    def problem(self, ending: Ending) -> str | None:
        for name in NAMES:
            found = self._problem_of(name, ending)
            if found:
                return f"'{name}': {found}"
        return None

    def _problem_of(self, name: str, ending: Ending) -> str | None:
        backend = self.open(MemoryStore(ending.content), "Z")
        final, problem = look(name, backend, backend.home.open_tables().read)
        if problem:
            return problem
        problem = explain_name(name, ending, final)
        return problem or self._must_be_usable(name, ending.content)

    def _must_be_usable(self, name: str, content: dict[str, bytes]) -> str | None:
        """Whatever was left can be finished: purged if need be, created, dropped, undropped."""
        backend = self.open(MemoryStore(content), "Y")
        table = ROOT.child(name)
        try:
            exercise(backend, name)
        except MooringError as exc:
            return f"stuck afterwards: {exc!r}"
        found = backend.home.open_tables().read(f"{name}.lance")
        if found != "after":
            return f"a later table reads {found}"
        backend.drop_table(table)
        backend.purge_table(table)
        left = [path for path in backend.store.content if path.startswith(f"{name}.lance/data/")]
        return f"data is left after a purge: {left}" if left else None


def look(name: str, backend, read) -> tuple[tuple, str | None]:  # noqa: PLR0911  # cases
    """Read what is left, bringing a hidden table back to see what it holds."""
    table, directory = ROOT.child(name), f"{name}.lance"
    view = backend.view(name)
    state = view.state
    listed = name in backend.list_tables(ROOT)
    if (state is State.LIVE) != listed:
        return plain.ABSENT, f"listed: {listed}, though a look says {state}"
    if state is State.LIVE:
        return _readable(plain.live(read(directory), view.is_protected))
    if state is State.DEREGISTERED:
        backend.register_table(table, directory)
        return _readable(plain.forgotten(read(directory)))
    if state is None or not state.in_trash:
        return plain.ABSENT, None
    try:
        backend.undrop_table(table)
    except MooringError as exc:
        # A creation that was under way when it was dropped has taken its files with it.
        if "had no data" in str(exc) or "are gone" in str(exc):
            return plain.dropped(None), None
        return plain.ABSENT, f"a dropped table cannot be undropped: {exc!r}"
    return _readable(plain.dropped(read(directory)))


def explain_name(name: str, ending: Ending, final: tuple) -> str | None:
    """Tell why no order of the operations on a name explains what is left of it."""
    history = ending.history.only(lambda op: op if op.name in {"", name} else None)
    model = NameModel(name, ending, _purges(history))

    def ends_well(state: tuple) -> bool:
        if state == ECHO:
            return final == plain.ABSENT
        if state[0] == "phantom":
            return final in {plain.ABSENT, plain.live(None, state[2])}
        if state[0] == "hollow":
            return final[:2] == plain.dropped(None)[:2]
        return state == final or (state[0] == "dropped" and state[:2] == final[:2])

    return Search(model, history).problem(plain.ABSENT, ends_well)


def _purges(history: History) -> int:
    """Count who may end a purge, or clear away a creation that is not finished."""
    ops = history.ops.items()
    purges = sum(op.verb in {"purge", "expire"} for _, op in ops)
    return purges + any(
        op.verb in _CREATING and history.said.get(key, "crashed") != "ok" for key, op in ops
    )


def exercise(backend, name: str, rows: object = "after") -> None:
    """End whatever was begun, and use the name anew."""
    table = ROOT.child(name)
    state = backend.view(name).state
    if state is State.DEREGISTERED:
        backend.register_table(table, f"{name}.lance")
    if backend.view(name).state is State.LIVE:
        backend.protect_table(table, protected=False)
        backend.drop_table(table)
        backend.purge_table(table)
    try:
        backend.create_table(table, rows)
    except ConcurrentModificationError:
        backend.purge_table(table)
        backend.create_table(table, rows)
    backend.protect_table(table, protected=False)
    backend.drop_table(table)
    backend.undrop_table(table)


def _readable(state: tuple) -> tuple[tuple, str | None]:
    return state, f"the data of {state} is gone" if "LOST" in str(state[1]) else None


__all__ = ["NAMES", "PHANTOM", "PlainSubject", "explain_name"]
