"""Credentials of the store: none of the server's own, and short-lived ones where it is told to.

Spec: lance-rest-openapi, "DescribeTableResponse"; iceberg-rest-openapi, "StorageCredential".
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import lance
import lance_namespace
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import mooring
from mooring.errors import InvalidInputError, MissingExtraError, ServiceUnavailableError
from mooring.iceberg.credentials import storage_options
from mooring.identifiers import ObjectId
from mooring.namespace.api import TableInfo
from mooring.server.app import create_app
from mooring.server.iceberg.storage import settings_of
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from mooring.server.vending import VendingSettings, Vendor, harmless_options, policy_for
from tests.lakes import FakeClock
from tests.own_server import run_server
from tests.program import invoke
from tests.server.lance_served import ARROW, stream_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import S3Server

ROLE = "arn:aws:iam::123456789012:role/lake"
READER = Client.of("rita", "hush")
WRITER = Client.of("will", "hush", Grant(Role.WRITER))
ASKING = {"X-Iceberg-Access-Delegation": "vended-credentials"}

# -- what clients are told without -----------------------------------------------------------------

OPTIONS = {
    "aws_region": "eu-west-1",
    "aws_endpoint": "http://127.0.0.1:1",
    "aws_virtual_hosted_style_request": "false",
    "aws_access_key_id": "HUSH",
    "AWS_SECRET_ACCESS_KEY": "HUSH",
    "session_token": "HUSH",
    "allow_http": "true",
    "azure_storage_client_id": "HUSH",
    "google_service_account": "HUSH",
    "google_service_account_key": "HUSH",
    "aws_server_side_encryption_customer_key_base64": "HUSH",
    "proxy_url": "http://HUSH@proxy",
    "headers.x-api": "HUSH",
    "an option of tomorrow": "HUSH",
}


def test_only_options_that_are_known_to_be_harmless_are_told():
    assert harmless_options({**OPTIONS, "endpoint": "http://me:HUSH@127.0.0.1"}) == {
        "aws_region": "eu-west-1",
        "aws_endpoint": "http://127.0.0.1:1",
        "aws_virtual_hosted_style_request": "false",
        "allow_http": "true",
    }


def test_settings_of_the_store_are_told_in_icebergs_words_without_secrets():
    info = TableInfo(ObjectId(("t",)), "s3://b/t.lance", OPTIONS, {})
    assert settings_of(info) == {
        "client.region": "eu-west-1",
        "s3.region": "eu-west-1",
        "s3.endpoint": "http://127.0.0.1:1",
        "s3.path-style-access": "true",
    }


# -- what limits credentials -----------------------------------------------------------------------


def test_policy_is_about_the_files_of_the_table_alone():
    policy = json.loads(policy_for("b", "a/t.lance", partition="aws-cn", writes=False))
    files, listing, _ = policy["Statement"]
    assert files["Resource"] == "arn:aws-cn:s3:::b/a/t.lance/*"
    assert {one.partition(":")[2][:3] for one in files["Action"]} == {"Get"}
    assert listing["Resource"] == "arn:aws-cn:s3:::b"
    assert listing["Condition"]["StringLike"]["s3:prefix"] == ["a/t.lance", "a/t.lance/*"]


def test_name_is_no_pattern_and_no_variable_of_a_policy():
    policy = json.loads(policy_for("b", "*/${aws:username}?", partition="aws", writes=True))
    assert policy["Statement"][0]["Resource"] == "arn:aws:s3:::b/${*}/${$}{aws:username}${?}/*"


@pytest.mark.parametrize(
    "settings",
    [
        VendingSettings("lake"),
        VendingSettings("arn:aws:iam::1:role/lake"),
        VendingSettings("arn:aws:iam::123456789012:user/lake"),
        VendingSettings(ROLE, 60),
        VendingSettings(ROLE, 43_201),
    ],
)
def test_senseless_settings_are_refused(settings):
    with pytest.raises(InvalidInputError):
        Vendor(settings)


def test_missing_package_is_told_with_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'mooring\[aws\]'"):
        Vendor(VendingSettings(ROLE))


def test_serving_with_credentials_takes_a_role(tmp_path):
    lake = str(tmp_path / "lake")
    for words, told in (
        (["--vend-credentials"], "--vend-role arn:aws:iam::"),
        (["--vend-role", ROLE], "--vend-credentials"),
        (["--vend-credentials", "--vend-role", ROLE], "--allow-anonymous"),
        (["--vend-credentials", "--vend-role", "lake", "--allow-anonymous"], "is no role"),
    ):
        done = invoke("serve", lake, "--port", "0", *words)
        assert done.exit_code == 2, done.output
        assert told in done.stderr


@pytest.mark.parametrize("location", ["/data/t.lance", "gs://b/t", "az://c/t", "s3://b", "s3://b/"])
def test_other_stores_and_whole_buckets_have_none(location):
    vendor = Vendor(VendingSettings(ROLE, sts_endpoint="http://127.0.0.1:1"))
    assert vendor.vend(location, {}, subject=None, writes=True) is None


# -- a store that holds to policies ----------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A key that somebody was given."""

    policy: dict[str, Any]
    session: str
    ends_at_s: float

    def allows(self, action: str, bucket: str, key: str, prefix: str | None) -> bool:
        """Decide as Amazon would, as far as these policies go."""
        for one in self.policy["Statement"]:
            actions = [one["Action"]] if isinstance(one["Action"], str) else one["Action"]
            patterns = one.get("Condition", {}).get("StringLike", {}).get("s3:prefix")
            matches_prefix = patterns is None or any(
                fnmatchcase(prefix or "", _plain(pattern)) for pattern in patterns
            )
            arn = f"arn:aws:s3:::{bucket}" + (f"/{key}" if key else "")
            if action in actions and fnmatchcase(arn, _plain(one["Resource"])) and matches_prefix:
                return True
        return False


