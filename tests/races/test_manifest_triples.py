"""Three operations on a manifest catalog at once.

Spec: directory-namespace, "Manifest Table Commits".
"""

from __future__ import annotations

import pytest

from .depth import WIDE, WITH_A_FAULT
from .manifest_harness import explore, race

TRIPLES = [
    race("table", "cascade n", "create n.u", "undropns n"),
    race("namespace", "dropns n", "create n.t", "undropns n"),
    race("namespace", "cascade n", "declare n.t", "ns n"),
    race("namespace", "cascade n", "ns n.k", "create n.k.t"),
    race("dropped namespace", "undropns n", "ns n", "create n.t"),
    race("dropped namespace", "undropns n", "purge n.t", "undrop n.t u"),
    race("dropped", "purge n.t", "undrop n.t", "alias n.a I1"),
    race("dropped", "purge n.t", "undrop n.t n.u", "create n.t"),
    race("dropped", "purge n.t", "purge n.t", "undrop n.t"),
    race("alias", "purge n.t", "drop n.a", "purge n.a"),
    race("dropped alias", "purge n.t", "purge n.a", "undrop n.a"),
    race("table", "rename n.t n.u", "drop n.t", "create n.t"),
    race("table", "rename n.t n.u", "create n.u", "undrop n.t"),
    race("table", "drop n.t", "undrop n.t", "purge n.t"),
    race("table", "drop n.t", "purge n.t", "create n.t"),
    race("table", "deregister n.t", "alias n.a I1", "drop n.t"),
    race("declared", "create n.t", "drop n.t", "undrop n.t"),
    race("declared", "create n.t", "create n.t", "drop n.t"),
    race("namespace", "create n.t", "create n.t", "create n.t"),
    race("expired", "expire", "undropns n", "alias a I1"),
    race("namespace", "create n.t", "sweep", "create n.t"),
    race("namespace", "create n.t", "sweep", "sweep"),
    race("leftover", "alias n.a I1", "sweep", "alias n.a I1"),
    race("leftover", "alias n.a I1", "sweep", "sweep"),
    race("deregistered", "alias n.a I1", "sweep", "alias n.a I1"),
]


@pytest.mark.parametrize("one", TRIPLES, ids=str)
def test_triple_leaves_a_catalog_that_some_order_explains(one, record_race):
    report = explore(one, limits=WIDE)
    record_race("manifest triples", one, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("one", TRIPLES, ids=str)
def test_triple_with_a_fault_leaves_a_catalog_that_some_order_explains(one, record_race):
    report = explore(one, limits=WITH_A_FAULT)
    record_race("manifest triples with a fault", one, report)
    assert not report.violations, report.violations[0]
