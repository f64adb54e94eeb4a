"""Searching: names, columns and properties, and what is not known yet."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import mooring
from mooring.identifiers import ObjectId
from mooring.server.background_settings import BackgroundSettings
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.ui.site import Site, text_of

WICKED = "<script>alert('x')<b>"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    catalog = mooring.connect(tmp_path_factory.mktemp("search") / "lake")
    for name in ("sales", "ml", WICKED):
        catalog.create_namespace(name, {"owner": f"team of {name}"})
    rows = pa.table({"id": [1], "customer_email": ["a@b"], "place": [{"city": "Straße"}]})
    catalog.create_table("sales$orders", rows, properties={"purpose": "yearly REPORT of all"})
    catalog.create_table("ml$clicks", pa.table({"id": [1]}))
    catalog.create_table(f"{WICKED}$t", pa.table({WICKED: [1]}))
    return catalog


@pytest.fixture(scope="module")
def site(lake):
    with Site(lake) as site:
        pause = threading.Event()
        for _ in range(4000):
            if site.json("search", q="id")["known_columns"] == 3:
                break
            pause.wait(0.005)
        yield site


def ids(view):
    return ["$".join(hit["id"]) for hit in view["hits"]]


def test_names_are_found_before_columns(site):
    view = site.json("search", q="cl")
    assert ids(view) == ["ml$clicks"]
    assert view["hits"][0]["name"] == [
        {"text": "cl", "is_match": True},
        {"text": "icks", "is_match": False},
    ]
    assert view["hits"][0]["href"].endswith("/tables/ml%24clicks/overview")


def test_a_column_is_found_and_named(site):
    view = site.json("search", q="CUSTOMER")
    assert ids(view) == ["sales$orders"]
    assert view["hits"][0]["places"] == [
        {
            "kind": "column",
            "text": [
                {"text": "customer", "is_match": True},
                {"text": "_email", "is_match": False},
            ],
        }
    ]
    assert ids(site.json("search", q="place.city")) == ["sales$orders"]


def test_a_property_is_found_with_what_it_says(site):
    view = site.json("search", q="report")
    assert ids(view) == ["sales$orders"]
    place = view["hits"][0]["places"][0]
    assert place["kind"] == "property"
    assert "".join(one["text"] for one in place["text"]) == "purpose = yearly REPORT of all"
    assert "property purpose = yearly REPORT of all" in text_of(site.page("search?q=report"))


def test_namespaces_are_found_too(site):
    view = site.json("search", q="team sales")
    assert ids(view) == ["sales"]
    assert view["hits"][0]["kind"] == "namespace"
    assert view["hits"][0]["href"].endswith("/namespaces/sales/browse")


def test_of_several_words_all_have_to_be_found(site):
    assert ids(site.json("search", q="orders email")) == ["sales$orders"]
    assert ids(site.json("search", q="orders clicks")) == []
    assert "all have to be found" in text_of(site.page("search?q=orders+clicks"))


def test_matches_are_marked_and_markup_is_text(site):
    page = site.page("search?q=alert")
    assert "<mark>alert</mark>" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;<mark>alert" in page
    page = site.page('search?q="><script>alert(1)</script>')
    assert "<script>alert(1)" not in page


def test_what_was_typed_stays_in_the_field(site):
    assert 'value="two &#34;words&#34;"' in site.page('search?q=two "words"')


def test_without_words_it_says_what_can_be_done(site):
    assert "Type a few letters" in text_of(site.page("search"))
    assert site.json("search")["hits"] == []
    assert site.json("search")["cli"] == ""


def test_a_limit_tells_how_many_more_there_are(site):
    view = site.json("search", q="s", limit="1")
    assert len(view["hits"]) == 1
    assert view["total"] > 1
    assert site.get("search.json?q=s&limit=0").status_code == 400


def test_the_terminal_finds_names_too(site):
    assert site.json("search", q="it's")["cli"].endswith("""| grep -iF -e 'it'"'"'s'""")


def test_only_what_may_be_read_is_found(lake):
    one = Client.of("r", "secret", Grant(Role.READER, namespace=ObjectId(("ml",))))
    with Site(lake, ServerSettings(clients=(one,)), token="r:secret") as site:
        view = site.json("search", q="s")
        assert ids(view) == ["ml$clicks"]
        assert (view["total"], view["tables"]) == (1, 1)
        assert site.json("search", q="customer")["hits"] == []
        assert site.json("search", q="team")["total"] == 1


def test_it_says_what_is_not_known(lake):
    settings = ServerSettings(background=BackgroundSettings(survey=False))
    with Site(lake, settings) as site:
        view = site.json("search", q="customer")
        assert (view["total"], view["known_columns"], view["tables"]) == (0, 0, 3)
        assert "Columns of 0 of 3 tables are known so far" in text_of(site.page("search?q=c"))


def test_the_page_has_the_field_that_finds_while_typing(site):
    assert f'data-search="{site.at}/search.json"' in site.page("search?q=x")
