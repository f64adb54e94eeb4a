"""Three operations at once, and longer programs: two preemptions here, three under torture.

A preemption takes the turn from an actor that could go on; switches at an actor's end are free.
"""

from __future__ import annotations

import pytest

from .explorer import Limits
from .harness import Race, explore


def _race(start: str, *verbs: str) -> Race:
    return Race(start, tuple(tuple(verb.split("+")) for verb in verbs))


TRIPLES = [
    _race("live", "drop", "undrop", "drop"),
    _race("live", "drop", "undrop", "purge"),
    _race("live", "drop", "deregister", "undrop"),
    _race("dropped", "undrop", "undrop", "purge"),
    _race("deregistered", "register", "drop", "undrop"),
    _race("absent", "create", "create", "drop"),
    _race("absent", "declare", "create", "drop"),
    _race("dropped", "undrop", "purge", "create"),
    _race("dropped", "create", "create", "purge"),
    _race("dropped", "create", "create", "undrop"),
    _race("dropped", "purge", "purge", "create"),
    _race("dropped", "purge", "purge+create"),
    _race("dropped", "purge", "undrop+drop+purge"),
    _race("live", "drop", "purge", "create"),
    _race("live", "overwrite", "drop", "purge"),
    _race("purged", "create", "create", "purge"),
    _race("absent", "create", "drop", "purge"),
    _race("absent", "create", "create+drop+purge"),
    _race("marked inside", "create", "undrop", "purge"),
    _race("marked beside", "undrop", "purge", "purge"),
]


@pytest.mark.parametrize("race", TRIPLES, ids=str)
def test_triple_with_two_preemptions_leaves_a_state_that_some_order_explains(race, record_race):
    report = explore(race, limits=Limits(preemptions=2))
    record_race("triples, 2 preemptions", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("race", TRIPLES, ids=str)
def test_triple_with_three_preemptions_leaves_a_state_that_some_order_explains(race, record_race):
    report = explore(race, limits=Limits(preemptions=3))
    record_race("triples, 3 preemptions", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("race", TRIPLES, ids=str)
def test_triple_with_a_fault_leaves_a_state_that_some_order_explains(race, record_race):
    report = explore(race, limits=Limits(preemptions=2, faults=1))
    record_race("triples with a fault", race, report)
    assert not report.violations, report.violations[0]
