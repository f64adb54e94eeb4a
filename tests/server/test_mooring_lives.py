"""The lives of tables and namespaces over ``/mooring/v1``, on every kind of catalog."""

from __future__ import annotations

import pytest

from mooring.errors import TableNotFoundError
from mooring.identifiers import ObjectId
from mooring.namespace.api import Ttl
from tests.lakes import NOON_MS
from tests.server.mooring_api import Api, at, code_of

_DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def api(served):
    return Api(served.client)


@pytest.fixture
def table(served):
    """Return where a table is that exists."""
    served.lake.create("t", [1])
    return f"/table/{at(served.lake.path('t'))}"


def test_status_tells_what_a_table_is(served, api, table):
    assert api.found(f"{table}/status") == {"status": "exists"}
    assert api.found(f"{table}x/status") == {"status": "not_found"}
    served.lake.backend.drop_table(served.lake.id("t"), Ttl(_DAY_MS))
    told = api.found(f"{table}/status")
    assert told == {
        "status": "soft_deleted",
        "deleted_at_ms": NOON_MS,
        "expires_at_ms": NOON_MS + _DAY_MS,
    }


def test_table_that_never_expires_says_so(served, api, table):
    served.lake.backend.drop_table(served.lake.id("t"), Ttl(None))
    assert api.found(f"{table}/status")["expires_at_ms"] is None
    (dropped,) = api.found("/trash")["tables"]
    assert dropped == {
        "id": served.lake.path("t"),
        "deleted_at_ms": NOON_MS,
        "expires_at_ms": None,
    }


def test_dropped_table_comes_back(served, api, table):
    served.lake.drop("t")
    told = api.done(f"{table}/undrop")
    assert told["id"] == served.lake.path("t")
    assert told["location"] == served.catalog.describe_table(served.lake.id("t")).location
    assert served.values("t") == [1]
    assert code_of(api.post(f"{table}/undrop")) == (404, TableNotFoundError.code)


def test_dropped_table_comes_back_under_another_name(served, api, table):
    served.lake.drop("t")
    new = served.lake.path("u")
    answer = api.post(f"{table}/undrop", {"new_id": new})
    if not (served.lake.kind.manifest or served.lake.kind.metastore):
        assert code_of(answer) == (406, 0)
        return
    assert answer.json()["id"] == new
    assert served.lake.names() == ["u"]


def test_purge_takes_a_dropped_table_for_good(served, api, table):
    assert api.post(f"{table}/purge").status_code in {404, 409}  # it is live
    assert served.values("t") == [1]
    served.lake.drop("t")
    assert api.done(f"{table}/purge") == {}
    assert served.lake.trash() == []
    assert code_of(api.post(f"{table}/undrop"))[0] == 404


def test_trash_tells_what_was_dropped_before_a_time(served, api):
    for name in ("a", "b"):
        served.lake.create(name, [1])
    served.lake.drop("a")
    served.lake.clock.advance(1000)
    served.lake.drop("b")

    def names(**params):
        return [one["id"][-1] for one in api.found("/trash", **params)["tables"]]

    assert names() == ["a", "b"]
    assert names(deleted_before_ms=NOON_MS + 1) == ["a"]
    assert names(deleted_before_ms=-1) == []


def test_named_tables_are_purged_and_failures_are_told(served, api):
    for name in ("a", "b", "live"):
        served.lake.create(name, [1])
    served.lake.drop("a", "b")
    ids = [served.lake.path(name) for name in ("a", "a", "live", "never")]
    told = api.done("/trash/purge", {"ids": ids})
    assert told["purged"] == [served.lake.path("a")]
    assert {tuple(one["id"]) for one in told["failed"]} == {tuple(ids[2]), tuple(ids[3])}
    assert all(one["code"] and one["error"] for one in told["failed"])
    assert served.lake.trash() == [str(served.lake.id("b"))]
    assert served.lake.names() == ["live"]


def test_purge_without_names_takes_what_has_expired(served, api):
    backend = served.catalog.backend  # by the clock of the server
    for name, ttl in (("over", Ttl(0)), ("stays", Ttl(None))):
        served.lake.create(name, [1], backend=backend)
        backend.drop_table(served.lake.id(name), ttl)
    assert api.done("/trash/purge", {"ids": []}) == {"purged": [], "failed": []}
    assert api.done("/trash/purge") == {"purged": [served.lake.path("over")], "failed": []}
    assert served.lake.trash() == [str(served.lake.id("stays"))]


