"""The client of Iceberg REST catalogs, against a server that does as the test says."""

from __future__ import annotations

import socket
import sys
import threading

import pytest
import stamina

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MissingExtraError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnauthenticatedError,
    UnknownOutcomeError,
    UnreadableError,
    UnsupportedError,
)
from mooring.iceberg.client import ClientSettings, RestClient
from tests.iceberg.certificates import Authority
from tests.iceberg.scripted_server import HANG_UP, Reply, error, run_scripted

SCHEMA = {"type": "struct", "schema-id": 0, "fields": []}
TABLE = Reply(body={"metadata": {"location": "s3://b/t"}})
# What stands between a client and a catalog says so in pages of its own.
GATEWAY_503 = Reply(503, b"<html><h1>upstream connect error</h1></html>")
BUSY_503 = error(503, "ServiceUnavailableException", "come back")


@pytest.fixture
def server():
    with run_scripted() as found:
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


# -- configuration -------------------------------------------------------------------------------


def test_no_request_is_made_before_one_is_needed(server, connect):
    connect(server)
    assert not server.asked_config


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_an_address_may_end_with_the_version(server, connect, ending):
    server.uri += ending
    server.answer(Reply(body={"namespaces": []}))
    connect(server).list_namespaces(())
    assert server.asked_config[0].line == "GET /v1/config"
    assert server.received[0].path.startswith("/v1/namespaces?")


def test_overrides_count_more_than_what_is_given_and_that_more_than_defaults(server, connect):
    server.config = Reply(
        body={
            "defaults": {"prefix": "default", "scope": "default", "a": "default"},
            "overrides": {"prefix": "override"},
        }
    )
    config = connect(server, scope="given").config
    assert config.prefix == "override"
    assert config.properties["scope"] == "given"
    assert config.properties["a"] == "default"


def test_the_users_prefix_counts_most(server, connect):
    server.config = Reply(body={"overrides": {"prefix": "override"}})
    assert connect(server, prefix="mine").config.prefix == "mine"


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("lake", "/v1/lake/namespaces"),
        ("main|lake", "/v1/main%7Clake/namespaces"),
        ("main%7Clake", "/v1/main%7Clake/namespaces"),
        ("projects/p/catalogs/c", "/v1/projects/p/catalogs/c/namespaces"),
        ("/lake/", "/v1/lake/namespaces"),
    ],
)
def test_a_prefix_goes_as_the_server_wrote_it(server, connect, prefix, path):
    server.config = Reply(body={"defaults": {"prefix": prefix}})
    server.answer(Reply(body={"namespaces": []}))
    connect(server).list_namespaces(())
    assert server.received[0].path.partition("?")[0] == path


def test_a_warehouse_is_named_when_the_configuration_is_asked_for(server, connect):
    assert connect(server, warehouse="s3://b/ü w").config
    assert server.asked_config[0].path == "/v1/config?warehouse=s3%3A%2F%2Fb%2F%C3%BC%20w"


def test_the_configuration_is_asked_for_once_by_many_threads(server, connect):
    client = connect(server)
    threads = [threading.Thread(target=lambda: client.config) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(server.asked_config) == 1


def test_a_server_may_send_its_clients_elsewhere(server, connect):
    with run_scripted() as other:
        server.config = Reply(body={"overrides": {"uri": f"{other.uri}/iceberg/"}})
        other.answer(Reply(body={"namespaces": []}))
        connect(server).list_namespaces(())
        assert other.received[0].path.startswith("/iceberg/v1/namespaces?")


def test_endpoints_are_compared_however_they_are_written(server, connect):
    server.config = Reply(body={"endpoints": ["GET v1/config", "POST /v1/{prefix}/tables/rename"]})
    client = connect(server)
    assert client.offers("GET", "/v1/config")
    assert client.offers("POST", "/v1/{prefix}/tables/rename")
    assert not client.offers("POST", "/v1/{prefix}/transactions/commit")


def test_a_server_that_lists_no_endpoints_may_have_all(server, connect):
    assert connect(server).offers("POST", "/v1/{prefix}/transactions/commit")


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]", b"", b"\xff\xfe"])
def test_what_is_no_catalog_is_told_so(server, connect, body):
    server.config = Reply(body=body)
    with pytest.raises(UnreadableError, match="is this the address of an Iceberg REST catalog"):
        _ = connect(server).config


