"""Tokens that an issuer of OpenID Connect gave out.

Spec: RFC 7519; RFC 8725; OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import threading
import time
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.testclient import TestClient

import mooring
from mooring.errors import InvalidInputError, ServiceUnavailableError
from mooring.identifiers import ObjectId
from mooring.server import catalogs
from mooring.server.app import create_app
from mooring.server.auth import Authority, Expired
from mooring.server.credentials_file import read_credentials
from mooring.server.doorkeeper import Doorkeeper
from mooring.server.oidc import OidcGrant, OidcSettings, OidcVerifier
from mooring.server.roles import Grant, Identity, Role
from mooring.server.settings import Client, ServerSettings
from tests.lakes import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AUDIENCE = "lake"
IN_A = Grant(Role.WRITER, None, ObjectId(("a",)))
GRANTS = (
    OidcGrant(IN_A, group="data"),
    OidcGrant(Grant(Role.READER), group="people"),
    OidcGrant(Grant(Role.ADMIN), subject="root"),
)
_NAMES = {"RSA": "RSA", "P-256": "ES256", "P-384": "ES384", "Ed25519": "EdDSA"}


def _make(kind: str) -> Any:
    match kind:
        case "RSA":
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)
        case "P-256":
            return ec.generate_private_key(ec.SECP256R1())
        case "P-384":
            return ec.generate_private_key(ec.SECP384R1())
    return ed25519.Ed25519PrivateKey.generate()


# Making one takes as long as ten tests.
KEYS = {kind: _make(kind) for kind in ("RSA", "P-256", "P-384", "Ed25519")}
OTHER = _make("P-256")
_CLASSES = {
    "RSA": jwt.algorithms.RSAAlgorithm,
    "P-256": jwt.algorithms.ECAlgorithm,
    "P-384": jwt.algorithms.ECAlgorithm,
    "Ed25519": jwt.algorithms.OKPAlgorithm,
}


def _jwk(kind: str, key: Any, kid: str | None, **more: str) -> dict[str, Any]:
    told = json.loads(_CLASSES[kind].to_jwk(key.public_key()))
    return {**told, "use": "sig", **({"kid": kid} if kid else {}), **more}


class Issuer:
    """An issuer on this machine, whose keys may change, and which may be down."""

    def __init__(self) -> None:
        self.keys = [_jwk(kind, key, kind) for kind, key in KEYS.items()]
        self.is_down = False
        self.asked: list[str] = []
        self.was_asked = threading.Event()
        self.uri = ""
        self.speaks_of: str | None = None
        self.slowly: threading.Event | None = None

    def answer(self, path: str) -> dict[str, Any]:
        if path == "/jwks":
            return {"keys": self.keys}
        return {"issuer": self.speaks_of or self.uri, "jwks_uri": f"{self.uri}/jwks"}

    def settings(self, **more: Any) -> OidcSettings:
        given = {"issuer": self.uri, "audience": (AUDIENCE,), "grants": GRANTS, **more}
        return OidcSettings(**given)

    def token(self, kind: str = "P-256", *, key: Any = None, kid: str | None = "", **claims) -> str:
        """Sign claims; those that are None are left out."""
        now = int(time.time())
        usual = {
            "iss": self.uri,
            "aud": AUDIENCE,
            "sub": "ada",
            "groups": ["data"],
            "iat": now,
            "exp": now + 600,
        }
        told = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        algorithm = "RS256" if kind == "RSA" else _NAMES[kind]
        header = {} if kid is None else {"kid": kid or kind}
        return jwt.encode(told, key or KEYS[kind], algorithm, headers=header)


@contextmanager
def _run() -> Iterator[Issuer]:
    issuer = Issuer()

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # what the class calls
            issuer.asked.append(self.path)
            issuer.was_asked.set()
            if issuer.slowly is not None:
                issuer.slowly.wait(30)
            body = json.dumps(issuer.answer(self.path)).encode()
            self.send_response(503 if issuer.is_down else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    issuer.uri = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with _run() as running:
        yield running


def _judge(verifier: OidcVerifier, token: str) -> Identity | Expired | None:
    """Do what the server does: look keys up where that is needed, then judge."""
    if verifier.needs_refresh(token):
        verifier.refresh(token)
    return verifier.verify(token)


# -- tokens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KEYS)
def test_token_of_the_issuer_is_good_by_any_kind_of_public_key(issuer, kind):
    verifier = OidcVerifier(issuer.settings())
    assert _judge(verifier, issuer.token(kind)) == Identity("ada", (IN_A,))
    assert issuer.asked == ["/.well-known/openid-configuration", "/jwks"]


def test_groups_and_subjects_have_the_roles_of_the_file_and_others_none(issuer):
    verifier = OidcVerifier(issuer.settings(groups_claim="realm.roles", subject_claim="email"))
    cases = [
        ({"realm": {"roles": ["data", "people"]}}, (IN_A, Grant(Role.READER))),
        ({"realm": {"roles": "people x"}}, (Grant(Role.READER),)),
        ({"realm": {"roles": ["Data", 1, None]}}, ()),
        ({"realm": "data"}, ()),
        ({}, ()),
    ]
    for claims, grants in cases:
        found = _judge(verifier, issuer.token(email="ada@x", **claims))
        assert found == Identity("ada@x", grants)
    assert _judge(verifier, issuer.token(email="root")).grants == (Grant(Role.ADMIN),)
    for nobody in (None, "", 7, "a\nb"):
        assert _judge(verifier, issuer.token(email=nobody)) is None


def test_token_that_is_not_for_here_not_theirs_or_not_now_is_none(issuer):
    verifier, now = OidcVerifier(issuer.settings(leeway_s=5)), int(time.time())
    assert _judge(verifier, issuer.token(exp=now - 60)) == Expired()
    assert _judge(verifier, issuer.token(exp=now - 1)) == Identity("ada", (IN_A,))
    assert _judge(verifier, issuer.token(aud=["x", AUDIENCE])) == Identity("ada", (IN_A,))
    for wrong in (
        {"nbf": now + 60},
        {"iat": now + 60},
        {"exp": None},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"sub": None},
        {"key": OTHER},
    ):
        assert _judge(verifier, issuer.token(**wrong)) is None, wrong


def _encode(part: object) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def test_no_token_chooses_how_it_is_checked(issuer):
    """A public key is no shared secret, and nothing is no signature."""
    verifier = OidcVerifier(issuer.settings())
    good = issuer.token("RSA")
    assert _judge(verifier, good) == Identity("ada", (IN_A,))
    _, claims, signature = good.split(".")
    public = KEYS["RSA"].public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    shared = []
    for secret in (pem, pem.strip(), json.dumps(issuer.keys[0]).encode(), b""):
        text = f"{_encode({'alg': 'HS256', 'kid': 'RSA'})}.{claims}"
        shared.append(f"{text}.{_encode(hmac.digest(secret, text.encode(), sha256))}")
    for forged in (
        *shared,
        f"{_encode({'alg': 'none', 'kid': 'RSA'})}.{claims}.",
        f"{_encode({'alg': 'None', 'kid': 'RSA'})}.{claims}.{signature}",
        f"{_encode({'alg': 'PS256', 'kid': 'RSA'})}.{claims}.{signature}",
        f"{_encode({'alg': 'ES256', 'kid': 'RSA'})}.{claims}.{signature}",
        f"{_encode({'alg': 'RS256', 'kid': 'P-256'})}.{claims}.{signature}",
        f"{_encode({'alg': 'RS256', 'kid': 'RSA', 'crit': ['x'], 'x': 1})}.{claims}.{signature}",
        f"{_encode({'alg': ['RS256'], 'kid': 'RSA'})}.{claims}.{signature}",
        f"{_encode({'alg': 'RS256', 'kid': 'RSA', 'jwk': issuer.keys[0]})}.{claims}.{signature}",
        good[:-4] + "AAAA",
        good.replace(claims, _encode({"sub": "root"})),
        "a.b.c",
        "..",
        "é.é.é",
        "x" * 10_000,
    ):
        assert _judge(verifier, forged) is None, forged


def test_shared_secret_among_the_keys_signs_nothing(issuer):
    secret = b"s" * 32
    issuer.keys = [{"kty": "oct", "k": _encode(secret), "kid": "s", "alg": "HS256", "crv": "P-256"}]
    verifier = OidcVerifier(issuer.settings())
    forged = jwt.encode({"sub": "root"}, secret, "HS256", headers={"kid": "s"})
    assert _judge(verifier, forged) is None


def test_key_that_is_for_something_else_signs_nothing(issuer):
    key = KEYS["P-256"]
    for told in (
        _jwk("P-256", key, "P-256", use="enc"),
        _jwk("P-256", key, "P-256", alg="ES384"),
        {**_jwk("P-256", key, "P-256"), "x": "!"},
        {"kid": "P-256"},
        "x",
    ):
        issuer.keys = [told]
        assert _judge(OidcVerifier(issuer.settings()), issuer.token()) is None


def test_token_without_a_key_is_checked_by_the_only_one_there_is(issuer):
    issuer.keys = [_jwk("P-256", KEYS["P-256"], None)]
    verifier = OidcVerifier(issuer.settings())
    assert _judge(verifier, issuer.token(kid=None)) == Identity("ada", (IN_A,))
    issuer.keys.append(_jwk("P-256", OTHER, "other"))
    assert _judge(OidcVerifier(issuer.settings()), issuer.token(kid=None)) is None


# -- keys ------------------------------------------------------------------------------------------


def test_keys_are_asked_for_again_when_one_is_not_known_and_not_too_often(issuer):
    clock = FakeClock(int(time.time() * 1000))
    verifier = OidcVerifier(issuer.settings(), clock)
    assert _judge(verifier, issuer.token()) == Identity("ada", (IN_A,))
    rotated = issuer.token(key=OTHER, kid="new")
    for _ in range(50):  # whoever sends anything must not have the issuer asked each time
        assert _judge(verifier, rotated) is None
    assert issuer.asked.count("/jwks") == 1
    issuer.keys = [_jwk("P-256", OTHER, "new")]
    clock.advance(10_000)
    assert _judge(verifier, rotated) == Identity("ada", (IN_A,))
    assert issuer.asked.count("/jwks") == 2
    assert _judge(verifier, issuer.token()) is None  # the old key is gone


def test_keys_that_are_old_are_looked_at_again(issuer):
    clock = FakeClock(int(time.time() * 1000))
    verifier = OidcVerifier(issuer.settings(), clock)
    token = issuer.token()
    assert _judge(verifier, token) == Identity("ada", (IN_A,))
    clock.advance(299_000)
    assert not verifier.needs_refresh(token)
    issuer.keys = []
    clock.advance(1000)
    assert _judge(verifier, token) is None


def test_issuer_that_is_down_is_told_as_that_and_known_keys_hold_for_a_day(issuer):
    clock = FakeClock(int(time.time() * 1000))
    verifier = OidcVerifier(issuer.settings(), clock)
    issuer.is_down = True
    with pytest.raises(ServiceUnavailableError, match="try again"):
        _judge(verifier, issuer.token())
    issuer.is_down = False
    clock.advance(10_000)
    assert _judge(verifier, issuer.token()) == Identity("ada", (IN_A,))
    issuer.is_down = True
    clock.advance(86_400_000 - 1)
    assert _judge(verifier, issuer.token()) == Identity("ada", (IN_A,))
    with pytest.raises(ServiceUnavailableError):
        _judge(verifier, issuer.token(key=OTHER, kid="new"))
    clock.advance(1)
    with pytest.raises(ServiceUnavailableError):
        _judge(verifier, issuer.token())


def test_discovery_of_another_issuer_is_not_believed(issuer):
    issuer.speaks_of = "https://evil.example"
    with pytest.raises(ServiceUnavailableError):
        _judge(OidcVerifier(issuer.settings()), issuer.token())
    assert "/jwks" not in issuer.asked


def test_keys_come_from_an_address_or_a_file_instead(issuer, tmp_path):
    verifier = OidcVerifier(issuer.settings(jwks_uri=f"{issuer.uri}/jwks"))
    assert _judge(verifier, issuer.token()) == Identity("ada", (IN_A,))
    assert issuer.asked == ["/jwks"]
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": issuer.keys}))
    verifier = OidcVerifier(issuer.settings(issuer="https://far.example", jwks_file=file))
    assert _judge(verifier, issuer.token(iss="https://far.example")) == Identity("ada", (IN_A,))
    assert issuer.asked == ["/jwks"]


# -- the file --------------------------------------------------------------------------------------


def _read(tmp_path: Path, text: str) -> OidcSettings:
    path = tmp_path / "clients.toml"
    path.write_text(text)
    return read_credentials(path).oidc


def test_settings_are_read_from_the_credentials_file(tmp_path):
    found = _read(
        tmp_path,
        '[oidc]\nissuer = "https://id.example.com"\naudience = ["a", "b"]\njwks_file = "k.json"\n'
        'groups_claim = "g"\nalgorithms = ["ES256"]\nleeway_s = 3\n'
        '[[oidc.grants]]\ngroup = "data"\nrole = "writer"\ncatalog = "lake"\nnamespace = "a"\n'
        '[[oidc.grants]]\nsubject = "root"\nrole = "admin"\n',
    )
    assert (found.issuer, found.audience) == ("https://id.example.com", ("a", "b"))
    assert found.jwks_file == tmp_path / "k.json"
    assert (found.algorithms, found.leeway_s, found.groups_claim) == (("ES256",), 3, "g")
    assert found.grants == (
        OidcGrant(Grant(Role.WRITER, "lake", ObjectId(("a",))), group="data"),
        OidcGrant(Grant(Role.ADMIN), subject="root"),
    )


_BOTH = 'issuer = "https://x.example"\naudience = "a"\n'


@pytest.mark.parametrize(
    "text",
    [
        'issuer = "https://x.example"',
        'audience = "a"',
        'issuer = "https://x.example"\naudience = ""',
        'issuer = "https://x.example"\naudience = []',
        'issuer = "http://x.example"\naudience = "a"',
        f'{_BOTH}jwks_uri = "http://x.example/keys"',
        f'{_BOTH}jwks_uri = "file:///etc/passwd"',
        f'{_BOTH}jwks_uri = "https://x.example/k"\njwks_file = "k"',
        f'{_BOTH}algorithms = ["HS256"]',
        f'{_BOTH}algorithms = ["none"]',
        f"{_BOTH}algorithms = []",
        f"{_BOTH}leeway_s = -1",
        f'{_BOTH}colour = "red"',
        f'{_BOTH}[[oidc.grants]]\nrole = "reader"',
        f'{_BOTH}[[oidc.grants]]\nrole = "reader"\ngroup = ""',
        f'{_BOTH}[[oidc.grants]]\nrole = "reader"\ngroup = "a"\nsubject = "b"',
        f'{_BOTH}[[oidc.grants]]\ngroup = "a"',
    ],
)
def test_settings_that_let_in_others_than_meant_are_refused(tmp_path, text):
    with pytest.raises(InvalidInputError, match=r"clients\.toml"):
        _read(tmp_path, f"[oidc]\n{text}\n")


# -- a server --------------------------------------------------------------------------------------


def _served(tmp_path, issuer: Issuer, *clients: Client) -> TestClient:
    catalog = mooring.connect(tmp_path / "lake")
    catalog.create_namespace("a")
    catalog.create_namespace("b")
    settings = ServerSettings(oidc=issuer.settings(), clients=clients)
    return TestClient(create_app(catalog, settings), base_url="http://x")


def _as(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_server_takes_tokens_of_the_issuer_with_the_roles_of_their_groups(tmp_path, issuer):
    client = _served(tmp_path, issuer)
    data, people = _as(issuer.token()), _as(issuer.token(groups=["people"]))
    assert client.post("/lance/v1/namespace/a$x/create", json={}, headers=data).status_code == 200
    assert client.post("/lance/v1/namespace/b$x/create", json={}, headers=data).status_code == 403
    assert client.post("/lance/v1/namespace/a$y/create", json={}, headers=people).status_code == 403
    listed = client.get("/iceberg/v1/namespaces", headers=people)
    assert listed.json()["namespaces"] == [["a"], ["b"], ["root"]]
    stranger = _as(issuer.token(groups=[]))
    assert client.get("/lance/v1/table", headers=stranger).status_code == 403
    expired = _as(issuer.token(exp=int(time.time()) - 90))
    assert client.get("/iceberg/v1/config", headers=expired).status_code == 419
    assert client.get("/lance/v1/table", headers=expired).status_code == 401
    assert client.get("/lance/v1/table").status_code == 401


def test_server_whose_issuer_is_down_says_so_and_knows_its_own_clients(tmp_path, issuer):
    issuer.is_down = True
    client = _served(tmp_path, issuer, Client.of("rita", "her secret"))
    refused = client.get("/lance/v1/table", headers=_as(issuer.token()))
    assert (refused.status_code, refused.json()["code"]) == (503, 17)
    assert refused.headers["retry-after"]
    assert client.get("/iceberg/v1/config", headers=_as(issuer.token())).status_code == 503
    assert client.get("/lance/v1/table", headers=_as("rita:her secret")).status_code == 200


def test_name_of_a_client_elsewhere_is_not_that_client(tmp_path, issuer):
    """A token of the issuer is not exchanged for one of the server's own."""
    client = _served(tmp_path, issuer, Client.of("etl", "secret", Grant(Role.ADMIN)))
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": issuer.token(sub="etl", groups=["people"]),
    }
    assert client.post("/iceberg/v1/oauth/tokens", data=form).status_code == 401


