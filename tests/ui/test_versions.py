"""The versions of a table: the timeline to scale, the list below it, and what leads from it."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import mooring
from mooring.changes import create_change_table
from tests.ui.site import Site, text_of

HOUR_S = 3600
NOON_S = int(datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp())
SPOT = re.compile(r'<a class="spot" href="([^"]*)" aria-label="([^"]*)"><title>')
AT = re.compile(r'<circle class="reach" cx="([0-9.]+)"')


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def age(location: str, *hours: float, branch: str = "") -> None:
    """Let the versions of a table be so many hours after noon, one after another."""
    below = Path(location) / (f"tree/{branch}" if branch else "") / "_versions"
    for path, hour in zip(sorted(below.glob("*.manifest"), reverse=True), hours, strict=True):
        os.utime(path, (NOON_S + hour * HOUR_S,) * 2)


@pytest.fixture
def catalog(tmp_path):
    made = mooring.connect(str(tmp_path / "lake"))
    made.create_table("t", rows(1, 2, 3))
    table = made.table("t")
    table.insert(rows(4, 5))
    table.delete("id = 1")
    table.tags.create("gold", 2)
    return made


def marks_of(page: str) -> dict[str, float]:
    """Return where each mark of the timeline is, by what it says."""
    labels = [unescape(label) for _, label in SPOT.findall(page)]
    return dict(zip(labels, map(float, AT.findall(page)), strict=True))


class TestList:
    def test_it_tells_what_made_each_version_with_rows_and_author(self, catalog):
        with Site(catalog) as site:
            found = site.json("tables/t/versions")
            shown = text_of(site.page("tables/t/versions"))
        assert [one["version"] for one in found["versions"]] == [3, 2, 1]
        assert [one["word"] for one in found["versions"]] == [
            "rows deleted",
            "rows added",
            "created",
        ]
        assert [one["rows_change"] for one in found["versions"]] == [-1, 2, None]
        assert found["versions"][1]["tags"] == ["gold"]
        assert found["versions"][1]["by"]
        assert found["newest"] == 3
        assert "rows added" in shown
        assert "gold" in shown
        assert "drawing" not in found

    def test_it_leads_to_each_version_its_rows_and_what_it_changed(self, catalog):
        with Site(catalog) as site:
            _, second, first = site.json("tables/t/versions")["versions"]
        assert second["overview"].endswith("/tables/t/overview?version=2")
        assert second["preview"].endswith("/tables/t/rows?version=2")
        assert second["diff"].endswith("/tables/t/diff?from=1&to=2")
        assert second["restore"].endswith("/tables/t/restore?version=2")
        assert first["diff"] is None

    def test_a_message_and_properties_of_a_commit_are_told_as_text(self, catalog):
        lance.write_dataset(
            rows(9),
            catalog.table("t").location,
            mode="append",
            transaction_properties={
                "__lance_commit_message": "<script>alert(1)</script>",
                "job": "<b>nightly</b>",
            },
        )
        with Site(catalog) as site:
            page = site.page("tables/t/versions")
            newest = site.json("tables/t/versions")["versions"][0]
        assert newest["message"] == "<script>alert(1)</script>"
        assert newest["properties"] == {"job": "<b>nightly</b>"}
        assert "<script>alert" not in page
        assert "<b>nightly" not in page

    def test_older_versions_are_on_pages_of_their_own(self, catalog):
        table = catalog.table("t")
        for number in range(100):
            lance.write_dataset(rows(number), table.location, mode="append")
        with Site(catalog) as site:
            first = site.json("tables/t/versions")
            second = site.client.get(first["older"].replace("versions?", "versions.json?")).json()
            page = site.page(first["older"])
        assert [len(first["versions"]), len(second["versions"])] == [100, 3]
        assert (first["versions"][0]["version"], second["versions"][0]["version"]) == (103, 3)
        assert first["versions"][-1]["rows_change"] == 1
        assert second["older"] is None
        assert second["newer"].endswith("/tables/t/versions")
        assert "from 1 to 3" in text_of(page)

    @pytest.mark.parametrize("query", ["version=2", "tag=gold"])
    def test_the_version_that_is_looked_at_is_marked(self, catalog, query):
        with Site(catalog) as site:
            page = site.page(f"tables/t/versions?{query}")
        assert 'id="v2" class="at"' in page
        assert page.count('class="at"') == 1

    def test_a_page_before_the_first_version_says_so(self, catalog):
        with Site(catalog) as site:
            assert "no versions before" in text_of(site.page("tables/t/versions?before=1"))

    def test_a_declared_table_has_an_empty_page(self, catalog):
        catalog.declare_table("bare")
        with Site(catalog) as site:
            assert "only declared" in text_of(site.page("tables/bare/versions"))
            assert "only declared" in text_of(site.page("tables/bare/diff"))

    @pytest.mark.parametrize("query", ["scale=round", "before=x", "before=0", "branch=../x"])
    def test_what_makes_no_sense_is_refused(self, catalog, query):
        with Site(catalog) as site:
            assert site.get(f"tables/t/versions?{query}").status_code == 400

    def test_a_table_or_branch_that_is_not_there_is_told(self, catalog):
        with Site(catalog) as site:
            assert site.get("tables/nowhere/versions").status_code == 404
            assert site.get("tables/t/versions?branch=dev").status_code == 404


class TestTimeline:
    def test_marks_are_apart_as_the_times_are(self, catalog):
        age(catalog.table("t").location, 0, 1, 5)
        with Site(catalog) as site:
            first, second, third = marks_of(site.page("tables/t/versions")).values()
        assert (third - second) / (second - first) == pytest.approx(4, abs=0.02)

    def test_evenly_they_are_one_after_another(self, catalog):
        age(catalog.table("t").location, 0, 1, 5)
        with Site(catalog) as site:
            first, second, third = marks_of(site.page("tables/t/versions?scale=even")).values()
        assert third - second == pytest.approx(second - first, abs=0.2)

    def test_marks_lead_to_the_list_and_say_what_they_are(self, catalog):
        age(catalog.table("t").location, 0, 1, 5)
        with Site(catalog) as site:
            page = site.page("tables/t/versions")
        hrefs = {unescape(label): href for href, label in SPOT.findall(page)}
        label = next(label for label in hrefs if label.startswith("version 2"))
        assert label.startswith("version 2, 2026-03-02 13:00 UTC, rows added, 5 rows, by ")
        assert label.endswith("tagged gold")
        assert hrefs[label] == "#v2"
        assert 'id="v2"' in page

    def test_versions_that_fall_together_are_one_mark_with_their_number(self, catalog):
        age(catalog.table("t").location, 0, 0.001, 900)
        with Site(catalog) as site:
            page = site.page("tables/t/versions")
        assert [label.partition(":")[0] for label in marks_of(page)] == [
            "2 versions, 1 to 2",
            "version 3, 2026-04-09 00",
        ]
        assert '<text class="count"' in page

    def test_a_branch_leaves_main_at_the_version_it_comes_from(self, catalog):
        table = catalog.table("t")
        table.branches.create("dev", version=2)
        table.insert(rows(7), branch="dev")
        age(table.location, 0, 2, 4)
        age(table.location, 5, 6, branch="dev")
        with Site(catalog) as site:
            page = site.page("tables/t/versions")
            dev = site.json("tables/t/versions?branch=dev")
            on_dev = site.page("tables/t/versions?branch=dev")
        marks = marks_of(page)
        fork = marks[next(label for label in marks if label.startswith("version 2"))]
        paths = re.findall(r'<path class="lane[^"]*" d="M([0-9.]+) [0-9.]+C', page)
        assert [float(x) for x in paths] == [fork]
        assert any(label.startswith("dev: version 3") for label in marks)
        assert dev["branch"] == "dev"
        assert [one["version"] for one in dev["versions"]] == [3, 2]
        assert dev["versions"][0]["diff"].endswith("from=dev%3A2&to=dev%3A3")
        assert "Versions of branch" in text_of(on_dev)

    def test_many_versions_are_drawn_as_few_marks(self, catalog):
        for number in range(120):
            lance.write_dataset(rows(number), catalog.table("t").location, mode="append")
        with Site(catalog) as site:
            page = site.page("tables/t/versions")
        assert len(marks_of(page)) <= 40

    def test_names_in_the_drawing_are_text(self, catalog):
        evil = '"><script>alert(1)</script>'
        lance.write_dataset(
            rows(9),
            catalog.table("t").location,
            mode="append",
            transaction_properties={"mooring.by": evil},
        )
        age(catalog.table("t").location, 0, 1, 5, 9)
        with Site(catalog) as site:
            page = site.page("tables/t/versions")
        assert any(label.endswith(f"by {evil}") for label in marks_of(page))
        assert evil not in page
        assert "<script>alert" not in page

    def test_a_branch_in_letters_from_right_to_left_is_drawn(self, catalog):
        name = "\u05e2\u05e0\u05e3"
        catalog.table("t").branches.create(name)
        with Site(catalog) as site:
            page = site.page("tables/t/versions")
            found = site.json("tables/t/versions", branch=name)
        assert f"<title>{name}</title>" in page
        assert found["branch"] == name

    def test_a_file_that_no_tag_can_be_named_for_is_none(self, catalog):
        folder = Path(catalog.table("t").location) / "_refs/tags"
        (folder / "<img src=x>.json").write_bytes((folder / "gold.json").read_bytes())
        with Site(catalog) as site:
            assert "img src=x" not in site.page("tables/t/versions")


class TestKinds:
    @pytest.mark.parametrize(
        ("uri", "name", "options"),
        [
            ("{}", "t", {"manifest_enabled": False}),
            ("{}", "a$t", {"dir_listing_enabled": False}),
            ("metastore+{}", "a$t", {}),
        ],
    )
    def test_every_kind_of_catalog_shows_tags_and_restores(self, tmp_path, uri, name, options):
        catalog = mooring.connect(uri.format(tmp_path / "lake"), **options)
        if "$" in name:
            catalog.create_namespace("a")
        catalog.create_table(name, rows(1, 2))
        catalog.table(name).insert(rows(3))
        with Site(catalog) as site:
            site.done(f"tables/{name}/tag?version=1", name="old", version="1")
            site.done(f"tables/{name}/restore?version=1")
            found = site.json(f"tables/{name}/versions")
            diff = site.json(f"tables/{name}/diff", **{"from": "old", "to": "2"})
        assert [one["version"] for one in found["versions"]] == [3, 2, 1]
        assert found["versions"][0]["word"] == "restored"
        assert found["versions"][2]["tags"] == ["old"]
        assert diff["found"]["rows"] == {"added": 1, "deleted": 0, "updated": 0}

    def test_a_metastore_knows_the_author_of_every_version(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MOORING_USER", "ada")
        catalog = mooring.connect(f"metastore+{tmp_path / 'lake'}")
        catalog.create_namespace("a")
        catalog.create_table("a$t", rows(1, 2))
        catalog.table("a$t").delete("id = 1")
        catalog.table("a$t").restore(1)
        with Site(catalog) as site:
            found = site.json("tables/a$t/versions")["versions"]
        assert [one["by"] for one in found] == ["ada", "ada", "ada"]

    def test_a_table_of_changes_shows_its_positions(self, tmp_path):
        catalog = mooring.connect(f"metastore+{tmp_path / 'lake'}")
        catalog.create_namespace("a")
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
        table = create_change_table(catalog, "a$c", schema, keys=["id"])
        with Site(catalog) as site:
            assert "No changes yet" in text_of(site.page("tables/a$c/versions"))
            table.upsert(pa.table({"id": [1, 2], "v": ["x", "y"]}), message="first <b>")
            table.delete(pa.table({"id": [1]}))
            page = site.page("tables/a$c/versions")
            found = site.json("tables/a$c/versions")["positions"]
        assert [one["word"] for one in found["changes"]] == ["rows deleted", "rows upserted"]
        assert found["changes"][1]["message"] == "first <b>"
        assert found["changes"][1]["by"]
        assert len(SPOT.findall(page)) >= 1
        assert "first <b>" not in page
