"""Pairs of operations on a manifest catalog through their interleavings; again with faults.

A fault is a crash at a store call, or an answer to a creation that is lost.

Spec: directory-namespace, "V2: Manifest"; "Manifest Table Commits".
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import pytest

from .depth import DEEP, WIDE, WITH_A_FAULT
from .manifest_harness import Race, explore, race

if TYPE_CHECKING:
    from .explorer import Limits

_MAKING = ("create n.t", "declare n.t", "overwrite n.t")
_HIDING = ("drop n.t", "deregister n.t", "rename n.t n.u")
_BRINGING_BACK = ("undrop n.t", "undrop n.t n.u")
_NAMESPACES = ("ns n", "ns n.k", "dropns n", "cascade n", "undropns n")

# For every initial state the operations that have something to do there, or with each other.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "empty": ("create t", "declare t", "ns t", "ns n", "ns n.k", "create n.t", "cascade n"),
    "namespace": (*_MAKING, "sweep", *_NAMESPACES),
    "table": (*_MAKING, *_HIDING, "undrop n.t", "purge n.t", "alias n.a I1", *_NAMESPACES),
    "declared": (*_MAKING, *_HIDING, "create n.u", "cascade n"),
    "dropped": (
        *_MAKING,
        *_BRINGING_BACK,
        "drop n.t",
        "purge n.t",
        "alias n.a I1",
        "expire",
        *_NAMESPACES,
    ),
    "dropped twice": (*_BRINGING_BACK, "create n.t", "purge n.t", "alias n.a I1"),
    "replaced": (*_HIDING, *_BRINGING_BACK, "purge n.t", "alias n.a I1", "cascade n"),
    "alias": ("purge n.t", "undrop n.t", "drop n.a", "rename n.a n.t", "deregister n.a"),
    "dropped alias": ("purge n.t", "purge n.a", "undrop n.t", "undrop n.a", "alias n.u I1"),
    "dropped namespace": (
        *_BRINGING_BACK,
        "undrop n.t u",
        "purge n.t",
        "alias a I1",
        "create n.t",
        *_NAMESPACES,
    ),
    "dropped empty namespace": ("create n.t", "expire", *_NAMESPACES),
    "expired": ("expire", "undrop n.t u", "undropns n", "purge n.t", "alias a I1", "ns n"),
    "leftover": ("sweep", "create n.t", "declare n.t", "alias n.a I1"),
    "deregistered": ("sweep", "create n.t", "declare n.t", "alias n.a I1"),
}
PAIRS = [
    race(start, *pair)
    for start, operations in OPERATIONS.items()
    for pair in combinations_with_replacement(operations, 2)
]
# One actor goes on while the other sleeps: what it does next must not meet what is left.
SEQUENCES = [
    race("dropped", "purge n.t", "undrop n.t + drop n.t"),
    race("dropped", "purge n.t", "purge n.t + create n.t"),
    race("dropped", "undrop n.t", "undrop n.t + drop n.t"),
    race("table", "drop n.t", "drop n.t + undrop n.t"),
    race("table", "rename n.t n.u", "drop n.t + create n.t"),
    race("table", "rename n.t n.u", "rename n.t n.u + rename n.u n.t"),
    race("namespace", "create n.t", "dropns n + ns n"),
    race("namespace", "create n.t", "sweep + sweep"),
    race("namespace", "declare n.t", "drop n.t + purge n.t"),
    race("declared", "create n.t", "drop n.t + purge n.t"),
    race("declared", "create n.t", "drop n.t + create n.t"),
    race("table", "overwrite n.t", "drop n.t + purge n.t"),
    race("table", "cascade n", "create n.u + undropns n"),
    race("dropped namespace", "undropns n", "ns n + cascade n"),
    race("dropped namespace", "purge n.t", "undropns n + cascade n"),
    race("alias", "purge n.t", "drop n.a + purge n.a"),
    race("table", "alias n.a I1", "drop n.t + purge n.t"),
    race("table", "alias n.a I1", "deregister n.t + alias n.t I1"),
]


def _must_hold(kind: str, one: Race, record_race, limits: Limits) -> None:
    report = explore(one, limits=limits)
    record_race(kind, one, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("one", PAIRS, ids=str)
def test_pair_leaves_a_catalog_that_some_order_explains(one, record_race):
    _must_hold("manifest pairs", one, record_race, WIDE)


@pytest.mark.torture
@pytest.mark.parametrize("one", PAIRS, ids=str)
def test_pair_with_a_fault_at_every_call(one, record_race):
    _must_hold("manifest pairs with a fault", one, record_race, WITH_A_FAULT)


@pytest.mark.parametrize("one", SEQUENCES, ids=str)
def test_sequence_leaves_a_catalog_that_some_order_explains(one, record_race):
    _must_hold("manifest sequences", one, record_race, DEEP)


@pytest.mark.torture
@pytest.mark.parametrize("one", SEQUENCES, ids=str)
def test_sequence_with_a_fault(one, record_race):
    _must_hold("manifest sequences with a fault", one, record_race, WITH_A_FAULT)
