"""Every pair of transactions of a metastore through all interleavings; again with faults.

"Race harness over commit, rename, drop, read"; write skew and phantoms are caught.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

import mooring.metastore.draft
from mooring.errors import UnknownOutcomeError
from mooring.metastore.committer import Committer, Request
from mooring.metastore.draft import Draft
from mooring.metastore.entry import Entry
from mooring.metastore.transaction import Transaction

from .caught import require_caught
from .explorer import Limits
from .metastore_harness import MetaRace, explore

STARTS = {
    "empty": ("make n", "make log"),
    "with a": ("make n", "make log", "make a"),
}
VERBS = (
    "increment",
    "tally",
    "make a",
    "make b",
    "make b unless tallied",
    "a to b",
    "n to m",
    "drop n",
    "drop n whole",
    "drop a",
    "switch n off",
    "switch log off",
    "make a, count",
)
BESIDE = ("checkpoint", "sweep")
PAIRS = list(combinations_with_replacement(VERBS, 2))
# In the fast suite those of which one counts: each change of everybody's is in its way.
FAULTY = [
    pair if "increment" in pair else pytest.param(pair, marks=pytest.mark.torture) for pair in PAIRS
]
TRIPLES = [
    ("increment", "increment", "increment"),
    ("tally", "make b", "drop a"),
    ("a to b", "make b", "n to m"),
    ("drop n whole", "make b", "increment"),
    ("switch n off", "switch log off", "tally"),
]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("pair", PAIRS, ids=" - ".join)
def test_pair_is_serializable(start, pair, record_race):
    race = MetaRace(STARTS[start], tuple((verb,) for verb in pair))
    report = explore(race)
    record_race("metastore pairs", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("pair", FAULTY, ids=" - ".join)
def test_pair_with_a_fault_is_serializable(pair, record_race):
    race = MetaRace(STARTS["with a"], tuple((verb,) for verb in pair))
    report = explore(race, Limits(faults=1, preemptions=1))
    record_race("metastore pairs with a fault", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("triple", TRIPLES, ids=" - ".join)
def test_triple_is_serializable(triple, record_race):
    race = MetaRace(STARTS["with a"], tuple((verb,) for verb in triple))
    report = explore(race, Limits(preemptions=2))
    record_race("metastore triples", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("verb", VERBS)
def test_checkpoints_and_sweeps_harm_no_transaction(verb, beside, record_race):
    race = MetaRace(STARTS["with a"], ((verb,), (beside, "increment")))
    report = explore(race, Limits(faults=1, preemptions=1))
    record_race("metastore, checkpoints and sweeps", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("verb", VERBS)
def test_reader_sees_whole_states_that_never_go_back(verb, record_race):
    race = MetaRace(STARTS["with a"], (("read", "read"), (verb, "increment")))
    report = explore(race, Limits(faults=1, preemptions=1))
    record_race("metastore, readers", race, report)
    assert not report.violations, report.violations[0]


# -- protocols that are wrong on purpose -----------------------------------------------------------


def _blind_to_reads(monkeypatch) -> None:
    """Compare writes only: snapshot isolation, which lets write skew through."""
    monkeypatch.setattr(
        Request, "interferes", lambda self, other: self.record.writes & other.writes
    )


def _blind_to_touches(monkeypatch) -> None:
    """Forget that a child came or went: phantoms."""
    monkeypatch.setattr(mooring.metastore.draft, "children_key", lambda ids: f"{ids}{id(ids)}")


def _unchecked(monkeypatch) -> None:
    """Append behind whatever came first."""
    monkeypatch.setattr(Request, "interferes", lambda *_: False)


def _taking_silence_for_a_loss(monkeypatch) -> None:
    """Try the next number while one is undecided."""

    def append(self, seq, entry) -> bool:
        try:
            return self._chain.append(seq, entry)
        except UnknownOutcomeError:
            return False

    def create_once(store, path, body) -> bool:
        return store.put_new(path, body)

    monkeypatch.setattr(Committer, "_append", append)
    monkeypatch.setattr("mooring.metastore.chain.create_once", create_once)


def _deleting_first(monkeypatch) -> None:
    """Sweep without giving the transaction up."""
    monkeypatch.setattr("mooring.metastore.sweep.Entry", lambda nonce, aborted: Entry(nonce=nonce))


def _reading_what_is_newest(monkeypatch) -> None:
    """Read every object as it is by now."""
    newest = property(lambda self: self.timeline.seq, lambda *_: None)
    for kind in (Transaction, Draft):
        monkeypatch.setattr(kind, "seq", newest, raising=False)


BROKEN = [
    (_reading_what_is_newest, ("read", "increment"), Limits()),
    (_blind_to_reads, ("switch n off", "switch log off"), Limits()),
    (_blind_to_touches, ("tally", "make b unless tallied"), Limits()),
    (_unchecked, ("increment", "increment"), Limits()),
    (_taking_silence_for_a_loss, ("increment", "drop a"), Limits(faults=1, preemptions=1)),
    (_deleting_first, ("increment", "sweep"), Limits()),
]


@pytest.mark.parametrize(
    ("breaking", "pair", "limits"), BROKEN, ids=[case[0].__name__.strip("_") for case in BROKEN]
)
def test_wrong_protocol_is_caught(breaking, pair, limits, monkeypatch):
    breaking(monkeypatch)
    race = MetaRace(STARTS["with a"], tuple((verb,) for verb in pair))
    require_caught(explore(race, limits).violations)
