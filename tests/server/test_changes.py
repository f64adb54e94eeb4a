"""The changes of served catalogs as server-sent events, over real connections."""

from __future__ import annotations

import asyncio
import json
import resource
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any

import httpx2
import lance.namespace
import pytest
from lance_namespace import CreateNamespaceRequest
from starlette.testclient import TestClient

from mooring.feed import Cursor, Event, Kind
from mooring.identifiers import ROOT, ObjectId
from mooring.server.app import app_of, create_app, create_service
from mooring.server.background_settings import BackgroundSettings
from mooring.server.feeds import Listener, frame_of
from mooring.server.roles import Grant, Role
from mooring.server.running import Run, _Server, address_of, bind, uvicorn_config
from mooring.server.settings import Client, ServerSettings
from tests.lakes import COMPAT_DISK, DISK, METASTORE_DISK, Lake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from mooring.server.auth import Authority
    from mooring.server.background import Background

PATH = "/mooring/v1/changes"
QUICK = BackgroundSettings(poll_s=0.02, idle_poll_s=0.05, heartbeat_s=0.05)
A, B = ROOT.child("a"), ROOT.child("b")


@dataclass(frozen=True)
class Told:
    """A frame of a stream."""

    id: str | None
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Running:
    """A server that runs, and somebody who asks it."""

    server: _Server
    client: httpx2.Client
    background: Background
    authority: Authority

    def settle(self) -> None:
        """Wait until nobody is watched for any more."""
        feed = self.background.feeds.of("default")
        while feed.listeners or not (feed._task is None or feed._task.done()):
            self.client.get("/health/live")  # which takes a moment

    @contextmanager
    def listen(self, path: str = PATH, **headers: str) -> Iterator[Iterator[Told]]:
        """Listen; the first frame, which says that it begins, is taken already."""
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        with self.client.stream("GET", path, headers=sent, timeout=20) as answer:
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            frames = _frames(answer.iter_lines())
            assert next(frames).kind == "ready"
            yield frames


def _frames(lines: Iterator[str]) -> Iterator[Told]:
    fields: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            key, _, value = line.partition(": ")
            fields[key] = value
        elif fields.get("event"):
            yield Told(fields.get("id"), fields["event"], json.loads(fields["data"]))
            fields = {}


@contextmanager
def run(catalogs: Any, settings: ServerSettings | None = None) -> Iterator[Running]:
    """Serve on a port until the context ends."""
    settings = settings or ServerSettings(background=QUICK)
    service = create_service(catalogs, settings)
    app = app_of(service)
    with bind("127.0.0.1", 0) as taken:
        how = Run(ready=lambda: None, settings=settings, ending=service.ending)
        server = _Server(uvicorn_config(app, settings), how)
        thread = Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            with httpx2.Client(base_url=f"http://{address_of(taken)}") as client:
                yield Running(server, client, app.state.background, service.authority)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def make_lake(tmp_path, clock):
    return lambda kind: Lake(kind, str(tmp_path / "lake"), {}, clock)


@pytest.fixture
def lake(make_lake) -> Lake:
    """A catalog with namespaces."""
    found: Lake = make_lake(COMPAT_DISK)
    found.make("a", "b")
    return found


def kinds(frames: Iterator[Told], count: int) -> list[tuple[str, str]]:
    """Take events, and tell what happened to what."""
    found = [next(frames) for _ in range(count)]
    return [(one.kind, "$".join(one.data["object"])) for one in found]


