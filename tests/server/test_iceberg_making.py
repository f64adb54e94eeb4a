"""Creating, registering, renaming and dropping tables; and what is refused.

Spec: iceberg-rest-openapi, "createTable", "registerTable", "renameTable", "dropTable", views.
"""

from __future__ import annotations

import pytest

from mooring.namespace.states import SoftDeleted
from mooring.server.settings import ServerSettings
from tests.lakes import DISK, Lake
from tests.server.served import LANCE, SCHEMA, Served, at, kind_of

UNSUPPORTED = (400, "UnsupportedOperationException")


# -- create ---------------------------------------------------------------------------------------


def test_empty_lance_table_is_created_and_has_a_snapshot(served):
    made = served.create("t", properties={"Table_Type": "LANCE"})
    assert made.status_code == 200, made.text
    metadata = made.json()["metadata"]
    assert "metadata-location" not in made.json()
    assert made.headers["etag"] == served.get(served.table("t")).headers["etag"]
    assert metadata["current-snapshot-id"] == 1
    assert metadata["schemas"][0]["fields"][0]["type"] == "long"
    assert served.values("t") == []
    assert kind_of(served.create("t")) == (409, "AlreadyExistsException")


def test_properties_are_kept_without_those_that_make_a_table_lances(spaced):
    spaced.create("t", properties={**LANCE, "owner": "ada", "gc.enabled": "true"})
    assert spaced.catalog.describe_table(spaced.lake.id("t")).properties == {"owner": "ada"}
    assert spaced.load("t")["properties"]["gc.enabled"] == "false"


def test_notes_of_a_client_are_kept_and_never_settings_of_the_catalog(spaced):
    """Mooring's own client keeps who made a table, under names that a catalog has for itself."""
    note = "mooring.created-id"
    made = spaced.create("t", properties={**LANCE, note: "x"})
    assert made.json()["metadata"]["properties"][note] == "x"
    assert spaced.load("t")["properties"][note] == "x"
    spaced.update("t", [{"action": "set-properties", "updates": {note: "y"}}])
    assert spaced.load("t")["properties"][note] == "y"
    kept = spaced.catalog.describe_table(spaced.lake.id("t")).properties
    assert note not in kept
    spaced.update("t", [{"action": "remove-properties", "removals": [note]}])
    assert note not in spaced.load("t")["properties"]
    for key in ("mooring.retention", "iceberg-client.x"):
        refused = spaced.update("t", [{"action": "set-properties", "updates": {key: "1d"}}])
        assert kind_of(refused) == UNSUPPORTED


def test_notes_are_told_back_even_where_they_cannot_be_kept(plain):
    made = plain.create("t", properties={**LANCE, "mooring.created-id": "x"})
    assert made.json()["metadata"]["properties"]["mooring.created-id"] == "x"


def test_plain_iceberg_table_is_refused_with_how_to_make_one_of_lance(served):
    refused = served.create("t", properties={})
    assert kind_of(refused) == UNSUPPORTED
    assert "'table_type' to 'lance'" in refused.json()["error"]["message"]
    assert served.names() == []


@pytest.mark.parametrize(
    "more",
    [
        {"stage-create": True},
        {"partition-spec": {"fields": [{"source-id": 1, "transform": "identity", "name": "n"}]}},
        {
            "write-order": {
                "order-id": 1,
                "fields": [
                    {
                        "source-id": 1,
                        "transform": "identity",
                        "direction": "asc",
                        "null-order": "nulls-first",
                    }
                ],
            }
        },
    ],
    ids=["staged", "partitioned", "sorted"],
)
def test_what_lance_has_not_is_refused_before_anything_is_done(served, more):
    before = served.files()
    assert kind_of(served.create("t", **more)) == UNSUPPORTED
    assert served.files() == before


def test_unsorted_and_unpartitioned_is_what_a_lance_table_is(served):
    empty = {"partition-spec": {"spec-id": 0, "fields": []}, "write-order": None}
    assert served.create("t", **empty, **{"stage-create": False}).status_code == 200


def test_table_without_columns_is_only_declared(served):
    made = served.create("t", schema={"type": "struct", "fields": []})
    assert made.json()["metadata"]["current-snapshot-id"] == 0
    assert served.names() == ["t"]


def test_table_that_lies_at_a_location_is_taken_in(spaced):
    spaced.fill("t", 1, 2)
    location = spaced.load("t")["location"]
    spaced.catalog.deregister_table(spaced.lake.id("t"))
    made = spaced.create("u", location=location)
    assert made.status_code == 200, made.text
    assert made.json()["metadata"]["current-snapshot-id"] == 2
    assert spaced.values("u") == [1, 2]


