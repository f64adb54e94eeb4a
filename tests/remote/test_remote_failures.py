"""What a remote catalog makes of answers: refusals, busy servers, lost answers, wrong servers."""

from __future__ import annotations

import pytest
import stamina

from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    InvalidInputError,
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
    ThrottledError,
    UnauthenticatedError,
    UnknownOutcomeError,
    UnreadableError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.remote.opening import open_remote
from tests.iceberg.scripted_server import HANG_UP, Reply, run_scripted

NS, T = ObjectId(("ns",)), ObjectId(("ns", "t"))
FACTS = Reply(body={"name": "default", "kind": "directory", "levels": None, "version": "9"})
GATEWAY_503 = Reply(503, b"<html><h1>upstream connect error</h1></html>")
LOCATED = Reply(body={"location": "/lake/t.lance", "properties": {"a": "b"}})


def refusal(status: int, code: int, words: str = "no", **headers: str) -> Reply:
    return Reply(status, {"error": words, "code": code, "instance": "x"}, headers)


@pytest.fixture(autouse=True)
def no_waiting():
    """Repeat as often as in earnest, without the time between."""
    with stamina.set_testing(True, attempts=5):
        yield


@pytest.fixture
def server():
    with run_scripted() as found:
        yield found


def open_foreign(server, **properties):
    """Open a server that has Lance REST alone: none of its addresses leads elsewhere."""
    return open_remote({"uri": server.uri, **properties}, {}, author="alice")


def open_own(server):
    """Open a server of Mooring's."""
    server.answer(FACTS)
    backend = open_remote({"uri": f"{server.uri}/lance"}, {}, author="alice")
    assert backend.facts.kind == "directory"
    server.received.clear()
    return backend


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (406, 0, UnsupportedError),
        (404, 1, NamespaceNotFoundError),
        (404, 4, TableNotFoundError),
        (409, 5, TableAlreadyExistsError),
        (404, 11, TableVersionNotFoundError),
        (400, 13, InvalidInputError),
        (409, 14, ConcurrentModificationError),
        (403, 15, PermissionDeniedError),
        (401, 16, UnauthenticatedError),
        (404, 22, TableBranchNotFoundError),
        # A server that tells a code knows what it did, whatever the status.
        (500, 4, TableNotFoundError),
        (400, 5, TableAlreadyExistsError),
    ],
)
def test_a_code_is_the_class_of_the_error(server, status, code, kind):
    server.answer(refusal(status, code, "table 'ns$t' is not as it should be"))
    with pytest.raises(kind, match="not as it should be") as caught:
        open_foreign(server).declare_table(T)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInputError),
        (401, UnauthenticatedError),
        (403, PermissionDeniedError),
        (404, TableNotFoundError),
        (405, UnsupportedError),
        (409, ConflictError),
        (501, UnsupportedError),
        (500, ServiceUnavailableError),
    ],
)
def test_without_a_code_the_status_counts(server, status, kind):
    server.answer(Reply(status, b"so it is"))
    with pytest.raises(kind, match=rf"table 'ns\$t'.*{status} \(so it is\)"):
        open_foreign(server).describe_table(T)


def test_words_that_name_nothing_are_told_with_what_was_asked_for(server):
    server.answer(refusal(404, 4, "t"))
    with pytest.raises(TableNotFoundError, match=r"^table 'ns\$t': t$"):
        open_foreign(server).describe_table(T)


def test_what_lances_own_server_does_not_have_is_unsupported(server):
    server.answer(LOCATED, refusal(500, 18, "Not supported: rename_table not implemented"))
    with pytest.raises(UnsupportedError, match="rename_table"):
        open_foreign(server).rename_table(T, ObjectId(("ns", "u")))


def test_a_secret_that_a_server_repeats_is_not_shown(server):
    server.answer(refusal(400, 13, "the key 'k-e-y' of 'i:s-e-c' is wrong"))
    backend = open_foreign(server, api_key="k-e-y", credential="i:s-e-c")
    with pytest.raises(InvalidInputError) as caught:
        backend.describe_table(T)
    assert "k-e-y" not in str(caught.value)
    assert "s-e-c" not in str(caught.value)
    assert server.received[0].headers["x-api-key"] == "k-e-y"
    assert server.received[0].headers["authorization"] == "Bearer i:s-e-c"


