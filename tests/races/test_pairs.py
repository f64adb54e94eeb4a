"""Every pair of operations, from every state, through all interleavings; again with faults.

A fault is a crash at a store call, or an answer to a creation that is lost.

Spec: soft-delete, "Purge/revive race guard".
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from .explorer import Limits
from .harness import INITIAL, Race, explore

VERBS = (
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
PAIRS = list(combinations_with_replacement(VERBS, 2))
LARGEST = [(f"marked {where}", ("overwrite", "purge")) for where in ("beside", "inside")]
# Two programs in a row: a purger that sleeps while others finish its work and go on.
SEQUENCES = [
    Race("dropped", (("purge",), ("undrop", "drop"))),
    Race("live", (("drop",), ("drop", "undrop"))),
    Race("dropped", (("undrop",), ("undrop", "drop"))),
    Race("purged", (("create",), ("create", "drop"))),
    Race("live", (("deregister",), ("drop", "undrop"))),
]


def _each() -> list[object]:
    """Pair every start with every pair; the largest take a minute, and wait for the long suite."""
    return [
        pytest.param(
            start,
            pair,
            id=f"{'-'.join(pair)}-{start}",
            marks=[pytest.mark.torture] if (start, pair) in LARGEST else [],
        )
        for pair in PAIRS
        for start in INITIAL
    ]


@pytest.mark.parametrize(("start", "pair"), _each())
def test_pair_leaves_a_state_that_some_order_explains(start, pair, record_race):
    race = Race(start, tuple((verb,) for verb in pair))
    report = explore(race)
    record_race("pairs, memory", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("start", INITIAL)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pair_with_a_fault_at_every_call(start, pair, record_race):
    race = Race(start, tuple((verb,) for verb in pair))
    report = explore(race, limits=Limits(faults=1, preemptions=1))
    record_race("pairs with a fault", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("start", INITIAL)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pair_with_a_fault_in_every_interleaving(start, pair, record_race):
    race = Race(start, tuple((verb,) for verb in pair))
    report = explore(race, limits=Limits(faults=1))
    record_race("pairs with a fault, all", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("race", SEQUENCES, ids=str)
def test_sequence_leaves_a_state_that_some_order_explains(race, record_race):
    report = explore(race)
    record_race("sequences, memory", race, report)
    assert not report.violations, report.violations[0]
