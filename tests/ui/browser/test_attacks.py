"""Stored scripts do nothing in a browser, on any page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.own_server import run_server
from tests.ui.addresses import PAGES, address_of
from tests.ui.attacks import NAMES, make_attacked
from tests.ui.browser.reader import looking


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    with run_server(make_attacked(tmp_path_factory.mktemp("attacked") / "lake")) as base:
        yield base


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.name)
def test_no_name_and_no_value_does_anything(browser, attacked, page):
    names = NAMES if page.name in {"Table", "Rows"} else NAMES[:6]
    with looking(browser, attacked) as reader:
        for name in names:
            known = {"table": f"{name}${name}", "namespace": name, "run": name, "txn": name}
            response = reader.page.goto(f"{attacked}/catalogs/default/{address_of(page, known)}")
            assert response is not None
            assert response.status < 500
            assert reader.page.evaluate("typeof attacked") == "undefined"
            assert reader.page.locator("xss-7, iframe, object, embed, base").count() == 0
            assert reader.page.title().endswith("· Mooring")
            assert not reader.scrolls_sideways


def test_what_is_found_while_typing_is_text(browser, attacked):
    with looking(browser, attacked) as reader:
        reader.go("browse")
        for text in ("<img", "xss-7", '" auto', "שלום", "🚢"):
            reader.page.locator("#search").fill(text)
            expect(reader.page.get_by_role("option").first).to_contain_text(text)
            assert reader.page.evaluate("typeof attacked") == "undefined"
