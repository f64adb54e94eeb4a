"""Every pair of operations on a root table in compatibility mode, from every state.

The table lives by its directory as it does without a manifest, so the same model must explain what
is left; in addition its row follows the directory.

Spec: directory-namespace, "Compatibility Mode"; soft-delete, "Purge/revive race guard".
"""

from __future__ import annotations

from functools import partial

import pytest

from mooring.directory.decisions import State

from .explorer import Limits
from .harness import INITIAL, TABLE, Race, explore, view_of
from .manifests import open_compat_backend, settled
from .test_pairs import PAIRS


def row_follows_directory(backend, actors) -> str | None:
    """Tell whether a live table has its row and a hidden one has none."""
    if any(actor.crashed for actor in actors):
        return None  # the next change brings the row up to date
    if not any("ok" in actor.outcomes for actor in actors):
        return None  # nobody here changed what another program did to the directory
    state, row = view_of(backend).state, backend._named.find(TABLE)
    if (state is State.LIVE) == (row is not None):
        return None
    return f"the directory is {state}, the row {row}"


explore_compat = partial(
    explore, open_one=open_compat_backend, also=row_follows_directory, commutes=settled
)


def _race(start: str, pair: tuple[str, ...]) -> Race:
    return Race(start, tuple((verb,) for verb in pair))


@pytest.mark.parametrize("start", INITIAL)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pair_leaves_a_state_that_some_order_explains(start, pair, record_race):
    race = _race(start, pair)
    report = explore_compat(race, limits=Limits(preemptions=1))
    record_race("compatibility mode, pairs", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("start", INITIAL)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pair_with_two_preemptions(start, pair, record_race):
    race = _race(start, pair)
    report = explore_compat(race, limits=Limits(preemptions=2, runs=4000))
    record_race("compatibility mode, pairs, 2 preemptions", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.torture
@pytest.mark.parametrize("start", ["live", "dropped"])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pair_with_a_fault_at_every_call(start, pair, record_race):
    race = _race(start, pair)
    report = explore_compat(race, limits=Limits(preemptions=1, faults=1))
    record_race("compatibility mode, pairs with a fault", race, report)
    assert not report.violations, report.violations[0]
