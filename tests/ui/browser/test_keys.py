"""By keyboard alone, and without scripts."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.ui.addresses import PAGES, address_of
from tests.ui.browser.reader import looking


def test_lists_are_walked_by_j_and_k(reader):
    reader.go("browse")
    press = reader.page.keyboard.press
    press("j")
    assert reader.focused == "port"
    press("j")
    assert reader.focused == "trade"
    press("k")
    press("Enter")
    reader.page.wait_for_url("**/namespaces/port/browse")
    press("j")
    press("j")
    press("j")
    assert reader.focused == "ships"
    press("Enter")
    reader.page.wait_for_url("**/overview")
    press("u")
    reader.page.wait_for_url("**/namespaces/port/browse")


def test_sections_are_two_keys_away(reader):
    reader.go("browse")
    for key, path in {"t": "trash", "a": "activity", "p": "runs", "b": "browse"}.items():
        reader.page.keyboard.press("g")
        reader.page.keyboard.press(key)
        reader.page.wait_for_url(f"**/{path}")


def test_the_keys_are_told_in_a_dialog(reader):
    reader.go("browse")
    reader.page.keyboard.press("?")
    dialog = reader.page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    assert reader.focused == "Close"
    reader.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_letters_typed_into_fields_are_only_letters(reader):
    reader.go("tables/port%24ships/rows")
    field = reader.page.get_by_label("Filter")
    field.focus()
    reader.page.keyboard.type("j/k?ug")
    assert field.input_value() == "j/k?ug"


def test_tab_goes_through_the_page_in_its_order(reader):
    reader.go("browse")
    seen = []
    for _ in range(12):
        reader.page.keyboard.press("Tab")
        seen.append(reader.focused)
    assert seen[0] == "Skip to the content"
    assert seen.index("search") < seen.index("Browse") < seen.index("Trash")
    reader.go("browse")
    reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("Enter")
    assert reader.page.url.endswith("#main")


def test_a_drop_needs_no_mouse(master, own_lake):
    master.go("tables/port%24berths/drop")
    master.main.get_by_role("button", name="Drop").focus()
    master.page.keyboard.press("Enter")
    master.page.wait_for_url("**/browse")
    assert "berths" not in own_lake.list_tables("port")


def test_everything_can_be_read_without_scripts(browser, served, known):
    with looking(browser, served, java_script_enabled=False) as reader:
        for page in PAGES:
            reader.go(address_of(page, known))
            assert reader.page.locator("h1").is_visible(), page.name
            assert len(reader.text) > 40, page.name
        reader.go("search?q=ship")
        assert "ships" in reader.text


def test_forms_work_without_scripts(browser, own_lake):
    from tests.own_server import run_server

    with (
        run_server(own_lake) as base,
        looking(browser, base, java_script_enabled=False) as reader,
    ):
        reader.go("tables/port%24berths/drop").click("Drop", "button")
        reader.go("trash")
        reader.page.get_by_role("link", name="Purge port$berths").click()
        reader.page.get_by_label("to confirm").fill("port$berth")
        reader.click("Purge", "button")
        expect(reader.page.get_by_role("alert")).to_be_visible()
        reader.page.get_by_label("to confirm").fill("port$berths")
        reader.click("Purge", "button")
        assert "berths" in reader.notice
