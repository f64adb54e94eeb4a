"""Who may do what over ``/mooring/v1``, in several catalogs, and what foreign ones have."""

from __future__ import annotations

from dataclasses import replace

import lance_namespace
import pytest
from starlette.testclient import TestClient

import mooring
from mooring.identifiers import ObjectId
from mooring.server.app import app_of, create_service
from mooring.server.audit import NoAudit
from mooring.server.catalogs import MooringCatalog
from mooring.server.mooring.kinds import kind_of
from mooring.server.mooring.routes import ROUTES
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.lakes import rows
from tests.server.mooring_api import Api, at, code_of

_RAW = ObjectId.of(["raw"])
_GRANTS = {
    "reader": [Grant(Role.READER)],
    "writer": [Grant(Role.WRITER)],
    "admin": [Grant(Role.ADMIN)],
    "raw-reader": [Grant(Role.READER, "lake", _RAW)],
    "raw-writer": [Grant(Role.WRITER, "lake", _RAW)],
    "raw-admin": [Grant(Role.ADMIN, "lake", _RAW)],
    "store-reader": [Grant(Role.READER, "store")],
}
_SECRET = "a long secret"
_TABLES = [["top"], ["raw", "deep", "t"], ["raw", "t"], ["other", "t"]]


class _Heard(NoAudit):
    """An audit log to look at."""

    def __init__(self):
        self.changes = []

    def record(self, change):
        self.changes.append(change)


class _Server:
    """Three catalogs, of three kinds, with clients of every role."""

    def __init__(self, place):
        self.lake = mooring.connect(place / "lake")
        for name in ("raw", "other"):
            self.lake.create_namespace(name, {"owner": name})
        self.lake.create_namespace(["raw", "deep"])
        for table in _TABLES:
            self.lake.create_table(table, rows([1]))
        self.store = mooring.connect(f"metastore+{place / 'store'}")
        self.store.create_namespace("main")
        foreign = lance_namespace.connect("dir", {"root": str(place / "foreign")})
        named = {"lake": self.lake, "store": self.store, "foreign": foreign}
        clients = tuple(Client.of(name, _SECRET, *grants) for name, grants in _GRANTS.items())
        self.heard = _Heard()
        service = create_service(named, ServerSettings(clients=clients))
        self.client = TestClient(app_of(replace(service, audit=self.heard)), base_url="http://x")

    def api(self, who, catalog=""):
        return Api(self.client, f"{who}:{_SECRET}" if who else None, catalog)

    def drop(self, *tables):
        for table in tables:
            self.lake.drop_table(table)


@pytest.fixture
def server(tmp_path):
    made = _Server(tmp_path)
    with made.client:
        yield made


def test_catalogs_are_those_in_which_one_has_a_role(server):
    def names(who):
        return [one["name"] for one in server.api(who).found("/catalogs")["catalogs"]]

    assert names("reader") == ["lake", "store", "foreign"]
    assert names("raw-reader") == ["lake"]
    assert names("store-reader") == ["store"]


def test_only_admins_are_told_where_a_catalog_lies(server):
    lake, store, foreign = server.api("admin").found("/catalogs")["catalogs"]
    assert (lake["is_default"], store["is_default"]) == (True, False)
    assert [one["kind"] for one in (lake, store, foreign)] == ["directory", "metastore", "foreign"]
    assert lake["uri"] == server.lake.uri
    assert "uri" not in foreign
    for who in ("writer", "raw-admin"):
        assert all("uri" not in one for one in server.api(who).found("/catalogs")["catalogs"])


def test_uri_is_told_without_secrets(tmp_path):
    catalog = mooring.connect(tmp_path / "lake")
    catalog.uri = "s3://user:password@bucket/lake"
    with TestClient(app_of(create_service(catalog, ServerSettings()))) as client:
        (told,) = Api(client).found("/catalogs")["catalogs"]
    assert "password" not in told["uri"]
    assert told["uri"].endswith("bucket/lake")


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("/data/lake", "directory"),
        ("s3://bucket/metastore+", "directory"),
        ("metastore+s3://bucket/lake", "metastore"),
        ("iceberg+https://irc.example.com", "iceberg"),
        ("lance+http://127.0.0.1:8765/lance", "lance"),
    ],
)
def test_kind_is_that_of_the_uri(tmp_path, uri, kind):
    catalog = mooring.connect(tmp_path)
    catalog.uri = uri
    assert kind_of(MooringCatalog("lake", catalog)) == kind


def test_catalog_tells_what_it_is_like(server, tmp_path):
    told = server.api("raw-reader").found("/catalog")
    assert told == {
        "name": "lake",
        "kind": "directory",
        "levels": None,
        "managed_versioning": False,
        "keeps_versions": False,
        "read_only": False,
        "version": mooring.__version__,
    }
    store = server.api("store-reader", "store").found("/catalog")
    assert (store["kind"], store["levels"], store["keeps_versions"]) == ("metastore", 2, True)
    frozen = mooring.connect(tmp_path / "lake", read_only=True)
    with TestClient(app_of(create_service(frozen, ServerSettings()))) as client:
        assert Api(client).found("/catalog")["read_only"]
        assert code_of(Api(client).post("/table/top/protect")) == (403, 15)


