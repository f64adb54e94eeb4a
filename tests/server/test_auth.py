"""Who may use the server, and in whose name.

Spec: iceberg-rest-openapi, "getToken", "securitySchemes".
"""

from __future__ import annotations

import base64
from dataclasses import replace
from urllib.parse import quote_plus

import pytest
from starlette.testclient import TestClient

from mooring.errors import InvalidInputError, NotFoundError
from mooring.namespace.api import TableInfo
from mooring.server.access_log import Access, AccessLog
from mooring.server.auth import Authority, Expired
from mooring.server.credentials_file import is_readable_by_others, read_clients
from mooring.server.iceberg.storage import credentials_of, settings_of
from mooring.server.roles import ANYBODY, Grant, Identity, Role
from mooring.server.settings import Client, ServerSettings
from tests.lakes import COMPAT_DISK, MOTO, FakeClock, Lake, table_id
from tests.server.served import Served, kind_of

SECRETS = {"rita": "her secret", "will": "s3cr:et+%20"}
READER = Client.of("rita", SECRETS["rita"])
WRITER = Client.of("will", SECRETS["will"], Grant(Role.WRITER))
SETTINGS = ServerSettings(clients=(READER, WRITER))


@pytest.fixture
def guarded(tmp_path, clock):
    lake = Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)
    lake.create("t", [1])
    with Served(lake, SETTINGS) as served:
        yield served


def _ask(served, client: Client, **form: str):
    body = {
        "grant_type": "client_credentials",
        "client_id": client.id,
        "client_secret": SECRETS[client.id],
        "scope": "catalog",
        **form,
    }
    return served.client.post("/oauth/tokens", data=body)


def _as(served, client: Client) -> dict[str, str]:
    return {"Authorization": f"Bearer {_ask(served, client).json()['access_token']}"}


def test_client_that_proves_itself_gets_a_token(guarded):
    answer = _ask(guarded, READER)
    assert answer.json()["token_type"] == "bearer"
    assert answer.json()["expires_in"] == 3600
    assert answer.headers["cache-control"] == "no-store"
    headers = {"Authorization": f"bearer {answer.json()['access_token']}"}
    assert guarded.get("/config", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "form",
    [
        {"client_secret": "wrong"},
        {"client_id": "nobody"},
        {"client_id": "nobody", "client_secret": ""},
        {"client_secret": ""},
        {"client_id": "", "client_secret": ""},
    ],
)
def test_client_that_does_not_gets_none(guarded, form):
    refused = _ask(guarded, READER, **form)
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")


def test_other_grants_and_bodies_are_refused(guarded):
    refused = _ask(guarded, READER, grant_type="password")
    assert (refused.status_code, refused.json()["error"]) == (400, "unsupported_grant_type")
    for body in (b"", b"\xff", b"%FF=%FF", b"a&b&c"):
        assert guarded.client.post("/oauth/tokens", content=body).status_code == 400


def test_secret_may_come_in_a_header_encoded_or_not(guarded):
    for given in (
        f"{WRITER.id}:{SECRETS[WRITER.id]}",
        f"{quote_plus(WRITER.id)}:{quote_plus(SECRETS[WRITER.id])}",
    ):
        basic = base64.b64encode(given.encode()).decode()
        answer = guarded.client.post(
            "/oauth/tokens",
            data={"grant_type": "client_credentials"},
            headers={"Authorization": f"Basic {basic}"},
        )
        assert answer.status_code == 200, answer.text
    for basic in ("", "x", "!!"):
        answer = guarded.client.post(
            "/oauth/tokens",
            data={"grant_type": "client_credentials"},
            headers={"Authorization": f"Basic {basic}"},
        )
        assert answer.status_code == 401


def test_token_that_is_still_good_is_exchanged_for_another(guarded):
    token = _ask(guarded, READER).json()["access_token"]
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    answer = guarded.client.post("/oauth/tokens", data=form)
    assert answer.status_code == 200
    assert answer.json()["access_token"] != token
    answer = guarded.client.post("/oauth/tokens", data={**form, "subject_token": f"{token}x"})
    assert answer.status_code == 401


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer x", "Bearer x.y", "Basic x", "é"])
def test_everything_needs_a_token(guarded, header):
    headers = {} if header is None else {"Authorization": header.encode()}
    for path in ("/config", "/namespaces", guarded.table("t")):
        refused = guarded.get(path, headers=headers)
        assert kind_of(refused) == (401, "NotAuthorizedException")
        assert refused.headers["www-authenticate"] == "Bearer"
    assert guarded.delete(guarded.table("t"), headers=headers).status_code == 401


