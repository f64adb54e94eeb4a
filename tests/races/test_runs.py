"""Runs against cleanups and against themselves, through all interleavings and with faults.

Nothing of a lost attempt is ever visible, its files are found and removed while those of
others in flight are left alone, and a repeated batch counts once.
"""

from __future__ import annotations

import pytest

from mooring.tables.pending import PendingRun
from mooring.tables.runs import Runs

from .explorer import Limits
from .runs_harness import explore_runs

PAIRS = [
    ("write on disk", "clean"),
    ("write", "clean"),
    ("fail", "clean"),
    ("fail late", "clean"),
    ("write", "fail late"),
    ("repeat", "repeat"),
    ("repeat", "append"),
    ("clean", "clean"),
]
TRIPLES = [
    ("write on disk", "clean", "clean"),
    ("write", "append", "clean"),
    ("write", "fail late", "clean"),
    ("repeat", "repeat", "append"),
    ("repeat", "repeat", "repeat"),
]


@pytest.mark.parametrize("actors", PAIRS, ids=" | ".join)
def test_pairs(actors, monkeypatch, record_race):
    report = explore_runs(monkeypatch, actors, Limits())
    record_race("runs", " | ".join(actors), report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("actors", PAIRS, ids=" | ".join)
def test_pairs_with_a_fault(actors, monkeypatch, record_race):
    report = explore_runs(monkeypatch, actors, Limits(faults=1, preemptions=2))
    record_race("runs with a fault", " | ".join(actors), report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("actors", TRIPLES, ids=" | ".join)
def test_triples(actors, monkeypatch, record_race):
    report = explore_runs(monkeypatch, actors, Limits(preemptions=2))
    record_race("runs, triples", " | ".join(actors), report)
    assert not report.violations, report.violations[0]


# -- protocols that are wrong on purpose -----------------------------------------------------------


def _without_a_decision(monkeypatch) -> None:
    """Delete what looks old, whoever is about to commit it."""
    monkeypatch.setattr(PendingRun, "_decide", lambda _, outcome, *__: outcome)


def _committing_unasked(monkeypatch) -> None:
    """Commit without a look whether a cleanup has given the run up."""
    monkeypatch.setattr(PendingRun, "claim", lambda *_: None)


def _without_a_beginning(monkeypatch) -> None:
    """Look at no version that was there when this repetition began."""
    monkeypatch.setattr(Runs, "begin", lambda _, newest, *__: newest)


BROKEN = [
    (_without_a_decision, ("write", "clean"), "data"),
    (_committing_unasked, ("write on disk", "clean"), "data"),
    (_without_a_beginning, ("repeat", "repeat"), "twice"),
]


@pytest.mark.parametrize(
    ("breaking", "actors", "what"), BROKEN, ids=lambda value: getattr(value, "__name__", "")
)
def test_wrong_protocols_are_caught(breaking, actors, what, monkeypatch):
    breaking(monkeypatch)
    faults = 1 if what == "twice" else 0
    found = explore_runs(monkeypatch, actors, Limits(faults=faults)).violations
    assert any(what in violation for violation in found)