def test_any_number_of_subjects_takes_only_so_much_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogs, "_MOST_NAMES", 5)
    catalog = mooring.connect(tmp_path / "lake")
    served = catalogs.MooringCatalog("lake", catalog, lambda _: catalog)
    opened = [served.lance(f"subject {number}") for number in range(20)]
    assert served.lance("subject 19") is opened[19]
    assert served.lance("subject 0") is not opened[0]
    assert len(served._named) == 5


def test_nobody_waits_for_the_issuer_who_needs_it_not(issuer):
    """Keys are asked for in a thread: the loop goes on."""
    issuer.slowly = threading.Event()
    authority = Authority(
        [Client.of("rita", "her secret")],
        token_ttl_s=60,
        verifiers=[OidcVerifier(issuer.settings())],
    )
    done: list[str] = []

    async def answer(scope, receive, send):
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        done.append(authority.identify(headers).subject)

    door = Doorkeeper(answer, authority)

    async def ask(token: str) -> None:
        headers = [(b"authorization", f"Bearer {token}".encode())]
        await door({"type": "http", "headers": headers}, None, None)

    async def both() -> None:
        slow = asyncio.create_task(ask(issuer.token()))
        assert await asyncio.to_thread(issuer.was_asked.wait, 30)
        await ask("rita:her secret")
        assert done == ["rita"]
        issuer.slowly.set()
        await slow

    asyncio.run(both())
    assert done == ["rita", "ada"]