def test_a_warehouse_that_is_not_there(server, connect):
    server.config = error(404, "NotFoundException", "no warehouse x")
    with pytest.raises(NotFoundError, match=r"warehouse 'x'.*no warehouse x"):
        _ = connect(server, warehouse="x").config


@pytest.mark.parametrize("uri", ["", "localhost:8181", "ftp://x", "http://", "http://[::1"])
def test_what_is_no_address_is_refused(uri):
    with pytest.raises(InvalidInputError, match="no address"):
        ClientSettings(uri)


def test_a_missing_package_is_told_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    monkeypatch.delitem(sys.modules, "mooring.http.sender", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'mooring\[iceberg\]'"):
        RestClient(ClientSettings("http://127.0.0.1"))


# -- names in paths ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("separator", "joined"),
    [(None, "%1F"), ("%1F", "%1F"), ("%2E", "%2E"), (".", "."), ("", "%1F")],
)
def test_levels_are_joined_as_the_server_says(server, connect, separator, joined):
    server.config = Reply(body={"overrides": {"namespace-separator": separator}})
    server.answer(Reply())
    connect(server).load_namespace(("a", "b"))
    assert server.received[0].path == f"/v1/namespaces/a{joined}b"


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("with space", "with%20space"),
        ("a/b", "a%2Fb"),
        ("a+b", "a%2Bb"),
        ("a%20b", "a%2520b"),
        ("a.b", "a.b"),
        ("..", "%2E%2E"),
        ("日本", "%E6%97%A5%E6%9C%AC"),
        ("🦀", "%F0%9F%A6%80"),
        ("a?b#c&d=e", "a%3Fb%23c%26d%3De"),
        ("~_-", "~_-"),
    ],
)
def test_names_are_encoded_once(server, connect, name, encoded):
    server.answer(Reply(body={"namespaces": []}), TABLE)
    client = connect(server)
    client.list_namespaces((name, name))
    client.load_table((name, name), name)
    assert f"parent={encoded.replace('%2E', '.')}%1F" in server.received[0].path
    path = server.received[1].path.partition("?")[0]
    assert path == f"/v1/namespaces/{encoded}%1F{encoded}/tables/{encoded}"


# -- listings ------------------------------------------------------------------------------------


def test_a_listing_is_read_to_its_end_with_one_request_a_page(server, connect):
    pages = [
        {"identifiers": [{"namespace": ["a"], "name": "t1"}], "next-page-token": "x y+z"},
        {"identifiers": [{"namespace": ["a"], "name": "t2"}], "next-page-token": "2"},
        {"identifiers": [{"namespace": ["a"], "name": "t3"}], "next-page-token": None},
    ]
    server.answer(*(Reply(body=one) for one in pages))
    assert connect(server, page_size=1).list_tables(("a",)) == ["t1", "t2", "t3"]
    queries = [one.path.partition("?")[2] for one in server.received]
    assert queries == [
        "pageToken=&pageSize=1",
        "pageToken=x%20y%2Bz&pageSize=1",
        "pageToken=2&pageSize=1",
    ]


def test_a_page_may_be_empty_and_not_the_last(server, connect):
    rest = {"identifiers": [{"namespace": ["a"], "name": "t"}]}
    server.answer(Reply(body={"identifiers": [], "next-page-token": "1"}), Reply(body=rest))
    assert connect(server).list_tables(("a",)) == ["t"]


def test_pages_in_a_circle_are_an_error(server, connect):
    server.answer(*(Reply(body={"identifiers": [], "next-page-token": one}) for one in "1212"))
    with pytest.raises(UnreadableError, match="circle"):
        connect(server).list_tables(("a",))
    assert len(server.received) == 3


