"""What happens while a page is open, over real connections, by the cookie of a browser."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mooring.identifiers import ObjectId
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.server.test_changes import QUICK, Running, run
from tests.ui.catalogs import COMPAT, METASTORE, make, open_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM = "/catalogs/default/stream"
Frame = tuple[str | None, str, dict[str, Any]]


@pytest.fixture
def catalog(tmp_path):
    found = open_kind(COMPAT, tmp_path, author="ada")
    make(found, "a$t", "b$u")
    return found


def frames_of(lines: Iterator[str]) -> Iterator[Frame]:
    """Tell frames as a browser hands them on: an id stays until there is another."""
    fields: dict[str, str] = {}
    last = None
    for line in lines:
        if line and not line.startswith(":"):
            key, _, value = line.partition(": ")
            fields[key] = value
        elif "event" in fields:
            last = fields.get("id", last)
            yield last, fields["event"], json.loads(fields["data"])
            fields = {}


@contextmanager
def listen(server: Running, path: str = STREAM, **more: Any) -> Iterator[Iterator[Frame]]:
    with server.client.stream("GET", path, timeout=20, **more) as answer:
        assert answer.status_code == 200, answer.read()
        frames = frames_of(answer.iter_lines())
        yield frames


def test_changes_appear_as_a_page_shows_them(catalog):
    with run(catalog) as server, listen(server) as frames:
        ready = next(frames)
        assert ready[1] == "ready"
        assert ready[0]
        make(catalog, "b$new")
        place, kind, change = next(frames)
        assert kind == "change"
        assert change["id"] == place
        assert (change["verb"], change["what"], change["tone"]) == ("created", "table", "good")
        assert change["names"] == ["b", "new"]
        assert change["href"] == "/catalogs/default/tables/b%24new/overview"


def test_a_page_that_is_closed_is_listened_for_no_more(catalog):
    with run(catalog) as server:
        feed = server.background.feeds.of("default")
        with listen(server) as frames, listen(server) as others:
            next(frames)
            next(others)
            assert feed.listeners == 2
        server.settle()
        assert feed.listeners == 0


def test_a_lost_connection_goes_on_where_it_was(catalog):
    with run(catalog) as server:
        with listen(server) as frames:
            last, _, _ = next(frames)
        make(catalog, "b$new")
        with listen(server, headers={"last-event-id": last}) as frames:
            assert [next(frames)[1], next(frames)[2]["names"]] == ["ready", ["b", "new"]]
        with listen(server, headers={"last-event-id": "abc-1"}) as frames:
            assert [next(frames)[1], next(frames)[1]] == ["ready", "reset"]


def test_a_page_hears_what_came_after_it_was_made(catalog):
    with run(catalog) as server:
        with listen(server) as frames:
            next(frames)
            after = server.client.get("/catalogs/default/activity.json").json()["stream"]
        make(catalog, "b$new")
        assert "after=" in after
        with listen(server, after) as frames:
            assert [next(frames)[1], next(frames)[2]["names"]] == ["ready", ["b", "new"]]
        # A page that another process made begins with what comes.
        with listen(server, f"{STREAM}?after=abc-1") as frames:
            next(frames)
            make(catalog, "b$newer")
            assert next(frames)[2]["names"] == ["b", "newer"]


def test_the_page_lists_what_was_seen(catalog):
    with run(catalog) as server, listen(server) as frames:
        next(frames)
        make(catalog, "b$new")
        next(frames)
        catalog.drop_table("b$new")
        next(frames)
        found = server.client.get("/catalogs/default/activity.json").json()["events"]
        # A drop that was seen is not told once more by the trash.
        assert [one["verb"] for one in found] == ["dropped", "created"]


def test_changes_are_chosen_by_place_and_kind(catalog):
    with run(catalog) as server, listen(server, f"{STREAM}?within=a&kind=table.dropped") as frames:
        next(frames)
        make(catalog, "b$new", "a$new")
        catalog.drop_table("b$new")
        catalog.drop_table("a$t")
        assert next(frames)[2]["names"] == ["a", "t"]


def test_a_stream_ends_with_the_server(catalog):
    with run(catalog) as server, listen(server) as frames:
        next(frames)
        server.server.should_exit = True
        assert list(frames) == []


def test_what_makes_no_sense_is_refused(catalog):
    with run(catalog) as server:
        assert server.client.get(f"{STREAM}?kind=huh").status_code == 400
        assert server.client.get("/catalogs/nowhere/stream").status_code == 404
        assert server.client.head(STREAM).status_code == 200


class TestRoles:
    @pytest.fixture
    def settings(self) -> ServerSettings:
        ada = Client.of("ada", "secret", Grant(Role.READER, namespace=ObjectId(("a",))))
        return ServerSettings(clients=(ada,), background=QUICK)

    @staticmethod
    def log_in(server: Running) -> None:
        origin = str(server.client.base_url).rstrip("/")
        form = {"token": "ada:secret"}
        server.client.post("/login", data=form, headers={"origin": origin, "accept": "text/html"})

    def test_nobody_listens_without_a_login(self, catalog, settings):
        with run(catalog, settings) as server:
            assert server.client.get(STREAM).status_code == 401

    def test_the_cookie_tells_who_listens_and_what_they_may_see(self, catalog, settings):
        with run(catalog, settings) as server:
            self.log_in(server)
            with listen(server) as frames:
                next(frames)
                make(catalog, "b$new", "a$new")
                assert next(frames)[2]["names"] == ["a", "new"]

    def test_a_stream_ends_when_the_login_is_no_longer_good(self, catalog, settings):
        with run(catalog, settings) as server:
            self.log_in(server)
            with listen(server) as frames:
                next(frames)
                server.authority.replace([], [])
                assert list(frames) == []


def test_transactions_come_along_with_changes(tmp_path):
    catalog = open_kind(METASTORE, tmp_path)
    make(catalog, "a$t")
    with run(catalog) as server, listen(server) as frames:
        next(frames)
        make(catalog, "a$new")
        next(frames)
        view = server.client.get("/catalogs/default/activity.json").json()
        assert view["transactions"]["shown"][0]["message"] == "create table a$new"
