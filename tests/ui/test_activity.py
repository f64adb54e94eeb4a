"""What happens in a catalog: its changes, and a metastore's transactions."""

from __future__ import annotations

import re

import lance.namespace
import pytest

from mooring.identifiers import ObjectId
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.ui.catalogs import COMPAT, KINDS, METASTORE, PLAIN, make, open_kind
from tests.ui.site import Site, text_of

IN_A = Grant(Role.READER, None, ObjectId(("a",)))
EVERYWHERE = Grant(Role.READER)


def clients(**grants: Grant) -> ServerSettings:
    return ServerSettings(
        clients=tuple(Client.of(name, "secret", grant) for name, grant in grants.items())
    )


@pytest.fixture
def metastore(tmp_path):
    catalog = open_kind(METASTORE, tmp_path, author="ada")
    make(catalog, "a$t", "b$u")
    return catalog


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_dropped_before_anybody_watched_is_told(tmp_path, kind):
    catalog = open_kind(kind, tmp_path, author="ada")
    name = "t" if kind == PLAIN else "a$t"
    make(catalog, name)
    catalog.drop_table(name)
    with Site(catalog) as site:
        found = site.json("activity")["events"]
        # A listing alone does not tell who it was.
        by = None if kind == PLAIN else "ada"
        assert [(one["kind"], "$".join(one["names"]), one["by"]) for one in found] == [
            ("table.dropped", name, by)
        ]
        assert found[0]["href"].endswith("/trash")
        page = text_of(site.page("activity"))
        assert f"dropped table {name}" in page


def test_transactions_are_told_the_newest_first(metastore):
    with Site(metastore) as site:
        shown = site.json("activity")["transactions"]["shown"]
        assert [one["message"] for one in shown][:2] == ["create table b$u", "create namespace b"]
        assert {one["by"] for one in shown} == {"ada"}
        assert [one["commit"] for one in shown] == sorted(
            (one["commit"] for one in shown), reverse=True
        )
        assert "create table b$u" in text_of(site.page("activity"))


def test_transactions_come_by_pages(metastore, monkeypatch):
    monkeypatch.setattr("mooring.server.ui.activity.transactions._A_PAGE", 2)
    with Site(metastore) as site:
        first = site.json("activity")["transactions"]
        assert len(first["shown"]) == 2
        older = site.client.get(first["older"].replace("activity?", "activity.json?")).json()
        commits = [one["commit"] for one in older["transactions"]["shown"]]
        assert max(commits) < min(one["commit"] for one in first["shown"])
        assert older["transactions"]["newest"].endswith("/activity")


def test_transactions_of_a_namespace_or_table(metastore):
    with Site(metastore) as site:
        within = site.json("activity?within=a")["transactions"]["shown"]
        assert {one["message"] for one in within} == {"create table a$t", "create namespace a"}
        table = site.json("activity?within=b$u")["transactions"]["shown"]
        assert [one["message"] for one in table] == ["create table b$u"]
        assert site.json("activity?within=nowhere")["transactions"]["shown"] == []


def test_what_a_transaction_did(metastore):
    with Site(metastore) as site:
        newest = site.json("activity")["transactions"]["shown"][0]
        page = site.page(newest["href"])
        twin = site.client.get(f"{newest['href']}.json").json()
        assert twin["transaction"]["id"] == newest["id"]
        assert len(twin["changes"]) == newest["changes"]
        table = twin["changes"][0]
        assert (table["object"], table["operation"]) == ("b$u", "create")
        assert table["href"].endswith("/tables/b%24u/overview")
        assert "b$u" in text_of(page)
        assert site.get("transactions/none/changes").status_code == 404


def test_a_transaction_that_deleted_names_what_is_gone(metastore):
    metastore.drop_table("b$u", ttl="1s")
    metastore.purge_table("b$u")
    with Site(metastore) as site:
        hrefs = [one["href"] for one in site.json("activity")["transactions"]["shown"]]
        told = [site.client.get(f"{href}.json").json()["changes"] for href in hrefs]
        deleted = [one for changes in told for one in changes if one["operation"] == "delete"]
        assert {one["kind"] for one in deleted} >= {"table", "stream", "delta"}
        assert {one["object"].split("$")[0] for one in deleted} == {"b"}
        assert {one["href"] for one in deleted} == {""}


def test_many_changes_are_cut_and_that_is_told(metastore, monkeypatch):
    monkeypatch.setattr("mooring.server.ui.activity.transactions._MOST_CHANGES", 2)
    with Site(metastore) as site:
        newest = site.json("activity")["transactions"]["shown"][0]
        assert f"The first 2 of {newest['changes']} are shown" in text_of(site.page(newest["href"]))


def test_other_kinds_have_no_transactions_and_say_so(tmp_path):
    catalog = open_kind(COMPAT, tmp_path)
    with Site(catalog) as site:
        assert site.json("activity")["transactions"] is None
        assert "only a metastore has transactions" in text_of(site.page("activity"))
        assert site.get("transactions/x/changes").status_code == 406


def test_a_foreign_catalog_cannot_be_watched_and_says_so(tmp_path):
    theirs = lance.namespace.DirectoryNamespace(root=str(tmp_path))
    with Site(theirs) as site:
        page = site.page("activity")
        assert "its changes cannot be watched" in text_of(page)
        assert "data-stream" not in page


def test_who_reads_a_part_sees_that_part(tmp_path):
    catalog = open_kind(METASTORE, tmp_path)
    make(catalog, "a$t", "b$u")
    catalog.drop_table("a$t")
    catalog.drop_table("b$u")
    with Site(catalog, clients(ada=IN_A), token="ada:secret") as site:
        view = site.json("activity")
        assert [one["names"] for one in view["events"]] == [["a", "t"]]
        assert view["transactions"] is None
        assert "who may read the whole catalog" in text_of(site.page("activity"))
        for path in ("transactions/x/changes", "runs", "runs/x/details", "lineage", "audit"):
            assert site.get(path).status_code == 403, path


def test_changes_are_chosen_by_kind_and_place(tmp_path):
    catalog = open_kind(METASTORE, tmp_path)
    make(catalog, "a$t", "b$u")
    catalog.drop_table("a$t")
    catalog.drop_table("b$u")
    with Site(catalog) as site:
        assert [one["names"] for one in site.json("activity?within=b")["events"]] == [["b", "u"]]
        assert len(site.json("activity?kind=table.dropped")["events"]) == 2
        assert site.json("activity?kind=table.created")["events"] == []
        assert "no kind of change" in text_of(site.get("activity?kind=huh").text)
        assert site.get("activity?kind=huh").status_code == 400
        assert site.get("activity?before=x").status_code == 400


def test_names_are_text(tmp_path):
    catalog = open_kind(METASTORE, tmp_path, author="<b>eve</b>")
    name = "a$<img src=x onerror=alert(1)>"
    make(catalog, name)
    catalog.drop_table(name)
    with Site(catalog) as site:
        page = site.page("activity")
        assert "<img src=x" not in page
        assert "<b>eve" not in page
        assert name in text_of(page)
        href = site.json("activity")["transactions"]["shown"][0]["href"]
        assert "<img src=x" not in site.page(href)


def test_filters_and_links_keep_what_was_asked_for(metastore):
    with Site(metastore) as site:
        page = site.page("activity?within=a&kind=table.written")
        stream = re.search(r'data-stream="([^"]+)"', page)
        assert stream is not None
        assert "within=a" in stream[1]
        assert "kind=table.written" in stream[1]
