"""Who may use the server, and in whose name.

Spec: iceberg-rest-openapi, "getToken", "securitySchemes".
"""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote_plus

import pytest
from starlette.testclient import TestClient

import mooring
from mooring.errors import InvalidInputError, NotFoundError
from mooring.identifiers import ObjectId
from mooring.server import doorkeeper
from mooring.server.access_log import Access, AccessLog
from mooring.server.app import create_app
from mooring.server.auth import Authority, Expired
from mooring.server.credentials_file import (
    add_client,
    is_readable_by_others,
    make_secret,
    read_clients,
    read_credentials,
    remove_client,
)
from mooring.server.roles import ANYBODY, Grant, Identity, Role
from mooring.server.settings import Client, ServerSettings, digest_of
from mooring.server.tokens import FORM_LIMIT_BYTES
from tests.lakes import COMPAT_DISK, FakeClock, Lake
from tests.program import invoke
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


@pytest.mark.parametrize("path", ["/oauth/token", "/iceberg/v1/oauth/tokens"])
def test_strangers_fill_no_memory(tmp_path, path):
    settings = ServerSettings(clients=(READER,))
    with TestClient(create_app(mooring.connect(tmp_path), settings)) as asking:
        told = asking.post(path, content=b"a" * (FORM_LIMIT_BYTES + 1))
        assert (told.status_code, f"at most {FORM_LIMIT_BYTES} bytes" in told.text) == (400, True)
        assert asking.post(path, content=b"a" * FORM_LIMIT_BYTES).json()["error"]


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
    nested = base64.urlsafe_b64encode(b'["rita",1,"n",' + b"[" * 30_000).decode().rstrip("=")
    for broken in ("", ".", "a.b", token[:-1], f"x{token}", token.replace(".", ""), f"{nested}.AA"):
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


# -- the file -------------------------------------------------------------------------------------

DIGEST = digest_of("a long and random secret")


def test_clients_are_read_from_a_file(tmp_path):
    path = tmp_path / "clients.toml"
    path.write_text(
        f'[a]\nid = "rita"\nsecret_sha256 = "{digest_of(SECRETS["rita"])}"\n'
        f'[b]\nid = "will"\nsecret_sha256 = "{digest_of(SECRETS["will"])}"\nrole = "writer"\n'
    )
    assert read_clients(path) == (READER, WRITER)
    path.chmod(0o644)
    assert is_readable_by_others(path)
    path.chmod(0o600)
    assert not is_readable_by_others(path)


def test_roles_hold_in_catalogs_and_namespaces(tmp_path):
    path = tmp_path / "clients.toml"
    entry = f'[{{0}}]\nid = "{{0}}"\nsecret_sha256 = "{DIGEST}"\n'
    path.write_text(
        entry.format("one")
        + 'role = "admin"\ncatalog = "lake"\nnamespace = "a$b"\n'
        + entry.format("two")
        + '[[two.grants]]\nrole = "reader"\n'
        + '[[two.grants]]\nrole = "writer"\ncatalog = "c"\nnamespace = ["x$y"]\n'
    )
    one, two = read_clients(path)
    assert one.grants == (Grant(Role.ADMIN, "lake", ObjectId(("a", "b"))),)
    assert two.grants == (Grant(Role.READER), Grant(Role.WRITER, "c", ObjectId(("x$y",))))


_GOOD = f'secret_sha256 = "{DIGEST}"'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "a = 1",
        '[a]\nid = "x"',
        f'[a]\nid = ""\n{_GOOD}',
        f'[a]\nid = "x:y"\n{_GOOD}',
        '[a]\nid = "x"\nsecret_sha256 = ""',
        '[a]\nid = "x"\nsecret_sha256 = "a long and random secret"',
        f'[a]\nid = "x"\nsecret_sha256 = "{digest_of("")}"',
        f'[a]\nid = "x"\n{_GOOD}\nrole = "king"',
        f'[a]\nid = "x"\n{_GOOD}\nrolle = "reader"',
        f'[a]\nid = "x"\n{_GOOD}\n[b]\nid = "x"\n{_GOOD}',
        f'[a]\nid = "x"\n{_GOOD}\ncatalog = ""',
        f'[a]\nid = "x"\n{_GOOD}\nnamespace = "a$$b"',
        f'[a]\nid = "x"\n{_GOOD}\nrole = "admin"\n[[a.grants]]\nrole = "reader"',
        f'[a]\nid = "x"\n{_GOOD}\n[[a.grants]]\ncatalog = "c"',
    ],
)
def test_senseless_file_is_refused(tmp_path, text):
    path = tmp_path / "clients.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"clients\.toml"):
        read_clients(path)


