"""The page of rows: which ones, what of them, and nothing more than there is room for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest

import mooring
from tests.ui.site import Site, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mooring.catalog import Catalog

ATTACK = "<script>alert('x')</script>"
MANY = 120


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    # This lives longer than what spares each test its syncs.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield _make(mooring.connect(str(tmp_path_factory.mktemp("rows"))))


def _make(catalog: Catalog) -> Catalog:
    rows = pa.table(
        {
            "id": list(range(MANY)),
            "name": [f"whale {number}" for number in range(MANY)],
            ATTACK: [f"{ATTACK}\N{RIGHT-TO-LEFT OVERRIDE}"] * MANY,
            "a, b": [1] * MANY,
        }
    )
    catalog.create_table("whales", rows)
    catalog.declare_table("later")
    wide = {f"c{number}": [number] for number in range(45)}
    catalog.create_table("wide", pa.table(wide))
    return catalog


@pytest.fixture(scope="module")
def site(catalog: Catalog) -> Iterator[Site]:
    with Site(catalog) as found:
        yield found


def follow(site: Site, href: str) -> dict:
    where, _, query = href.partition("?")
    return site.json(f"{where}?{query}" if query else where)


def ids(view: dict) -> list[int]:
    at = [one["name"] for one in view["shown"]].index("id")
    return [row["cells"][at]["value"] for row in view["rows"]]


def test_rows_come_a_page_at_a_time(site):
    first = site.json("tables/whales/rows")
    assert ids(first) == list(range(50))
    assert (first["version"], first["total"], first["before_href"]) == (1, MANY, "")
    second = follow(site, first["next_href"])
    third = follow(site, second["next_href"])
    assert ids(second) == list(range(50, 100))
    assert ids(third) == list(range(100, MANY))
    assert third["next_href"] == ""
    assert ids(follow(site, third["before_href"])) == list(range(50, 100))
    assert third["rows"][0]["number"] == 101


def test_the_page_says_which_rows_of_how_many_it_shows(site):
    told = text_of(site.page("tables/whales/rows?offset=50"))
    assert "Version 1" in told
    assert "51\N{EN DASH}100 of 120" in told


def test_a_filter_leaves_rows_and_tells_how_many(site):
    view = site.json("tables/whales/rows", where="id >= 40 AND id < 110")
    assert ids(view) == list(range(40, 90))
    assert (view["matching"], view["total"]) == (70, MANY)
    assert ids(follow(site, view["next_href"])) == list(range(90, 110))
    assert follow(site, view["next_href"])["matching"] == 70
    assert "No row is left by this filter" in text_of(
        site.page("tables/whales/rows", params={"where": "id < 0"})
    )


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("id > ", "does not parse"),
        ("nosuch = 1", "No field named nosuch"),
        ("name", "does not return a boolean"),
        ("id = 'x'", "could not convert"),
        (f"{ATTACK}", "does not parse"),
        ("repeat(name, 2000000000) = 'x'", "values of any length by repeat"),
        ("lpad(name, id * 1000000) = 'x'", "values of any length by lpad"),
        ('REPEAT (repeat(name, 1000), 1000) = "name"', "values of any length by repeat"),
        (f"replace(replace(name, 'w', '{'w' * 90}'), 'w', '{'w' * 90}') = 'x'", "by replace"),
        ("encode(" * 12 + "name" + ", 'hex')" * 12 + " = 'x'", "values of any length by encode"),
        ("array_length(range(1, 10000000000)) > id", "values of any length by range"),
        # Nobody may be kept waiting by what a message repeats.
        (f"regexp_like(name, '{'(' * 900}')", "nclosed group"),
        (f"id = '{'( ' * 3000}{' ' * 9000}'", "could not convert"),
    ],
)
def test_a_wrong_filter_is_told_beside_the_box_and_kept(site, where, told):
    page = site.page("tables/whales/rows", params={"where": where})
    assert 'aria-invalid="true"' in page
    assert told in text_of(page)
    assert "Columns: id name" in text_of(page)
    assert "<script>alert" not in page
    view = site.json("tables/whales/rows", where=where)
    assert view["where"] == where.strip()
    assert view["error"]
    assert view["rows"] == []


def test_a_filter_may_make_values_of_a_length_that_it_names(site):
    view = site.json("tables/whales/rows", where="lpad(name, 10, '-') = '---whale 7'")
    assert ids(view) == [7]
    where = "replace(replace(name, 'whale', 'w'), ' ', '-') = 'w-8'"
    assert ids(site.json("tables/whales/rows", where=where)) == [8]


def test_columns_are_chosen_by_name_whatever_they_are_called(site):
    view = site.json("tables/whales/rows", columns=f'"a, b",id,{ATTACK}', limit="2")
    assert [one["name"] for one in view["shown"]] == ["a, b", "id", ATTACK]
    assert parse_qs(urlsplit(view["next_href"]).query)["columns"] == [f'"a, b",id,{ATTACK}']
    unscripted = site.json("tables/whales/rows", **{"column.a, b": "yes", "column.id": "yes"})
    assert [one["name"] for one in unscripted["shown"]] == ["a, b", "id"]
    wrong = site.json("tables/whales/rows", columns="nosuch")
    assert "'nosuch'" in wrong["error"]
    assert "cannot be read" in site.get("tables/whales/rows?columns=%22a%22b%22").text


def test_many_columns_are_shown_when_they_are_chosen(site):
    view = site.json("tables/wide/rows")
    assert len(view["shown"]) == 40
    assert "first 40 of 45 columns" in view["notes"][0]
    assert len(view["columns"]) == 45
    assert site.json("tables/wide/rows", columns="c44")["rows"][0]["cells"][0]["value"] == 44


def test_names_and_values_are_text(site):
    page = site.page("tables/whales/rows?limit=3")
    assert ATTACK not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page
    assert page.count("<script") == page.count('<script type="module" src="/static/')


def test_paging_stays_with_the_version_that_it_began_with(tmp_path):
    catalog = mooring.connect(str(tmp_path))
    table = catalog.create_table("t", pa.table({"id": list(range(60))}))
    with Site(catalog) as site:
        first = site.json("tables/t/rows")
        table.insert(pa.table({"id": [1000]}), overwrite=True)
        second = follow(site, first["next_href"])
        assert ids(second) == list(range(50, 60))
        assert (second["version"], second["newest"]) == (1, 2)
        assert ids(follow(site, second["newest_href"])) == [1000]
        assert "not the newest" in site.page("tables/t/rows?version=1")
        assert "not the newest" not in site.page("tables/t/rows?version=2")


def test_a_tag_and_a_branch_lead_to_their_rows(tmp_path):
    catalog = mooring.connect(str(tmp_path))
    table = catalog.create_table("t", pa.table({"id": list(range(60))}))
    table.tags.create("first", 1)
    table.insert(pa.table({"id": [1]}), overwrite=True)
    table.branches.create("dev", version=1)
    table.insert(pa.table({"id": [60]}), branch="dev")
    with Site(catalog) as site:
        tagged = site.json("tables/t/rows?tag=first")
        assert (tagged["version"], tagged["tag"], tagged["total"]) == (1, "first", 60)
        assert "version=1" in tagged["next_href"]
        branched = site.json("tables/t/rows?branch=dev")
        assert (branched["branch"], branched["total"]) == ("dev", 61)
        rest = follow(site, branched["next_href"])
        assert ids(rest) == list(range(50, 61))
        assert rest["newest"] is None
        for wrong in ("version=9", "tag=nosuch", "branch=nosuch"):
            assert site.get(f"tables/t/rows?{wrong}").status_code == 404
        assert site.get("tables/t/rows?tag=first&version=1").status_code == 400
        assert site.get("tables/t/rows?offset=-1").status_code == 400
        assert "no rows from 1,001 on" in text_of(site.page("tables/t/rows?offset=1000"))


def test_a_table_that_is_only_declared_says_so(site):
    page = site.page("tables/later/rows")
    assert "only declared" in page
    assert "table create --from FILE later" in text_of(page)
    assert site.get("tables/nosuch/rows").status_code == 404


def test_an_empty_table_says_so(tmp_path):
    catalog = mooring.connect(str(tmp_path))
    catalog.create_table("t", pa.table({"id": pa.array([], pa.int64())}))
    with Site(catalog) as site:
        assert "no rows in this version" in text_of(site.page("tables/t/rows"))


def test_words_are_looked_for_where_there_is_an_index(tmp_path):
    catalog = mooring.connect(str(tmp_path))
    table = catalog.create_table("t", pa.table({"id": [1, 2], "title": ["deep sea", "dry land"]}))
    with Site(catalog) as site:
        assert 'name="text"' not in site.page("tables/t/rows")
        table.indexes.create("title", "FTS")
        assert 'name="text"' in site.page("tables/t/rows")
        found = site.json("tables/t/rows", text="sea")
        assert ids(found) == [1]
        assert found["shown"][0]["name"] == "score"
        assert "best matches" in site.page("tables/t/rows?text=sea")


def test_rows_of_a_large_page_are_left_for_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr("mooring.server.ui.rows.preview._MOST_BYTES", 10 * 1024 * 1024)
    catalog = mooring.connect(str(tmp_path))
    large = "x" * 1_000_000
    catalog.create_table("t", pa.table({"id": list(range(30)), "text": [large] * 30}))
    with Site(catalog) as site:
        first = site.json("tables/t/rows")
        assert 5 < len(first["rows"]) < 30
        assert "large" in first["notes"][0]
        assert len(site.page("tables/t/rows")) < 400_000
        second = follow(site, first["next_href"])
        assert ids(second)[0] == len(first["rows"])
        assert all(row["cells"][1]["is_cut"] for row in first["rows"])


class TestAMetastore:
    """Change tables, whose rows are what all changes come to."""

    @pytest.fixture
    def site(self, tmp_path: Path) -> Iterator[Site]:
        from mooring.changes import create_change_table

        catalog = mooring.connect(f"metastore+{tmp_path}")
        catalog.create_namespace("n")
        schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
        table = create_change_table(catalog, "n$t", schema, keys=["id"], buckets=4)
        table.upsert(pa.table({"id": list(range(70)), "name": ["old"] * 70}))
        table.upsert(pa.table({"id": [3], "name": [ATTACK]}))
        with Site(catalog) as found:
            yield found

    def test_rows_of_a_change_table_are_merged(self, site):
        first = site.json("tables/n$t/rows")
        assert (first["is_changes"], first["position"], len(first["rows"])) == (True, 2, 50)
        second = follow(site, first["next_href"])
        assert sorted(ids(first) + ids(second)) == list(range(70))
        assert (second["next_href"], second["total"]) == ("", 70)
        found = site.json("tables/n$t/rows", where="id = 3")
        assert [cell["value"] for cell in found["rows"][0]["cells"]] == [3, ATTACK]
        assert found["matching"] == 1
        old = site.json("tables/n$t/rows", where="id = 3", position="1")
        assert old["rows"][0]["cells"][1]["value"] == "old"

    def test_its_page_names_the_command_and_what_is_wrong(self, site):
        page = text_of(site.page("tables/n$t/rows"))
        assert "Position 2" in page
        assert "changes read --at-position=2 --limit=50 'n$t'" in page
        assert site.json("tables/n$t/rows", where="nosuch = 1")["error"]
        assert site.json("tables/n$t/rows", columns="nosuch")["error"]
        assert "no position 9" in site.page("tables/n$t/rows?position=9")

    def test_a_large_one_is_read_in_part(self, site, monkeypatch):
        monkeypatch.setattr("mooring.changes.glance._MOST_ROWS", 1)
        view = site.json("tables/n$t/rows")
        assert 0 < len(view["rows"]) < 50
        assert "1 of 4 parts" in view["notes"][0]
        assert view["next_href"] == ""
        assert view["total"] is None
