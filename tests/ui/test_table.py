"""The pages of one table: what it is, its indexes, its past, and tables that are not there.

Issue: pages for people, a table: schema, versions, indexes, properties.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import quote

import pyarrow as pa
import pytest

import mooring
from mooring.changes import create_change_table, publish
from mooring.identifiers import ObjectId
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.ui.site import Site, text_of

NASTY = 'it\'s "q" <b>x<i> `id` 🚀 \u202e;--'
WIDE = pa.schema(
    [
        pa.field(
            "id",
            pa.int64(),
            nullable=False,
            metadata={"lance-schema:unenforced-primary-key": "true", "note": "<script>1</script>"},
        ),
        ("name", pa.string()),
        ("place", pa.struct([("lat", pa.float64()), ("tags", pa.list_(pa.string()))])),
        ("stops", pa.list_(pa.struct([("at", pa.date32())]))),
        ("v", pa.list_(pa.float32(), 4)),
        ("at", pa.timestamp("us", "Europe/Oslo")),
        ("price", pa.decimal128(10, 2)),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("attrs", pa.map_(pa.string(), pa.int32())),
        pa.field("photo", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
    ],
    metadata={"made": "by hand"},
)
ROW = {
    "name": "Oslo",
    "place": {"lat": 1.0, "tags": ["a"]},
    "stops": [],
    "v": [0.0, 1.0, 2.0, 3.0],
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "price": Decimal("1.25"),
    "kind": "x",
    "attrs": [("k", 1)],
    "photo": b"x",
}


@pytest.fixture
def lake(tmp_path):
    lake = mooring.connect(str(tmp_path / "lake"), author="ada")
    lake.create_namespace("geo")
    return lake


def wide(count):
    columns = {
        field.name: pa.array([{**ROW, "id": n}[field.name] for n in range(count)], field.type)
        for field in WIDE
        if not pa.types.is_dictionary(field.type)
    }
    columns["kind"] = pa.array(["x"] * count).dictionary_encode()
    return pa.table([columns[field.name] for field in WIDE], schema=WIDE)


@pytest.fixture
def cities(lake):
    cities = lake.create_table(
        "geo$cities", wide(20), properties={"owner": "maps <i>", "description": "Cities", "x": "1"}
    )
    cities.delete("id = 3")
    cities.indexes.create("id", "BTREE")
    cities.insert(wide(5))
    cities.tags.create("v1", 1)
    return cities


def columns_of(view):
    return {one["path"]: one for one in view["columns"]}


def test_the_overview_tells_the_figures(lake, cities):
    with Site(lake) as site:
        view = site.json("tables/geo$cities/overview")
        figures = view["figures"]
        assert (figures["rows"], figures["columns"], figures["fragments"]) == (24, 10, 2)
        assert (figures["versions"], figures["indexes"]) == (4, 1)
        assert (figures["written_by"], figures["operation"]) == ("ada", "Append")
        assert figures["size_bytes"] > 0
        assert figures["is_oldest_first"]
        assert (view["owner"], view["description"]) == ("maps <i>", "Cities")
        assert view["properties"] == {"x": "1"}
        assert view["location"].endswith(cities.location.rpartition("/")[2])
        text = text_of(site.page("tables/geo$cities/overview"))
        assert "Owner: maps <i>" in text
        assert "vector of 4 float32" in text


def test_the_schema_is_told_in_words(lake, cities):
    with Site(lake) as site:
        view = site.json("tables/geo$cities/overview")
    found = columns_of(view)
    assert {path: one["type"] for path, one in found.items()} == {
        "id": "int64",
        "name": "string",
        "place": "struct of 2 fields",
        "place.lat": "float64",
        "place.tags": "list of string",
        "stops": "list of struct of 1 field",
        "stops.item.at": "date",
        "v": "vector of 4 float32",
        "at": "timestamp in microseconds, zone Europe/Oslo",
        "price": "decimal of 10 digits, 2 after the point",
        "kind": "string, kept as a dictionary (int32 keys)",
        "attrs": "map of string to int32",
        "attrs.entries.key": "string",
        "attrs.entries.value": "int32",
        "photo": "blob",
    }
    assert found["id"]["is_key"]
    assert not found["id"]["nullable"]
    assert found["id"]["indexes"] == ["id_idx"]
    assert found["id"]["metadata"]["note"] == "<script>1</script>"
    assert (found["place.lat"]["depth"], found["place.lat"]["id"]) == (1, 3)
    assert view["metadata"] == {"made": "by hand"}


def test_markup_in_metadata_and_properties_is_text(lake, cities):
    with Site(lake) as site:
        page = site.page("tables/geo$cities/overview")
    assert "<script>1" not in page
    assert "<i>" not in page


@pytest.mark.parametrize("asked", ["version=1", "tag=v1"])
def test_an_older_version_is_shown_with_a_word_about_it(lake, cities, asked):
    cities.columns.drop("name")
    with Site(lake) as site:
        view = site.json(f"tables/geo$cities/overview?{asked}")
        assert (view["shown"]["version"], view["shown"]["newest"]) == (1, 5)
        assert "name" in columns_of(view)
        assert "name" not in columns_of(site.json("tables/geo$cities/overview"))
        page = site.page(f"tables/geo$cities/overview?{asked}")
        assert "This is version 1 of 5" in text_of(page)
        assert f'href="{view["shown"]["newest_href"]}"' in page
        assert f"/health?{asked}" in page


def test_a_branch_is_shown(lake, cities):
    cities.branches.create("dev")
    cities.insert(wide(1), branch="dev")
    with Site(lake) as site:
        view = site.json("tables/geo$cities/overview?branch=dev")
        assert (view["figures"]["rows"], view["shown"]["branch"]) == (25, "dev")
        assert "on branch dev" in text_of(site.page("tables/geo$cities/indexes?branch=dev"))


@pytest.mark.parametrize(
    ("asked", "status"),
    [("version=99", 404), ("tag=nope", 404), ("branch=no", 404), ("version=x", 400)],
)
def test_a_version_that_is_not_there_is_told(lake, cities, asked, status):
    with Site(lake) as site:
        assert site.get(f"tables/geo$cities/overview?{asked}").status_code == status


def test_badges_tell_the_state(lake, cities):
    lake.protect_table("geo$cities")
    with Site(lake) as site:
        assert "protected" in text_of(site.page("tables/geo$cities/overview"))
        assert "mooring.protected" not in site.json("tables/geo$cities/overview")["properties"]


def test_those_who_may_not_know_do_not_see_where_it_lies(lake, cities):
    reader = Client.of("ben", "hidden", Grant(Role.READER))
    with Site(lake, ServerSettings(clients=(reader,)), token="ben:hidden") as site:
        for page in ("overview", "indexes", "health", "open", "history"):
            assert str(lake.uri) not in site.page(f"tables/geo$cities/{page}")
            assert "/rename" not in site.page(f"tables/geo$cities/{page}")
        assert site.json("tables/geo$cities/overview")["location"] == ""


def test_indexes_tell_what_they_cover_and_what_to_do(lake, cities):
    with Site(lake) as site:
        (index,) = site.json("tables/geo$cities/indexes")["indexes"]
        assert (index["name"], index["columns"], index["type"]) == ("id_idx", ["id"], "BTree")
        assert (index["rows_indexed"], index["rows_unindexed"]) == (19, 5)
        assert (index["fragments"], index["segments"]) == (1, 1)
        assert "--replace" in index["rebuild"]
        page = site.page("tables/geo$cities/indexes")
        assert "covers 19 of 24 rows" in page
        assert "table.indexes.extend" in text_of(page)
        cities.insert(wide(1))
        (old,) = site.json("tables/geo$cities/indexes?version=4")["indexes"]
        assert (old["rows_unindexed"], old["extend"], old["rebuild"]) == (5, "", "")


def test_a_table_without_indexes_says_how_to_make_one(lake):
    lake.create_table("plain", [{"n": 1}])
    with Site(lake) as site:
        assert "index create" in text_of(site.page("tables/plain/indexes"))


def test_a_declared_table_has_no_data_yet(lake):
    lake.declare_table("geo$later", properties={"owner": "ada"})
    with Site(lake) as site:
        for page in ("overview", "indexes", "health", "open"):
            assert "no data yet" in text_of(site.page(f"tables/geo$later/{page}"))
            assert site.json(f"tables/geo$later/{page}")["lack"]["kind"] == "declared"
        assert "only declared" in text_of(site.page("tables/geo$later/overview"))


def test_history_tells_who_did_what(lake, cities):
    with Site(lake) as site:
        view = site.json("tables/geo$cities/history")
        assert [one["version"] for one in view["happenings"]][-1] == 1
        assert {one["by"] for one in view["happenings"]} == {"ada"}
        lake.drop_table("geo$cities")
        text = text_of(site.page("tables/geo$cities/history"))
        assert "dropped by ada" in text
        assert "The way back" in text
        assert site.get("tables/geo$nothing/history").status_code == 404


def test_a_dropped_table_shows_the_way_back(lake, cities):
    lake.drop_table("geo$cities")
    with Site(lake) as site:
        response = site.get("tables/geo$cities/overview")
        assert response.status_code == 410
        text = text_of(response.text)
        assert "by ada" in text
        assert "Its time in the trash ends" in text
        assert "/tables/geo%24cities/undrop" in response.text
        assert site.get("tables/geo$cities/overview.json").status_code == 404


def test_an_unknown_table_names_close_ones(lake, cities):
    with Site(lake) as site:
        response = site.get("tables/geo$citees/overview")
        assert response.status_code == 404
        assert "/tables/geo%24cities/overview" in response.text


def test_close_names_are_only_those_that_may_be_known(lake, cities):
    lake.create_namespace("open")
    lake.create_table("open$cities", [{"n": 1}])
    reader = Client.of("ben", "hidden", Grant(Role.READER, "default", ObjectId.of(["open"])))
    with Site(lake, ServerSettings(clients=(reader,)), token="ben:hidden") as site:
        assert site.get("tables/geo$citees/overview").status_code == 403
        assert "open%24cities" in site.get("tables/open$citees/overview").text


def test_a_strange_name_is_text(lake):
    lake.create_table(["geo", NASTY], [{"n": 1}])
    with Site(lake) as site:
        for page in ("overview", "indexes", "health", "open", "history"):
            html = site.page(f"tables/{quote('geo$' + NASTY, safe='')}/{page}")
            assert "<b>x" not in html
            assert "<i>" not in html


@pytest.fixture
def metastore(tmp_path):
    lake = mooring.connect(f"metastore+{tmp_path / 'meta'}", author="ada")
    lake.create_namespace("sales")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("total", pa.float64())])
    orders = create_change_table(
        lake, "sales$orders", schema, keys=["id"], buckets=2, properties={"owner": "shop"}
    )
    orders.upsert([{"id": 1, "total": 1.0}, {"id": 2, "total": 2.0}])
    publish(orders, "sales$published")
    return lake


def test_a_table_of_changes_tells_its_definition(metastore):
    with Site(metastore) as site:
        view = site.json("tables/sales$orders/overview")
        changes = view["changes"]
        assert (changes["position"], changes["keys"], changes["buckets"]) == (1, ["id"], 2)
        assert (changes["deltas"], changes["rows"], view["owner"]) == (1, 2, "shop")
        assert [one["id"] for one in changes["publications"]] == [["sales", "published"]]
        assert columns_of(view)["id"]["is_key"]
        assert "/tables/sales%24published/overview" in site.page("tables/sales$orders/overview")


def test_pages_that_do_not_fit_a_table_of_changes_say_so(metastore):
    with Site(metastore) as site:
        for page in ("indexes", "health", "open"):
            assert "table of changes" in text_of(site.page(f"tables/sales$orders/{page}"))
        assert "ChangeTable(" in text_of(site.page("tables/sales$orders/open"))
        assert "created" in text_of(site.page("tables/sales$orders/history"))


def test_a_published_table_says_so(metastore):
    with Site(metastore) as site:
        view = site.json("tables/sales$published/overview")
        assert view["published_position"] == 1
        assert view["is_managed"]
        assert "published, position 1" in text_of(site.page("tables/sales$published/overview"))