def test_plain_secret_is_refused_with_how_to_make_a_digest(tmp_path):
    path = tmp_path / "clients.toml"
    path.write_text('[a]\nid = "x"\nsecret = "hush"\nrole = "writer"\n')
    with pytest.raises(InvalidInputError, match="mooring token digest") as refused:
        read_clients(path)
    assert "hush" not in str(refused.value)


def test_absent_file_is_told(tmp_path):
    with pytest.raises(NotFoundError, match="no credentials file"):
        read_clients(tmp_path / "absent.toml")


# -- changing the file ----------------------------------------------------------------------------


def _token(*words: object, code: int = 0, given: str | None = None) -> str:
    done = invoke("token", *words, input=given)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def test_tokens_are_made_listed_and_revoked_and_only_digests_are_kept(tmp_path):
    path = tmp_path / "deep" / "clients.toml"
    shown = _token("create", "etl", "--role", "writer", "--namespace", "a$b", "--file", path)
    client_id, _, secret = shown.strip().partition(":")
    assert client_id == "etl"
    assert len(secret) >= 43
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret not in path.read_text()
    _token("create", "rita", "--catalog", "lake", "--file", path)
    assert [path.name for path in path.parent.iterdir()] == ["clients.toml"]
    etl, rita = read_clients(path)
    assert etl == Client(
        "etl", digest_of(secret), (Grant(Role.WRITER, None, ObjectId(("a", "b"))),)
    )
    assert rita.grants == (Grant(Role.READER, "lake"),)
    listed = json.loads(_token("list", "--file", path, "-o", "json"))
    assert [(one["id"], one["role"]) for one in listed] == [("etl", "writer"), ("rita", "reader")]
    _token("revoke", "etl", "--file", path)
    assert read_clients(path) == (rita,)
    assert path.stat().st_mode & 0o777 == 0o600


def test_id_that_is_taken_or_absent_is_told(tmp_path):
    path = tmp_path / "clients.toml"
    _token("create", "etl", "--file", path)
    before = path.read_text()
    assert "already" in _token("create", "etl", "--file", path, code=4)
    assert "no client 'x'" in _token("revoke", "x", "--file", path, code=3)
    assert "colon" in _token("create", "a:b", "--file", path, code=2)
    assert "no role" in _token("create", "x", "--role", "king", "--file", path, code=2)
    assert path.read_text() == before


def test_what_else_is_in_the_file_stays(tmp_path):
    path = tmp_path / "clients.toml"
    path.write_text(
        f'# ours\n[one]\nid = "one"\n{_GOOD}\n[[one.grants]]\nrole = "reader"\n'
        f'# theirs\n["o d"]\nid = "two"\n{_GOOD}\n'
        '[oidc]\nissuer = "https://id.example.com"\naudience = "lake"\n'
    )
    _token("create", "oidc", "--file", path)
    _token("create", 'a b"c', "--file", path)
    _token("revoke", "one", "--file", path)
    _token("revoke", "two", "--file", path)
    assert [client.id for client in read_clients(path)] == ["oidc", 'a b"c']
    text = path.read_text()
    assert "# ours" in text
    assert "# theirs" in text
    assert read_credentials(path).oidc.issuer == "https://id.example.com"


def test_clients_that_are_added_at_the_same_time_are_all_there(tmp_path):
    path = tmp_path / "clients.toml"
    made = [Client.of(f"c{number}", make_secret()) for number in range(24)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda one: add_client(path, one), made))
    assert {client.id for client in read_clients(path)} == {client.id for client in made}


def test_digest_of_a_secret_from_elsewhere(tmp_path):
    secret = "4xQmX5fNq0vS0s8f2m1cJx3a"
    assert _token("digest", given=f"{secret}\n").strip() == digest_of(secret)
    assert "at least 20" in _token("digest", given="short\n", code=2)


# -- a server whose file changes ------------------------------------------------------------------


def _add(path, client_id: str, *grants: Grant) -> str:
    secret = make_secret()
    add_client(path, Client.of(client_id, secret, *grants))
    return f"{client_id}:{secret}"


