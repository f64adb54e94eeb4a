"""Lance tables of a metastore: every pair of calls through its interleavings; again with faults.

Races over commit, rename, drop, undrop, purge and re-creation with crashes and lost
acknowledgements; `batch_commit_tables`: two Lance tables change together or not at all.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from mooring.metastore import manifests, version_steps
from mooring.metastore.backend import MetastoreBackend
from mooring.metastore.committer import Request
from mooring.metastore.lance_versions import LanceVersions
from mooring.metastore.metastore import Metastore
from mooring.metastore.transaction import Transaction
from mooring.metastore.trash import Trash
from mooring.metastore.version_steps import NewVersion

from .caught import require_caught
from .depth import IS_DEEP
from .explorer import Limits
from .metastore_tables_harness import TableRace, explore

_SPACES = ("make n", "make m")
STARTS = {
    "live": (*_SPACES, "create a", "create b", "append a"),
    "dropped": (*_SPACES, "create a", "create b", "drop a"),
    "created again": (*_SPACES, "create a", "create b", "drop a", "create a"),
    "declared": (*_SPACES, "declare a", "create b"),
    "in a dropped namespace": (*_SPACES, "create a", "create b", "drop n"),
    "expired": (*_SPACES, "create a", "expire n"),
    "at x": (*_SPACES, "write x", "register a x", "create b"),
    "at x, dropped": (*_SPACES, "write x", "register a x", "create b", "drop a"),
    "at x, forgotten": (*_SPACES, "write x", "register a x", "create b", "deregister a"),
}
VERBS = (
    "append a",
    "append a b",
    "create a",
    "declare a",
    "drop a",
    "undrop a",
    "undrop a c",
    "rename a c",
    "rename a b",
    "rename a m.a",
    "purge a",
    "drop n",
    "undrop n",
    "deregister a",
    "trim a",
    "read a",
    "readall a",
    "vacuum",
)
# One that deletes versions on purpose is in the way of one that reads them all.
PAIRS = [
    pair
    for pair in combinations_with_replacement(VERBS, 2)
    if set(pair) != {"trim a", "readall a"} and pair != ("vacuum", "vacuum")
]
WRITING = [pair for pair in PAIRS if {"append a", "append a b"} & set(pair)]
CASES = [
    (start, pair)
    for start in ("live", "dropped", "created again", "declared", "in a dropped namespace")
    for pair in PAIRS
]
# In the fast suite those that are most in each other's way; all in the long one.
CORE = {"append a b", "create a", "undrop a", "purge a", "vacuum"}
FAST_WITH_A_FAULT = [
    ("live", ("append a b", "drop a")),
    ("dropped", ("undrop a", "purge a")),
    ("dropped", ("append a", "create a")),
]


def _marked(start: str, pair: tuple[str, str], *, is_fast: bool):
    marks = () if is_fast else (pytest.mark.torture,)
    return pytest.param(start, pair, id=f"{start}: {' - '.join(pair)}", marks=marks)


PLAIN = [
    _marked(start, pair, is_fast=pair in WRITING if start == "live" else CORE.issuperset(pair))
    for start, pair in CASES
]
# With faults, from the rarer states those of which one writes, unless all are asked for.
FAULTY = [
    _marked(start, pair, is_fast=(start, pair) in FAST_WITH_A_FAULT)
    for start, pair in CASES
    if IS_DEEP or start in {"live", "dropped"} or CORE.issuperset(pair)
]
REFUSALS = [
    _marked(start, pair, is_fast=(start, pair) == ("live", ("append a b", "read a")))
    for start, pair in CASES
    if IS_DEEP or CORE.issuperset(pair) or (start == "live" and pair in WRITING)
]
IN_ALL_WAYS = [
    ("append a", "append a"),
    ("append a", "rename a m.a"),
    ("append a b", "drop a"),
    ("append a b", "deregister a"),
    ("append a b", "read a"),
]
# Places that tables are registered at can be used again, unlike those that the catalog makes.
PLACES = [
    ("at x", ("append a",), ("deregister a", "register a x")),
    ("at x", ("append a",), ("deregister a", "register c x", "append c")),
    ("at x", ("append a", "append a"), ("register c x", "append c")),
    ("at x", ("drop a", "purge a"), ("append a b",)),
    ("at x", ("rename a c", "drop c", "purge c"), ("append a",)),
    ("at x, dropped", ("purge a",), ("register c x",)),
    ("at x, dropped", ("undrop a",), ("register c x",)),
    ("at x, dropped", ("purge a",), ("purge a", "write x", "register c x")),
    ("at x, forgotten", ("register a x", "append a"), ("register c x", "append c")),
    ("at x, forgotten", ("register a x", "drop a"), ("vacuum",)),
]
LONGER = [
    ("live", ("append a",), ("drop a", "undrop a c", "read c")),
    ("live", ("twice a",), ("append a", "readall a")),
    ("live", ("twice a",), ("deregister a",)),
    ("live", ("drop a", "create a"), ("append a b", "append a b")),
    ("live", ("drop a", "undrop a c"), ("append a b", "append a")),
    ("live", ("drop n", "undrop n"), ("append a b", "append b")),
    ("live", ("rename a m.a", "append m.a"), ("append a", "append b")),
    ("live", ("append a", "trim a"), ("append a", "readall b")),
    ("live", ("drop a", "purge a"), ("undrop a", "append a b")),
    ("live", ("rename a c", "rename b a"), ("append a b",)),
    ("declared", ("append a", "append a"), ("create a", "append a b")),
    ("expired", ("purge expired",), ("undrop n", "append a")),
    ("expired", ("purge expired",), ("undrop a m.c", "append m.c")),
    ("expired", ("purge expired",), ("purge expired",)),
]
TRIPLES = [
    ("live", ("append a",), ("append a b",), ("append b",)),
    ("live", ("append a b",), ("drop a",), ("undrop a",)),
    ("live", ("append a b",), ("rename a c",), ("rename b a",)),
    ("live", ("append a b",), ("drop n",), ("undrop n",)),
    ("dropped", ("undrop a",), ("purge a",), ("create a",)),
    ("dropped", ("undrop a c",), ("purge a",), ("append b",)),
    ("created again", ("append a",), ("purge a",), ("undrop a c",)),
    ("declared", ("append a",), ("create a",), ("drop a",)),
    ("at x, dropped", ("purge a",), ("purge a",), ("register c x",)),
]


def _race(start: str, *actors: tuple[str, ...]) -> TableRace:
    return TableRace(STARTS[start], actors)


def _told(case) -> str:
    start, *actors = case
    return f"{start}: " + " | ".join(" + ".join(verbs) for verbs in actors)


def _must_hold(kind: str, race: TableRace, limits: Limits, record_race) -> None:
    report = explore(race, limits)
    record_race(kind, race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize(("start", "pair"), PLAIN)
def test_pair_is_explained_by_an_order(start, pair, record_race):
    race = _race(start, *((verb,) for verb in pair))
    _must_hold("metastore tables, pairs", race, Limits(preemptions=1), record_race)


@pytest.mark.parametrize(("start", "pair"), FAULTY)
def test_pair_with_a_fault_is_explained_by_an_order(start, pair, record_race):
    race = _race(start, *((verb,) for verb in pair))
    limits = Limits(faults=1, preemptions=1)
    _must_hold("metastore tables, pairs with a fault", race, limits, record_race)


@pytest.mark.parametrize(("start", "pair"), REFUSALS)
def test_store_that_refuses_a_call_leaves_it_done_or_not(start, pair, record_race):
    """What was committed is not told as a failure: whoever writes again would write twice."""
    race = _race(start, *((verb,) for verb in pair))
    report = explore(race, Limits(faults=1, preemptions=1), fails=True)
    record_race("metastore tables, a store that refuses", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("case", PLACES, ids=_told)
def test_place_belongs_to_one_table(case, record_race):
    race = _race(*case)
    _must_hold("metastore tables, places", race, Limits(preemptions=1), record_race)


@pytest.mark.torture
@pytest.mark.parametrize("case", PLACES, ids=_told)
def test_place_belongs_to_one_table_whatever_fails(case, record_race):
    race = _race(*case)
    limits = Limits(faults=1, preemptions=1)
    _must_hold("metastore tables, places with a fault", race, limits, record_race)
    _must_hold("metastore tables, places", race, Limits(preemptions=2), record_race)


@pytest.mark.torture
@pytest.mark.parametrize("pair", WRITING if IS_DEEP else IN_ALL_WAYS, ids=" - ".join)
def test_writer_in_every_interleaving(pair, record_race):
    race = _race("live", *((verb,) for verb in pair))
    _must_hold("metastore tables, all interleavings", race, Limits(), record_race)


@pytest.mark.torture
@pytest.mark.parametrize("case", LONGER, ids=_told)
def test_longer_programs_are_explained_by_an_order(case, record_race):
    race = _race(*case)
    limits = Limits(faults=1, preemptions=1)
    _must_hold("metastore tables, longer", race, limits, record_race)


@pytest.mark.torture
@pytest.mark.parametrize("case", TRIPLES, ids=_told)
def test_triple_is_explained_by_an_order(case, record_race):
    race = _race(*case)
    _must_hold("metastore tables, triples", race, Limits(preemptions=2), record_race)


# -- protocols that are wrong on purpose -----------------------------------------------------------


def _finalizing_before_the_commit(monkeypatch) -> None:
    """Let readers of the directory find a version that is not decided."""
    plan = NewVersion.plan

    def hasty(self, txn) -> None:
        files = self._require_files()
        manifests.put_final(files.place.store, files.final(self._copy), self._body)
        plan(self, txn)

    monkeypatch.setattr(NewVersion, "plan", hasty)


def _one_table_after_the_other(monkeypatch) -> None:
    """Commit a batch as several transactions."""
    commit = MetastoreBackend.commit_tables

    def singly(self, operations) -> list:
        return [commit(self, [one])[0] for one in operations]

    monkeypatch.setattr(MetastoreBackend, "commit_tables", singly)


def _purging_without_a_mark(monkeypatch) -> None:
    """Delete the files of what was in the trash a moment ago."""

    def unmarked(self, txn, objects):
        del self, txn
        return list(objects), {one.table.location for one in objects}

    monkeypatch.setattr(Trash, "_mark", unmarked)


def _registering_without_a_claim(monkeypatch) -> None:
    """Take a place that was free a moment ago."""
    monkeypatch.setattr(Transaction, "claim", lambda *_: None)


def _giving_purged_places_out_again(monkeypatch) -> None:
    """Forget where tables were purged, while somebody may still be about to delete."""
    monkeypatch.setattr(Metastore, "give_up", lambda *_: None)


def _leaving_the_dead_alone(monkeypatch) -> None:
    """Build on a version whose writer did not give it its name."""
    monkeypatch.setattr(version_steps, "finalize", lambda *_: None)


def _forgetting_what_is_not_final(monkeypatch) -> None:
    """Leave a directory that lacks what the catalog told of it."""
    monkeypatch.setattr(LanceVersions, "complete", lambda *_: None)


def _unchecked(monkeypatch) -> None:
    """Commit behind whatever came first."""
    monkeypatch.setattr(Request, "interferes", lambda *_: False)


A_FAULT = Limits(faults=1, preemptions=1)
BROKEN = [
    (_finalizing_before_the_commit, ("live", ("append a",), ("append a",)), Limits(preemptions=2)),
    (_one_table_after_the_other, ("live", ("append a b",), ("read a",)), Limits(preemptions=1)),
    (_purging_without_a_mark, ("dropped", ("purge a",), ("undrop a",)), Limits(preemptions=1)),
    (_registering_without_a_claim, PLACES[8], Limits(preemptions=2)),
    (_giving_purged_places_out_again, PLACES[7], Limits(preemptions=1)),
    (_leaving_the_dead_alone, ("live", ("append a",), ("append a",)), A_FAULT),
    (_forgetting_what_is_not_final, PLACES[0], Limits(preemptions=2)),
    (_unchecked, LONGER[0], Limits(preemptions=1)),
]


@pytest.mark.parametrize(
    ("breaking", "case", "limits"), BROKEN, ids=[case[0].__name__.strip("_") for case in BROKEN]
)
def test_wrong_protocol_is_caught(breaking, case, limits, monkeypatch):
    breaking(monkeypatch)
    limits = Limits(limits.faults, limits.preemptions, stop_at_first=True)
    require_caught(explore(_race(*case), limits).violations)
