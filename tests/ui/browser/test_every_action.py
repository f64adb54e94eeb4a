"""Every question before an action: in light and dark, on a phone, and for everybody."""

from __future__ import annotations

import pytest

from tests.ui.addresses import ACTIONS, address_of
from tests.ui.browser.looks import require_for_everybody


@pytest.mark.parametrize("route", ACTIONS, ids=lambda one: one.name)
def test_nobody_is_kept_out_and_nothing_leaves_the_window(windows, known, axe, route):
    for look, reader in windows.items():
        reader.go(address_of(route, known))
        reader.keep(f"{route.name}-{look}")
        require_for_everybody(reader, axe, look)
