"""Transactions of a metastore through their interleavings, held against a model.

A history is right if some order of its transactions, one after another, explains every outcome and
the state that is left: they are serializable. One that crashed may or may not have happened; one
that reports a lost race has changed nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from mooring.errors import MooringError
from mooring.metastore.chain import CommitChain
from mooring.metastore.layout import RevisionName, revision_path
from mooring.metastore.locator import ROOT, Locator
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import Namespace, Table

from .explorer import Explorer, Limits, Report
from .scheduler import Saw
from .world import FrozenClock, MemoryWorld

if TYPE_CHECKING:
    from mooring.metastore.transaction import Transaction

LOST = "ConcurrentModificationError"


class HexIds:
    """Gives each actor its own row of ids, the same in every run."""

    def __init__(self, owner: str) -> None:
        self._owner = ord(owner)
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return f"{self._owner:02x}{self._count:030x}"


@dataclass(frozen=True)
class MetaRace:
    """Some actors, each with transactions, from a state that a few transactions make."""

    start: tuple[str, ...]
    actors: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return f"{'+'.join(self.start)}: " + " | ".join("+".join(ops) for ops in self.actors)


# -- what each transaction does, to the real thing and to the model --------------------------------


def _increment(txn) -> None:
    count = int(txn.get(Locator.of("n")).value.properties.get("count", "0"))
    txn.update(Locator.of("n"), Namespace(properties={"count": str(count + 1)}))


def _tally(txn) -> None:
    """Write down how many tables there are: a phantom would make it wrong."""
    tables = len(txn.children(Locator.of("n")))
    txn.update(Locator.of("log"), Namespace(properties={"tables": str(tables)}))


def _switch_off(name: str, other: str, txn) -> None:
    """Switch one off as long as the other is on: both off would be a write skew."""
    if txn.get(Locator.of(other)).value.properties.get("off") != "yes":
        txn.get(Locator.of(name))
        txn.update(Locator.of(name), Namespace(properties={"off": "yes"}))


def _make_b_unless_tallied(txn) -> None:
    """Make a table that a tally would have counted, had there been one."""
    txn.get(Locator.of("n"))
    if "tables" not in txn.get(Locator.of("log")).value.properties:
        txn.create(Locator.of("n", "b"), Table())


REAL = {
    "make n": lambda txn: txn.create(Locator.of("n"), Namespace()),
    "make log": lambda txn: txn.create(Locator.of("log"), Namespace()),
    "make a": lambda txn: txn.create(Locator.of("n", "a"), Table()),
    "make b": lambda txn: txn.create(Locator.of("n", "b"), Table()),
    "make b unless tallied": _make_b_unless_tallied,
    "increment": _increment,
    "tally": _tally,
    "a to b": lambda txn: txn.rename(Locator.of("n", "a"), "b"),
    "n to m": lambda txn: txn.rename(Locator.of("n"), "m"),
    "drop n": lambda txn: txn.delete(Locator.of("n")),
    "drop n whole": lambda txn: txn.delete(Locator.of("n"), cascade=True),
    "drop a": lambda txn: txn.delete(Locator.of("n", "a")),
    "switch n off": partial(_switch_off, "n", "log"),
    "switch log off": partial(_switch_off, "log", "n"),
    "make a, count": lambda txn: (REAL["make a"](txn), _increment(txn)),
}

# The model's state: names of namespaces with their property, and of tables in them.
State = frozenset


def _model(verb: str, state: State):  # noqa: C901, PLR0911, PLR0912  # a table of cases
    """Return the outcome and the state after a transaction that runs alone."""
    spaces = {name: value for kind, name, value in state if kind == "space"}
    tables = {name for kind, name, _ in state if kind == "table"}
    missing, taken = ("NotFoundError", state), ("ConflictError", state)
    match verb:
        case "checkpoint" | "sweep":
            return "ok", state
        case "read":
            return _saw(state), state
        case "make n" | "make log":
            name = verb.removeprefix("make ")
            if name in spaces:
                return taken
            spaces[name] = ""
        case "make a" | "make b":
            name = verb.removeprefix("make ")
            if "n" not in spaces:
                return missing
            if name in tables:
                return taken
            tables.add(name)
        case "make a, count":
            outcome, made = _model("make a", state)
            return _model("increment", made) if outcome == "ok" else (outcome, state)
        case "increment":
            if "n" not in spaces:
                return missing
            spaces["n"] = str(1 + (int(spaces["n"]) if spaces["n"].isdigit() else 0))
        case "tally":
            if not {"n", "log"} <= spaces.keys():
                return missing
            spaces["log"] = f"{len(tables)} tables"
        case "make b unless tallied":
            if not {"n", "log"} <= spaces.keys():
                return missing
            if not spaces["log"].endswith("tables"):
                return _model("make b", state)
        case "a to b":
            if "n" not in spaces or "a" not in tables:
                return missing
            if "b" in tables:
                return taken
            tables = (tables - {"a"}) | {"b"}
        case "n to m":
            if "n" not in spaces:
                return missing
            if "m" in spaces:
                return taken
            spaces["m"] = spaces.pop("n")
        case "drop n" | "drop n whole":
            if "n" not in spaces:
                return missing
            if tables and verb == "drop n":
                return "NamespaceNotEmptyError", state
            del spaces["n"]
            tables = set()
        case "drop a":
            if "n" not in spaces or "a" not in tables:
                return missing
            tables = tables - {"a"}
        case "switch n off" | "switch log off":
            name = verb.split()[1]
            other = "log" if name == "n" else "n"
            if not {"n", "log"} <= spaces.keys():
                return missing
            if spaces[other] != "off":
                spaces[name] = "off"
    return "ok", _state(spaces, tables)


def _saw(state: State) -> Saw:
    return Saw(f"saw {sorted(state)}")


def _state(spaces: dict[str, str], tables: set[str]) -> State:
    return frozenset(
        {("space", name, value) for name, value in spaces.items()}
        | {("table", name, "") for name in tables}
    )


def _all_or_nothing(verb: str, state: State) -> list[State]:
    """Return no state: a transaction stops nowhere in between."""
    return []


def explains(initial: State, actors, final: State, model=_model, partly=_all_or_nothing) -> bool:
    """Whether some order of the transactions leads to these outcomes and this state.

    Args:
        initial: Where they began.
        actors: For each, what it did in turn, and how it came out.
        final: What is left.
        model: Tells what each does alone.
        partly: Tells what else one may leave that did not come to its end.
    """

    @lru_cache(None)
    def reach(positions: tuple[int, ...], state: State) -> bool:
        if all(at == len(history) for at, history in zip(positions, actors, strict=True)):
            return state == final
        for index, at in enumerate(positions):
            if at == len(actors[index]):
                continue
            verb, outcome = actors[index][at]
            moved = (*positions[:index], at + 1, *positions[index + 1 :])
            expected, new = model(verb, state)
            follow = [new] if outcome == expected else []
            if outcome == LOST:
                follow = [state, *partly(verb, state)]
            if outcome == "crashed":
                follow = [state, *partly(verb, state), new]
            if any(reach(moved, each) for each in follow):
                return True
        return False

    return reach((0,) * len(actors), initial)


# -- exploring -------------------------------------------------------------------------------------


def open_metastore(store, owner: str) -> Metastore:
    """Open a metastore for one actor."""
    return Metastore(store, author=owner, clock=FrozenClock(), ids=HexIds(owner))


def perform(verb: str, meta: Metastore) -> Saw | None:
    """Run one transaction, once, or what is done beside them."""
    match verb:
        case "read":
            return _read_twice(meta)
        case "checkpoint":
            meta.chain.refresh()
            meta.chain.checkpoint()
        case "sweep":
            meta.sweep(older_than_ms=-1)  # also what was written this very moment
        case _:
            with meta.transaction() as txn:
                REAL[verb](txn)
    return None


def _read_twice(meta: Metastore) -> Saw:
    """Read all there is; the same again after this process has learnt of what came since."""
    txn = meta.begin()
    first = _read_all(txn)
    meta.begin()
    assert _read_all(txn) == first, "a transaction saw two states"
    return _saw(first)


def read_state(meta: Metastore) -> State:
    """Read what is left, as the model writes it."""
    return _read_all(meta.begin())


def _read_all(txn: Transaction) -> State:
    spaces, tables = {}, set()
    for space in txn.children(ROOT):
        found = space.value.properties
        off = "off" if found.get("off") else ""
        tally = f"{found['tables']} tables" if "tables" in found else ""
        spaces[space.locator.parts[0]] = off or tally or found.get("count", "")
        tables |= {one.locator.parts[0] for one in txn.children(space.locator)}
    return _state(spaces, tables)


def _commutes(call, content, *, faults_left: bool) -> bool:
    """Tell calls that make no choice.

    An entry of the chain that is there never changes. Files that a transaction stages, and its
    log, hold its id in their names, and nobody reads them; a crash before one is a choice, though.
    """
    if call.verb == "get":
        return call.path in content
    is_entry = call.path.startswith("txn/_commits/")
    return not faults_left and call.verb in {"put", "delete"} and not is_entry


class Checker:
    """Judges the state that a schedule leaves."""

    def __init__(self, race: MetaRace, initial: State) -> None:
        self._race = race
        self._initial = initial

    def __call__(self, store, actors) -> str | None:
        for actor in actors:
            for outcome in actor.outcomes:
                if outcome.startswith("BUG"):
                    return f"{actor.name} broke: {outcome}"
        final = read_state(open_metastore(store, "Z"))
        histories = tuple(
            tuple(zip(verbs, actor.outcomes, strict=False))
            for verbs, actor in zip(self._race.actors, actors, strict=True)
        )
        if not explains(self._initial, histories, final):
            return f"no order of the transactions explains the end: {sorted(final)}"
        return self._must_have_its_files(store) or self._must_be_usable(store)

    def _must_have_its_files(self, store) -> str | None:
        """Every committed revision and name is a file of the document's layout."""
        chain = CommitChain(store)
        chain._is_open = True  # all of it, checkpoints left aside
        for entry in chain.between(0, chain.refresh()):
            for record in entry.records:
                for change in record.changes:
                    name = RevisionName(change.revision, change.operation, record.txn_id)
                    if revision_path(change.ids, name) not in store.content:
                        return f"a revision of {change.ids} is gone"
        return None

    def _must_be_usable(self, store) -> str | None:
        """Whatever was left, the next transaction commits."""
        try:
            with open_metastore(store, "Y").transaction() as txn:
                txn.create(Locator.of("after"), Namespace())
        except MooringError as exc:
            return f"stuck afterwards: {exc!r}"
        return None


def explore(race: MetaRace, limits: Limits | None = None) -> Report:
    """Explore a race in memory."""
    world = MemoryWorld()
    store = world.open({})
    meta = open_metastore(store, "I")
    for verb in race.start:
        perform(verb, meta)
    initial = read_state(open_metastore(store, "Z"))
    programs = {
        name: [partial(perform, verb) for verb in verbs]
        for name, verbs in zip("ABCD", race.actors, strict=False)
    }
    return Explorer(
        world,
        dict(store.content),
        programs,
        Checker(race, initial),
        open_metastore,
        limits or Limits(),
        commutes=_commutes,
    ).explore()