# -- a busy server ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "busy",
    [
        refusal(503, 21, "too much to do", **{"Retry-After": "1"}),
        refusal(503, 17, "not now"),
        refusal(503, 14, "lost a race", **{"Retry-After": "1"}),
        refusal(429, 21, "too many"),
        Reply(429, b"slow down"),
        refusal(429, 21, "too many", **{"Retry-After": "Fri, 31 Dec 9999 23:59:59 -1200"}),
        Reply(429, b"[" * 9999),
    ],
    ids=["throttled", "unavailable", "race", "too many", "without a code", "no time", "no end"],
)
def test_a_change_of_which_nothing_was_done_is_sent_again(server, busy):
    server.answer(busy, busy, Reply(body={"properties": {}}))
    open_foreign(server).create_namespace(NS, {})
    assert len(server.received) == 3


def test_a_server_that_stays_busy_is_told_so(server):
    server.answer(*[refusal(503, 21, "too much to do")] * 5)
    with pytest.raises(ThrottledError, match="too much to do"):
        open_foreign(server).create_namespace(NS, {})
    assert len(server.received) == 5


@pytest.mark.parametrize("reply", [GATEWAY_503, Reply(502, b""), HANG_UP], ids=str)
def test_a_read_is_repeated_whatever_stood_between(server, reply):
    server.answer(reply, LOCATED)
    assert open_foreign(server).describe_table(T).location == "/lake/t.lance"


# -- lost answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lost",
    [HANG_UP, GATEWAY_503, Reply(502, b""), refusal(500, 17), refusal(500, 18), Reply(500, b"")],
    ids=["no answer", "gateway", "502", "unknown outcome", "internal", "500"],
)
def test_a_change_that_may_have_happened_is_not_repeated(server, lost):
    server.answer(lost)
    with pytest.raises(UnknownOutcomeError, match="look before"):
        open_foreign(server).declare_table(T)
    assert len(server.received) == 1


def test_a_namespace_that_may_have_been_there_is_found_after_a_lost_answer(server):
    server.answer(HANG_UP, Reply(body={"properties": {"a": "b"}}))
    found = open_foreign(server).create_namespace(NS, {}, CreateMode.EXIST_OK)
    assert found == {"a": "b"}
    assert [one.path for one in server.received] == [
        "/v1/namespace/ns/create",
        "/v1/namespace/ns/describe",
    ]


@pytest.mark.parametrize("looked", [Reply(body={"properties": {}}), refusal(404, 1)])
def test_whose_a_new_namespace_is_nobody_can_tell_after_a_lost_answer(server, looked):
    server.answer(HANG_UP, looked)
    with pytest.raises(UnknownOutcomeError, match="namespace 'ns'"):
        open_foreign(server).create_namespace(NS, {})


def test_a_drop_whose_answer_is_lost_is_looked_for(server):
    backend = open_own(server)
    server.answer(HANG_UP, Reply(body={"status": "soft_deleted", "deleted_at_ms": 1}))
    assert backend.drop_table(T, Ttl(86_400_000)).id == T
    assert server.received[0].headers["x-mooring-ttl"] == "86400s"
    assert server.received[1].line == "GET /mooring/v1/table/ns%24t/status"
    server.answer(HANG_UP, Reply(body={"status": "exists"}))
    with pytest.raises(UnknownOutcomeError):
        backend.drop_table(T)


def test_an_undrop_whose_answer_is_lost_is_looked_for(server):
    backend = open_own(server)
    server.answer(HANG_UP, Reply(body={"status": "exists"}), LOCATED)
    assert backend.undrop_table(T).location == "/lake/t.lance"


def test_a_rename_whose_answer_is_lost_is_looked_for(server):
    server.answer(LOCATED, HANG_UP, refusal(404, 4), LOCATED)
    assert open_foreign(server).rename_table(T, ObjectId(("ns", "u"))).id.name == "u"


def test_properties_whose_answer_is_lost_are_looked_for(server):
    backend = open_own(server)
    server.answer(HANG_UP, LOCATED)
    assert backend.update_table(T, {"a": "b", "c": None}) == {"a": "b"}
    server.answer(HANG_UP, LOCATED)
    with pytest.raises(UnknownOutcomeError):
        backend.update_table(T, {"a": "c"})


def test_a_version_whose_answer_is_lost_is_not_taken_for_another_writers(server):
    backend = open_own(server)
    server.answer(HANG_UP)
    with pytest.raises(UnknownOutcomeError):
        backend.create_table_version(T, 2, "lake/t.lance/_versions/2.manifest-x")
    with pytest.raises(UnknownOutcomeError, match="is not known"):
        backend.describe_table_version(T, 2)
    server.answer(Reply(body={"version": {"version": 1, "manifest_path": "1.manifest"}}))
    assert backend.describe_table_version(T, 1).manifest_path == "1.manifest"