class TestStreams:
    @pytest.mark.parametrize(
        "kind", [DISK, COMPAT_DISK, METASTORE_DISK], ids=lambda kind: kind.name
    )
    def test_tells_changes_of_any_writer_as_they_happen(self, make_lake, kind):
        lake = make_lake(kind)
        table = lake.id("t")
        with run(lake.connect()) as server, server.listen() as frames:
            lake.create(table)  # by a backend of its own, as another process would
            assert kinds(frames, 1) == [("table.created", str(table))]
            lake.drop(table)
            dropped = next(frames)
            assert dropped.kind == "table.dropped"
            assert dropped.id == dropped.data["id"]
            assert dropped.data["by"] == "alice"

    def test_tells_what_another_library_does(self, lake):
        theirs = lance.namespace.DirectoryNamespace(root=lake.uri, manifest_enabled="true")
        with run(lake.connect()) as server, server.listen() as frames:
            theirs.create_namespace(CreateNamespaceRequest(id=["theirs"]))
            assert kinds(frames, 1) == [("namespace.created", "theirs")]

    def test_each_named_catalog_has_its_own(self, tmp_path, clock):
        one, two = (Lake(DISK, str(tmp_path / name), {}, clock) for name in ("one", "two"))
        with (
            run({"one": one.connect(), "two": two.connect()}) as server,
            server.listen("/mooring/two/v1/changes") as frames,
        ):
            one.create("not_told")
            two.create("t")
            assert kinds(frames, 1) == [("table.created", "t")]

    def test_many_listeners_share_one_poll(self, lake):
        with run(lake.connect()) as server:
            feed = server.background.feeds.of("default")
            with server.listen() as first, server.listen() as second:
                assert feed.listeners == 2
                lake.create(A.child("t"))
                assert kinds(first, 1) == kinds(second, 1) == [("table.created", "a$t")]
                assert feed.events == 1

    def test_only_what_lies_in_a_namespace_is_told_if_wanted(self, lake):
        with run(lake.connect()) as server, server.listen(f"{PATH}?namespace=a") as frames:
            lake.create(B.child("t"))
            lake.create(A.child("t"))
            assert kinds(frames, 1) == [("table.created", "a$t")]

    def test_a_head_is_answered_at_once(self, lake):
        with run(lake.connect()) as server:
            answer = server.client.head(PATH)
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")

    def test_heartbeats_come_while_nothing_happens(self, lake):
        with run(lake.connect()) as server, server.client.stream("GET", PATH) as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if line.startswith(":")) == ":"


class TestResuming:
    def test_goes_on_after_the_last_event_that_was_seen(self, lake):
        with run(lake.connect()) as server:
            with server.listen() as frames:
                lake.create(A.child("t"))
                seen = next(frames)
            assert seen.id is not None
            lake.create(A.child("u"))
            lake.create(A.child("v"))
            with server.listen(last_event_id=seen.id) as frames:
                assert sorted(kinds(frames, 2)) == [
                    ("table.created", "a$u"),
                    ("table.created", "a$v"),
                ]

    @pytest.mark.parametrize("last", ["0123456789ab-7", "what is that?"])
    def test_what_nobody_knows_is_a_reset_from_which_to_go_on(self, lake, last):
        with run(lake.connect()) as server:
            with server.listen(last_event_id=last) as frames:
                told = next(frames)
            assert told.kind == "reset"
            assert told.id is not None
            lake.create(A.child("t"))
            with server.listen(last_event_id=told.id) as frames:
                assert kinds(frames, 1) == [("table.created", "a$t")]

    def test_who_does_not_come_back_hears_nothing_old(self, lake):
        with run(lake.connect()) as server:
            with server.listen():
                pass
            server.settle()
            lake.create(A.child("old"))
            with server.listen() as frames:
                lake.create(A.child("new"))
                assert kinds(frames, 1) == [("table.created", "a$new")]


