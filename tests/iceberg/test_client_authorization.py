"""Tokens: given, got for a credential, renewed, and never shown."""

from __future__ import annotations

import threading

import pytest
import stamina

from mooring.errors import ServiceUnavailableError, UnauthenticatedError
from mooring.http.authorization import Authorization, Grant
from mooring.http.sender import _may_repeat, _read_retry_after
from mooring.iceberg.client import ClientSettings, LoadedTable, RestClient
from mooring.iceberg.failures import Ask, Goal
from tests.iceberg.scripted_server import HANG_UP, Reply, error, run_scripted
from tests.lakes import FakeClock

CREDENTIAL = "the-id:the:secret"


def token(text: str, **others) -> Reply:
    return Reply(body={"access_token": text, "token_type": "bearer", **others})


@pytest.fixture
def server():
    with run_scripted() as found:
        found.tokens.append(token("first", expires_in=3600))
        yield found


@pytest.fixture
def connect():
    """Open clients that are closed in the end."""
    opened = []

    def open_client(server, **settings):
        opened.append(RestClient(ClientSettings(server.uri, **settings)))
        return opened[-1]

    yield open_client
    for one in opened:
        one.close()


@pytest.fixture(autouse=True)
def no_waiting():
    """Repeat as often as in earnest, without the time between."""
    with stamina.set_testing(True, attempts=5):
        yield


def sent_tokens(server) -> list[str | None]:
    return [one.headers.get("authorization") for one in server.received]


def test_a_bearer_token_goes_with_every_request(server, connect):
    server.answer(Reply())
    connect(server, token="mine").load_namespace(("a",))
    assert server.asked_config[0].headers["authorization"] == "Bearer mine"
    assert sent_tokens(server) == ["Bearer mine"]
    assert not server.asked_tokens


def test_a_credential_gets_a_token_before_anything_is_asked(server, connect):
    server.answer(Reply(), Reply())
    client = connect(server, credential="the-id:secret")
    client.load_namespace(("a",))
    client.load_namespace(("a",))
    assert server.asked_config[0].headers["authorization"] == "Bearer first"
    assert sent_tokens(server) == ["Bearer first"] * 2
    (asked,) = server.asked_tokens
    assert asked.line == "POST /v1/oauth/tokens"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.form == {
        "grant_type": "client_credentials",
        "client_id": "the-id",
        "client_secret": "secret",
        "scope": "catalog",
    }
    assert "authorization" not in asked.headers


def test_a_secret_alone_is_a_credential(server, connect):
    assert connect(server, credential="secret").config
    assert "client_id" not in server.asked_tokens[0].form
    assert server.asked_tokens[0].form["client_secret"] == "secret"


def test_only_the_first_colon_of_a_credential_separates(server, connect):
    assert connect(server, credential=CREDENTIAL).config
    form = server.asked_tokens[0].form
    assert (form["client_id"], form["client_secret"]) == ("the-id", "the:secret")


def test_what_a_token_is_for_can_be_said(server, connect):
    wanted = {"scope": "PRINCIPAL_ROLE:ALL", "audience": "them", "resource": "that"}
    assert connect(server, credential="i:s", **wanted).config
    assert wanted.items() <= server.asked_tokens[0].form.items()


@pytest.mark.parametrize("given", ["elsewhere/token", "/elsewhere/token", "absolute"])
def test_another_server_may_give_the_tokens(server, connect, given):
    uri = f"{server.uri}/elsewhere/token" if given == "absolute" else given
    assert connect(server, credential="i:s", oauth2_server_uri=uri).config
    assert server.asked_tokens[0].path == "/elsewhere/token"


def test_the_configuration_may_say_who_gives_tokens_and_for_what(server, connect):
    server.config = Reply(
        body={"defaults": {"scope": "wide"}, "overrides": {"oauth2-server-uri": "other/token"}}
    )
    server.answer(Reply())
    connect(server, credential="i:s").load_namespace(("a",))
    assert [one.path for one in server.asked_tokens] == ["/v1/oauth/tokens", "/other/token"]
    assert server.asked_tokens[1].form["scope"] == "wide"


def test_the_configuration_may_hold_a_token(server, connect):
    server.config = Reply(body={"overrides": {"token": "theirs"}})
    server.answer(Reply())
    connect(server).load_namespace(("a",))
    assert sent_tokens(server) == ["Bearer theirs"]


@pytest.mark.parametrize("status", [401, 419])
def test_a_rejected_token_is_renewed_and_the_request_repeated(server, connect, status):
    server.tokens.append(token("second"))
    server.answer(Reply(status, b""), Reply())
    connect(server, credential="i:s").load_namespace(("a",))
    assert sent_tokens(server) == ["Bearer first", "Bearer second"]


def test_a_change_is_repeated_after_its_token_was_rejected(server, connect):
    server.tokens.append(token("second"))
    server.answer(error(401, "NotAuthorizedException"), Reply(204, b""))
    connect(server, credential="i:s").drop_table(("a",), "t")
    assert [one.method for one in server.received] == ["DELETE", "DELETE"]


def test_a_second_rejection_is_the_end(server, connect):
    server.answer(*[error(401, "NotAuthorizedException", "not you")] * 9)
    with pytest.raises(UnauthenticatedError, match=r"not you.*valid"):
        connect(server, credential="i:s").load_namespace(("a",))
    assert len(server.received) == 2
    assert len(server.asked_tokens) == 2


