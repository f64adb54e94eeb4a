"""The pages of a table in catalogs of every kind, and what their types are called.

Issue: pages for people, a table; whatever a kind of catalog cannot do is said in a sentence.
"""

from __future__ import annotations

import shlex

import lance_namespace
import pyarrow as pa
import pytest

import mooring
from mooring.server.background_settings import BackgroundSettings
from mooring.server.settings import ServerSettings
from mooring.server.ui.type_words import say_type
from tests.lakes import DISK, MANIFEST_DISK
from tests.own_server import run_server
from tests.program import invoke
from tests.ui.site import Site, text_of

PAGES = ("overview", "indexes", "health", "open", "history")


@pytest.fixture
def lake(tmp_path):
    lake = mooring.connect(str(tmp_path / "lake"))
    lake.create_namespace("ns")
    lake.create_table("ns$t", [{"n": 1}])
    return lake


@pytest.mark.parametrize("kind", [DISK, MANIFEST_DISK], ids=lambda kind: kind.name)
def test_pages_of_a_directory_of_any_kind(tmp_path, kind):
    lake = mooring.connect(str(tmp_path / "lake"), **kind.flags)
    lake.create_table("t", [{"n": 1}])
    with Site(lake) as site:
        for page in PAGES:
            site.page(f"tables/t/{page}")


@pytest.mark.parametrize("scheme", ["lance", "iceberg"])
def test_pages_of_a_catalog_that_another_server_keeps(lake, scheme):
    with run_server(lake) as base, Site(mooring.connect(f"{scheme}+{base}/{scheme}")) as site:
        for page in PAGES:
            site.page(f"tables/ns$t/{page}")
        assert site.json("tables/ns$t/overview")["figures"]["rows"] == 1


def test_a_catalog_of_others_says_what_it_cannot(lake):
    others = lance_namespace.connect("dir", {"root": lake.uri})
    with Site(others) as site:
        for page in ("overview", "indexes", "health"):
            assert site.json(f"tables/ns$t/{page}")["lack"]["kind"] == "other"
        assert site.json("tables/ns$t/history")["unsupported"]
        doors = site.json("tables/ns$t/open")["doors"]
        assert [door["key"] for door in doors] == ["server"]


def test_what_a_page_found_out_is_kept(lake):
    alone = ServerSettings(background=BackgroundSettings(survey=False))  # nobody else finds it out
    with Site(lake, alone) as site:
        site.page("tables/ns$t/overview")
        (found,) = site.json("namespaces/ns/browse")["tables"]
        assert (found["rows"], found["columns"], found["version"]) == (1, 1, 1)
        lake.table("ns$t").insert([{"n": 2}])
        site.page("tables/ns$t/overview?version=1")
        site.page("tables/ns$t/overview")
        (found,) = site.json("namespaces/ns/browse")["tables"]
        assert (found["rows"], found["version"]) == (2, 2)


def test_the_lines_of_an_index_cover_all_rows(lake):
    table = lake.create_table(["ns", "a 'b"], [{"it's": n} for n in range(10)])
    table.indexes.create("it's", "BTREE")
    table.insert([{"it's": 11}])
    with Site(lake) as site:
        (index,) = site.json("tables/ns$a 'b/indexes")["indexes"]
        exec(index["extend"], {"table": table})  # noqa: S102  # what people would run
        (index_after,) = site.json("tables/ns$a 'b/indexes")["indexes"]
        assert (index["rows_unindexed"], index_after["rows_unindexed"]) == (1, 0)
        assert index_after["rebuild"] == ""
        done = invoke(*shlex.split(index["rebuild"])[1:])
        assert done.exit_code == 0, done.output
        assert "Every index covers every row" in text_of(site.page("tables/ns$a 'b/health"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pa.float16(), "float16"),
        (pa.bool_(), "boolean"),
        (pa.large_string(), "large string"),
        (pa.binary(16), "binary of 16 bytes"),
        (pa.date64(), "date in milliseconds"),
        (pa.time32("s"), "time of day in seconds"),
        (pa.duration("ns"), "duration in nanoseconds"),
        (pa.timestamp("ms"), "timestamp in milliseconds, without a zone"),
        (pa.list_(pa.uint8(), 3), "vector of 3 uint8"),
        (pa.list_(pa.string(), 3), "list of exactly 3 string"),
        (pa.large_list(pa.list_(pa.float32(), 2)), "large list of vector of 2 float32"),
        (pa.uuid(), "UUID"),
        (pa.json_(), "JSON"),
        (pa.opaque(pa.int8(), "it", "me"), "arrow.opaque, stored as int8"),
    ],
    ids=str,
)
def test_types_are_told_in_words(kind, words):
    assert say_type(kind) == words


def test_metadata_tells_more_than_a_type():
    assert say_type(pa.large_binary(), {"lance-encoding:blob": "true"}) == "blob"
    assert say_type(pa.large_binary(), {"ARROW:extension:name": "lance.json"}) == "JSON"
