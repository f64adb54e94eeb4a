"""What the server counts and times."""

from __future__ import annotations

import re

import lance_namespace
import pytest
from starlette.testclient import TestClient

import mooring
from mooring.server.app import app_of, create_app, create_service
from mooring.server.metrics import Metrics
from mooring.server.settings import Client, ServerSettings
from mooring.store.reported import report_stores
from tests.lakes import rows
from tests.server.gated import Failing

_SECRET = "a long random string"
_KEY = {"x-api-key": f"ada:{_SECRET}"}


@pytest.fixture
def lake(tmp_path):
    return mooring.connect(tmp_path / "lake")


def stores(metrics: Metrics) -> dict[str, float]:
    found = numbers(metrics.render("")[0].decode())
    return {name: value for name, value in found.items() if "store" in name}


def numbers(text: str) -> dict[str, float]:
    """Read metrics; a name with its labels sorted is the key."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def scrape(client: TestClient, **more: object) -> dict[str, float]:
    found = client.get("/metrics", **more)
    assert found.status_code == 200, found.text
    assert found.headers["content-type"].startswith("text/plain; version=")
    return numbers(found.text)


def test_requests_are_counted_and_timed_by_what_they_ask_for(lake):
    lake.create_table("t", rows([1]))
    with TestClient(create_app(lake)) as client:
        for name in ("t", "t", "absent"):
            client.post(f"/lance/v1/table/{name}/describe", json={})
        client.get("/iceberg/v1/namespaces/root/tables/t")
        client.get("/elsewhere")
        client.request("BREW", "/lance/v1/table/t/describe")
        found = scrape(client)
    total = "mooring_requests_total"
    describe = 'dialect="lance",method="POST",operation="DescribeTable"'
    assert found[f'{total}{{{describe},status="200"}}'] == 2
    assert found[f'{total}{{{describe},status="404"}}'] == 1
    iceberg = 'dialect="iceberg",method="GET",operation="load_table",status="200"'
    assert found[f"{total}{{{iceberg}}}"] == 1
    nowhere = 'dialect="other",method="GET",operation="other",status="404"'
    assert found[f"{total}{{{nowhere}}}"] == 1
    unknown = 'dialect="other",method="other",operation="other",status="405"'
    assert found[f"{total}{{{unknown}}}"] == 1
    assert found['mooring_request_seconds_count{dialect="lance",operation="DescribeTable"}'] == 3
    assert found['mooring_errors_total{code="4",dialect="lance"}'] == 1
    assert found["mooring_requests_in_flight"] == 1
    assert found['mooring_work{lane="catalog",state="working"}'] == 0


def test_changes_are_counted_by_what_came_of_them(lake):
    with TestClient(create_app(lake)) as client:
        for _ in range(2):
            client.post("/lance/v1/namespace/a/create", json={})
        found = scrape(client)
    create = 'dialect="lance",operation="CreateNamespace"'
    assert found[f'mooring_changes_total{{{create},outcome="done"}}'] == 1
    assert found[f'mooring_changes_total{{{create},outcome="refused"}}'] == 1


def test_lost_races_are_counted():
    lost = lance_namespace.ConcurrentModificationError("somebody else came first")
    with TestClient(create_app(Failing(lost))) as client:
        assert client.post("/lance/v1/namespace/a/create", json={}).json()["code"] == 14
        found = scrape(client)
    create = 'dialect="lance",operation="CreateNamespace"'
    assert found[f"mooring_commit_conflicts_total{{{create}}}"] == 1


def test_bytes_of_bodies_are_counted(lake):
    with TestClient(create_app(lake)) as client:
        body = b'{"properties": {"color": "blue"}}'
        client.post("/lance/v1/namespace/a/create", content=body)
        answer = client.post("/lance/v1/namespace/a/describe", content=b"{}")
        found = scrape(client)
    assert found['mooring_body_bytes_total{dialect="lance",direction="in"}'] == len(body) + 2
    sent = found['mooring_body_bytes_total{dialect="lance",direction="out"}']
    assert sent >= len(answer.content)


def test_names_of_objects_and_clients_are_nowhere(lake):
    settings = ServerSettings(clients=(Client.of("ada", _SECRET),))
    lake.create_table("peculiar", rows([1]))
    with TestClient(create_app(lake, settings)) as client:
        for path in ("/lance/v1/table/peculiar/describe", "/lance/v1/peculiar", "/peculiar"):
            client.post(path, json={}, headers=_KEY)
        text = client.get("/metrics", headers=_KEY).text
    assert "peculiar" not in text
    assert "ada" not in re.findall(r'"(\w+)"', text)


def test_those_who_may_use_the_server_may_read_its_metrics(lake):
    settings = ServerSettings(clients=(Client.of("ada", _SECRET),))
    with TestClient(create_app(lake, settings)) as client:
        refused = client.get("/metrics")
        assert refused.status_code == 401
        assert refused.json()["code"] == 16
        assert refused.json()["instance"] == refused.headers["x-request-id"]
        assert scrape(client, headers=_KEY)
    open_to_all = ServerSettings(clients=settings.clients, metrics_anonymous=True)
    with TestClient(create_app(lake, open_to_all)) as client:
        assert scrape(client)


def test_trash_is_counted_once_a_minute_at_most(lake):
    for name in "abc":
        lake.create_table(name, rows([1]))
    lake.drop_table("a", ttl="0s")
    lake.drop_table("b")
    with TestClient(create_app(lake)) as client:
        first = scrape(client)
        lake.drop_table("c")
        second = scrape(client)
    assert first['mooring_trash_tables{catalog="default",state="dropped"}'] == 2
    assert first['mooring_trash_tables{catalog="default",state="expired"}'] == 1
    assert second['mooring_trash_tables{catalog="default",state="dropped"}'] == 2


def test_trash_that_cannot_be_listed_leaves_the_other_numbers(lake, monkeypatch):
    def fail() -> None:
        raise OSError("away")

    monkeypatch.setattr(lake.backend, "list_purgable_tables", fail)
    with TestClient(create_app({"lake": lake, "far": Failing(OSError("away"))})) as client:
        found = scrape(client)
    assert "mooring_requests_in_flight" in found
    assert not any("trash" in name for name in found)


def test_requests_to_stores_are_counted(tmp_path):
    metrics = Metrics()
    with report_stores(metrics.count_store_request):
        lake = mooring.connect(tmp_path / "lake")
        service = create_service(lake, ServerSettings(), metrics)
        with TestClient(app_of(service)) as client:
            client.post("/lance/v1/namespace/a/create", json={})
            found = scrape(client)
    assert found['mooring_store_requests_total{verb="put_new"}'] > 0
    assert found['mooring_store_seconds_total{verb="put_new"}'] > 0
    counted = stores(metrics)
    mooring.connect(tmp_path / "other").list_tables()
    assert stores(metrics) == counted


def test_openmetrics_is_spoken_to_those_who_ask_for_it(lake):
    with TestClient(create_app(lake)) as client:
        found = client.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert found.headers["content-type"].startswith("application/openmetrics-text")
    assert found.text.endswith("# EOF\n")