def test_only_direct_children_of_the_parent_are_named(server, connect):
    found = [["a"], ["a", "b"], ["a", "c"], ["a", "b", "d"], ["x", "y"]]
    server.answer(Reply(body={"namespaces": found}), Reply(body={"namespaces": found}))
    client = connect(server)
    assert client.list_namespaces(("a",)) == ["b", "c"]
    assert client.list_namespaces(()) == ["a"]


# -- what is sent --------------------------------------------------------------------------------


def test_headers_go_with_every_request(server, connect):
    server.answer(Reply())
    connect(server, headers={"X-Team": "lake"}).load_namespace(("a",))
    for request in (*server.asked_config, *server.received):
        assert request.headers["x-team"] == "lake"
        assert request.headers["x-iceberg-access-delegation"] == "vended-credentials"
        assert "authorization" not in request.headers


def test_storage_credentials_are_asked_for_only_where_wanted(server, connect):
    server.answer(Reply())
    connect(server, delegation=False).load_namespace(("a",))
    assert "x-iceberg-access-delegation" not in server.received[0].headers


def test_a_table_is_read_with_all_that_came_with_it(server, connect):
    vended = {"prefix": "s3://b", "config": {"s3.access-key-id": "k"}}
    body = {
        "metadata": {"location": "s3://b/t"},
        "config": {"client.region": "r"},
        "storage-credentials": [vended],
        "metadata-location": "s3://b/t/metadata/1.json",
    }
    server.answer(Reply(body=body), TABLE)
    client = connect(server)
    loaded = client.load_table(("a",), "t", refs_only=True)
    assert loaded.metadata == {"location": "s3://b/t"}
    assert (loaded.config, list(loaded.credentials)) == ({"client.region": "r"}, [vended])
    assert loaded.metadata_location == "s3://b/t/metadata/1.json"
    assert client.load_table(("a",), "t").metadata_location is None
    assert [one.path.partition("?")[2] for one in server.received] == [
        "snapshots=refs",
        "snapshots=all",
    ]


def test_tables_are_made_changed_renamed_and_dropped(server, connect):
    server.answer(TABLE, TABLE, Reply(204, b""), Reply(204, b""), Reply(204, b""))
    client = connect(server)
    client.create_table(("a", "b"), "t", schema=SCHEMA, location="s3://b/t", properties={"k": "v"})
    client.update_table(("a", "b"), "t", [{"type": "r"}], [{"action": "u"}])
    client.rename_table((("a", "b"), "t"), (("c",), "u"))
    client.commit_transaction([(("c",), "u", [{"type": "r"}], [{"action": "u"}])])
    client.drop_table(("c",), "u")
    assert [one.line for one in server.received] == [
        "POST /v1/namespaces/a%1Fb/tables",
        "POST /v1/namespaces/a%1Fb/tables/t",
        "POST /v1/tables/rename",
        "POST /v1/transactions/commit",
        "DELETE /v1/namespaces/c/tables/u?purgeRequested=false",
    ]
    assert server.received[0].json == {
        "name": "t",
        "schema": SCHEMA,
        "location": "s3://b/t",
        "properties": {"k": "v"},
        "stage-create": False,
    }
    change = {
        "identifier": {"namespace": ["a", "b"], "name": "t"},
        "requirements": [{"type": "r"}],
        "updates": [{"action": "u"}],
    }
    moved = {"namespace": ["c"], "name": "u"}
    assert server.received[1].json == change
    assert server.received[2].json == {"source": change["identifier"], "destination": moved}
    assert server.received[3].json == {"table-changes": [{**change, "identifier": moved}]}


def test_namespaces_are_made_changed_and_dropped(server, connect):
    made = Reply(body={"namespace": ["a", "b"], "properties": {"k": "v", "location": "s3://b"}})
    server.answer(made, Reply(body={"removed": []}), Reply(204, b""))
    client = connect(server)
    assert client.create_namespace(("a", "b"), {"k": "v"}) == {"k": "v", "location": "s3://b"}
    client.update_namespace(("a", "b"), ["k"], {"x": "ü"})
    client.drop_namespace(("a", "b"))
    assert server.received[0].json == {"namespace": ["a", "b"], "properties": {"k": "v"}}
    assert server.received[1].json == {"removals": ["k"], "updates": {"x": "ü"}}
    assert server.received[2].line == "DELETE /v1/namespaces/a%1Fb"


