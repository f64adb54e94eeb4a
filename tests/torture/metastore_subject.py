"""A metastore under torture: Lance tables in it, and transactions of its own objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from mooring.errors import MooringError
from mooring.metastore.backend import MetastoreBackend
from mooring.metastore.locator import Locator
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import Namespace
from mooring.namespace.home import Home
from mooring.namespace.settings import METASTORE
from tests.races import metastore_harness, metastore_tables_harness
from tests.races.metastore_harness import HexIds
from tests.races.metastore_tables_harness import (
    LOST,
    SETTINGS,
    Halving,
    Judge,
    ListedTables,
    Looker,
    Model,
    TableRace,
    append,
    decode,
    read_state,
)
from tests.races.world import MemoryStore

from .history import Search, Way
from .subject import Ending, ShiftedClock, Verb, require_done

TABLES = ("n.t", "n.u", "m.t")
_ONE, _TWO = (TABLES,), (TABLES, TABLES)


def _line(op) -> str:
    """Write an operation as races do."""
    return " ".join([op.verb, *(name for name in op.names if name)])


@dataclass(frozen=True)
class TablesModel:
    """What calls about tables mean."""

    def ways(self, op, said: str, state: tuple) -> list[Way]:
        line = _line(op)
        if line == "purge expired":
            return [Way(state)]  # nothing is over in the time that a clock may be off
        ends = metastore_tables_harness.step(line, op.token, state)
        if said == "crashed":
            return [Way(new) for _, new in ends]
        found = [Way(new) for expected, new in ends if expected == said]
        return [*found, Way(state)] if said == LOST else found

    def finish(self, rest, state):
        raise AssertionError(rest)

    def drift(self, state: tuple, going_on: list) -> list[tuple]:
        return []


@dataclass(frozen=True)
class _AnyRace(TableRace):
    """Whatever the generator chooses: tables may lose versions, and go."""

    start: tuple[str, ...] = ()
    actors: tuple[tuple[str, ...], ...] = ()

    def has(self, *calls: str) -> bool:
        return True


@dataclass
class TablesSubject:
    """A metastore of Lance tables, each version a record of the catalog."""

    name = "metastore"
    start = ("make n", "make m", "create n.t", "create n.u")
    verbs: ClassVar[tuple[Verb, ...]] = (
        Verb("append", 6, _ONE),
        Verb("append", 4, _TWO),
        Verb("twice", 2, _ONE),
        Verb("create", 6, _ONE),
        Verb("declare", 1, _ONE),
        Verb("drop", 4, _ONE),
        Verb("drop", 1, (("n",),)),
        Verb("undrop", 4, _ONE),
        Verb("undrop", 1, _TWO),
        Verb("undrop", 2, (("n",),)),
        Verb("rename", 3, _TWO),
        Verb("purge", 2, _ONE),
        Verb("purge", 1, (("expired",),)),
        Verb("deregister", 1, _ONE),
        Verb("trim", 1, _ONE),
        Verb("read", 2, _ONE),
        Verb("vacuum", 1),
    )
    _looker: Looker = field(default_factory=Looker)

    def __post_init__(self) -> None:
        self._judge = Judge(_AnyRace(), (), self._looker)

    def open(self, store, owner: str, hours: int = 0) -> MetastoreBackend:
        halving = Halving(store)
        home = Home(
            halving,
            author=owner,
            clock=ShiftedClock(hours),
            ids=HexIds(owner),
            tables=ListedTables(halving),
            settings=SETTINGS,
            kind=METASTORE,
        )
        return MetastoreBackend(home)

    def perform(self, op, backend) -> object:
        result = metastore_tables_harness.perform(_line(op), op.token, backend)
        if _line(op) == "purge expired":
            require_done(result)
        return result

    def watch(self, store) -> str | None:
        """A reader can live with every state on the way."""
        return self._judge.look(store)

    def problem(self, ending: Ending) -> str | None:
        final = read_state(self._looker, ending.content)[:-1]
        search = Search(TablesModel(), _without_making(ending.history))
        initial = Model(spaces={"n": True, "m": True}).freeze()
        return search.problem(
            initial, lambda state: state[: len(final)] == final
        ) or self._must_be_usable(ending.content)

    def _must_be_usable(self, content: dict[str, bytes]) -> str | None:
        """One more writer gets through to every live table."""
        store = MemoryStore(content)
        tables, _ = self._looker.tables(content)
        writer = self.open(store, "Y")
        for one in tables:
            if not one.is_live:
                continue
            before = decode(content[one.newest]) if one.newest else ()
            try:
                append((".".join(one.names),), "Y", writer)
            except MooringError as exc:
                return f"stuck afterwards: {exc!r}"
            newest, _ = self._looker.tables(store.content)
            (now,) = [found for found in newest if found.location == one.location]
            if decode(store.content[now.newest]) != (*before, "Y"):
                return f"{one.names} holds {decode(store.content[now.newest])} afterwards"
        return None


def _without_making(history):
    """Leave out what made the namespaces: the model begins with them."""
    return history.only(lambda op: None if op.verb == "make" else op)


# -- transactions ----------------------------------------------------------------------------------


def _alone(verb: str, state: frozenset) -> tuple[str, frozenset]:
    """Return what a transaction does alone; a switch looks at the other one first."""
    other = {"switch n off": "log", "switch log off": "n"}.get(verb)
    if other and ("space", other, "off") in state:
        return "ok", state
    return metastore_harness._model(verb, state)


class TransactionsModel:
    """What transactions mean: all of each, or nothing."""

    def ways(self, op, said: str, state: frozenset) -> list[Way]:
        expected, new = _alone(op.verb, state)
        if said in {"crashed", LOST}:
            return [Way(new)] if said == "crashed" else [Way(state)]
        return [Way(new)] if said == expected else []

    def finish(self, rest, state):
        raise AssertionError(rest)

    def drift(self, state: frozenset, going_on: list) -> list[frozenset]:
        return []


class TransactionsSubject:
    """Objects of a metastore, several of which change together: counters, tallies, switches."""

    name = "transactions"
    start = ("make-n", "make-log")
    verbs: ClassVar[tuple[Verb, ...]] = tuple(
        Verb(word, weight)
        for word, weight in {
            **dict.fromkeys([word for word in metastore_harness.REAL if word != "n to m"], 2),
            "increment": 10,
            "make a, count": 4,
            "read": 3,
            "checkpoint": 2,
            "sweep": 1,
        }.items()
    )

    def open(self, store, owner: str, hours: int = 0) -> Metastore:
        return Metastore(store, author=owner, clock=ShiftedClock(hours), ids=HexIds(owner))

    def perform(self, op, backend) -> object:
        return metastore_harness.perform(op.verb.replace("make-", "make "), backend)

    def watch(self, store) -> None:
        """Readers of all are among the operations."""

    def problem(self, ending: Ending) -> str | None:
        backend = self.open(MemoryStore(ending.content), "Z")
        final = metastore_harness.read_state(backend)
        history = ending.history.only(lambda op: None if "-" in op.verb else op)
        initial = metastore_harness._state({"n": "", "log": ""}, set())
        problem = Search(TransactionsModel(), history, late=False).problem(
            initial, lambda state: state == final
        )
        if problem:
            return problem
        checker = metastore_harness.Checker(None, initial)
        store = MemoryStore(ending.content)
        return checker._must_have_its_files(store) or self._must_be_usable(store)

    def _must_be_usable(self, store: MemoryStore) -> str | None:
        try:
            with self.open(store, "Y").transaction() as txn:
                txn.create(Locator.of("after"), Namespace())
        except MooringError as exc:
            return f"stuck afterwards: {exc!r}"
        return None


__all__ = ["TablesSubject", "TransactionsSubject"]