def test_reader_reads_and_changes_nothing(guarded):
    headers = _as(guarded, READER)
    assert guarded.get(guarded.table("t"), headers=headers).status_code == 200
    assert guarded.get("/namespaces", headers=headers).status_code == 200
    report = {"report-type": "scan-report"}
    path = f"{guarded.table('t')}/metrics"
    assert guarded.post(path, report, headers=headers).status_code == 204
    before = guarded.files()
    for refused in (
        guarded.delete(guarded.table("t"), headers=headers),
        guarded.post(guarded.table("t"), {"requirements": [], "updates": []}, headers=headers),
        guarded.post("/namespaces", {"namespace": ["a"]}, headers=headers),
        guarded.post("/tables/rename", {}, headers=headers),
        guarded.post("/transactions/commit", {"table-changes": []}, headers=headers),
        guarded.post(guarded.tables, {}, headers=headers),
    ):
        assert kind_of(refused) == (403, "ForbiddenException")
    assert guarded.files() == before


def test_changes_are_recorded_in_the_name_of_the_client(guarded):
    headers = _as(guarded, WRITER)
    assert guarded.delete(guarded.table("t"), headers=headers).status_code == 204
    (dropped,) = [one for one in guarded.catalog.history("t") if one.action == "drop"]
    assert dropped.by == WRITER.id


def test_log_tells_who_asked_and_nothing_secret(guarded):
    told: list[Access] = []
    app = AccessLog(guarded.client.app, told.append)
    client = TestClient(app, base_url="http://x/iceberg/v1")
    headers = _as(guarded, READER)
    assert client.get("/config?token=x", headers=headers).status_code == 200
    assert client.get("/config").status_code == 401
    assert client.post("/namespaces", json={}, headers=headers).status_code == 403
    assert [(one.path, one.status, one.subject) for one in told] == [
        ("/iceberg/v1/config", 200, READER.id),
        ("/iceberg/v1/config", 401, None),
        ("/iceberg/v1/namespaces", 403, READER.id),
    ]


def test_token_ends_and_clients_are_told_to_ask_again():
    clock = FakeClock()
    authority = Authority([READER], token_ttl_s=60, clock=clock)
    token = authority.issue(READER.id)
    assert authority.read(token) == Identity(READER.id, READER.grants)
    clock.advance(60_000)
    assert authority.read(token) == Expired()


def test_expired_token_is_told_by_its_own_status(guarded, monkeypatch):
    headers = _as(guarded, READER)
    monkeypatch.setattr(Authority, "read", lambda *_: Expired())
    refused = guarded.get("/config", headers=headers)
    assert kind_of(refused) == (419, "AuthenticationTimeoutException")


def test_token_of_another_server_or_of_a_client_that_is_gone_is_none():
    ours = Authority([READER], token_ttl_s=60)
    assert ours.read(Authority([READER], token_ttl_s=60).issue(READER.id)) is None
    key = b"k" * 32
    token = Authority([READER, WRITER], token_ttl_s=60, key=key).issue(WRITER.id)
    assert Authority([READER], token_ttl_s=60, key=key).read(token) is None
    for broken in ("", ".", "a.b", token[:-1], f"x{token}", token.replace(".", "")):
        assert ours.read(broken) is None


def test_token_does_not_change_its_role_by_being_changed():
    authority = Authority([READER, WRITER], token_ttl_s=60)
    token = authority.issue(READER.id)
    claims, signature = token.split(".")
    forged = base64.urlsafe_b64encode(
        base64.urlsafe_b64decode(claims + "==").replace(b"rita", b"will")
    ).decode()
    assert authority.read(f"{forged.rstrip('=')}.{signature}") is None


def test_server_without_clients_asks_nobody(compat):
    assert Authority([], token_ttl_s=60).identify(None) == ANYBODY
    refused = _ask(compat, READER)
    assert refused.status_code == 400
    assert "give none" in refused.json()["error_description"]