class TestRoles:
    @staticmethod
    def settings(*clients: Client) -> ServerSettings:
        return ServerSettings(clients=clients, background=QUICK)

    @staticmethod
    def token(name: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {name}:secret"}

    def test_only_what_may_be_read_is_told(self, lake):
        ada = Client.of("ada", "secret", Grant(Role.READER, namespace=A))
        with (
            run(lake.connect(), self.settings(ada)) as server,
            server.listen(**self.token("ada")) as frames,
        ):
            lake.create(B.child("t"))
            lake.backend.update_namespace(B, {"k": "v"})
            lake.make("c")
            lake.create(A.child("t"))
            assert kinds(frames, 1) == [("table.created", "a$t")]
            lake.backend.rename_table(A.child("t"), B.child("u"))
            moved = next(frames)
            assert (moved.kind, moved.data["object"]) == ("table.removed", ["a", "t"])
            assert moved.data["details"] == {}

    def test_who_may_read_nothing_of_a_catalog_is_refused(self, lake):
        bob = Client.of("bob", "secret", Grant(Role.READER, "other"))
        with TestClient(create_app(lake.connect(), self.settings(bob))) as client:
            assert client.get(PATH, headers=self.token("bob")).status_code == 403
            assert client.get(PATH).status_code == 401
            assert client.get(PATH, headers=self.token("eve")).json()["code"] == 16

    def test_a_stream_ends_when_its_token_is_no_longer_good(self, lake):
        ada = Client.of("ada", "secret", Grant(Role.READER))
        with (
            run(lake.connect(), self.settings(ada)) as server,
            server.listen(**self.token("ada")) as frames,
        ):
            server.authority.replace([], [])
            assert list(frames) == []


class TestRefusals:
    def test_a_catalog_of_another_kind_cannot_be_watched(self, tmp_path):
        theirs = lance.namespace.DirectoryNamespace(root=str(tmp_path))
        with TestClient(create_app(theirs)) as client:
            answer = client.get(PATH)
            assert (answer.status_code, answer.json()["code"]) == (406, 0)

    def test_a_catalog_that_is_not_there(self, lake):
        with TestClient(create_app(lake.connect())) as client:
            assert client.get("/mooring/nowhere/v1/changes").status_code == 404

    def test_a_namespace_that_cannot_be(self, lake):
        with TestClient(create_app(lake.connect())) as client:
            assert client.get(PATH, params={"namespace": "a$$b"}).status_code == 400


class TestEnding:
    def test_a_server_that_ends_lets_listeners_go(self, lake):
        with run(lake.connect()) as server, server.listen() as frames:
            server.server.should_exit = True
            assert list(frames) == []

    def test_nobody_is_watched_for_once_all_have_left(self, lake):
        with run(lake.connect()) as server:
            feed = server.background.feeds.of("default")
            with server.listen():
                assert feed.listeners == 1
            server.settle()
            assert feed.listeners == 0


class TestSlowListeners:
    def test_one_who_does_not_read_loses_what_waits_and_is_told(self):
        async def listen() -> None:
            listener = Listener(most_waiting=2, after=0)
            for number in range(1, 5):
                event = Event(Kind.TABLE_CREATED, ObjectId.of(["t"]), 1, cursor=Cursor("e", number))
                listener.offer([(event, frame_of(event))])
            assert listener.is_lost
            assert [told[0].cursor.number for told in await listener.take(1)] == [4]

        asyncio.run(listen())

    def test_events_that_it_knows_already_are_not_told_again(self):
        async def listen() -> None:
            listener = Listener(most_waiting=10, after=2)
            events = [
                Event(Kind.TABLE_CREATED, ObjectId.of(["t"]), 1, cursor=Cursor("e", number))
                for number in (1, 2, 3)
            ]
            listener.offer([(event, frame_of(event)) for event in events])
            assert [told[0].cursor.number for told in await listener.take(1)] == [3]

        asyncio.run(listen())

    def test_a_stream_that_lost_events_ends_with_a_reset(self, lake):
        settings = ServerSettings(
            background=BackgroundSettings(poll_s=0.02, idle_poll_s=0.02, most_waiting=3)
        )
        lake.make("n", "n$a", "n$b", "n$c")
        with run(lake.connect(), settings) as server, server.listen() as frames:
            lake.backend.drop_namespace(ROOT.child("n"), cascade=True)  # four at once
            assert [told.kind for told in frames] == ["reset"]


@pytest.mark.torture
def test_a_thousand_listeners_take_no_threads_and_all_hear(lake):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    ready: asyncio.Queue[str] = asyncio.Queue()

    async def listen(client: httpx2.AsyncClient) -> str:
        async with client.stream("GET", PATH) as answer:
            lines = answer.aiter_lines()
            await ready.put(await _find(lines, "event: ready"))
            return await _find(lines, "event: namespace.created")

    async def listen_all(address: str) -> list[str]:
        limits = httpx2.Limits(max_connections=1000)
        async with httpx2.AsyncClient(base_url=address, limits=limits, timeout=120) as client:
            before = threading.active_count()
            tasks = [asyncio.create_task(listen(client)) for _ in range(1000)]
            for _ in tasks:
                await ready.get()
            assert threading.active_count() - before < 30
            lake.make("new")
            return await asyncio.gather(*tasks)

    with run(lake.connect(), ServerSettings()) as server:
        assert len(asyncio.run(listen_all(str(server.client.base_url)))) == 1000


async def _find(lines: AsyncIterator[str], wanted: str) -> str:
    return await anext(line async for line in lines if line == wanted)
