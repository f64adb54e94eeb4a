"""The audit's findings, and who may ask for an audit."""

from __future__ import annotations

import threading

import lance.namespace
import pytest

from mooring.errors import ConcurrentModificationError
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from mooring.server.ui.atlas.inspector import Inspector
from tests.ui.catalogs import COMPAT, KINDS, PLAIN, ROWS, make, open_kind
from tests.ui.site import Site, text_of


@pytest.fixture
def broken(tmp_path):
    """A catalog with a table that lacks a file."""
    catalog = open_kind(COMPAT, tmp_path)
    make(catalog, "a$t", "a$u")
    location = catalog.table("a$t").location.removeprefix("file://")
    found = [one for one in tmp_path.rglob("*.lance") if one.is_file() and location in str(one)]
    assert found
    found[0].unlink()
    return catalog


@pytest.mark.parametrize("kind", KINDS)
def test_looking_at_the_page_audits_nothing(tmp_path, kind):
    catalog = open_kind(kind, tmp_path)
    make(catalog, "t" if kind == PLAIN else "a$t")
    with Site(catalog) as site:
        assert not site.json("audit")["was_done"]
        assert "No audit was made since the server began" in text_of(site.page("audit"))
        assert site.done("start-audit").endswith("/audit")
        view = site.json("audit")
        assert (view["was_done"], view["is_clean"], view["tables"]) == (True, True, 1)
        assert "All is well" in text_of(site.page("audit"))


def test_findings_say_what_which_and_what_next(broken):
    with Site(broken) as site:
        site.done("start-audit")
        view = site.json("audit")
        assert not view["is_clean"]
        [errors] = [one for one in view["groups"] if one["severity"] == "error"]
        [found] = errors["findings"]
        assert (found["kind"], found["table"]) == ("missing-file", "a$t")
        assert "bring the file back" in found["advice"]
        assert found["href"].endswith("/tables/a%24t/overview")
        page = text_of(site.page("audit"))
        assert "missing-file" in page
        assert found["message"] in page
        assert view["ended_at_ms"] > 0


def test_a_repair_that_is_offered_comes_with_its_command(tmp_path):
    catalog = open_kind(COMPAT, tmp_path)
    make(catalog, "a$t")
    catalog.table("a$t").insert(ROWS)
    newest = max(tmp_path.glob("*a$t/data/*.lance"), key=lambda one: one.stat().st_mtime_ns)
    newest.unlink()
    with Site(catalog) as site:
        site.done("start-audit")
        [group] = site.json("audit")["groups"]
        [found] = group["findings"]
        assert found["repair"] == "restore"
        assert found["cli"].endswith("audit --repair --kind missing-file")
        assert "audit --repair --kind missing-file" in text_of(site.page("audit"))


def test_the_page_itself_has_the_button(broken):
    with Site(broken) as site:
        page = site.page("audit")
        assert f'action="{site.at}/start-audit"' in page
        assert "Audit default?" in text_of(site.page("start-audit"))
        assert site.post("start-audit").status_code == 403  # without the seal of a page


def test_a_large_catalog_is_audited_while_nobody_waits(broken, monkeypatch):
    monkeypatch.setattr("mooring.server.ui.activity.audit._FEW_TABLES", 1)
    goes_on = threading.Event()
    look = Inspector._audit
    monkeypatch.setattr(Inspector, "_audit", lambda *known: goes_on.wait() and look(*known))
    with Site(broken) as site:
        site.done("start-audit")
        view = site.json("audit")
        assert (view["is_running"], view["was_done"]) == (True, False)
        page = site.page("audit")
        assert "An audit goes on" in text_of(page)
        assert f'action="{site.at}/start-audit"' not in page
        refused = site.act("start-audit")
        assert refused.status_code == 409
        assert "going on already" in text_of(refused.text)
        goes_on.set()
        while site.json("audit")["is_running"]:
            pass
        assert site.json("audit")["tables"] == 2


def test_who_reads_may_look_but_not_ask(broken):
    clients = (
        Client.of("rea", "secret", Grant(Role.READER)),
        Client.of("wri", "secret", Grant(Role.WRITER)),
    )
    with Site(broken, ServerSettings(clients=clients), token="wri:secret") as site:
        site.done("start-audit")
        assert site.json("audit")["by"] == "wri"
        # Where the catalog lies is known to admins alone.
        assert site.json("audit")["cli"] == "mooring audit"
        site.log_in("rea:secret")
        assert site.json("audit")["start"] == ""
        assert "missing-file" in text_of(site.page("audit"))
        assert site.get("start-audit").status_code == 403


def test_other_kinds_cannot_be_audited_and_say_so(tmp_path):
    theirs = lance.namespace.DirectoryNamespace(root=str(tmp_path))
    with Site(theirs) as site:
        assert "only one that lies in storage of its own" in text_of(site.page("audit"))


class TestInspector:
    def test_one_audit_at_a_time(self, broken):
        inspector = Inspector()
        inspector._claim()
        with pytest.raises(ConcurrentModificationError):
            inspector.run(broken, None)

    def test_what_fails_is_told_and_what_was_found_stays(self, broken, monkeypatch):
        inspector = Inspector()
        inspector.run(broken, "ada")
        found = inspector.state.audit

        def fail(_: object) -> None:
            raise ValueError("never seen")

        monkeypatch.setattr(inspector, "_audit", fail)
        inspector.run(broken, "bob")
        state = inspector.state
        assert (state.audit, state.by, state.is_running) == (found, "ada", False)
        assert "the server's log tells more" in str(state.error)

    def test_a_server_that_ends_stops_it(self, broken):
        inspector = Inspector()
        inspector.close()
        inspector.run(broken, None)
        assert inspector.state.error == "the server ended"
        assert inspector.state.audit is None