def test_web_pages_change_nothing_where_nobody_is_asked(compat, guarded):
    page = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
    body = {"namespace": ["a"]}
    assert kind_of(compat.post("/namespaces", body, headers=page)) == (403, "ForbiddenException")
    assert compat.get("/namespaces", headers=page).status_code == 200
    allowed = {**page, **_as(guarded, WRITER)}
    assert guarded.post("/namespaces", body, headers=allowed).status_code == 200


# -- credentials of the store ---------------------------------------------------------------------

OPTIONS = {
    "aws_region": "eu-west-1",
    "aws_endpoint": "http://127.0.0.1:1",
    "aws_virtual_hosted_style_request": "false",
    "aws_access_key_id": "an id",
    "AWS_SECRET_ACCESS_KEY": "a secret",
    "session_token": "a token",
    "allow_http": "true",
}


def test_settings_of_the_store_are_told_in_icebergs_words_without_secrets():
    info = TableInfo(table_id("t"), "s3://b/t.lance", OPTIONS, {})
    assert settings_of(info) == {
        "client.region": "eu-west-1",
        "s3.region": "eu-west-1",
        "s3.endpoint": "http://127.0.0.1:1",
        "s3.path-style-access": "true",
    }
    (vended,) = credentials_of(info, info.location)
    assert vended["prefix"] == "s3://b/t.lance"
    assert vended["config"]["s3.access-key-id"] == "an id"
    assert vended["config"]["s3.secret-access-key"] == "a secret"
    assert vended["config"]["s3.session-token"] == "a token"
    assert credentials_of(replace(info, storage_options={}), "x") == []


@pytest.mark.s3
@pytest.mark.parametrize("vends", [True, False])
def test_credentials_go_to_writers_that_ask_where_the_server_was_told_to(
    moto, prefix, clock, vends
):
    lake = Lake(MOTO, moto.uri(prefix), moto.options, clock)
    lake.create("t", [1])
    (secret,) = [value for key, value in moto.options.items() if "secret" in key.lower()]
    asking = {"X-Iceberg-Access-Delegation": "remote-signing, Vended-Credentials"}
    with Served(lake, replace(SETTINGS, vend_credentials=vends)) as served:
        for client in (READER, WRITER):
            headers, gets_them = _as(served, client), vends and client is WRITER
            found = served.get(served.table("t"), headers={**headers, **asking})
            assert (secret in found.text) is gets_them
            assert ("storage-credentials" in found.json()) is gets_them
            assert secret not in served.get(served.table("t"), headers=headers).text
            credentials = served.get(f"{served.table('t')}/credentials", headers=headers)
            assert credentials.status_code == (200 if gets_them else 400)
            assert (secret in credentials.text) is gets_them
            endpoints = served.get("/config", headers=headers).json()["endpoints"]
            assert any(one.endswith("/credentials") for one in endpoints) is vends


# -- the file -------------------------------------------------------------------------------------


def test_clients_are_read_from_a_file(tmp_path):
    path = tmp_path / "clients.toml"
    path.write_text(
        '[a]\nid = "rita"\nsecret = "her secret"\n'
        '[b]\nid = "will"\nsecret = "s3cr:et+%20"\nrole = "writer"\n'
    )
    assert read_clients(path) == (READER, WRITER)
    assert "her secret" not in repr(read_clients(path))
    path.chmod(0o644)
    assert is_readable_by_others(path)
    path.chmod(0o600)
    assert not is_readable_by_others(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "a = 1",
        '[a]\nid = "x"',
        '[a]\nid = ""\nsecret = "y"',
        '[a]\nid = "x"\nsecret = ""',
        '[a]\nid = "x:y"\nsecret = "z"',
        '[a]\nid = "x"\nsecret = "y"\nrole = "king"',
        '[a]\nid = "x"\nsecret = "y"\nrolle = "reader"',
        '[a]\nid = "x"\nsecret = "y"\n[b]\nid = "x"\nsecret = "z"',
    ],
)
def test_senseless_file_is_refused(tmp_path, text):
    path = tmp_path / "clients.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"clients\.toml"):
        read_clients(path)


def test_absent_file_is_told(tmp_path):
    with pytest.raises(NotFoundError, match="no credentials file"):
        read_clients(tmp_path / "absent.toml")