def test_a_table_is_looked_for_without_reading_it(server, connect):
    server.answer(Reply(204, b""), Reply(404, b""))
    client = connect(server)
    assert client.table_exists(("a",), "t")
    assert not client.table_exists(("a",), "t")
    assert {one.method for one in server.received} == {"HEAD"}


def test_a_server_that_cannot_only_look_is_asked_for_the_table(server, connect):
    server.answer(Reply(405, b""), TABLE, Reply(405, b""), error(404, "NoSuchTableException"))
    client = connect(server)
    assert client.table_exists(("a",), "t")
    assert not client.table_exists(("a",), "t")
    assert [one.method for one in server.received] == ["HEAD", "GET", "HEAD", "GET"]


def test_a_server_that_lists_no_looking_is_asked_for_the_table_at_once(server, connect):
    server.config = Reply(body={"endpoints": ["GET /v1/config"]})
    server.answer(TABLE)
    assert connect(server).table_exists(("a",), "t")
    assert [one.method for one in server.received] == ["GET"]


def test_what_a_server_does_not_list_is_not_asked_of_it(server, connect):
    server.config = Reply(body={"endpoints": ["GET /v1/config"]})
    client = connect(server)
    with pytest.raises(UnsupportedError, match=r"tables/rename .*is not among the endpoints"):
        client.rename_table((("a",), "t"), (("b",), "t"))
    with pytest.raises(UnsupportedError, match=r"transactions/commit .*is not among"):
        client.commit_transaction([(("a",), "t", [], [])])
    assert not server.received


# -- refusals ------------------------------------------------------------------------------------

CALLS = {
    "list_namespaces": lambda client: client.list_namespaces(("a",)),
    "load_namespace": lambda client: client.load_namespace(("a",)),
    "create_namespace": lambda client: client.create_namespace(("a",), {}),
    "update_namespace": lambda client: client.update_namespace(("a",), [], {}),
    "drop_namespace": lambda client: client.drop_namespace(("a",)),
    "list_tables": lambda client: client.list_tables(("a",)),
    "load_table": lambda client: client.load_table(("a",), "t"),
    "table_exists": lambda client: client.table_exists(("a",), "t"),
    "create_table": lambda client: client.create_table(
        ("a",), "t", schema=SCHEMA, location=None, properties={}
    ),
    "update_table": lambda client: client.update_table(("a",), "t", [], []),
    "drop_table": lambda client: client.drop_table(("a",), "t"),
    "rename_table": lambda client: client.rename_table((("a",), "t"), (("b",), "t")),
    "commit_transaction": lambda client: client.commit_transaction([(("a",), "t", [], [])]),
}
READS = {"list_namespaces", "load_namespace", "list_tables", "load_table", "table_exists"}
CHANGES = sorted(set(CALLS) - READS)
ABSENT = Reply(404, b"")


