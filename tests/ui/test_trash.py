"""The trash: what was dropped, by whom, when, for how long, and the ways out of it."""

from __future__ import annotations

import time

import pytest

from mooring.clock import SystemClock
from mooring.identifiers import ObjectId
from mooring.namespace.settings import DAY_MS
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.ui.catalogs import COMPAT, KINDS, MANIFEST, METASTORE, NESTED, PLAIN, make, open_kind
from tests.ui.site import Site, text_of

IN_A = Grant(Role.WRITER, None, ObjectId(("a",)))


def _name(kind: str, name: str) -> str:
    return name if kind == PLAIN else f"a${name}"


def _rows(site: Site, path: str = "trash") -> dict[str, dict]:
    return {"$".join(row["id"]): row for row in site.json(path)["rows"]}


@pytest.mark.parametrize("kind", KINDS)
def test_trash_tells_who_when_and_how_long(tmp_path, kind):
    catalog = open_kind(kind, tmp_path, author="ada")
    names = [_name(kind, one) for one in ("short", "ever", "over")]
    make(catalog, *names)
    for name, ttl in zip(names, ("8d", "never", "1ms"), strict=True):
        catalog.drop_table(name, ttl=ttl)
    before_ms = time.time_ns() // 1_000_000
    with Site(catalog) as site:
        rows = _rows(site)
        page = text_of(site.page("trash"))
        assert set(rows) == set(names)
        assert rows[names[2]]["is_expired"]
        assert {row["by"] for row in rows.values()} == {"ada"}
        short = rows[names[0]]
        assert abs(short["deleted_at_ms"] - before_ms) < 60_000
        assert short["expires_at_ms"] - short["deleted_at_ms"] == 8 * DAY_MS
        assert 0.99 < short["left"] <= 1
        assert rows[names[1]]["expires_at_ms"] is None
        assert "for ever" in page
        assert "the next purge takes it" in page
        assert site.json("trash")["expired"] == 1
        assert list(_rows(site, "trash?sort=name")) == sorted(names)
        assert list(_rows(site, "trash?sort=left")) == [names[2], names[0], names[1]]
        assert list(_rows(site, "trash?q=SHO")) == [names[0]]
        assert site.json("trash?q=nowhere")["rows"] == []
        assert "Nothing here has a name that holds" in text_of(site.page("trash?q=nowhere"))


def _pass_a_moment(catalog):
    """Wait until the clock has gone on since the last drop."""
    last_ms = max(one.deleted_at_ms for one in catalog.list_purgable_tables())
    while SystemClock().now_ms() <= last_ms:
        pass


@pytest.mark.parametrize("kind", NESTED)
def test_dropped_namespace_is_one_row_with_its_tables_inside(tmp_path, kind):
    catalog = open_kind(kind, tmp_path, author="ada")
    make(catalog, "a$one", "a$two", "a$alone", "b$x")
    catalog.drop_table("a$alone")
    _pass_a_moment(catalog)  # what was dropped at the very same time counts as dropped together
    catalog.drop_namespace("a", cascade=True)
    with Site(catalog) as site:
        rows = _rows(site)
        assert set(rows) == {"a", "a$alone"}
        assert rows["a"]["kind"] == "namespace"
        assert rows["a"]["tables"] == 2
        assert rows["a"]["by"] == "ada"
        inside = site.json(rows["a"]["contents"].removeprefix("/catalogs/default/"))
        assert inside["within"] == ["a"]
        assert {"$".join(row["id"]) for row in inside["rows"]} == {"a$one", "a$two"}
        assert site.json("trash")["tables"] == 3
        assert _rows(site, "trash?q=one")["a$one"]["went_with"] == ["a"]
        assert "went with namespace a" in text_of(site.page("trash?q=one"))
        assert "Dropped with a" in text_of(site.page(rows["a"]["contents"]))


@pytest.mark.parametrize("kind", [MANIFEST, METASTORE])
def test_every_drop_of_a_name_is_shown_and_the_newest_can_come_back(tmp_path, kind):
    catalog = open_kind(kind, tmp_path)
    for _ in range(3):
        make(catalog, "a$t")
        catalog.drop_table("a$t")
    make(catalog, "a$t")
    with Site(catalog) as site:
        rows = site.json("trash")["rows"]
        assert [row["is_earlier"] for row in rows] == [False, True, True]
        assert [bool(row["undrop"]) for row in rows] == [True, False, False]
        assert rows[0]["is_taken"]
        assert "earlier drop" in site.page("trash")


def test_pages_of_the_trash_hold_fifty(tmp_path):
    catalog = open_kind(PLAIN, tmp_path)
    for number in range(60):
        catalog.declare_table(f"t{number:02}")
        catalog.drop_table(f"t{number:02}")
    with Site(catalog) as site:
        first = site.json("trash?sort=name")
        assert len(first["rows"]) == 50
        assert first["matching"] == 60
        assert first["newer"] == ""
        second = site.json(first["older"].removeprefix("/catalogs/default/"))
        assert [row["id"][0] for row in second["rows"]] == [f"t{one}" for one in range(50, 60)]
        assert second["older"] == ""
        assert "51 to 60 of 60" in text_of(site.page(first["older"]))
        assert site.json("trash?page=9")["rows"] == []


def test_only_what_may_be_read_is_shown_and_buttons_only_to_those_who_may(tmp_path):
    catalog = open_kind(COMPAT, tmp_path)
    make(catalog, "a$one", "b$two", "top")
    for name in ("a$one", "b$two", "top"):
        catalog.drop_table(name)
    settings = ServerSettings(
        clients=(Client.of("will", "hush", IN_A), Client.of("rita", "hush")),
    )
    with Site(catalog, settings, token="will:hush") as site:
        assert set(_rows(site)) == {"a$one"}
        assert "two" not in site.page("trash")
        row = _rows(site)["a$one"]
        assert row["undrop"]
        assert not row["purge"]  # only an admin may
        assert site.json("trash")["purge_expired"] == ""
    with Site(catalog, settings, token="rita:hush") as site:
        assert set(_rows(site)) == {"a$one", "b$two", "top"}
        page = site.page("trash")
        assert "/undrop" not in page
        assert "/purge" not in page


@pytest.mark.parametrize("kind", KINDS)
def test_empty_trash_says_so(tmp_path, kind):
    with Site(open_kind(kind, tmp_path)) as site:
        assert "The trash is empty." in text_of(site.page("trash"))


def test_names_are_text_in_the_trash(tmp_path):
    catalog = open_kind(COMPAT, tmp_path)
    name = "<img src=x onerror=alert(1)> \"'& مرحبا 🦆"
    make(catalog, f"a${name}")
    catalog.drop_table(["a", name])
    with Site(catalog) as site:
        page = site.page("trash")
        assert "<img src=x" not in page
        assert name in text_of(page)
        row = site.json("trash")["rows"][0]
        assert name in text_of(site.page(row["undrop"]))
        assert name in text_of(site.page(row["purge"]))