def test_a_token_without_a_credential_cannot_be_renewed(server, connect):
    server.answer(Reply(401, b""))
    with pytest.raises(UnauthenticatedError):
        connect(server, token="mine").load_namespace(("a",))
    assert len(server.received) == 1


def test_a_token_with_a_credential_can(server, connect):
    server.answer(Reply(401, b""), Reply())
    connect(server, token="mine", credential="i:s").load_namespace(("a",))
    assert sent_tokens(server) == ["Bearer mine", "Bearer first"]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(401, {"error": "invalid_client", "error_description": "who is s3cr3t?"}),
        Reply(400, {"error": "invalid_client", "error_description": "who is s3cr3t?"}),
        error(401, "NotAuthorizedException", "who is s3cr3t?"),
        Reply(404, b"who is s3cr3t?"),
    ],
)
def test_a_credential_that_is_refused(server, connect, reply):
    server.tokens[0] = reply
    with pytest.raises(UnauthenticatedError, match=r"who is \*\*\*\?") as caught:
        _ = connect(server, credential="i:s3cr3t").config
    assert "s3cr3t" not in str(caught.value)


def test_whoever_gives_tokens_may_be_busy(server, connect):
    server.tokens.clear()
    server.tokens.extend([Reply(503, b""), HANG_UP, token("late")])
    assert connect(server, credential="i:s").config
    assert server.asked_config[0].headers["authorization"] == "Bearer late"


def test_whoever_gives_tokens_may_not_answer(server, connect):
    server.tokens[0] = HANG_UP
    with pytest.raises(ServiceUnavailableError, match="a token of"):
        _ = connect(server, credential="i:s").config


def test_an_answer_without_a_token(server, connect):
    server.tokens[0] = Reply(body={"hello": 1})
    with pytest.raises(UnauthenticatedError, match="no access_token"):
        _ = connect(server, credential="i:s").config


def test_secrets_are_not_shown():
    settings = ClientSettings("http://u:pw@h/v1", token="t0k3n", credential="i:s3cr3t")
    grant = Grant.of(settings.given(), settings.address)
    loaded = LoadedTable({}, {"s3.secret-access-key": "s3cr3t"}, [{"config": {"k": "s3cr3t"}}])
    client = RestClient(settings)
    shown = repr(settings) + repr(grant) + repr(loaded) + client.server
    client.close()
    assert "t0k3n" not in shown
    assert "s3cr3t" not in shown
    assert client.server == "http://h"


# -- the life of a token -------------------------------------------------------------------------


class Issuer:
    """Gives numbered tokens."""

    def __init__(self, expires_in: object) -> None:
        self.given = 0
        self._expires_in = expires_in

    def __call__(self, address, form, /):
        self.given += 1
        return {"access_token": str(self.given), "expires_in": self._expires_in}


def authorization(issuer: Issuer, clock: FakeClock, **given) -> Authorization:
    grant = Grant.of({"credential": "i:s", **given}, "http://h")
    return Authorization(grant, issuer, clock)


@pytest.mark.parametrize(
    ("expires_in", "kept_ms"),
    [(3600, 3_540_000), (120, 60_000), (60, 30_000), (10, 5_000), ("3600", 3_540_000)],
)
def test_a_token_is_renewed_before_its_end(expires_in, kept_ms):
    issuer, clock = Issuer(expires_in), FakeClock()
    asking = authorization(issuer, clock)
    assert asking.headers() == {"Authorization": "Bearer 1"}
    clock.advance(kept_ms - 1)
    assert asking.headers() == {"Authorization": "Bearer 1"}
    clock.advance(1)
    assert asking.headers() == {"Authorization": "Bearer 2"}


@pytest.mark.parametrize("expires_in", [None, "soon", {}])
def test_a_token_without_an_end_is_kept(expires_in):
    issuer, clock = Issuer(expires_in), FakeClock()
    asking = authorization(issuer, clock)
    asking.headers()
    clock.advance(10**12)
    assert asking.headers() == {"Authorization": "Bearer 1"}


def test_a_given_token_is_used_until_it_is_rejected():
    issuer = Issuer(3600)
    asking = authorization(issuer, FakeClock(), token="given")
    assert asking.headers() == {"Authorization": "Bearer given"}
    assert asking.renew("Bearer given")
    assert asking.headers() == {"Authorization": "Bearer 1"}


def test_many_threads_renew_a_rejected_token_once():
    issuer = Issuer(3600)
    asking = authorization(issuer, FakeClock())
    rejected = asking.headers()["Authorization"]
    threads = [threading.Thread(target=asking.renew, args=(rejected,)) for _ in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert issuer.given == 2


# -- how long to wait ----------------------------------------------------------------------------


def waits(after: str | None) -> bool | float:
    import httpx2

    request = httpx2.Request("GET", "http://h")
    answer = httpx2.Response(503, headers={"Retry-After": after} if after else {}, request=request)
    refusal = httpx2.HTTPStatusError("busy", request=request, response=answer)
    return _may_repeat(Ask(Goal.READ_TABLE, "GET", "/", "t"), refusal)


def test_a_server_says_how_long_to_wait():
    assert 7 <= waits("7") <= 8
    assert 0 <= waits("Wed, 21 Oct 2015 07:28:00 GMT") <= 1
    assert waits(None) is True
    assert waits("whenever") is True


def test_waiting_for_long_is_of_no_use():
    assert waits("86400") is False


def test_a_date_to_wait_for_is_read():
    assert _read_retry_after("Fri, 31 Dec 9999 23:59:59 GMT") > 10**9
