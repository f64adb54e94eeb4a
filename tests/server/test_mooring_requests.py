"""What ``/mooring/v1`` makes of requests that are not as they should be, and what is beside it."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

import mooring
from mooring.server.app import app_of, create_service
from mooring.server.mooring.routes import ROUTES
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.lakes import rows
from tests.server.mooring_api import Api, code_of


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    found = mooring.connect(tmp_path_factory.mktemp("lake"))
    found.create_table("t", rows([1]))
    return found


@pytest.fixture(scope="module")
def client(catalog):
    settings = ServerSettings(body_limit_bytes=1000)
    with TestClient(app_of(create_service(catalog, settings)), base_url="http://x") as found:
        yield found


@pytest.fixture
def api(client):
    return Api(client)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/table/t/protect", b"{"),
        ("/table/t/protect", b"null"),
        ("/table/t/protect", b"[]"),
        ("/table/t/protect", b'{"protected": "yes"}'),
        ("/table/t/protect", b"\xff"),
        ("/table/t/protect", b"[" * 900),
        ("/table/t/protect", b'{"protected": true, "x": "' + b"x" * 1000 + b'"}'),
        ("/table/t/properties", b""),
        ("/table/t/properties", b'{"updates": {"a": 1}}'),
        ("/table/t/undrop", b'{"new_id": []}'),
        ("/table/t/undrop", b'{"new_id": "u"}'),
        ("/table/t/undrop", b'{"new_id": ["../u"]}'),
        ("/trash/purge", b'{"ids": [[]]}'),
        ("/trash/purge", b'{"ids": [["a/b"]]}'),
        ("/table/%24/protect", b""),
        ("/table/a%24%24b/protect", b""),
        ("/table/%FF/protect", b""),
        ("/table/..%2Ft/protect", b""),
        ("/table/%2E%2E/protect", b""),
        ("/table/t%00/protect", b""),
    ],
)
def test_what_cannot_be_read_is_refused_and_changes_nothing(api, catalog, path, body):
    answer = api.post(path, headers={"content-type": "application/json"}, content=body)
    assert code_of(answer) == (400, 13)
    assert catalog.describe_table("t").properties == {}


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/trash", {"deleted_before_ms": "yesterday"}),
        ("/trash", {"deleted_before_ms": "9" * 5000}),
        ("/trash", {"deleted_before_ms": "\u0665"}),
        ("/tables", {"within": "a/b"}),
        ("/tables", {"delimiter": ""}),
    ],
)
def test_parameters_that_cannot_be_read_are_refused(api, path, params):
    assert code_of(api.get(path, **params)) == (400, 13)


@pytest.mark.parametrize("query", ["a=%FF", "&".join("a" for _ in range(100))])
def test_query_that_cannot_be_read_is_refused(api, query):
    assert code_of(api.get(f"/trash?{query}")) == (400, 13)


def test_forms_are_refused(api):
    assert code_of(api.post("/table/t/protect", data={"protected": "true"})) == (400, 13)


def test_web_pages_change_nothing_where_nobody_is_asked_for_a_token(api):
    origin = {"Origin": "https://example.com"}
    assert code_of(api.post("/table/t/protect", headers=origin)) == (403, 15)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_other_methods_are_named(client, route):
    path = route.path.replace("{id}", "t")
    answer = client.delete(f"/mooring{path}")
    assert answer.status_code == 405
    assert answer.headers["allow"] == route.method
    assert answer.json()["code"] == 13


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v2/trash", "/v1/table", "/v1/x", "/a/b/v1/x"])
def test_addresses_that_lead_nowhere_name_the_document(client, path):
    answer = client.get(f"/mooring{path}")
    assert answer.status_code == 404
    assert answer.json()["code"] == 13
    assert "/mooring/v1/openapi.json" in answer.json()["error"]


def test_what_nobody_foresaw_is_told_by_a_number(catalog, caplog, monkeypatch):
    served = create_service(catalog, ServerSettings())
    monkeypatch.setattr(type(catalog.backend), "table_status", _fail)
    with TestClient(app_of(served)) as client:
        answer = Api(client).get("/table/t/status")
    assert code_of(answer) == (500, 18)
    assert "what nobody foresaw" not in answer.text
    assert "what nobody foresaw" in caplog.text


def _fail(*_):
    raise RuntimeError("what nobody foresaw")


def test_purge_that_takes_too_long_goes_on_and_says_so(tmp_path, monkeypatch):
    catalog = mooring.connect(tmp_path)
    catalog.create_table("t", rows([1]))
    catalog.drop_table("t")
    may_go_on = threading.Event()
    purge = type(catalog.backend).purge_table

    def slow(self, *args):
        assert may_go_on.wait(60)
        return purge(self, *args)

    monkeypatch.setattr(type(catalog.backend), "purge_table", slow)
    settings = replace(ServerSettings(), request_timeout_s=0.05)
    with TestClient(app_of(create_service(catalog, settings))) as client:
        answer = Api(client).post("/table/t/purge")
        assert code_of(answer) == (500, 17)
        assert "look what came of it" in answer.json()["error"]
        may_go_on.set()
    assert catalog.list_purgable_tables() == []


# -- beside it ---------------------------------------------------------------------------------


def test_server_tells_what_it_is_and_where_its_protocols_are(client):
    told = client.get("/").json()
    assert (told["name"], told["version"]) == ("mooring", mooring.__version__)
    openapi = told["protocols"].pop("openapi")
    assert client.get(openapi).json()["info"]["version"] == mooring.__version__
    for path in told["protocols"].values():
        assert "no such" in str(client.get(path).json()["error"])  # there is more below
    assert client.get(told["health"]).status_code == 200
    assert client.get(told["metrics"]).status_code == 200
    assert client.post(told["token"]).json()["error"] == "unsupported_grant_type"
    assert client.post("/").status_code == 405


@pytest.mark.parametrize("path", ["/x", "/lanc", "/v1/table", "/mooringv1", "/oauth"])
def test_who_goes_astray_is_told_what_is_where(client, path):
    answer = client.get(path)
    assert code_of(answer) == (404, 13)
    assert all(one in answer.json()["error"] for one in ("/lance", "/iceberg", "/mooring/v1"))


_CLIENT = Client.of("etl", "a secret", Grant(Role.WRITER))
_FORM = {"grant_type": "client_credentials", "client_id": "etl", "client_secret": "a secret"}


@pytest.mark.parametrize("above", ["", "/lance", "/lance/default"])
def test_lance_clients_get_a_token_for_id_and_secret(catalog, above):
    service = create_service(catalog, ServerSettings(clients=(_CLIENT,)))
    with TestClient(app_of(service), base_url="http://x") as client:
        granted = client.post(f"{above}/oauth/token", data=_FORM)
        assert granted.headers["cache-control"] == "no-store"
        token = granted.json()["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        assert client.get("/lance/v1/table", headers=headers).json()["tables"] == ["t"]
        assert Api(client, token).found("/table/t/status") == {"status": "exists"}
        wrong = client.post(f"{above}/oauth/token", data={**_FORM, "client_secret": "x"})
        assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")
        assert client.get(f"{above}/oauth/token").status_code == 405
        too_long = client.post(f"{above}/oauth/token", content=b"x" * (17 * 1024 * 1024))
        assert code_of(too_long) == (400, 13)
