"""Whether the server lives, and whether it can do its work."""

from __future__ import annotations

import asyncio
import threading

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import mooring
from mooring.server.app import app_of, create_app, create_service
from mooring.server.errands import Errand
from mooring.server.health import Health, Readiness
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.server.gated import Failing, Gate

_SECRET = "a long random string"


@pytest.fixture
def lake(tmp_path):
    return mooring.connect(tmp_path / "lake")


def test_process_that_answers_is_live(lake):
    with TestClient(create_app(lake)) as client:
        found = client.get("/health/live")
    assert (found.status_code, found.json()) == (200, {"status": "live"})
    assert found.headers["cache-control"] == "no-store"


def test_server_is_ready_when_each_catalog_can_be_listed(lake, tmp_path):
    metastore = mooring.connect(f"metastore+{tmp_path}/meta")
    plain = mooring.connect(tmp_path / "plain", manifest_enabled=False)
    app = create_app({"lake": lake, "meta": metastore, "plain": plain})
    with TestClient(app) as client:
        found = client.get("/health/ready")
    assert found.status_code == 200
    ready = {"status": "ready"}
    assert found.json() == {
        "status": "ready",
        "catalogs": {"lake": ready, "meta": ready, "plain": ready},
    }


def test_failing_catalog_is_told_with_the_reason(lake):
    failing = Failing(OSError("no route to s3://ada:secret@store/lake"))
    with TestClient(create_app({"lake": lake, "far": failing})) as client:
        found = client.get("/health/ready")
        failing.error = ValueError("another")
    assert found.status_code == 503
    told = found.json()
    assert told["status"] == "not ready"
    assert told["catalogs"]["lake"] == {"status": "ready"}
    assert told["catalogs"]["far"]["status"] == "failing"
    assert "OSError: no route to" in told["catalogs"]["far"]["error"]
    assert "secret" not in found.text


def test_strangers_are_told_only_whether_it_is_ready(lake):
    clients = (
        Client.of("ada", _SECRET),
        Client.of("bob", _SECRET, Grant(Role.READER, "lake")),
    )
    app = create_app(
        {"lake": lake, "far": Failing(OSError("away"))}, ServerSettings(clients=clients)
    )
    with TestClient(app) as client:
        stranger = client.get("/health/ready")
        ada = client.get("/health/ready", headers={"x-api-key": f"ada:{_SECRET}"})
        bob = client.get("/health/ready", headers={"x-api-key": f"bob:{_SECRET}"})
    assert (stranger.status_code, stranger.json()) == (503, {"status": "not ready"})
    assert set(ada.json()["catalogs"]) == {"lake", "far"}
    assert set(bob.json()["catalogs"]) == {"lake"}
    assert bob.status_code == 503


def test_catalog_that_does_not_answer_is_not_waited_for_and_asked_once():
    gate = Gate()
    service = create_service(gate, ServerSettings())
    app = Starlette(routes=Health(service, Readiness(service, limit_s=0.01)).routes)
    with TestClient(app) as client:
        late = [client.get("/health/ready") for _ in range(3)]
        assert {one.status_code for one in late} == {503}
        assert "no answer within 0.01 s" in late[0].text
        assert gate.calls == ["list_namespaces"]
        gate.open.set()
        while client.get("/health/ready").status_code != 200:
            pass
    assert set(gate.calls) == {"list_namespaces"}


def test_server_that_is_about_to_end_is_not_ready_but_lives(lake):
    service = create_service(lake, ServerSettings())
    with TestClient(app_of(service)) as client:
        service.ending.begin()
        found = client.get("/health/ready")
        assert (found.status_code, found.json()) == (503, {"status": "ending"})
        assert client.get("/health/live").status_code == 200


def test_answer_is_kept_for_a_while_and_shared():
    now_s, asked = [0.0], []

    def ask() -> int:
        asked.append(threading.current_thread().name)
        return len(asked)

    errand = Errand(ask, fresh_s=1.0, now_s=lambda: now_s[0])

    async def answers() -> list[int | None]:
        return list(await asyncio.gather(*(errand.answer(60) for _ in range(3))))

    assert asyncio.run(answers()) == [1, 1, 1]
    now_s[0] = 0.9
    assert asyncio.run(answers()) == [1, 1, 1]
    now_s[0] = 1.0
    assert asyncio.run(answers()) == [2, 2, 2]


def test_failure_is_told_to_all_who_ask():
    errand = Errand(lambda: 1 // 0, fresh_s=1.0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            asyncio.run(errand.answer(60))
