"""Writes through the catalog against everything that can happen to a table meanwhile.

Whoever writes stages a manifest and has the catalog make it a version, as Lance does where a
catalog manages versions. An acknowledged write is in the table, in whatever order the operations
are explained; an unacknowledged one is in it once or not at all.

Spec: objects-and-relationships, "External Manifest Store".
"""

from __future__ import annotations

import pytest

from .explorer import Limits
from .harness import INITIAL, Race, explore

OTHERS = (
    "write",
    "create",
    "overwrite",
    "declare",
    "drop",
    "undrop",
    "purge",
    "deregister",
    "register",
    "protect",
)
SEQUENCES = [
    Race("live", (("write",), ("drop", "undrop"))),
    Race("live", (("write",), ("drop", "purge"))),
    Race("live", (("write",), ("drop", "create"))),
    Race("live", (("write",), ("deregister", "register"))),
    Race("live", (("write", "write"), ("write",))),
    Race("live", (("write", "drop"), ("write", "undrop"))),
]
TRIPLES = [
    Race("live", (("write",), ("write",), ("write",))),
    Race("live", (("write",), ("write",), ("drop",))),
    Race("live", (("write",), ("drop",), ("undrop",))),
    Race("live", (("write",), ("drop",), ("purge",))),
    Race("live", (("write",), ("drop",), ("create",))),
    Race("live", (("write",), ("overwrite",), ("drop",))),
]


FIRST = ("live", "declared", "dropped", "purged")
STARTS = [
    start if start in FIRST else pytest.param(start, marks=pytest.mark.torture) for start in INITIAL
]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("other", OTHERS)
def test_write_against_any_operation(start, other, record_race):
    race = Race(start, (("write",), (other,)))
    report = explore(race)
    record_race("writes, memory", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("start", ["live", "dropped", "revived"])
@pytest.mark.parametrize("other", OTHERS)
def test_write_against_any_operation_with_a_fault(start, other, record_race):
    race = Race(start, (("write",), (other,)))
    report = explore(race, limits=Limits(faults=1, preemptions=1))
    record_race("writes with a fault", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("race", SEQUENCES, ids=str)
def test_sequences_of_writes(race, record_race):
    report = explore(race, limits=Limits(preemptions=2))
    record_race("writes, sequences", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("other", OTHERS)
def test_write_with_a_fault_and_more_preemptions(other, record_race):
    race = Race("live", (("write",), (other,)))
    report = explore(race, limits=Limits(faults=1, preemptions=3))
    record_race("writes with a fault, deeper", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("race", TRIPLES, ids=str)
def test_triples_of_writes(race, record_race):
    report = explore(race, limits=Limits(preemptions=2))
    record_race("writes, triples", race, report)
    assert not report.violations, report.violations[0]
