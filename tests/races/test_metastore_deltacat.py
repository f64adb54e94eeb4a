"""Transactions of ours in deltacat's layout: they see each other as in that of the document.

What its library commits is known by its logs, which ours have, too: nobody may take a commit of
ours for one of its own. Again where nobody has adopted yet what the library committed before.
"""

from __future__ import annotations

from functools import partial

import pytest

from mooring.metastore.chain import CommitChain
from mooring.metastore.deltacat.commits import DeltacatCommits
from mooring.metastore.deltacat.dialect import DeltacatDialect
from mooring.metastore.deltacat.layout import FileName, file_path
from mooring.metastore.metastore import Metastore

from . import metastore_harness
from .explorer import Limits
from .metastore_harness import MetaRace

DIALECT = DeltacatDialect()
START = ("make n", "make log", "make a")
PAIRS = [
    ("increment", "increment"),
    ("increment", "make a, count"),
    ("a to b", "make b"),
    ("n to m", "tally"),
    ("drop n whole", "make b"),
    ("increment", "sweep"),
    ("increment", "checkpoint"),
    ("read", "increment"),
]
FASTEST = ("increment", "increment")
PACED = [
    pair if pair == FASTEST else pytest.param(pair, marks=pytest.mark.torture) for pair in PAIRS
]


@pytest.fixture(params=["ours from the beginning", "not adopted yet"])
def layout(request, monkeypatch):
    """Let the harness work in deltacat's layout; where it is to be adopted, without a chain."""
    forgotten = []

    def open_one(store, owner: str) -> Metastore:
        if owner == "Z" and request.param == "not adopted yet" and not forgotten:
            forgotten.extend(path for path in store.content if path.startswith("txn/_"))
            for path in forgotten:
                del store.content[path]
        return Metastore(
            store,
            author=owner,
            clock=metastore_harness.FrozenClock(),
            ids=metastore_harness.HexIds(owner),
            dialect=DIALECT,
            beside_others=True,
        )

    patches = {
        "open_metastore": open_one,
        "CommitChain": partial(CommitChain, dialect=DIALECT),
        "revision_path": _revision_path,
        "_commutes": partial(_commutes, metastore_harness._commutes),
    }
    for name, value in patches.items():
        monkeypatch.setattr(metastore_harness, name, value)
    monkeypatch.setattr(DeltacatCommits, "_get", _get_one_by_one)
    return request.param


def _revision_path(ids, name) -> str:
    return file_path(FileName(ids, name.revision, name.operation, name.txn_id))


def _commutes(before, call, content, *, faults_left: bool) -> bool:
    """Whoever looks for commits of others lists the logs."""
    is_log = call.path.startswith("txn/success")
    return not is_log and before(call, content, faults_left=faults_left)


def _get_one_by_one(self, paths):
    """The harness runs its actors in one thread."""
    return {path: self._store.get(path) for path in paths}


@pytest.mark.parametrize("pair", PACED, ids=" - ".join)
def test_pair_is_serializable_in_deltacats_layout(layout, pair, record_race):
    race = MetaRace(START, tuple((verb,) for verb in pair))
    report = metastore_harness.explore(race, Limits(preemptions=1))
    record_race(f"metastore in deltacat's layout, {layout}", race, report)
    assert not report.violations


@pytest.mark.torture
@pytest.mark.parametrize("pair", PAIRS, ids=" - ".join)
def test_pair_with_a_fault_is_serializable_in_deltacats_layout(layout, pair, record_race):
    race = MetaRace(START, tuple((verb,) for verb in pair))
    report = metastore_harness.explore(race, Limits(faults=1, preemptions=1))
    record_race(f"metastore in deltacat's layout with a fault, {layout}", race, report)
    assert not report.violations
