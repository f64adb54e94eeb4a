"""The same races on real files, and with real Lance tables on them."""

from __future__ import annotations

import pytest

from .explorer import Limits
from .harness import PosixWorld, Race, explore
from .test_pairs import PAIRS

STARTS = ("absent", "live", "dropped", "purged")


def _race(start: str, pair: tuple[str, ...]) -> Race:
    return Race(start, tuple((verb,) for verb in pair))


PAIRS_ON_FILES = [pair for pair in PAIRS if not {"declare", "protect", "overwrite"} & set(pair)]


# All of them, with one more preemption, in `make torture`.
@pytest.mark.parametrize("start", ["dropped"])
@pytest.mark.parametrize("pair", PAIRS_ON_FILES, ids="-".join)
def test_pair_on_files_leaves_a_state_that_some_order_explains(start, pair, record_race):
    race = _race(start, pair)
    report = explore(race, world=PosixWorld(), limits=Limits(preemptions=1, faults=1))
    record_race("pairs, files", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("pair", PAIRS_ON_FILES, ids="-".join)
def test_pair_on_files_with_two_preemptions_and_a_fault_can_be_explained(start, pair, record_race):
    race = _race(start, pair)
    limits = Limits(preemptions=2, faults=1, runs=4000)
    report = explore(race, world=PosixWorld(), limits=limits)
    record_race("pairs, files, 2 preemptions", race, report)
    assert not report.violations, report.violations[0]


LANCE = [
    ("absent", ("create", "create")),
    ("absent", ("create", "drop")),
    ("live", ("overwrite", "drop")),
    ("dropped", ("create", "undrop")),
    ("dropped", ("create", "purge")),
    ("dropped", ("create", "create")),
    ("purged", ("create", "create")),
]


@pytest.mark.parametrize(("start", "pair"), LANCE, ids=str)
def test_pair_with_lance_tables_leaves_a_state_that_some_order_explains(start, pair, record_race):
    race = _race(start, pair)
    limits = Limits(preemptions=1, runs=150, reduce=False)
    report = explore(race, world=PosixWorld(lance=True), limits=limits)
    record_race("pairs, Lance on files", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize(("start", "pair"), LANCE, ids=str)
def test_pair_with_lance_tables_and_faults_can_be_explained(start, pair, record_race):
    race = _race(start, pair)
    limits = Limits(preemptions=2, faults=1, runs=600, reduce=False)
    report = explore(race, world=PosixWorld(lance=True), limits=limits)
    record_race("pairs, Lance on files, faults", race, report)
    assert not report.violations, report.violations[0]
