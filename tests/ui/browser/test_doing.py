"""Doing things with pages: each is asked first, told afterwards, and only for who may."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from mooring.errors import TableNotFoundError

SHIPS = "tables/port%24ships"


def test_a_version_is_tagged_and_the_tag_taken_away(master, own_lake):
    master.go(f"{SHIPS}/versions")
    master.page.get_by_role("link", name="Tag version 4").click()
    master.fill("Tag", "storm")
    master.main.get_by_role("button").first.click()
    assert "storm" in master.notice
    assert own_lake.table("port$ships").tags.get("storm").version == 4
    master.go(f"{SHIPS}/versions")
    master.page.get_by_role("link", name="Remove tag storm").click()
    master.main.get_by_role("button").first.click()
    assert "storm" not in own_lake.table("port$ships").tags.names()


def test_a_table_is_dropped_and_comes_back_under_a_new_name(master, own_lake):
    master.go(f"{SHIPS}/overview")
    master.click("Drop")
    assert master.heading == "Drop 'port$ships'?"
    master.keep("drop-asked")
    master.click("Drop", "button")
    assert "ships" in master.notice
    assert "port$ships" not in map(str, own_lake.list_all_tables())
    master.go("trash")
    master.page.get_by_role("link", name="Undrop port$ships").click()
    master.fill("New name", "port$fleet")
    master.click("Undrop", "button")
    assert master.heading == "fleet"
    assert "port$fleet" in master.notice
    assert own_lake.table("port$fleet").count() == 593
    with pytest.raises(TableNotFoundError):
        own_lake.table("port$ships")


def test_a_dropped_namespace_comes_back_as_a_whole(master, own_lake):
    master.go("trash")
    master.page.get_by_role("link", name="Undrop archive").click()
    master.click("Undrop", "button")
    assert master.heading == "archive"
    assert own_lake.list_tables("archive") == ["charts", "logbook"]


def test_a_purge_is_confirmed_by_the_name(master, own_lake):
    master.go("trash")
    master.page.get_by_role("link", name="Purge port$wreck").click()
    button = master.main.get_by_role("button", name="Purge")
    expect(button).to_be_disabled()
    field = master.page.get_by_label("to confirm")
    field.fill("port$wrec")
    expect(button).to_be_disabled()
    field.fill("port$wreck")
    master.keep("purge-confirmed")
    button.click()
    master.page.wait_for_url("**/trash")
    assert "wreck" in master.notice
    left = [str(one.id) for one in own_lake.list_purgable_tables()]
    assert "port$wreck" not in left
    assert "port$ark" in left


def test_all_expired_are_purged_at_once(master, own_lake):
    master.go("trash")
    master.click("Purge all expired")
    master.main.get_by_role("button", name="Purge").click()
    master.page.wait_for_url("**/trash")
    assert "port$raft" not in [str(one.id) for one in own_lake.list_purgable_tables()]


def test_a_namespace_is_created(master, own_lake):
    master.go("create-namespace")
    master.fill("Name", "docks")
    master.click("Create", "button")
    assert master.heading == "docks"
    assert own_lake.namespace_exists("docks")


def test_a_table_is_renamed_and_an_error_says_what_next(master, own_lake):
    master.go("tables/port%24berths/rename")
    master.fill("New name", "port$ships").click("Rename", "button")
    expect(master.page.get_by_role("alert")).to_contain_text("port$ships")
    assert master.main.get_by_label("New name", exact=True).input_value() == "port$ships"
    master.fill("New name", "port$quays").click("Rename", "button")
    assert master.heading == "quays"
    assert own_lake.table("port$quays").count() == 120


def test_a_table_is_restored_to_an_older_version(master, own_lake):
    master.go(f"{SHIPS}/versions")
    master.page.get_by_role("link", name="Restore version 2").click()
    master.main.get_by_role("button").first.click()
    master.page.wait_for_url(re.compile("/(versions|overview)"))
    assert own_lake.table("port$ships").count() == 550


def test_a_table_is_compacted(master, own_lake):
    before = own_lake.table("port$ships").version
    master.go(f"{SHIPS}/compact")
    master.click("Compact", "button")
    master.page.wait_for_url("**/health")
    assert master.notice
    assert own_lake.table("port$ships").version > before


def test_nothing_is_done_twice_by_two_clicks(master, own_lake):
    master.go("create-namespace")
    master.fill("Name", "twice")
    master.main.get_by_role("button", name="Create").dblclick()
    expect(master.page.locator("h1")).to_have_text("twice")


# -- roles -----------------------------------------------------------------------------------------


def test_readers_see_no_buttons_and_are_refused(guarded):
    with guarded("reader") as reader:
        reader.go(f"{SHIPS}/overview")
        assert reader.page.get_by_role("link", name="Drop").count() == 0
        reader.go(f"{SHIPS}/drop", status=403)
        reader.go("trash")
        assert reader.main.get_by_role("link", name=re.compile("^(Undrop|Purge)")).count() == 0
        assert "reader" in reader.page.locator("header").inner_text()


def test_writers_drop_but_do_not_purge(guarded, own_lake):
    with guarded("writer") as reader:
        reader.go("trash")
        assert reader.main.get_by_role("link", name=re.compile("^Undrop")).count() > 0
        assert reader.main.get_by_role("link", name=re.compile("^Purge")).count() == 0
        reader.go("tables/port%24wreck/purge", status=403)
        reader.go("tables/port%24berths/drop").click("Drop", "button")
        assert "berths" in reader.notice
    dropped = own_lake.history("port$berths")[-1]
    assert dropped.by == "writer"


def test_admins_purge(guarded):
    with guarded("admin") as reader:
        reader.go("trash")
        assert reader.main.get_by_role("link", name=re.compile("^Purge")).count() > 0


def test_nobody_sees_anything_before_the_door(guarded, browser):
    with guarded("reader") as reader:
        reader.go("browse")
        reader.page.get_by_role("button", name="Log out").click()
        reader.page.wait_for_url("**/login*")
        reader.page.goto(f"{reader.base}/catalogs/default/{SHIPS}/rows?where=id+%3D+7")
        assert "/login?next=" in reader.page.url
        reader.page.get_by_label("Token").fill("reader:wrong")
        reader.page.get_by_role("button", name="Log in").click()
        expect(reader.page.get_by_role("alert")).to_be_visible()
        reader.page.get_by_label("Token").fill("reader:s")
        reader.page.get_by_role("button", name="Log in").click()
        assert reader.heading == "ships"
        assert "where=id" in reader.page.url
