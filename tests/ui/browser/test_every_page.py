"""Every page: in light and dark, on a phone, without scripts, and for everybody."""

from __future__ import annotations

import pytest

from tests.ui.addresses import ACTIONS, PAGES, address_of
from tests.ui.browser.axe import find_problems
from tests.ui.browser.reader import DESK, PHONE, looking

ROUTES = [*PAGES, *ACTIONS]
LOOKS = {
    "light": {"viewport": DESK, "color_scheme": "light"},
    "dark": {"viewport": DESK, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "is_mobile": True, "has_touch": True},
}


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
            assert not reader.scrolls_sideways, name
            assert find_problems(reader.page, axe) == [], name
    with guarded("writer", **LOOKS[look]) as reader:
        reader.go("tables/port%24ships/overview")
        reader.keep(f"TableOfWriter-{look}")
        assert not reader.scrolls_sideways
        assert find_problems(reader.page, axe) == []
        reader.page.get_by_role("button", name="Log out").click()
        reader.page.wait_for_url("**/login*")
        reader.keep(f"Login-{look}")
        assert find_problems(reader.page, axe) == []


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: one.name)
def test_nobody_is_kept_out_and_nothing_leaves_the_window(browser, served, known, axe, route):
    path = address_of(route, known)
    for look, how in LOOKS.items():
        with looking(browser, served, **how) as reader:
            reader.go(path)
            assert reader.page.locator("h1").count() == 1
            reader.keep(f"{route.name}-{look}")
            assert not reader.scrolls_sideways, look
            assert find_problems(reader.page, axe) == [], look