def test_roles_in_one_catalog_are_none_in_another(server):
    assert code_of(server.api("store-reader").get("/catalog")) == (403, 15)
    assert code_of(server.api("raw-admin", "store").get("/trash")) == (403, 15)
    assert code_of(server.api("reader", "never").get("/catalog")) == (404, 4)


def test_nobody_is_told_anything_without_proof(server):
    for route in ROUTES:
        for who in (None, "nobody"):
            answer = server.api(who).call(route, "top", {})
            assert code_of(answer) == (401, 16), route.name
            assert answer.headers["www-authenticate"] == "Bearer"
    assert server.client.get("/mooring/v1/openapi.json").status_code == 200


def test_roles_below_the_one_that_is_needed_change_nothing(server):
    for route in ROUTES:
        body = {"updates": {"a": "b"}} if route.name.startswith("Update") else {}
        for role in Role:
            if not role.includes(route.role):
                answer = server.api(str(role)).call(route, "top", body)
                assert code_of(answer) == (403, 15), route.name
    assert {one.outcome for one in server.heard.changes} == {"refused"}
    assert server.lake.table_exists("top")
    assert server.lake.describe_table("top").properties == {}


def test_listings_show_what_may_be_seen(server):
    api = server.api("raw-reader")
    found = {tuple(one["id"]): one["properties"] for one in api.found("/namespaces")["namespaces"]}
    assert found == {(): {}, ("raw",): {"owner": "raw"}, ("raw", "deep"): {}}
    assert [one["id"] for one in api.found("/tables")["tables"]] == _TABLES[1:3]
    assert code_of(api.get("/tables", within="other")) == (403, 15)
    server.drop(*_TABLES)
    server.lake.drop_namespace("other")
    assert [one["id"] for one in api.found("/trash")["tables"]] == _TABLES[1:3]
    assert api.found("/trash")["namespaces"] == []
    assert len(server.api("reader").found("/trash")["namespaces"]) == 1


def test_role_holds_in_its_namespace_alone(server):
    api = server.api("raw-writer")
    assert api.done("/table/raw%24t/protect") == {}
    assert code_of(api.post("/table/top/protect")) == (403, 15)
    assert code_of(api.get("/table/top/status")) == (403, 15)
    assert api.done("/namespace/raw/properties", {"updates": {"a": "b"}})
    assert code_of(api.post("/namespace/%24/properties", {"updates": {}})) == (403, 15)


def test_table_is_not_brought_back_to_where_one_may_not_write(server):
    server.drop(["raw", "deep", "t"], ["other", "t"])
    api, deep = server.api("raw-writer"), f"/table/{at(['raw', 'deep', 't'])}/undrop"
    assert code_of(api.post(deep, {"new_id": ["other", "new"]})) == (403, 15)
    assert code_of(api.post("/table/other%24t/undrop", {"new_id": ["raw", "new"]})) == (403, 15)
    assert api.done(deep, {"new_id": ["raw", "new"]})["id"] == ["raw", "new"]


def test_purges_are_for_admins_of_all_that_goes(server):
    server.drop(*_TABLES)
    for who in ("writer", "raw-writer"):
        assert code_of(server.api(who).post("/table/raw%24t/purge")) == (403, 15)
    api = server.api("raw-admin")
    assert code_of(api.post("/trash/purge")) == (403, 15)
    assert code_of(api.post("/trash/purge", {"ids": [["raw", "t"], ["top"]]})) == (403, 15)
    assert len(server.lake.list_purgable_tables()) == 4
    assert api.done("/trash/purge", {"ids": [["raw", "t"]]})["purged"] == [["raw", "t"]]
    assert api.done(f"/table/{at(['raw', 'deep', 't'])}/purge") == {}
    assert [one.id.names for one in server.lake.list_purgable_tables()] == [
        ("other", "t"),
        ("top",),
    ]


def test_transactions_and_runs_are_for_readers_of_the_whole_catalog(server):
    assert server.api("store-reader", "store").found("/transactions")["transactions"]
    for path in ("/transactions", "/transactions/x", "/runs", "/runs/x"):
        assert code_of(server.api("raw-reader").get(path)) == (403, 15)


def test_changes_are_recorded_and_told_in_the_name_of_who_asked(server):
    server.drop(["top"])
    server.api("writer").done("/table/top/undrop")
    assert server.lake.history("top")[-1].by == "writer"
    server.api("raw-writer").post("/table/top/undrop")
    server.api("reader").get("/trash")
    done, refused = server.heard.changes
    assert (done.subject, done.catalog, done.operation, done.objects, done.outcome) == (
        "writer",
        "lake",
        "mooring.UndropTable",
        [ObjectId.of(["top"])],
        "done",
    )
    assert (refused.outcome, refused.status) == ("refused", 403)
    assert "raw-writer" in refused.message


def test_others_than_moorings_have_no_such_operations(server):
    for route in ROUTES:
        body = {"updates": {}} if route.name.startswith("Update") else {}
        answer = server.api("admin", "foreign").call(route, "t", body)
        if route.is_foreign:
            assert answer.status_code == 200, route.name
        else:
            assert code_of(answer) == (406, 0), route.name
            assert "Lance's REST protocol" in answer.json()["error"]


def test_foreign_catalog_tells_its_kind(server):
    told = server.api("reader", "foreign").found("/catalog")
    assert (told["kind"], told["levels"]) == ("foreign", None)