def test_location_without_a_table_is_declared_where_the_catalog_lets_it_be_chosen(plain):
    root = plain.lake.store.location("").rstrip("/")
    made = plain.create("t", location=f"file://{root}/t.lance")
    assert made.json()["metadata"]["current-snapshot-id"] == 0
    assert plain.create("u", location="s3://elsewhere/u").status_code == 400


def test_location_outside_of_the_catalog_is_refused(served):
    before = served.files()
    for location in ("/etc", "file:///etc/x", "../x", "s3a://b/x", "lance://x"):
        assert served.create("t", location=location).status_code in {400, 404}, location
    assert served.files() == before


def test_table_in_an_absent_namespace_is_refused(spaced):
    body = {"name": "t", "schema": SCHEMA, "properties": LANCE}
    refused = spaced.post("/namespaces/nope/tables", body)
    assert kind_of(refused) == (404, "NoSuchNamespaceException")


SENSELESS = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'{"name": 1}',
    b'{"name": "t"}',
    b'{"name": "t", "schema": [], "properties": {}}',
    b'{"name": "t", "schema": {}, "properties": {"table_type": "lance"}}',
    b'{"name": "t", "schema": {}, "properties": {"table_type": 1}}',
    b'{"name": "\\ud800", "schema": {}, "properties": {}}',
    b"\xff\xfe",
    b"[" * 100_000,
]


def test_senseless_body_is_refused(served):
    for body in SENSELESS:
        for path in (served.tables, "/transactions/commit", "/tables/rename"):
            assert served.client.post(path, content=body).status_code == 400, (path, body[:50])


def test_body_has_a_limit(served):
    body = b'{"name": "' + b"x" * (16 * 1024 * 1024) + b'"}'
    refused = served.client.post(served.tables, content=body)
    assert kind_of(refused)[0] == 400
    assert "bytes" in refused.json()["error"]["message"]


# -- register -------------------------------------------------------------------------------------


def test_lance_table_is_registered_by_its_directory(served):
    served.fill("t", 1, 2)
    location = served.load("t")["location"]
    served.catalog.deregister_table(served.lake.id("t"))
    assert served.names() == []
    body = {"name": "t", "metadata-location": location}
    register = f"{at(served.namespace)}/register"
    made = served.post(register, body)
    assert made.status_code == 200, made.text
    assert made.json()["metadata"]["current-snapshot-id"] == 2
    assert served.post(register, body).status_code == 409


def test_metadata_of_iceberg_is_not_registered(served):
    body = {"name": "t", "metadata-location": "s3://b/t/metadata/00001-x.metadata.json"}
    refused = served.post(f"{at(served.namespace)}/register", body)
    assert kind_of(refused) == UNSUPPORTED
    assert "directory of a Lance table" in refused.json()["error"]["message"]


def test_nothing_is_registered_where_no_table_lies(spaced):
    body = {"name": "t", "metadata-location": "absent.lance"}
    assert spaced.post(f"{at(spaced.namespace)}/register", body).status_code == 404


# -- rename and drop ------------------------------------------------------------------------------


def _rename(served, old: str, new: str, namespace: list[str] | None = None):
    source = {"namespace": served.namespace, "name": old}
    target = {"namespace": namespace or served.namespace, "name": new}
    return served.post("/tables/rename", {"source": source, "destination": target})


def test_table_is_renamed(spaced):
    spaced.fill("t", 1)
    spaced.fill("u", 2)
    spaced.lake.make("other")
    assert _rename(spaced, "t", "v").status_code == 204
    assert spaced.names() == ["u", "v"]
    assert kind_of(_rename(spaced, "v", "u")) == (409, "AlreadyExistsException")
    assert kind_of(_rename(spaced, "x", "y")) == (404, "NoSuchTableException")
    assert kind_of(_rename(spaced, "v", "v", ["nope"])) == (404, "NoSuchNamespaceException")
    assert _rename(spaced, "v", "w", ["other"]).status_code == 204
    assert spaced.names() == ["u"]


def test_plain_directory_says_that_it_cannot_rename(plain):
    plain.fill("t", 1)
    assert kind_of(_rename(plain, "t", "u")) == (406, "UnsupportedOperationException")
    assert plain.names() == ["t"]


@pytest.mark.parametrize("asked", [None, "false", "False", ""])
def test_drop_is_soft(served, asked):
    served.fill("t", 1, 2)
    params = {} if asked is None else {"purgeRequested": asked}
    assert served.delete(served.table("t"), params=params).status_code == 204
    assert served.delete(served.table("t")).status_code == 404
    status = served.catalog.table_status(served.lake.id("t"))
    assert isinstance(status, SoftDeleted)
    assert status.expires_at_ms > status.deleted_at_ms
    served.catalog.undrop_table(served.lake.id("t"))
    assert served.values("t") == [1, 2]


