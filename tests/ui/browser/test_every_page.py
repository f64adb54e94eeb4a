"""Every page: in light and dark, on a phone, without scripts, and for everybody."""

from __future__ import annotations

import pytest

from tests.ui.addresses import PAGES, address_of
from tests.ui.browser.looks import LOOKS, require_for_everybody
from tests.ui.browser.reader import looking


@pytest.mark.parametrize("look", LOOKS)
def test_the_door_the_first_page_and_errors_are_for_everybody(browser, served, guarded, axe, look):
    with looking(browser, served, **LOOKS[look]) as reader:
        for name, path, status in (
            ("Home", "/", 200),
            ("NotFound", "tables/port%24nowhere/overview", 404),
            ("Nowhere", "no/such/page", 404),
            ("WrongFilter", "tables/port%24ships/rows?where=no+such", 200),
        ):
            reader.go(path, status=status)
            reader.keep(f"{name}-{look}")
            require_for_everybody(reader, axe, name)
    with guarded("writer", **LOOKS[look]) as reader:
        reader.go("tables/port%24ships/overview")
        reader.keep(f"TableOfWriter-{look}")
        require_for_everybody(reader, axe, look)
        reader.page.get_by_role("button", name="Log out").click()
        reader.page.wait_for_url("**/login*")
        reader.keep(f"Login-{look}")
        require_for_everybody(reader, axe, look)


@pytest.mark.parametrize("route", PAGES, ids=lambda one: one.name)
def test_nobody_is_kept_out_and_nothing_leaves_the_window(windows, known, axe, route):
    for look, reader in windows.items():
        reader.go(address_of(route, known))
        reader.keep(f"{route.name}-{look}")
        require_for_everybody(reader, axe, look)
