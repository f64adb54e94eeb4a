"""Changes that are sent to others, over real connections, also to those that fail."""

from __future__ import annotations

import hmac
import json
import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import TYPE_CHECKING, Any

import lance.namespace
import pytest
from starlette.testclient import TestClient

from mooring.errors import InvalidInputError
from mooring.server import webhooks
from mooring.server.app import create_app
from mooring.server.background_settings import BackgroundSettings
from mooring.server.settings import ServerSettings
from tests.lakes import DISK, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "s3cret"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    """Failures are tried again at once; how long to wait is no part of what is looked at."""
    monkeypatch.setattr(webhooks, "_LONGEST_PAUSE_S", 0.01)


@dataclass(frozen=True)
class Delivery:
    """A request that was taken or refused."""

    headers: dict[str, str]
    body: bytes
    status: int

    @property
    def events(self) -> list[tuple[str, str]]:
        found = json.loads(self.body)["events"]
        return [(one["kind"], "$".join(one["object"])) for one in found]


class Receiver:
    """Somebody to whom changes are sent; what it answers can be told before."""

    def __init__(self) -> None:
        self.deliveries: Queue[Delivery] = Queue()
        self.answers: list[int] = []
        self.is_open = threading.Event()  # while it is not set, requests are left waiting
        self.is_open.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.is_open.wait(20)
                status = receiver.answers.pop(0) if receiver.answers else 204
                self.send_response(status)
                if status == 302:
                    self.send_header("location", "http://127.0.0.1:1/")
                self.end_headers()
                headers = {key.lower(): value for key, value in self.headers.items()}
                receiver.deliveries.put(Delivery(headers, body, status))

            def log_message(self, *told: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self._server.server_port}/hook?token=hush"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def take(self) -> Delivery:
        return self.deliveries.get(timeout=20)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def lake(tmp_path, clock) -> Lake:
    return Lake(DISK, str(tmp_path / "lake"), {}, clock)


@contextmanager
def serve(catalogs: Any, *uris: str, worker: int = 0, **more: Any) -> Iterator[TestClient]:
    background = BackgroundSettings(poll_s=0.02, idle_poll_s=0.02, webhooks=uris, **more)
    app = create_app(catalogs, ServerSettings(background=background, worker=worker))
    with TestClient(app) as client:
        yield client


class TestDeliveries:
    def test_the_first_tells_to_begin_anew_and_then_come_changes_in_order(self, lake, receiver):
        with serve(lake.connect(), receiver.uri):
            assert receiver.take().events == [("reset", "")]
            lake.create("t")
            assert receiver.take().events == [("table.created", "t")]
            lake.drop("t")
            assert receiver.take().events == [("table.dropped", "t")]

    def test_a_delivery_names_its_catalog_and_its_last_event(self, lake, receiver):
        with serve({"lake": lake.connect()}, receiver.uri):
            receiver.take()
            lake.create("t")
            delivery = receiver.take()
        body = json.loads(delivery.body)
        assert body["catalog"] == "lake"
        assert delivery.headers["x-mooring-delivery"] == body["events"][-1]["id"]
        assert delivery.headers["content-type"] == "application/json"

    def test_a_secret_signs_the_time_and_the_body(self, lake, receiver):
        with serve(lake.connect(), receiver.uri, webhook_secret=SECRET):
            delivery = receiver.take()
        signed = delivery.headers["x-mooring-timestamp"].encode() + b"." + delivery.body
        expected = "sha256=" + hmac.new(SECRET.encode(), signed, "sha256").hexdigest()
        assert delivery.headers["x-mooring-signature"] == expected

    def test_without_a_secret_nothing_is_signed(self, lake, receiver):
        with serve(lake.connect(), receiver.uri):
            assert "x-mooring-signature" not in receiver.take().headers

    def test_every_address_gets_every_change(self, lake, receiver):
        other = Receiver()
        with serve(lake.connect(), receiver.uri, other.uri):
            for one in (receiver, other):
                assert one.take().events == [("reset", "")]
            lake.create("t")
            for one in (receiver, other):
                assert one.take().events == [("table.created", "t")]
        other.close()

    def test_of_several_processes_one_sends(self, lake, receiver):
        with serve(lake.connect(), receiver.uri, worker=1) as client:
            lake.create("t")
            assert client.app.state.background.webhooks is None
        assert receiver.deliveries.empty()

    def test_catalogs_of_others_are_left_out(self, lake, receiver, tmp_path):
        theirs = lance.namespace.DirectoryNamespace(root=str(tmp_path))
        with serve({"theirs": theirs, "ours": lake.connect()}, receiver.uri):
            assert json.loads(receiver.take().body)["catalog"] == "ours"


class TestFailures:
    @pytest.mark.parametrize("status", [500, 404, 302])
    def test_what_is_refused_is_sent_again_until_it_is_taken(self, lake, receiver, status):
        receiver.answers = [204, status, status]
        with serve(lake.connect(), receiver.uri) as client:
            receiver.take()
            lake.create("t")
            tries = [receiver.take() for _ in range(3)]
            lake.create("u")
            assert receiver.take().events == [("table.created", "u")]
            (webhook,) = client.app.state.background.webhooks.all
            assert (webhook.attempts, webhook.failures) == (5, 2)
        assert [one.status for one in tries] == [status, status, 204]
        assert [one.events for one in tries] == [[("table.created", "t")]] * 3
        assert len({one.headers["x-mooring-delivery"] for one in tries}) == 1

    def test_changes_that_wait_for_one_who_fails_come_together(self, lake, receiver):
        receiver.answers = [503] * 5
        with serve(lake.connect(), receiver.uri):
            for _ in range(6):
                assert receiver.take().events == [("reset", "")]
            lake.create("t")
            assert receiver.take().events == [("table.created", "t")]

    def test_nobody_there_keeps_nothing_from_working_and_no_token_is_logged(
        self, lake, receiver, caplog
    ):
        receiver.close()
        with caplog.at_level(logging.WARNING), serve(lake.connect(), receiver.uri) as client:
            (webhook,) = client.app.state.background.webhooks.all
            while webhook.failures < 2:
                assert client.get("/health/live").status_code == 200
        assert "hush" not in caplog.text
        assert webhook.delivered == 0

    def test_one_that_fails_does_not_hold_up_another(self, lake, receiver):
        dead = Receiver()
        dead.close()
        with serve(lake.connect(), dead.uri, receiver.uri):
            receiver.take()
            lake.create("t")
            assert receiver.take().events == [("table.created", "t")]

    def test_what_is_no_longer_kept_is_told_as_a_reset(self, lake, receiver):
        with serve(lake.connect(), receiver.uri, kept_events=1) as client:
            receiver.take()
            receiver.is_open.clear()
            feed = client.app.state.background.feeds.of("default")
            for name in ("a", "b", "c"):
                lake.create(name)
            while feed.events < 3:
                client.get("/health/live")
            receiver.is_open.set()
            while receiver.take().events != [("reset", "")]:
                pass


class TestSettings:
    @pytest.mark.parametrize("uri", ["ftp://x/y", "x", "http://", "file:///etc", "http://x:y/"])
    def test_only_addresses_of_http_are_taken(self, uri):
        with pytest.raises(InvalidInputError, match="http"):
            BackgroundSettings(webhooks=(uri,))

    def test_no_secret_is_shown(self):
        shown = repr(BackgroundSettings(webhooks=("http://x/?token=hush",), webhook_secret=SECRET))
        assert "hush" not in shown
        assert SECRET not in shown