@pytest.mark.parametrize(
    ("call", "reply", "raised"),
    [
        ("list_namespaces", ABSENT, NamespaceNotFoundError),
        ("load_namespace", ABSENT, NamespaceNotFoundError),
        ("create_namespace", ABSENT, NamespaceNotFoundError),
        ("list_tables", ABSENT, NamespaceNotFoundError),
        ("create_table", ABSENT, NamespaceNotFoundError),
        ("load_table", ABSENT, TableNotFoundError),
        ("load_table", error(404, "NoSuchNamespaceException"), NamespaceNotFoundError),
        ("update_table", ABSENT, TableNotFoundError),
        ("drop_table", error(404, "NoSuchTableException"), TableNotFoundError),
        ("rename_table", error(404, "NoSuchTableException"), TableNotFoundError),
        ("rename_table", error(404, "NoSuchNamespaceException"), NamespaceNotFoundError),
        ("rename_table", ABSENT, UnsupportedError),
        ("commit_transaction", ABSENT, UnsupportedError),
        ("commit_transaction", error(404, "NotFoundException"), TableNotFoundError),
        ("create_namespace", error(409, "AlreadyExistsException"), NamespaceAlreadyExistsError),
        ("create_table", error(409, "AlreadyExistsException"), TableAlreadyExistsError),
        ("rename_table", error(409, "AlreadyExistsException"), TableAlreadyExistsError),
        ("drop_namespace", Reply(409, b""), NamespaceNotEmptyError),
        ("drop_namespace", error(400, "NamespaceNotEmptyException"), NamespaceNotEmptyError),
        ("update_table", error(409, "CommitFailedException"), ConcurrentModificationError),
        ("commit_transaction", Reply(409, b""), ConcurrentModificationError),
        ("create_table", error(400, "BadRequestException"), InvalidInputError),
        ("update_namespace", error(422, "UnprocessableEntityException"), InvalidInputError),
        ("load_table", Reply(302, b"", {"Location": "http://elsewhere"}), InvalidInputError),
        ("load_table", Reply(418, b""), InvalidInputError),
        ("load_table", error(403, "ForbiddenException"), PermissionDeniedError),
        ("load_table", Reply(401, b""), UnauthenticatedError),
        ("load_table", Reply(419, b""), UnauthenticatedError),
        ("update_table", error(406, "UnsupportedOperationException"), UnsupportedError),
        ("update_table", error(500, "UnsupportedOperationException"), UnsupportedError),
        ("update_table", Reply(405, b""), UnsupportedError),
        ("update_table", Reply(501, b""), UnsupportedError),
        ("update_table", error(503, "CommitStateUnknownException"), UnknownOutcomeError),
        ("load_table", error(500, "InternalServerError"), ServiceUnavailableError),
        ("load_table", error(500, "CommitStateUnknownException"), ServiceUnavailableError),
    ],
)
def test_a_refusal_is_an_error_of_its_kind(server, connect, call, reply, raised):
    server.answer(reply)
    with pytest.raises(raised) as caught:
        CALLS[call](connect(server))
    assert type(caught.value) is raised
    assert len(server.received) == 1


def test_a_refusal_is_told_in_one_line_with_the_servers_words(server, connect):
    server.answer(error(400, "BadRequestException", "location is\n\tno good\x07" + "x" * 9999))
    with pytest.raises(InvalidInputError) as caught:
        CALLS["create_table"](connect(server))
    told = str(caught.value)
    assert told.startswith(
        f"table 'a$t': POST /v1/namespaces/a/tables at {server.uri} answers 400"
        " (BadRequestException: location is no good"
    )
    assert "\n" not in told
    assert "\x07" not in told
    assert len(told) < 600


@pytest.mark.parametrize("status", [500, 502, 504, 507])
@pytest.mark.parametrize("call", CHANGES)
def test_a_change_that_failed_in_the_server_may_have_happened(server, connect, call, status):
    server.answer(Reply(status, b"<html>oh</html>"))
    with pytest.raises(UnknownOutcomeError, match="look before it is done again"):
        CALLS[call](connect(server))
    assert len(server.received) == 1


@pytest.mark.parametrize("call", CHANGES)
def test_a_change_whose_answer_is_lost_is_not_sent_again(server, connect, call):
    server.answer(HANG_UP)
    with pytest.raises(UnknownOutcomeError, match="was not answered"):
        CALLS[call](connect(server))
    assert len(server.received) == 1


@pytest.mark.parametrize("call", CHANGES)
def test_a_gateway_that_lost_the_catalog_does_not_know_what_happened(server, connect, call):
    server.answer(GATEWAY_503)
    with pytest.raises(UnknownOutcomeError, match="upstream connect error"):
        CALLS[call](connect(server))
    assert len(server.received) == 1


@pytest.mark.parametrize("body", [b"not json", b"[]", b'{"metadata": 1}', b'{"metad'])
def test_an_answer_to_a_commit_that_cannot_be_read_is_an_unknown_outcome(server, connect, body):
    server.answer(Reply(200, body))
    with pytest.raises(UnknownOutcomeError, match="cannot be read"):
        CALLS["update_table"](connect(server))


