"""Root tables with directories against everything that wants their names or their files.

Spec: directory-namespace, "Compatibility Mode".
"""

from __future__ import annotations

import pytest

from .compat_harness import explore
from .depth import DEEP, WIDE, WITH_A_FAULT
from .manifest_harness import race

# A row and a directory come to the same name at the same time.
SAME_NAME = [
    race("other", "rename n.u t", "create t"),
    race("other", "rename n.u t", "overwrite t"),
    race("other", "rename n.u t", "declare t"),
    race("both", "rename n.u t", "drop t"),
    race("dropped", "rename n.u t", "undrop t"),
    race("dropped", "rename n.u t", "purge t"),
    race("dropped", "rename n.u t", "create t"),
    race("purged", "rename n.u t", "create t"),
    race("named", "drop t", "create t"),
    race("named", "rename t n.v", "create t"),
    race("named", "deregister t", "declare t"),
    race("empty", "ns t", "create t"),
    race("empty", "ns t", "declare t"),
    race("dropped", "ns t", "undrop t"),
    race("dropped", "ns t", "create t"),
    race("both", "ns t", "drop t"),
    race("empty", "create t", "create t"),
]
# Another name for the files of a root table.
SAME_FILES = [
    race("both", "alias n.a t.lance", "drop t"),
    race("dropped", "alias n.a t.lance", "undrop t"),
    race("dropped", "alias n.a t.lance", "purge t"),
    race("dropped", "alias n.a t.lance", "create t"),
    race("both", "alias n.a t.lance", "drop t + purge t"),
    race("both", "alias n.a t.lance", "overwrite t"),
    race("shared", "drop n.a", "drop t"),
    race("shared", "drop t", "purge n.a"),
    race("shared and dropped", "purge t", "drop n.a"),
    race("shared and dropped", "purge t", "deregister n.a"),
    race("shared and dropped", "create t", "rename n.a n.b"),
    race("shared and dropped", "undrop t", "drop n.a + purge n.a"),
    race("without a row", "alias n.a t.lance", "v1drop t + purge t"),
    race("without a row", "rename t n.v", "v1drop t"),
    race("without a row", "register t", "v1drop t"),
]
# A root table moves to another name.
MOVES = [
    race("both", "rename t n.v", "drop t"),
    race("both", "rename t n.v", "create n.v"),
    race("both", "rename t n.v", "rename t n.v"),
    race("both", "rename t n.v", "rename t n.w"),
    race("both", "rename t n.v", "cascade n"),
    race("both", "rename t n.v", "protect t"),
    race("both", "rename t n.v", "overwrite t"),
    race("both", "rename t n.v", "deregister t"),
    race("both", "rename t n.v", "alias n.a t.lance"),
    race("both", "rename t n.v", "append t"),
    race("both", "rename t n.v", "undrop t"),
    race("both", "rename t n.v", "create t"),
    race("both", "rename t n.v", "purge t"),
    race("declared", "rename t n.v", "create t"),
    race("both", "rename t v", "create v"),
]
RACES = [*SAME_NAME, *SAME_FILES, *MOVES]
TRIPLES = [
    race("dropped", "rename n.u t", "undrop t", "purge t"),
    race("other", "rename n.u t", "create t", "drop t"),
    race("both", "alias n.a t.lance", "drop t", "purge t"),
    race("both", "rename t n.v", "append t", "drop t"),
    race("both", "rename t n.v", "append t", "rename t n.w"),
    race("empty", "ns t", "create t", "drop t"),
]


@pytest.mark.parametrize("one", RACES, ids=str)
def test_pair_leaves_a_catalog_that_some_order_explains(one, record_race):
    report = explore(one, limits=WIDE)
    record_race("compatibility mode, names and files", one, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("one", RACES, ids=str)
def test_pair_leaves_a_catalog_that_some_order_explains_deeper(one, record_race):
    report = explore(one, limits=DEEP)
    record_race("compatibility mode, names and files, deeper", one, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("one", RACES, ids=str)
def test_pair_with_a_fault_at_every_call(one, record_race):
    report = explore(one, limits=WITH_A_FAULT)
    record_race("compatibility mode, names and files, with a fault", one, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("one", TRIPLES, ids=str)
def test_triple_leaves_a_catalog_that_some_order_explains(one, record_race):
    report = explore(one, limits=WIDE)
    record_race("compatibility mode, triples", one, report)
    assert not report.violations, report.violations[0]