def _plain(pattern: str) -> str:
    return pattern.replace("${*}", "[*]").replace("${?}", "[?]")


_ACTIONS = {
    "GET": "s3:GetObject",
    "HEAD": "s3:GetObject",
    "PUT": "s3:PutObject",
    "POST": "s3:PutObject",
    "DELETE": "s3:DeleteObject",
}


class Strict:
    """S3 and STS of moto's, before which policies and the ends of keys count."""

    def __init__(self, moto: S3Server) -> None:
        self._moto = moto
        self.keys: dict[str, Key] = {}
        self.asked: list[dict[str, str]] = []
        self.life_s: float | None = None
        self.is_down = False
        self.own_key = moto.options["aws_access_key_id"]
        self.endpoint = ""
        self.refused: list[str] = []

    @property
    def options(self) -> dict[str, str]:
        return {**self._moto.options, "aws_endpoint": self.endpoint}

    def __call__(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        """Answer a request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if b"Action=AssumeRole" in body:
            return self._assume(environ, body, start)
        reason = self._why_refused(environ)
        if reason:
            self.refused.append(reason)
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [f"<Error><Code>{reason}</Code><Message>no</Message></Error>".encode()]
        return self._pass(environ, body, start)

    def _assume(self, environ: dict[str, Any], body: bytes, start: Any) -> list[bytes]:
        form = {key: value[0] for key, value in parse_qs(body.decode()).items()}
        self.asked.append(form)
        if self.is_down or self._key_of(environ) != self.own_key:
            start("403 Forbidden", [("Content-Type", "text/xml")])
            error = "<Code>AccessDenied</Code><Message>not you</Message>"
            return [f"<ErrorResponse><Error>{error}</Error></ErrorResponse>".encode()]
        number = len(self.asked)
        duration_s = int(form["DurationSeconds"]) if self.life_s is None else self.life_s
        ends_at_s = time.time() + duration_s
        self.keys[f"ASIA{number}"] = Key(json.loads(form["Policy"]), f"session{number}", ends_at_s)
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ends_at_s))
        fields = {
            "AccessKeyId": f"ASIA{number}",
            "SecretAccessKey": f"secret{number}",
            "SessionToken": f"session{number}",
            "Expiration": f"{at}.{int(ends_at_s % 1 * 1000):03d}Z",
        }
        inner = "".join(f"<{key}>{value}</{key}>" for key, value in fields.items())
        found = f"<AssumeRoleResult><Credentials>{inner}</Credentials></AssumeRoleResult>"
        start("200 OK", [("Content-Type", "text/xml")])
        return [f"<AssumeRoleResponse>{found}</AssumeRoleResponse>".encode()]

    def _key_of(self, environ: dict[str, Any]) -> str:
        signed = environ.get("HTTP_AUTHORIZATION", "")
        return signed.partition("Credential=")[2].partition("/")[0]

    def _why_refused(self, environ: dict[str, Any]) -> str | None:
        name = self._key_of(environ)
        if name == self.own_key:
            return None
        key = self.keys.get(name)
        if key is None or environ.get("HTTP_X_AMZ_SECURITY_TOKEN") != key.session:
            return "InvalidAccessKeyId"
        if key.ends_at_s <= time.time():
            return "ExpiredToken"
        bucket, _, path = unquote(environ["PATH_INFO"]).lstrip("/").partition("/")
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        prefix = query.get("prefix", [""])[0] if not path else None
        action = _ACTIONS[environ["REQUEST_METHOD"]] if path else "s3:ListBucket"
        is_fine = key.allows(action, bucket, path, None if prefix is None else prefix.rstrip("/"))
        return None if is_fine else "AccessDenied"

    def _pass(self, environ: dict[str, Any], body: bytes, start: Any) -> list[bytes]:
        import http.client

        target = urlsplit(self._moto.endpoint)
        query = environ.get("QUERY_STRING", "")
        path = environ["RAW_URI"].partition("?")[0] + (f"?{query}" if query else "")
        headers = {
            key[5:].replace("_", "-").lower(): value
            for key, value in environ.items()
            if key.startswith("HTTP_") and key not in {"HTTP_CONNECTION", "HTTP_TRANSFER_ENCODING"}
        }
        if environ.get("CONTENT_TYPE"):
            headers["content-type"] = environ["CONTENT_TYPE"]
        onward = http.client.HTTPConnection(target.hostname, target.port, timeout=60)
        try:
            onward.request(environ["REQUEST_METHOD"], path, body or None, headers)
            found = onward.getresponse()
            told = [
                (k, v) for k, v in found.getheaders() if k.lower() not in {"connection", "server"}
            ]
            start(f"{found.status} {found.reason}", told)
            return [found.read()]
        finally:
            onward.close()


@contextmanager
def run_strict(moto: S3Server) -> Iterator[Strict]:
    import threading

    from werkzeug.serving import make_server

    strict = Strict(moto)
    server = make_server("127.0.0.1", 0, strict, threaded=True)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    strict.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield strict
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def running(moto) -> Iterator[Strict]:
    with run_strict(moto) as strict:
        yield strict


@pytest.fixture
def strict(running) -> Strict:
    """The store, which nobody was given a key of."""
    running.keys, running.asked, running.refused = {}, [], []
    running.life_s, running.is_down = None, False
    return running


@pytest.fixture(scope="module")
def lake(running, moto):
    found = mooring.connect(moto.uri("vending"), storage_options=running.options)
    for name in ("t", "other", "written", "renewed"):
        found.create_table(name, rows(1))
    return found


@pytest.fixture
def catalog(lake, strict):
    return lake


def rows(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def _settings(strict: Strict | None, **more: Any) -> ServerSettings:
    vending = None if strict is None else VendingSettings(ROLE, sts_endpoint=strict.endpoint)
    return ServerSettings(clients=(READER, WRITER), vending=vending, **more)


def _as(client: Client) -> dict[str, str]:
    return {"x-api-key": f"{client.id}:hush"}


def _describe(client: TestClient, who: Client, table: str, **body: Any) -> dict[str, str]:
    answer = client.post(f"/lance/v1/table/{table}/describe", json=body, headers=_as(who))
    assert answer.status_code == 200, answer.text
    return answer.json().get("storage_options") or {}


@pytest.mark.s3
def test_no_answer_holds_the_servers_own_credentials(catalog, strict):
    """Neither with vending nor without it, in no answer of any protocol."""
    secrets = [value for key, value in strict.options.items() if "key" in key.lower()]
    assert len(secrets) == 2
    arrow = {"content": stream_of(rows(1)), "headers": {**_as(WRITER), "content-type": ARROW}}
    for vendor in (None, strict):
        with TestClient(create_app(catalog, _settings(vendor)), base_url="http://x") as client:
            client.headers.update({**_as(WRITER), **ASKING})
            name = "with" if vendor else "without"
            for method, path, more in (
                ("POST", f"/lance/v1/table/{name}/create", arrow),
                ("POST", f"/lance/v1/table/{name}2/declare", {"json": {}}),
                ("POST", f"/lance/v1/table/{name}/describe", {"json": {"vend_credentials": True}}),
                ("POST", f"/lance/v1/table/{name}/describe?with_table_uri=true", {"json": {}}),
                ("POST", f"/lance/v1/table/{name}/version/list", {"json": {}}),
                ("POST", f"/lance/v1/table/{name}/drop", {"json": {}}),
                ("POST", "/lance/v1/table/other/version/describe", {"json": {"version": 1}}),
                ("GET", "/iceberg/v1/config", {}),
                ("GET", "/iceberg/v1/namespaces/root/tables/t", {}),
                ("GET", "/mooring/v1/tables", {}),
                ("GET", "/mooring/v1/catalogs", {}),
            ):
                answer = client.request(method, path, **more)
                assert answer.status_code == 200, (path, answer.text)
                assert not [one for one in secrets if one in answer.text], path
                assert vendor is not None or "secret" not in answer.text.lower(), path


@pytest.mark.interop
@pytest.mark.s3
def test_lance_reads_with_what_a_reader_gets_and_writes_with_what_a_writer_gets(catalog, strict):
    with TestClient(create_app(catalog, _settings(strict)), base_url="http://x") as client:
        reading, writing = (_describe(client, who, "written") for who in (READER, WRITER))
        location = catalog.describe_table("written").location
        other = catalog.describe_table("other").location
        assert lance.dataset(location, storage_options=reading).to_table() == rows(1)
        with pytest.raises(OSError, match=r"(?i)denied|forbidden|permission|403"):
            lance.write_dataset(rows(2), location, mode="append", storage_options=reading)
        lance.write_dataset(rows(2), location, mode="append", storage_options=writing)
        assert lance.dataset(location, storage_options=reading).count_rows() == 2
        for options in (reading, writing):
            with pytest.raises((OSError, ValueError)):
                lance.dataset(other, storage_options=options)
        assert set(strict.refused) == {"AccessDenied"}
        assert {one["RoleArn"] for one in strict.asked} == {ROLE}
        assert {one["RoleSessionName"] for one in strict.asked} == {"mooring-rita", "mooring-will"}
        quiet = _describe(client, READER, "written", vend_credentials=False)
        assert "aws_session_token" not in quiet


@pytest.mark.s3
def test_iceberg_clients_get_the_same_and_are_told_where_to_renew_it(catalog, strict):
    with TestClient(create_app(catalog, _settings(strict)), base_url="http://x") as client:
        path = "/iceberg/v1/namespaces/root/tables/t"
        quiet = client.get(path, headers=_as(READER)).json()
        assert "storage-credentials" not in quiet
        assert not strict.asked
        told = client.get(path, headers={**_as(READER), **ASKING}).json()
        (one,) = told["storage-credentials"]
        location = catalog.describe_table("t").location
        assert one["prefix"] == location
        options = storage_options(location, quiet["config"], [one])
        assert lance.dataset(location, storage_options=options).count_rows() == 1
        assert int(one["config"]["s3.session-token-expires-at-ms"]) > time.time() * 1000
        again = one["config"]["client.refresh-credentials-endpoint"]
        assert again == "v1/namespaces/root/tables/t/credentials"
        renewed = client.get(f"/iceberg/{again}", headers=_as(READER)).json()
        assert renewed == {"storage-credentials": [one]}
        assert len(strict.asked) == 1  # the same until shortly before they end
        endpoints = client.get("/iceberg/v1/config", headers=_as(READER)).json()["endpoints"]
        assert any(one.endswith("/credentials") for one in endpoints)


@pytest.mark.s3
def test_server_without_vending_has_none_to_give(catalog):
    with TestClient(create_app(catalog, _settings(None)), base_url="http://x") as client:
        path = "/iceberg/v1/namespaces/root/tables/t/credentials"
        assert client.get(path, headers=_as(WRITER)).status_code == 400
        endpoints = client.get("/iceberg/v1/config", headers=_as(WRITER)).json()["endpoints"]
        assert not any(one.endswith("/credentials") for one in endpoints)


@pytest.mark.s3
def test_answer_of_motos_sts_is_understood(moto):
    vendor = Vendor(VendingSettings(ROLE, 900, moto.endpoint))
    vended = vendor.vend("s3://b/t", moto.options, subject="a:b/c", writes=False)
    assert set(vended.options) == {
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
        "expires_at_millis",
    }
    left_ms = int(vended.options["expires_at_millis"]) - time.time() * 1000
    assert 800_000 < left_ms <= 901_000


@pytest.mark.s3
def test_credentials_are_kept_until_shortly_before_they_end(strict):
    clock = FakeClock(int(time.time() * 1000))
    vendor = Vendor(VendingSettings(ROLE, 900, strict.endpoint), clock)

    def vend(subject="ada", writes=False, location="s3://b/t"):
        return vendor.vend(location, strict.options, subject=subject, writes=writes)

    first = vend()
    assert vend() is first
    clock.advance(first.ends_at_ms - 300_001 - clock.now_ms())
    assert vend() is first
    clock.advance(1)
    assert vend() is not first
    others = [vend("eve"), vend(writes=True), vend(location="s3://b/u")]
    assert len({one.options["aws_access_key_id"] for one in others}) == 3
    assert "secret" not in repr(first)


@pytest.mark.s3
def test_role_that_cannot_be_taken_on_fails_no_change_that_is_done(catalog, strict):
    strict.is_down = True
    with TestClient(create_app(catalog, _settings(strict)), base_url="http://x") as client:
        answer = client.post("/lance/v1/table/t/describe", json={}, headers=_as(READER))
        assert (answer.status_code, answer.json()["code"]) == (503, ServiceUnavailableError.code)
        asked = {"vend_credentials": False}
        answer = client.post("/lance/v1/table/t/describe", json=asked, headers=_as(READER))
        assert answer.status_code == 200
        arrow = {**_as(WRITER), "content-type": ARROW}
        answer = client.post(
            "/lance/v1/table/new/create", content=stream_of(rows(1)), headers=arrow
        )
        assert answer.status_code == 200
        assert "aws_session_token" not in answer.json().get("storage_options", {})
        path = "/iceberg/v1/namespaces/root/tables/t"
        assert client.get(path, headers={**_as(READER), **ASKING}).status_code == 503
        assert client.get(path, headers=_as(READER)).status_code == 200


@pytest.mark.interop
@pytest.mark.s3
@pytest.mark.peer("pylance-rest", they="read write", on="Lance REST")
def test_pylance_renews_what_ends_by_asking_the_server(catalog, strict):
    """Lance renews what ends within a minute with each use: no key is used after its end."""
    strict.life_s = 3
    settings = replace(_settings(strict), vending=VendingSettings(ROLE, 900, strict.endpoint))
    with run_server(catalog, settings) as address:
        client = lance_namespace.connect(
            "rest", {"uri": f"{address}/lance", "header.x-api-key": "will:hush"}
        )
        name = {"namespace_client": client, "table_id": ["renewed"]}
        opened = lance.write_dataset(rows(2), mode="append", **name)
        first = set(strict.keys)
        time.sleep(strict.life_s)
        assert sorted(opened.to_table()["n"].to_pylist()) == [1, 2]
        lance.write_dataset(rows(3), mode="append", **name)
        assert opened.checkout_version(3).count_rows() == 3
    assert set(strict.keys) > first
    assert "ExpiredToken" not in strict.refused
