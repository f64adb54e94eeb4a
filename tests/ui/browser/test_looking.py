"""Finding one's way: tree, search, rows, versions, differences and lineage."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.ui.browser.reader import DESK, PHONE, looking


def test_one_browses_from_the_catalog_to_a_table_and_back(reader):
    reader.go("/")
    assert reader.heading == "Catalogs"
    reader.main.get_by_role("link", name=re.compile("^default")).click()
    assert (reader.at, reader.heading) == ("browse", "default")
    reader.click("port")
    assert reader.heading == "port"
    assert "Ships and where they lie" in reader.text
    reader.click("ships")
    assert reader.heading == "ships"
    for tab in ("Rows", "Versions", "Indexes", "Health", "Open", "Overview"):
        reader.main.get_by_role("navigation", name="Table").get_by_role("link", name=tab).click()
        assert reader.heading == "ships"
    crumbs = reader.page.get_by_role("navigation", name="Where this is")
    crumbs.get_by_role("link", name="port").click()
    assert reader.heading == "port"


def test_the_tree_opens_beside_the_page(reader):
    reader.go("browse")
    tree = reader.page.get_by_role("navigation", name="Namespaces and tables")
    expect(tree.get_by_role("link", name="port")).to_be_visible()
    tree.get_by_role("link", name="port").click()
    tree.get_by_role("link", name="berths").click()
    assert reader.heading == "berths"


def test_tables_are_sorted_by_what_is_clicked(reader):
    reader.go("namespaces/port/browse")
    names = reader.main.locator("table").last.locator("tbody th a")
    assert names.all_inner_texts() == ["berths", "planned", "ships", "treaty"]
    reader.click("Rows")
    reader.page.wait_for_url(re.compile("sort=rows"))
    assert names.all_inner_texts() != ["berths", "planned", "ships", "treaty"]


def test_the_slash_key_searches_names_columns_and_properties(reader):
    reader.go("browse")
    reader.page.keyboard.press("/")
    assert reader.focused == "search"
    reader.page.keyboard.type("ship")
    found = reader.page.get_by_role("option")
    expect(found.first).to_be_visible()
    expect(found.first).to_contain_text("ships")
    reader.keep("search-while-typing")
    reader.page.keyboard.press("ArrowDown")
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_url("**/overview")
    assert reader.heading == "ships"
    reader.page.keyboard.press("/")
    reader.page.keyboard.type("harbour master")
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_url("**/search?*")
    assert "ships" in reader.text


def test_a_column_is_found_once_the_tables_were_looked_into(reader):
    reader.go("search?q=plank")
    for _ in range(50):
        reader.go("search?q=tons")
        if "ships" in reader.text:
            break
        reader.page.wait_for_timeout(100)
    assert "tons" in reader.text
    assert "ships" in reader.text


def test_rows_are_previewed_and_filtered(reader):
    reader.go("tables/port%24ships/rows")
    rows = reader.main.locator("table.rows tbody tr")
    expect(rows).to_have_count(50)
    reader.page.get_by_label("Filter").fill("tons > 4900 AND id < 300")
    reader.click("Show", "button")
    reader.page.wait_for_url(re.compile("where="))
    assert 0 < rows.count() < 50
    expect(rows.first.locator("svg.bars")).to_be_visible()
    picture = reader.main.locator("table.rows img").first
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("one => one.naturalWidth") == 24
    reader.keep("rows-filtered")
    reader.page.get_by_label("Filter").fill("nothing = like this")
    reader.click("Show", "button")
    expect(reader.page.get_by_role("alert")).to_be_visible()
    assert "tons" in reader.page.get_by_role("alert").inner_text()
    reader.click("All rows")
    expect(rows).to_have_count(50)
    reader.click("Next →")
    assert "51\N{EN DASH}100" in reader.text


def test_columns_are_chosen_and_values_shown_whole(reader):
    reader.go("tables/port%24ships/rows?columns=id,log&where=id+%3D+39")
    assert reader.main.locator("table.rows thead th").count() == 3
    reader.main.locator("table.rows summary").first.click()
    expect(reader.main.get_by_text("Day 39: wind from the west.").last).to_be_visible()
    reader.go("tables/port%24ships/rows?columns=id,place&where=id+%3D+100")
    reader.main.locator("table.rows svg.bars").first.click()
    expect(reader.main.locator("table.rows code.whole")).to_be_visible()
    assert reader.main.locator("table.rows code.whole").inner_text().count(",") == 15


def test_versions_stand_on_a_timeline_with_tags_and_branches(reader):
    reader.go("tables/port%24ships/versions")
    drawing = reader.main.locator("svg").first
    expect(drawing).to_be_visible()
    for word in ("census", "spring", "refit", "rows added", "rows deleted", "grace"):
        assert word in reader.main.inner_text(), word
    rows = reader.main.get_by_role("region", name="Versions").locator("tbody tr")
    assert rows.count() == 10
    reader.click("Evenly")
    assert "scale=" in reader.page.url
    reader.keep("versions-evenly")
    reader.main.get_by_role("link", name="refit").first.click()
    assert "branch=refit" in reader.page.url


def test_two_versions_are_compared(reader):
    reader.go("tables/port%24ships/versions")
    reader.click("Compare two")
    reader.page.get_by_label("From").fill("census")
    reader.page.get_by_label("To").fill("spring")
    reader.click("Compare", "button")
    reader.page.wait_for_url(re.compile("from=census&to=spring"))
    text = reader.text
    for word in (
        "version 2",
        "version 9",
        "crew",
        "id_idx",
        "place_idx",
        "\N{MINUS SIGN}14",
        "added",
    ):
        assert word in text, word
    reader.click("Swap")
    assert "removed" in reader.text


def test_an_older_version_is_looked_at_whole(reader):
    reader.go("tables/port%24ships/overview?version=2")
    assert "550" in reader.text
    assert "crew" not in reader.main.get_by_role("table").first.inner_text()
    reader.main.get_by_role("navigation", name="Table").get_by_role("link", name="Open").click()
    assert "version=2" in reader.page.url
    assert "2" in reader.main.locator("pre").first.inner_text()


def test_lines_to_open_a_table_are_copied(browser, served):
    allowed = ["clipboard-read", "clipboard-write"]
    with looking(browser, served, permissions=allowed) as reader:
        reader.go("tables/port%24ships/open")
        shown = reader.main.locator("pre").first.inner_text()
        reader.main.locator("pre ~ [data-copy]").first.click()
        expect(reader.main.get_by_text("Copied").first).to_be_visible()
        assert reader.page.evaluate("navigator.clipboard.readText()").strip() == shown.strip()


def test_lineage_leads_from_sources_to_published_tables(reader):
    reader.go("lineage")
    drawing = reader.main.locator("svg").first
    expect(drawing).to_be_visible()
    for word in ("landings", "duties", "cargo", "calls_published"):
        assert word in drawing.text_content(), word
    reader.page.get_by_label("Around table").fill("trade$duties")
    reader.click("Show", "button")
    reader.page.wait_for_url(re.compile("table="))
    assert "fares_published" not in reader.text
    reader.main.locator("svg a").first.click()
    assert reader.heading


def test_runs_tell_their_state_and_rows(reader):
    reader.go("runs")
    for word in ("landings", "duties", "broken", "failed", "done"):
        assert word in reader.text, word
    reader.main.get_by_role("link", name=re.compile("landings")).first.click()
    assert "trade$cargo" in reader.text
    assert "20" in reader.text


def test_what_happens_is_told_as_it_happens(master, own_lake):
    master.go("activity")
    expect(master.main.get_by_text("Live")).to_be_visible()
    own_lake.create_table("port$arrived", [{"a": 1}])
    expect(master.main.get_by_text("arrived").first).to_be_visible()


def test_the_theme_is_turned_and_kept(reader):
    reader.go("browse")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = reader.page.evaluate(ground)
    reader.page.get_by_role("button", name="Light or dark").click()
    dark = reader.page.evaluate(ground)
    assert dark != light
    reader.go("trash")
    assert reader.page.evaluate(ground) == dark


@pytest.mark.parametrize("name", ["manifest", "listing"])
@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_other_kinds_of_catalogs_are_looked_at_as_well(browser, served, name, window):
    at = "port%24west%24ships" if name == "manifest" else "ships"
    with looking(browser, served, name, viewport=window) as reader:
        for page in ("browse", "search?q=ship", "trash", "activity", "runs", "lineage", "audit"):
            reader.go(page)
            assert not reader.scrolls_sideways, page
        for page in ("overview", "rows", "versions", "diff", "indexes", "health", "open"):
            reader.go(f"tables/{at}/{page}")
            assert not reader.scrolls_sideways, page
            assert reader.heading == "ships"
