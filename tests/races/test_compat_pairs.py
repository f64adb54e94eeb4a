"""Every pair of operations on a root table in compatibility mode, from every state.

The table lives by its directory as it does without a manifest, so the same model must explain what
is left; in addition its row follows the directory.

Spec: directory-namespace, "Compatibility Mode"; soft-delete, "Purge/revive race guard".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from mooring.directory.decisions import State

from .depth import WIDE, WITH_A_FAULT
from .harness import INITIAL, TABLE, Race, explore, view_of
from .manifests import open_compat_backend, settled
from .test_pairs import PAIRS

if TYPE_CHECKING:
    from .explorer import Limits

STARTS = ("absent", "live", "dropped")


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


def _must_hold(kind: str, race: Race, record_race, limits: Limits) -> None:
    report = explore_compat(race, limits=limits)
    record_race(kind, race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pair_leaves_a_state_that_some_order_explains(start, pair, record_race):
    _must_hold("compatibility mode, pairs", _race(start, pair), record_race, WIDE)


@pytest.mark.torture
@pytest.mark.parametrize("start", [start for start in INITIAL if start not in STARTS])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pair_from_other_states_leaves_one_that_some_order_explains(start, pair, record_race):
    _must_hold("compatibility mode, pairs from other states", _race(start, pair), record_race, WIDE)


@pytest.mark.torture
@pytest.mark.parametrize("start", ["live", "dropped"])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pair_with_a_fault_at_every_call(start, pair, record_race):
    race = _race(start, pair)
    _must_hold("compatibility mode, pairs with a fault", race, record_race, WITH_A_FAULT)