@pytest.mark.parametrize("body", [b"not json", b"[]", b'{"metadata": 1}'])
def test_an_answer_to_a_read_that_cannot_be_read(server, connect, body):
    server.answer(Reply(200, body))
    with pytest.raises(UnreadableError, match="cannot be read"):
        CALLS["load_table"](connect(server))


# -- repetition ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply", [BUSY_503, GATEWAY_503, Reply(429, b""), Reply(502, b""), Reply(504, b""), HANG_UP]
)
@pytest.mark.parametrize("call", sorted(READS - {"table_exists"}))
def test_a_read_is_repeated(server, connect, call, reply):
    server.answer(reply, reply, TABLE)
    CALLS[call](connect(server))
    assert len(server.received) == 3


@pytest.mark.parametrize("reply", [BUSY_503, Reply(429, b"")])
@pytest.mark.parametrize("call", CHANGES)
def test_a_change_that_the_catalog_had_no_time_for_is_repeated(server, connect, call, reply):
    server.answer(reply, reply, TABLE)
    CALLS[call](connect(server))
    assert len(server.received) == 3


@pytest.mark.parametrize("call", ["load_table", "update_table"])
def test_repetition_ends(server, connect, call):
    server.answer(*[BUSY_503] * 9)
    with pytest.raises(ServiceUnavailableError, match="come back") as caught:
        CALLS[call](connect(server))
    assert type(caught.value) is ServiceUnavailableError
    assert len(server.received) == 5


def test_a_read_that_is_never_answered_ends(server, connect):
    server.answer(*[HANG_UP] * 9)
    with pytest.raises(ServiceUnavailableError, match="was not answered") as caught:
        CALLS["load_table"](connect(server))
    assert type(caught.value) is ServiceUnavailableError
    assert len(server.received) == 5


@pytest.mark.parametrize("call", ["load_table", "update_table"])
def test_a_server_that_is_not_there_got_nothing(connect, call):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        client = RestClient(ClientSettings(f"http://127.0.0.1:{held.getsockname()[1]}"))
        with pytest.raises(ServiceUnavailableError, match="was not answered") as caught:
            CALLS[call](client)
    client.close()
    assert type(caught.value) is ServiceUnavailableError


def test_an_answer_that_takes_too_long_is_an_unknown_outcome(connect):
    with socket.create_server(("127.0.0.1", 0)) as silent, run_scripted() as server:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        server.config = Reply(body={"overrides": {"uri": uri}})
        with pytest.raises(UnknownOutcomeError, match="timed out"):
            CALLS["update_table"](connect(server, timeout_s=0.1))


# -- TLS -----------------------------------------------------------------------------------------


def test_a_server_is_trusted_by_the_authority_that_is_named(tmp_path, connect):
    authority = Authority(tmp_path)
    with run_scripted(authority.server_context()) as server:
        assert connect(server, ca_file=str(authority.ca_file)).config


def test_a_server_of_an_unknown_authority_is_not_trusted(tmp_path, connect):
    with run_scripted(Authority(tmp_path).server_context()) as server:
        with pytest.raises(ServiceUnavailableError, match=r"not trusted.*ca_file"):
            _ = connect(server).config
        assert not server.asked_config


def test_certificates_are_not_looked_at_where_that_is_not_wanted(tmp_path, connect):
    with run_scripted(Authority(tmp_path).server_context()) as server:
        assert connect(server, verify=False).config


def test_a_server_may_ask_for_a_certificate(tmp_path, connect):
    authority = Authority(tmp_path)
    mine = authority.issue("client")
    given = {"ca_file": str(authority.ca_file)}
    with run_scripted(authority.server_context(asks_clients=True)) as server:
        shown = connect(server, client_cert=str(mine.cert), client_key=str(mine.key), **given)
        assert shown.config
        with pytest.raises(ServiceUnavailableError):
            _ = connect(server, **given).config


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_that_holds_no_certificate_is_told(tmp_path, content):
    path = tmp_path / "ca.pem"
    if content:
        path.write_text(content)
    with pytest.raises(InvalidInputError, match=r"ca\.pem cannot be used"):
        RestClient(ClientSettings("https://127.0.0.1", ca_file=str(path)))
