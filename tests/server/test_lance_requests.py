"""What a request may look like, and that one that makes no sense changes nothing.

Spec: lance-rest-openapi, "parameters", "Context", "Identity", "ErrorResponse".
"""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.lakes import COMPAT_DISK, DISK, Lake
from tests.server.lance_served import ARROW, LanceServed, stream_of

SMALL = ServerSettings(body_limit_bytes=2000, upload_limit_bytes=2000)


@pytest.fixture
def lance_served(tmp_path, clock):
    with LanceServed(Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)) as served:
        served.create("t")
        yield served


@pytest.fixture
def small(tmp_path, clock):
    with LanceServed(Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock), SMALL) as served:
        served.create("t")
        yield served


def refused(response, status=400, code=13):
    """Make sure that a request was refused as the document says."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    assert body["error"]
    assert body["instance"]
    return body["error"]


# -- identifiers -----------------------------------------------------------------------------------


def test_the_body_may_repeat_what_the_path_says(lance_served):
    served = lance_served
    assert served.post("/table/t/describe", {"id": ["t"]}).status_code == 200
    for said in (["u"], [], ["t", "u"], "t", 1, [1]):
        assert "the path says" in refused(served.post("/table/t/describe", {"id": said}))
    assert served.post("/table/t/describe", {"id": None}).status_code == 200


def test_levels_are_separated_by_what_the_client_says(lance_served):
    served = lance_served
    served.catalog.create_namespace(["a"])
    served.catalog.create_table(["a", "x.y"], pa.table({"n": [1]}))
    for path, delimiter in (("a$x.y", None), ("a%24x.y", "$"), ("a::x.y", "::"), ("a%2Fx.y", "/")):
        params = {"delimiter": delimiter} if delimiter else {}
        found = served.post(f"/table/{path}/count_rows", params=params)
        assert found.json() == 1, found.text
    refused(served.post("/table/a.x.y/count_rows", params={"delimiter": "."}), 404, 4)
    said = {"id": ["a", "x.y"]}
    found = served.post("/table/a.x.y/count_rows", said, params={"delimiter": "."})
    assert found.json() == 1
    refused(served.post("/table/t/count_rows", params={"delimiter": ""}))
    listed = served.client.get("/table", params={"delimiter": "/"}).json()
    assert listed == {"tables": ["a/x.y", "t"]}
    refused(served.client.get("/table", params={"delimiter": "."}))


@pytest.mark.parametrize("delimiter", ["$", "::", "/", "."])
def test_the_delimiter_alone_is_the_root(lance_served, delimiter):
    served = lance_served
    path = {"$": "$", "::": "::", "/": "%2F", ".": "%2E"}[delimiter]
    given = {"delimiter": delimiter}
    found = served.client.get(f"/namespace/{path}/table/list", params=given)
    assert found.json() == {"tables": ["t"]}
    assert served.post(f"/namespace/{path}/exists", params=given).status_code == 200


def test_the_root_is_found_where_clients_leave_a_dot_out(lance_served):
    """Addresses have no segment of one dot: RestNamespace, as all who follow WHATWG, drops it."""
    served = lance_served
    served.catalog.create_namespace(["table"])
    served.catalog.create_namespace(["table", "inner"])
    given = {"delimiter": "."}
    assert served.client.get("/namespace/list", params=given).json() == {"namespaces": ["table"]}
    assert served.post("/namespace/describe", params=given).status_code == 200
    tables = served.client.get("/namespace/table/list", params={**given, "include_declared": True})
    assert tables.json() == {"tables": ["t"]}
    inner = served.client.get("/namespace/table/list", params=given)
    assert inner.json() == {"namespaces": ["inner"]}
    refused(served.client.get("/namespace/list"), 404)


def test_names_of_a_flat_catalog_may_hold_the_delimiter(tmp_path, clock):
    with LanceServed(Lake(DISK, str(tmp_path / "lake"), {}, clock)) as served:
        served.catalog.create_table(["a$b"], pa.table({"n": [1]}))
        assert served.post("/table/a$b/count_rows", {"id": ["a$b"]}).json() == 1
        assert served.post("/table/a$b/count_rows", params={"delimiter": "."}).json() == 1
        assert served.client.get("/table", params={"delimiter": "."}).json() == {"tables": ["a$b"]}
        assert served.post("/table/a$b/count_rows").status_code in {400, 404}
        rows = served.client.post(
            "/table/x$t/create",
            content=stream_of(pa.table({"n": [1]})),
            headers={"content-type": ARROW},
        )
        assert rows.status_code in {400, 404}
        assert served.catalog.list_tables() == ["a$b"]


# -- pages -----------------------------------------------------------------------------------------


def test_pages(lance_served):
    served = lance_served
    for name in ("u", "v"):
        served.create(name)
    for path in ("/namespace/$/table/list", "/table"):
        first = served.client.get(path, params={"limit": 2}).json()
        assert first["tables"] == ["t", "u"]
        rest = {"limit": 2, "page_token": first["page_token"]}
        assert served.client.get(path, params=rest).json() == {"tables": ["v"]}
        empty = served.client.get(path, params={"page_token": "", "limit": 10**15}).json()
        assert empty == {"tables": ["t", "u", "v"]}
        for silly in ({"limit": 0}, {"limit": -1}, {"limit": "two"}, {"limit": 10**30}):
            refused(served.client.get(path, params=silly))
        refused(served.client.get(path, params={"page_token": "!"}))


# -- bodies ----------------------------------------------------------------------------------------

BROKEN = {
    "no JSON": b"{",
    "no text": b"\xff\xfe{}",
    "a list": b"[1]",
    "a number": b"1",
    "half a character": b'{"id": ["\\ud800"]}',
    "a wrong type": b'{"version": "one"}',
    "a wrong type within": b'{"context": 3}',
    "a wrong type deep within": b'{"identity": {"api_key": []}}',
    "deep": b'{"id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "not so deep": b'{"context": ' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"}",
    "a huge number": b'{"version": 1' + b"0" * 5000 + b"}",
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_read_is_refused(lance_served, body):
    before = lance_served.files
    headers = {"content-type": "application/json"}
    response = lance_served.client.post("/table/t/describe", content=body, headers=headers)
    refused(response)
    assert lance_served.files == before


def test_what_cannot_be_read_of_any_operation_is_refused(lance_served):
    """A field may have any wrong type; none of them is taken for a failure of the server."""
    before = lance_served.files
    wrong = [1, "", [1], {"a": 1}, [{"a": [None]}], True]
    fields = [
        "entries",
        "operations",
        "actions",
        "updates",
        "new_columns",
        "alterations",
        "ranges",
        "query",
        "vector",
        "columns",
        "full_text_query",
        "new_namespace_id",
        "new_table_name",
        "version",
        "tag",
        "branch",
        "name",
        "location",
    ]
    paths = [
        "/table/version/batch-create",
        "/table/batch-commit",
        *(
            f"/table/t/{action}"
            for action in [
                "rename",
                "query",
                "explain_plan",
                "analyze_plan",
                "update",
                "add_columns",
                "alter_columns",
                "drop_columns",
                "tags/create",
                "branches/create",
                "version/create",
                "version/delete",
                "register",
                "update_field_metadata",
                "create_index",
                "restore",
            ]
        ),
        "/transaction/t$x/alter",
    ]
    for path in paths:
        for value in wrong:
            response = lance_served.post(path, dict.fromkeys(fields, value))
            assert 400 <= response.status_code < 500, (path, value, response.text)
            assert response.json()["code"] in range(24)
    assert lance_served.files == before


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", ARROW, "multipart/form-data"])
def test_another_kind_of_body_is_refused(lance_served, kind):
    headers = {"content-type": kind}
    refused(lance_served.client.post("/table/t/describe", content=b"{}", headers=headers))


@pytest.mark.parametrize("kind", ["application/json", "text/csv", "application/x-parquet"])
def test_another_kind_of_rows_is_refused(lance_served, kind):
    before = lance_served.files
    rows = stream_of(pa.table({"n": [1]}))
    refused(lance_served.send("t", "insert", rows, headers={"content-type": kind}))
    refused(lance_served.send("u", "create", rows, headers={"content-type": kind}))
    assert lance_served.files == before


def test_longer_requests_than_allowed_are_refused(small):
    before = small.files
    long = json.dumps({"context": {"a": "x" * 2000}})
    headers = {"content-type": "application/json"}
    assert "too long" in refused(small.client.post("/table/t/drop", content=long, headers=headers))
    parts = iter([b'{"context": {"a": "', b"x" * 2000, b'"}}'])
    assert "too long" in refused(small.client.post("/table/t/drop", content=parts, headers=headers))
    rows = stream_of(pa.table({"n": range(1000)}))
    assert "too long" in refused(small.send("t", "insert", rows))
    assert "too long" in refused(small.send("u", "create", iter([rows[:900], rows[900:]])))
    assert small.files == before


def test_large_requests_are_read_beside_the_others(lance_served):
    words = {f"key {n}": "x" * 100 for n in range(2000)}
    assert lance_served.ask("t", "schema_metadata/update", words) == words


# -- addresses -------------------------------------------------------------------------------------

TRAVERSALS = [
    "..",
    "%2e%2e",
    "..%2F..%2Fetc",
    "%2Fetc%2Fpasswd",
    "a%2Fb",
    "a%5Cb",
    "..%5C..%5Cx",
    "a%00b",
    "%00",
    "a%0Ab",
    "%FF",
    "%C0%AE%C0%AE",
    "%ED%A0%80",
    "a$..",
    "..$a",
    "$a",
    "a$",
    "a$$b",
    "%2E",
]


@pytest.mark.parametrize("kind", [COMPAT_DISK, DISK], ids=lambda kind: kind.name)
def test_no_name_leads_out_of_the_catalog(tmp_path, clock, kind):
    with LanceServed(Lake(kind, str(tmp_path / "lake"), {}, clock)) as served:
        served.create("t")
        (tmp_path / "secret.lance").mkdir()
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        rows = stream_of(pa.table({"n": [1]}))
        for name in TRAVERSALS:
            answers = [
                served.send_raw(f"/table/{name}/create", rows, ARROW),
                served.send_raw(f"/table/{name}/describe", b"{}"),
                served.send_raw(f"/table/{name}/drop", b""),
                served.send_raw(f"/table/{name}/declare", b"{}"),
                served.send_raw(f"/table/t/index/{name}/drop", b""),
                served.send_raw(f"/namespace/{name}/create", b"{}"),
                served.send_raw(f"/transaction/{name}/describe", b"{}"),
            ]
            for status, body in answers:
                assert 400 <= status < 500, (name, body)
                assert body["code"] in range(24)
        after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        assert after == before


@pytest.mark.parametrize("where", ["location", "new_table_name", "tag", "branch"])
def test_no_field_leads_out_of_the_catalog(lance_served, where):
    before = lance_served.files
    asks = {
        "location": [("u", "declare"), ("u", "register")],
        "new_table_name": [("t", "rename")],
        "tag": [("t", "tags/create")],
        "branch": [("t", "count_rows")],
    }[where]
    for value in ("../x", "..", "/etc", "a/../../x", "a\0b", "file:///etc", "s3://x/y", "a\\..\\b"):
        for name, action in asks:
            body = {where: value, **({"version": 1} if where == "tag" else {})}
            response = lance_served.post(lance_served.at(name, action), body)
            assert 400 <= response.status_code < 500, (action, value, response.text)
    assert lance_served.files == before


def test_unknown_addresses_and_methods(lance_served):
    client = lance_served.client
    for path in (
        "",
        "/",
        "/table/t",
        "/table/t/nothing",
        "/tables",
        "/namespace",
        "/table/t/a/b/c",
    ):
        refused(client.post(path), 404)
    refused(client.get("http://localhost/lance/v2/table"), 404)
    refused(client.get("http://localhost/lance/absent/v1/table"), 400, 4)
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
        response = client.request(method, "/table/t/describe")
        refused(response, 405)
        assert response.headers["allow"] == "POST"
    refused(client.post("/table"), 405)


def test_too_many_parameters_are_refused(lance_served):
    params = {f"a{n}": "x" for n in range(100)}
    refused(lance_served.client.get("/table", params=params))
    refused(lance_served.client.get("/table?page_token=%FF"))
    refused(lance_served.client.get("/table", params={"include_declared": "maybe"}))


# -- who asks --------------------------------------------------------------------------------------


def test_who_asks_is_told_by_either_header(tmp_path, clock):
    clients = (Client.of("ada", "s3cret", Grant(Role.WRITER)), Client.of("bob", "hunter2"))
    lake = Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)
    with LanceServed(lake, ServerSettings(clients=clients)) as served:
        response = served.client.get("/table")
        refused(response, 401, 16)
        assert response.headers["www-authenticate"] == "Bearer"
        for headers in ({"authorization": "Bearer bob:hunter2"}, {"x-api-key": "bob:hunter2"}):
            assert served.client.get("/table", headers=headers).json() == {"tables": []}
            refused(served.post("/namespace/a/create", headers=headers), 403, 15)
        refused(served.client.get("/table", headers={"x-api-key": "bob:wrong"}), 401, 16)
        made = served.post("/namespace/a/create", headers={"x-api-key": "ada:s3cret"})
        assert made.status_code == 200
        assert "s3cret" not in made.text
        # A body is no proof of anything.
        body = {"identity": {"api_key": "ada:s3cret"}}
        refused(served.post("/namespace/b/create", body), 401, 16)


def test_names_are_hidden_from_who_may_not_see_them(tmp_path, clock):
    from mooring.identifiers import ObjectId

    within = Grant(Role.WRITER, namespace=ObjectId.of(["a"]))
    clients = (Client.of("ada", "s3cret", Grant(Role.ADMIN)), Client.of("bob", "hunter2", within))
    lake = Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)
    with LanceServed(lake, ServerSettings(clients=clients)) as served:
        for name in ("a", "b"):
            served.catalog.create_namespace([name])
            served.catalog.create_table([name, "t"], pa.table({"n": [1]}))
        bob = {"headers": {"x-api-key": "bob:hunter2"}}
        assert served.client.get("/namespace/$/list", **bob).json() == {"namespaces": ["a"]}
        assert served.client.get("/table", **bob).json() == {"tables": ["a$t"]}
        assert served.post("/table/a$t/count_rows", **bob).json() == 1
        for path, body in (
            ("/table/b$t/count_rows", {}),
            ("/table/a$t/rename", {"new_table_name": "u", "new_namespace_id": ["b"]}),
            ("/table/a$u/declare", {"location": "b/t.lance"}),
            ("/table/batch-commit", {"operations": [{"deregister_table": {"id": ["b", "t"]}}]}),
            ("/table/a$t/explain_plan", {"query": {"id": ["b", "t"]}}),
        ):
            response = served.post(path, body, **bob)
            assert response.status_code in {400, 403}, (path, response.text)
            assert response.json()["code"] in {13, 15}
        assert served.catalog.list_tables(["b"]) == ["t"]