class _Running:
    """A server that asks the clients of a file; each request is one a second later."""

    def __init__(self, lake, path, monkeypatch):
        monkeypatch.setattr(doorkeeper, "_BETWEEN_S", 0.0)
        known = read_credentials(path)
        settings = ServerSettings(clients=known.clients, oidc=known.oidc, credentials_file=path)
        self._app = create_app(lake.connect(), settings)
        self.client = TestClient(self._app, base_url="http://x/iceberg/v1")

    def status(self, token: str, path: str = "/config") -> int:
        return self.client.get(path, headers={"x-api-key": token}).status_code

    def exchange(self, token: str) -> str:
        client_id, _, secret = token.partition(":")
        form = {"grant_type": "client_credentials"}
        form |= {"client_id": client_id, "client_secret": secret}
        return self.client.post("/oauth/tokens", data=form).json()["access_token"]


@pytest.fixture
def running(tmp_path, clock, monkeypatch):
    lake = Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)
    path = tmp_path / "clients.toml"
    token = _add(path, "etl", Grant(Role.WRITER))
    return _Running(lake, path, monkeypatch), path, token


def test_revoked_client_is_refused_without_a_restart_and_so_are_its_tokens(running):
    server, path, token = running
    signed = server.exchange(token)
    assert server.status(token) == server.status(signed) == 200
    other = _add(path, "rita")
    assert server.status(other) == 200
    remove_client(path, "etl")
    assert server.status(token) == server.status(signed) == 401
    assert server.status(other) == 200


def test_nobody_is_let_in_when_the_last_client_is_revoked(running):
    server, path, token = running
    remove_client(path, "etl")
    assert server.status(token) == 401
    assert server.client.get("/config").status_code == 401


def test_token_ends_with_the_secret_that_it_was_given_for(running):
    server, path, token = running
    signed = server.exchange(token)
    remove_client(path, "etl")
    again = _add(path, "etl", Grant(Role.WRITER))
    assert server.status(again) == 200
    assert server.status(token) == server.status(signed) == 401


@pytest.mark.parametrize("broken", ["[etl", '[etl]\nid = "etl"\nsecret = "plain"\n', None])
def test_file_that_breaks_changes_nothing_and_is_told(running, broken, caplog):
    server, path, token = running
    if broken is None:
        path.unlink()
    else:
        path.write_text(broken)
    assert server.status(token) == 200
    assert "goes on with the clients that it knows" in caplog.text
    path.unlink(missing_ok=True)
    other = _add(path, "rita")
    assert (server.status(other), server.status(token)) == (200, 401)


def test_role_that_changes_counts_at_once(running):
    server, path, token = running
    make = {"json": {"namespace": ["a"]}, "headers": {"x-api-key": token}}
    assert server.client.post("/namespaces", **make).status_code == 200
    path.write_text(path.read_text().replace("writer", "reader"))
    make["json"] = {"namespace": ["b"]}
    assert server.client.post("/namespaces", **make).status_code == 403


# -- names by which the server is addressed -------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "allowed", "lets_in"),
    [
        ("localhost", (), True),
        ("localhost:8765", (), True),
        ("LOCALHOST.:8765", (), True),
        ("lake.localhost", (), True),
        ("127.0.0.1:8765", (), True),
        ("[::1]:8765", (), True),
        ("192.168.0.7", (), True),
        ("evil.example", (), False),
        ("localhost.evil.example", (), False),
        ("127.0.0.1.evil.example:8765", (), False),
        ("evillocalhost", (), False),
        ("", (), False),
        ("catalog.internal:8765", ("Catalog.Internal",), True),
        ("evil.example", ("catalog.internal",), False),
        ("evil.example", ("*",), True),
    ],
)
def test_server_that_asks_nobody_is_addressed_by_names_of_its_own(tmp_path, host, allowed, lets_in):
    catalog = mooring.connect(tmp_path / "lake")
    app = create_app(catalog, ServerSettings(allowed_hosts=allowed))
    client = TestClient(app, base_url="http://x")
    iceberg = client.get("/iceberg/v1/config", headers={"Host": host})
    lance = client.get("/lance/v1/table", headers={"Host": host})
    if lets_in:
        assert (iceberg.status_code, lance.status_code) == (200, 200)
        return
    assert kind_of(iceberg) == (403, "ForbiddenException")
    assert (lance.status_code, lance.json()["code"]) == (403, 15)
    assert "--allowed-host" in lance.json()["error"]
