"""Who may act, by which forms, what the log hears of it, and what takes longer than one waits."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from mooring.catalog import Catalog
from mooring.directory.listing_backend import ListingBackend
from mooring.identifiers import ObjectId
from mooring.namespace.home import Home
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from mooring.server.ui.actions import ACTIONS
from mooring.server.ui.routes import ROUTES
from mooring.store import open_store
from mooring.store.scripted import ScriptedStore
from tests.ui.catalogs import COMPAT, MANIFEST, PLAIN, make, open_kind
from tests.ui.site import HTML, Site, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from mooring.store.wrapped import Call

BASE = "http://127.0.0.1:8765"
_PATIENCE_S = 30
IN_A = Grant(Role.WRITER, None, ObjectId(("a",)))
CLIENTS = (
    Client.of("rita", "hush"),
    Client.of("will", "hush", IN_A),
    Client.of("wanda", "hush", Grant(Role.WRITER)),
    Client.of("ada", "hush", Grant(Role.ADMIN)),
)
OTHER_SITES = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://["},
    {"origin": BASE, "sec-fetch-site": "cross-site"},
    {"origin": BASE, "sec-fetch-site": "same-site"},
    {"origin": "http://127.0.0.1:9999"},
]


@pytest.fixture
def catalog(tmp_path):
    found = open_kind(MANIFEST, tmp_path / "lake")
    make(found, "a$t", "a$gone", "b$u", "gone$x")
    found.drop_table("a$gone")
    found.drop_namespace("gone", cascade=True)
    return found


def _settings(**more: object) -> ServerSettings:
    return ServerSettings(clients=CLIENTS, **more)


def _paths() -> list[tuple[str, Role]]:
    """Return where every action is, for what it can be done with here."""
    gone = {"undrop", "purge"}
    found = []
    for action in ACTIONS:
        is_gone = action.segments[-1] in gone
        path = action.path.strip("/").replace("{table}", "a$gone" if is_gone else "a$t")
        found.append((path.replace("{namespace}", "gone" if is_gone else "a"), action.role))
    return found


def _seal(site: Site, path: str) -> str:
    return site.page(path).partition('name="seal" value="')[2].partition('"')[0]


def _seal_at_large(site: Site) -> str:
    """Return what forms hold for somebody who has no form of an action: that of logging out."""
    return _seal(site, "browse")


# -- forms of others -------------------------------------------------------------------------------


def test_form_of_another_site_does_nothing(catalog):
    with Site(catalog) as site:
        form = {"seal": _seal(site, "tables/a$t/drop")}
        for headers in OTHER_SITES:
            sent = {**HTML, **{key: value for key, value in headers.items() if value}}
            response = site.client.post(f"{site.at}/tables/a$t/drop", data=form, headers=sent)
            assert response.status_code == 403, headers
            assert "nothing was done" in text_of(response.text)
    assert catalog.table_status("a$t") == Exists()


def test_form_without_its_seal_or_with_anothers_does_nothing(catalog):
    with Site(catalog, _settings(), token="ada:hush") as site:
        others = _seal(site, "tables/a$t/drop")
    with Site(catalog, _settings(), token="wanda:hush") as site:
        own = _seal(site, "tables/a$t/drop")
        assert own != others
        for form in ({}, {"seal": ""}, {"seal": "x" * 43}, {"seal": others}, {"seal": own + "x"}):
            assert site.post("tables/a$t/drop", **form).status_code == 403
        assert catalog.table_status("a$t") == Exists()
        assert site.post("tables/a$t/drop", seal=own).status_code == 303


def test_nothing_is_done_by_looking(catalog):
    with Site(catalog) as site:
        for path, _ in _paths():
            assert site.get(f"{path}?typed=a$gone&seal=x").status_code == 200, path
            assert site.client.put(f"{site.at}/{path}").status_code == 405
    assert catalog.table_status("a$t") == Exists()
    assert isinstance(catalog.table_status("a$gone"), SoftDeleted)


# -- roles -----------------------------------------------------------------------------------------


def test_readers_get_no_action_and_writers_none_of_an_admin(catalog):
    form = {"typed": "a$gone", "name": "n", "new": "a$n"}
    with Site(catalog, _settings(), token="rita:hush") as site:
        form["seal"] = _seal_at_large(site)
        for path, _ in _paths():
            assert site.get(path).status_code == 403, path
            response = site.post(path, **form)
            assert response.status_code == 403, path
            assert "their role there is reader" in text_of(response.text)
    with Site(catalog, _settings(), token="wanda:hush") as site:
        form["seal"] = _seal_at_large(site)
        for path, role in _paths():
            is_allowed = role is not Role.ADMIN
            assert site.get(path).status_code == (200 if is_allowed else 403), path
            assert is_allowed or site.post(path, **form).status_code == 403, path
    assert catalog.table_status("a$t") == Exists()
    assert isinstance(catalog.table_status("a$gone"), SoftDeleted)


def test_writers_of_a_part_act_there_alone(catalog):
    with Site(catalog, _settings(), token="will:hush") as site:
        for path in ("tables/b$u/drop", "tables/b$u/rename", "namespaces/gone/undrop"):
            assert site.get(path).status_code == 403, path
        response = site.act("tables/a$t/rename", new="b$t")
        assert response.status_code == 403
        assert "may not change 'b$t'" in text_of(response.text)
        assert 'value="b$t"' in response.text
        assert site.act("tables/a$gone/undrop", new="b$gone").status_code == 403
        assert site.act("create-namespace", name="b2").status_code == 403
        site.done("namespaces/a/create-namespace", name="deep")
        site.done("tables/a$t/rename", new="a$deep$t")
        site.done("tables/a$gone/undrop", new="a$deep$gone")
    names = [str(one) for one in catalog.list_all_tables()]
    assert names == ["a$deep$gone", "a$deep$t", "b$u"]


def test_changes_are_recorded_in_the_name_of_who_acts(tmp_path):
    catalog = open_kind(COMPAT, tmp_path, author="owner")
    make(catalog, "t", "a$t")
    with Site(catalog, _settings(), token="wanda:hush") as site:
        site.done("tables/t/drop")
        site.done("tables/a$t/drop")
        rows = site.json("trash")["rows"]
        assert {("$".join(row["id"]), row["by"]) for row in rows} == {
            ("t", "wanda"),
            ("a$t", "wanda"),
        }


# -- the audit log ---------------------------------------------------------------------------------


def test_log_hears_of_what_was_done_and_refused(catalog, tmp_path):
    path = tmp_path / "audit.log"
    with Site(catalog, _settings(audit_log=path), token="will:hush") as site:
        site.page("tables/a$t/drop")
        site.act("tables/a$t/rename", new="b$t")
        site.act("tables/a$t/rename", new="a$new")
        site.post("tables/b$u/drop", seal="x")
        seal = _seal(site, "tables/a$new/drop")
        site.post("tables/b$u/drop", seal=seal)
        site.act("tables/a$new/drop", ttl="soon")
        site.done("tables/a$new/drop")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    told = [
        (line["operation"], ["$".join(one) for one in line["objects"]], line["outcome"])
        for line in lines
        if line["operation"].startswith("pages.")
    ]
    assert told == [
        ("pages.RenameTable", ["a$t", "b$t"], "refused"),
        ("pages.RenameTable", ["a$t", "a$new"], "done"),
        ("pages.DropTable", [], "refused"),
        ("pages.DropTable", ["b$u"], "refused"),
        ("pages.DropTable", ["a$new"], "refused"),
        ("pages.DropTable", ["a$new"], "done"),
    ]
    assert {line["subject"] for line in lines} == {"will"}
    assert "not a duration" in lines[-2]["message"]


# -- what takes long -------------------------------------------------------------------------------


class _Slow:
    """Waits before anything is deleted."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.came = threading.Event()

    def before(self, call: Call) -> None:
        if call.verb.startswith("delete") and "t.lance" in str(call.path):
            self.came.set()
            assert self.go.wait(_PATIENCE_S)

    def after(self, call: Call, result: object) -> None:
        """Wait for nothing."""


def _slow_catalog(where: Path, slow: _Slow) -> Catalog:
    store = ScriptedStore(open_store(str(where), {}), slow)
    return Catalog(ListingBackend(Home(store, author="ada")), str(where))


def test_purge_that_takes_long_goes_on_and_says_so(tmp_path):
    made = open_kind(PLAIN, tmp_path / "lake")
    make(made, "t")
    made.drop_table("t")
    slow = _Slow()
    catalog = _slow_catalog(tmp_path / "lake", slow)
    log = tmp_path / "audit.log"
    settings = ServerSettings(request_timeout_s=0.5, audit_log=log)
    with Site(catalog, settings) as site:
        where = site.done("tables/t/purge", typed="t")
        assert slow.came.is_set()
        assert where.endswith("/trash")
        assert "The purge of 't' takes a while and goes on" in text_of(site.page(where))
        slow.go.set()
    assert catalog.table_status("t") == NotFound()
    (line,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert line["outcome"] == "failed"
    assert "goes on" in line["message"]


def test_every_action_of_the_pages_is_asked_first():
    paths = [route.path for route in ROUTES]
    assert len(set(paths)) == len(paths)
    assert {action.role for action in ACTIONS} == {Role.WRITER, Role.ADMIN}