def test_protected_table_is_not_dropped(served, api, table):
    assert api.done(f"{table}/protect") == {}
    drop = f"http://x/lance/v1{table}/drop"
    assert served.client.post(drop).json()["code"] == 19
    assert api.done(f"{table}/protect", {"protected": False}) == {}
    assert served.client.post(drop).status_code == 200


def test_history_tells_who_did_what(served, api, table):
    served.lake.drop("t")
    api.done(f"{table}/undrop")
    changes = api.found(f"{table}/history")["changes"]
    assert {(one["action"], one["by"]) for one in changes} >= {
        ("drop", "alice"),
        ("undrop", served.catalog.backend.author),
    }
    (dropped,) = [one for one in changes if one["action"] == "drop"]
    assert dropped["at_ms"] == NOON_MS


def test_versions_are_tidied(served, api, table):
    assert api.done(f"{table}/version/tidy") == {"count": 0}


def test_tables_are_described_all_at_once(served, api, table):
    served.lake.create("u", [1])
    found = api.found("/tables")["tables"]
    assert [one["id"] for one in found] == [served.lake.path("t"), served.lake.path("u")]
    assert found[0]["location"] == served.catalog.describe_table(served.lake.id("t")).location
    assert code_of(api.get("/tables", within="never")) == (404, 1)


def test_namespaces_and_properties(spaced):
    api, lake = Api(spaced.client), spaced.lake
    lake.backend.create_namespace(ObjectId.of(["raw"]), {"owner": "ada"})
    found = {tuple(one["id"]): one["properties"] for one in api.found("/namespaces")["namespaces"]}
    assert found[()] == {}
    assert found["raw",] == {"owner": "ada"}
    told = api.done("/namespace/raw/properties", {"updates": {"owner": None, "team": "sea"}})
    assert told == {"properties": {"team": "sea"}}

    lake.create(ObjectId.of(["raw", "t"]), [1])
    table = "/table/raw%24t"
    told = api.done(f"{table}/properties", {"updates": {"label": "x"}})
    assert told["properties"]["label"] == "x"
    (shown,) = api.found("/tables", within="raw")["tables"]
    assert shown["properties"]["label"] == "x"
    assert api.found("/tables", within="raw", delimiter=".")["tables"] == [shown]


def test_dropped_namespace_comes_back_with_its_tables(spaced):
    api, lake = Api(spaced.client), spaced.lake
    lake.backend.create_namespace(ObjectId.of(["raw"]), {})
    lake.create(ObjectId.of(["raw", "t"]), [1])
    lake.backend.drop_namespace(ObjectId.of(["raw"]), cascade=True, ttl=Ttl(_DAY_MS))
    trash = api.found("/trash")
    assert trash["namespaces"] == [
        {"id": ["raw"], "deleted_at_ms": NOON_MS, "expires_at_ms": NOON_MS + _DAY_MS}
    ]
    assert api.found("/trash", deleted_before_ms=NOON_MS)["namespaces"] == []
    assert api.done("/namespace/raw/undrop")["count"] >= 1
    assert api.found("/table/raw%24t/status") == {"status": "exists"}
    assert code_of(api.post("/namespace/raw/undrop")) == (404, 1)


def test_plain_directory_has_neither_namespaces_nor_properties(plain):
    api = Api(plain.client)
    plain.lake.create("a$b", [1])
    assert api.found("/namespaces") == {"namespaces": [{"id": [], "properties": {}}]}
    assert api.found("/table/a%24b/status") == {"status": "exists"}
    assert code_of(api.post("/table/a%24b/properties", {"updates": {"a": "b"}})) == (406, 0)
    assert code_of(api.post("/namespace/a/undrop")) == (406, 0)


def test_identifiers_may_have_another_delimiter(compat):
    compat.lake.make("raw")
    compat.lake.create(ObjectId.of(["raw", "a.b"]), [1])
    api = Api(compat.client)
    assert api.found("/table/raw::a.b/status", delimiter="::") == {"status": "exists"}
    assert api.found("/table/raw.a.b/status", delimiter=".") == {"status": "not_found"}
    assert code_of(api.get("/table/t/status", delimiter="")) == (400, 13)
