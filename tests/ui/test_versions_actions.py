"""What differs between versions, and naming, restoring and branching them from the pages."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import mooring
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.ui.site import Site, text_of

ADA = Client.of("ada", "s3cret", Grant(Role.WRITER))
BEN = Client.of("ben", "hidden", Grant(Role.READER))
ASKS = ServerSettings(clients=(ADA, BEN))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def catalog(tmp_path):
    made = mooring.connect(str(tmp_path / "lake"))
    made.create_table("t", rows(1, 2, 3))
    table = made.table("t")
    table.insert(rows(4, 5))
    table.columns.add({"<b>half": "id / 2"})
    table.tags.create("gold", 2)
    return made


@pytest.fixture
def site(catalog):
    with Site(catalog) as opened:
        yield opened


class TestDiff:
    def test_rows_schema_and_files_are_told(self, site):
        found = site.json("tables/t/diff", **{"from": "1", "to": "3"})
        page = site.page("tables/t/diff?from=1&to=3")
        assert found["found"]["rows"] == {"added": 2, "deleted": 0, "updated": 0}
        assert [(one["path"], one["change"]) for one in found["found"]["schema"]] == [
            ("<b>half", "added")
        ]
        assert found["found"]["added"]["number"] == 3
        assert found["found"]["added"]["largest"][0]["size_bytes"] > 0
        assert (found["old"]["rows"], found["new"]["rows"]) == (3, 5)
        assert "<b>half" not in page
        assert "3 kept" in text_of(page)
        assert "2 added" in text_of(page)

    def test_without_versions_it_is_what_the_newest_changed(self, site):
        found = site.json("tables/t/diff")
        assert (found["old"]["version"], found["new"]["version"]) == (2, 3)

    def test_tags_and_branches_can_be_compared_and_swapped(self, site, catalog):
        catalog.table("t").branches.create("dev", version=2)
        catalog.table("t").insert(rows(9), branch="dev")
        found = site.json("tables/t/diff", **{"from": "gold", "to": "dev"})
        assert (found["old"]["version"], found["old"]["branch"]) == (2, "main")
        assert (found["new"]["version"], found["new"]["branch"]) == (3, "dev")
        assert found["swapped"].endswith("/tables/t/diff?from=dev&to=gold")
        back = site.json(found["swapped"])
        assert back["found"]["rows"]["deleted"] == 1
        on_branch = site.json("tables/t/diff?branch=dev")
        assert on_branch["old"]["branch"] == on_branch["new"]["branch"] == "dev"

    @pytest.mark.parametrize("to", ["2", "gold", "main:2"])
    def test_a_version_does_not_differ_from_itself(self, site, to):
        page = site.page(f"tables/t/diff?from=2&to={to}")
        assert "There is no difference" in text_of(page)

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            ("99", "has no version 99; there are versions 1 to 3"),
            ("silver", "no tag or branch 'silver'"),
            ("nowhere:1", "nowhere"),
            ("a:b", "BRANCH:VERSION"),
            ("9" * 40, "no tag or branch"),
        ],
    )
    def test_what_is_not_there_is_told_with_what_is(self, site, wrong, told):
        page = text_of(site.page(f"tables/t/diff?from=1&to={wrong}"))
        assert told in page
        assert "there are versions 1 to 3" in page

    def test_a_wrong_branch_is_told(self, site):
        assert "dev" in site.json("tables/t/diff?branch=dev")["error"]

    def test_rows_that_may_be_the_same_are_not_counted_as_known(self, site, catalog):
        catalog.table("t").insert(rows(6))
        catalog.table("t").compact()
        catalog.table("t").restore(3)
        page = text_of(site.page("tables/t/diff"))
        assert "is not known without reading them" in page


class TestTag:
    def test_a_version_is_named(self, site, catalog):
        assert site.done("tables/t/tag?version=1", name="first", version="1").endswith(
            "/tables/t/versions"
        )
        assert catalog.table("t").tags.get("first").version == 1
        assert "Tag 'first' names version 1." in text_of(site.page("tables/t/versions"))

    def test_a_tag_that_is_there_is_moved_only_if_that_is_wanted(self, site, catalog):
        refused = site.act("tables/t/tag?version=3", name="gold", version="3")
        assert refused.status_code == 409
        assert "names version 2 already" in text_of(refused.text)
        site.done("tables/t/tag?version=3", name="gold", version="3", move="yes")
        assert catalog.table("t").tags.get("gold").version == 3

    def test_moving_says_where_the_tag_is_now(self, site):
        page = text_of(site.page("tables/t/tag?tag=gold&version=3"))
        assert "Tag 'gold' names version 2 now" in page

    @pytest.mark.parametrize(
        ("form", "told"),
        [
            ({"name": "<b>", "version": "1"}, "<b>"),
            ({"name": "", "version": "1"}, "needs a name"),
            ({"name": "x", "version": "77"}, "no version 77"),
            ({"name": "x", "version": "one"}, "whole number"),
        ],
    )
    def test_what_cannot_be_is_refused_and_asked_again(self, site, form, told):
        response = site.act("tables/t/tag", **form)
        assert response.status_code in {400, 404}
        assert told in text_of(response.text)
        assert "<b>" not in response.text

    def test_a_tag_is_removed_and_the_version_stays(self, site, catalog):
        assert "names version 2" in text_of(site.page("tables/t/untag?tag=gold"))
        site.done("tables/t/untag?tag=gold")
        assert catalog.table("t").tags.names() == []
        assert site.get("tables/t/untag?tag=gold").status_code == 404
        assert site.get("tables/t/untag").status_code == 404

    def test_a_tag_that_somebody_else_removed_meanwhile_is_told(self, site, catalog):
        page = site.page("tables/t/untag?tag=gold")
        catalog.table("t").tags.delete("gold")
        seal = re.search(r'name="seal" value="([^"]+)"', page)[1]
        response = site.post("tables/t/untag?tag=gold", seal=seal)
        assert response.status_code == 404
        assert "has no tag 'gold'" in text_of(response.text)


class TestRestore:
    def test_it_says_what_will_be_and_does_it(self, site, catalog):
        asked = text_of(site.page("tables/t/restore?version=1"))
        assert "The content of version 1 becomes version 4." in asked
        assert "5 rows now and will have 3: 2 go and 0 come back" in asked
        assert "<b>half (removed)" in asked
        site.done("tables/t/restore?version=1")
        assert catalog.table("t").count() == 3
        assert catalog.table("t").version == 4
        assert "it is the newest now, as version 4" in text_of(site.page("tables/t/versions"))

    def test_content_that_is_there_already_is_said(self, site):
        site.done("tables/t/restore?version=2")
        assert "nothing changes" in text_of(site.page("tables/t/restore?version=2"))

    def test_a_version_must_be_there(self, site):
        assert site.get("tables/t/restore?version=9").status_code == 404
        assert site.get("tables/t/restore").status_code == 400


class TestBranch:
    def test_it_is_made_restored_and_deleted(self, site, catalog):
        assert site.done("tables/t/branch?version=2", name="dev", version="2").endswith(
            "/tables/t/versions?branch=dev"
        )
        catalog.table("t").insert(rows(8), branch="dev")
        site.done("tables/t/restore?version=2&branch=dev")
        assert catalog.table("t").count(branch="dev") == 5
        refused = site.act("tables/t/delete-branch?branch=dev", typed="de")
        assert refused.status_code == 400
        site.done("tables/t/delete-branch?branch=dev", typed="dev")
        assert catalog.table("t").branches.names() == []

    def test_a_branch_with_a_tag_stays(self, site, catalog):
        catalog.table("t").branches.create("dev")
        site.done("tables/t/tag?branch=dev", name="kept", version="3")
        response = site.act("tables/t/delete-branch?branch=dev", typed="dev")
        assert response.status_code >= 400
        assert "delete the tag first" in text_of(response.text)

    @pytest.mark.parametrize("name", ["", "a b", "main"])
    def test_a_name_that_cannot_be_is_refused(self, site, name):
        assert site.act("tables/t/branch", name=name, version="").status_code >= 400


class TestRoles:
    ACTIONS = (
        "tag",
        "untag?tag=gold",
        "restore?version=1",
        "branch",
        "delete-branch?branch=dev",
    )

    def test_a_reader_sees_versions_and_no_actions(self, catalog):
        with Site(catalog, ASKS, token="ben:hidden") as site:
            found = site.json("tables/t/versions")
            page = site.page("tables/t/versions")
            codes = {site.get(f"tables/t/{action}").status_code for action in self.ACTIONS}
        assert {one["restore"] for one in found["versions"]} == {None}
        assert found["make_tag"] is None
        assert "Restore" not in text_of(page)
        assert "untag" not in page
        assert codes == {403}

    def test_a_writer_may_and_is_the_author(self, catalog):
        with Site(catalog, ASKS, token="ada:s3cret") as site:
            site.done("tables/t/tag", name="mine", version="1")
            site.done("tables/t/branch", name="dev", version="")
            found = site.json("tables/t/versions")
        assert catalog.table("t").tags.get("mine").metadata["mooring.by"] == "ada"
        assert [one["by"] for one in found["branches"] if one["name"] == "dev"] == ["ada"]