@pytest.mark.parametrize("asked", ["true", "True"])
def test_purge_that_was_asked_for_can_be_done_at_once(served, asked):
    served.fill("t", 1)
    assert served.delete(served.table("t"), params={"purgeRequested": asked}).status_code == 204
    (dropped,) = served.catalog.list_purgable_tables()
    assert dropped.expires_at_ms == dropped.deleted_at_ms
    assert served.catalog.purge_tables().purged == [served.lake.id("t")]


def test_dropped_table_comes_back_until_somebody_purges_it(served):
    served.fill("t", 1)
    served.delete(served.table("t"), params={"purgeRequested": "true"})
    served.catalog.undrop_table(served.lake.id("t"))
    assert served.load("t")["current-snapshot-id"] == 1


def test_protected_table_is_not_dropped(served):
    served.fill("t", 1)
    served.catalog.protect_table(served.lake.id("t"))
    assert kind_of(served.delete(served.table("t"))) == (403, "ForbiddenException")
    assert served.names() == ["t"]


def test_protection_is_a_property_that_writers_may_change(served):
    served.fill("t", 1)
    key = "mooring.protected"
    served.update("t", [{"action": "set-properties", "updates": {key: "true"}}])
    assert served.load("t")["properties"][key] == "true"
    assert served.delete(served.table("t")).status_code == 403
    assert served.update("t", [{"action": "set-properties", "updates": {key: "x"}}]).is_error
    served.update("t", [{"action": "remove-properties", "removals": [key]}])
    assert served.delete(served.table("t")).status_code == 204


def test_purge_is_true_or_false(served):
    served.fill("t", 1)
    refused = served.delete(served.table("t"), params={"purgeRequested": "maybe"})
    assert refused.status_code == 400
    assert served.names() == ["t"]


# -- what is not there ----------------------------------------------------------------------------


def test_views_are_refused_with_the_right_errors(served):
    views = f"{at(served.namespace)}/views"
    assert kind_of(served.get(views)) == UNSUPPORTED
    assert kind_of(served.post(views, {})) == UNSUPPORTED
    assert kind_of(served.post(f"{views}/v", {})) == UNSUPPORTED
    assert kind_of(served.post("/views/rename", {})) == (406, "UnsupportedOperationException")
    assert kind_of(served.get(f"{views}/v")) == (404, "NoSuchViewException")
    assert kind_of(served.delete(f"{views}/v")) == (404, "NoSuchViewException")
    assert served.head(f"{views}/v").status_code == 404
    assert kind_of(served.get("/namespaces/nope/views")) == (404, "NoSuchNamespaceException")


def test_scans_are_not_planned(served):
    served.fill("t", 1)
    table = served.table("t")
    assert kind_of(served.post(f"{table}/plan", {})) == (406, "UnsupportedOperationException")
    assert kind_of(served.post(f"{table}/tasks", {})) == UNSUPPORTED
    assert kind_of(served.get(f"{table}/plan/1")) == (404, "NoSuchPlanIdException")
    assert kind_of(served.delete(f"{table}/plan/1")) == (404, "NoSuchPlanIdException")
    assert kind_of(served.post(f"{served.table('x')}/plan", {}))[0] == 404


def test_metrics_are_accepted(served):
    served.fill("t", 1)
    report = {"report-type": "scan-report", "table-name": "t", "snapshot-id": 1}
    assert served.post(f"{served.table('t')}/metrics", report).status_code == 204
    assert served.post(f"{served.table('x')}/metrics", report).status_code == 404
    assert served.post(f"{served.table('t')}/metrics", [1]).status_code == 400


def test_clients_are_told_exactly_what_is_served(served):
    told = served.get("/config", params={"warehouse": "any thing"}).json()
    assert (told["defaults"], told["overrides"]) == ({}, {})
    assert len(told["endpoints"]) == len(set(told["endpoints"])) == 16
    assert not [one for one in told["endpoints"] if "view" in one or "plan" in one]
    assert "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials" not in told
    assert "POST /v1/{prefix}/transactions/commit" in told["endpoints"]


def test_unknown_addresses_and_methods_are_told_as_iceberg_errors(served):
    assert kind_of(served.get("/nothing")) == (404, "NotFoundException")
    refused = served.client.put(served.tables)
    assert kind_of(refused)[0] == 405
    assert refused.headers["allow"] == "GET, POST"


def test_read_only_catalog_refuses_changes(tmp_path, clock):
    lake = Lake(DISK, str(tmp_path / "lake"), {}, clock)
    lake.create("t", [1])
    with Served(lake, ServerSettings(), read_only=True) as served:
        assert served.load("t")["current-snapshot-id"] == 1
        assert kind_of(served.delete(served.table("t"))) == (403, "ForbiddenException")
        assert kind_of(served.create("u")) == (403, "ForbiddenException")
        assert served.names() == ["t"]