# -- wrong servers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]", b"", b"\xff\xfe", b"[" * 9999])
def test_what_is_no_lance_rest_is_told_so(server, body):
    server.answer(Reply(body=body))
    with pytest.raises(UnreadableError, match="is this the address of a Lance REST server"):
        open_foreign(server).list_namespaces(ROOT)


def test_an_address_without_anything_is_told_so(server):
    server.answer(Reply(404, b"nothing here"))
    with pytest.raises(NamespaceNotFoundError, match="is this the address of a Lance REST server"):
        open_foreign(server).list_namespaces(ROOT)


@pytest.mark.parametrize(
    "beside",
    [
        Reply(404, b"nothing here"),
        Reply(403, b"<html>forbidden</html>"),
        Reply(405, b""),
        Reply(200, b"<html>welcome</html>"),
        Reply(200, {"hello": "world"}),
        refusal(406, 0),
    ],
    ids=["404", "403", "405", "a page", "another object", "unsupported"],
)
def test_a_server_with_nothing_beside_lance_rest_is_used_without(server, beside):
    server.answer(beside, Reply(body={"tables": ["ns$t", "ns$deeper$t", "u"]}))
    backend = open_remote({"uri": f"{server.uri}/lance"}, {}, author="alice")
    assert backend.facts is None
    # Some servers list whole identifiers, and what lies deeper.
    assert backend.list_tables(NS) == ["t", "u"]
    assert server.received[0].line == "GET /mooring/v1/catalog"
    for attempt in (
        lambda: backend.undrop_table(T),
        lambda: backend.purge_table(T),
        backend.list_purgable_tables,
        lambda: backend.protect_table(T),
        lambda: backend.update_table(T, {}),
        lambda: backend.update_namespace(NS, {}),
        lambda: backend.undrop_namespace(NS),
        lambda: backend.table_history(T),
        lambda: backend.drop_table(T, Ttl(None)),
    ):
        with pytest.raises(UnsupportedError, match="mooring serve"):
            attempt()
    assert len(server.received) == 2


def test_whether_there_is_more_is_asked_again_where_it_was_not_answered(server):
    server.answer(*[HANG_UP] * 5, FACTS)
    backend = open_remote({"uri": f"{server.uri}/lance"}, {}, author="alice")
    with pytest.raises(ServiceUnavailableError):
        _ = backend.levels
    assert backend.facts.version == "9"


def test_pages_that_go_in_a_circle_come_to_an_end(server):
    server.answer(*[Reply(body={"namespaces": ["a"], "page_token": "same"})] * 2)
    with pytest.raises(UnreadableError, match="in a circle"):
        open_foreign(server).list_namespaces(ROOT)


def test_a_table_without_a_place_is_told_so(server):
    server.answer(Reply(body={"properties": {}}))
    with pytest.raises(UnreadableError, match="does not tell where"):
        open_foreign(server).describe_table(T)


def test_the_users_storage_options_count_more_than_the_servers(server):
    handed = {"aws_access_key_id": "theirs", "aws_secret_access_key": "theirs", "region": "x"}
    server.answer(Reply(body={"location": "s3://b/t", "storage_options": handed}))
    backend = open_remote(
        {"uri": server.uri}, {"aws_access_key_id": "mine", "aws_secret_access_key": "m"}, author="a"
    )
    assert backend.describe_table(T).storage_options == {
        "aws_access_key_id": "mine",
        "aws_secret_access_key": "m",
        "region": "x",
    }
    assert server.received[0].json["vend_credentials"] is True


def test_nobody_listens(server):
    backend = open_remote({"uri": "http://127.0.0.1:9/lance"}, {}, author="alice")
    with pytest.raises(ServiceUnavailableError, match="try again later"):
        backend.create_namespace(NS, {})
    assert issubclass(ServiceUnavailableError, MooringError)


def test_a_namespace_that_is_there_is_kept_where_a_server_does_not_know_the_mode(server):
    server.answer(refusal(409, 2), Reply(body={"properties": {"a": "b"}}), refusal(409, 2))
    backend = open_foreign(server)
    assert backend.create_namespace(NS, {}, CreateMode.EXIST_OK) == {"a": "b"}
    with pytest.raises(NamespaceAlreadyExistsError):
        backend.create_namespace(NS, {})
