"""What Iceberg clients see of Lance tables.

Spec: iceberg-namespace, "Table Definition", "Using Lance Table in IRC with Iceberg Tooling".
"""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

import lance
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import mooring
from mooring.changes.table import create_change_table
from mooring.errors import InvalidInputError
from mooring.iceberg.credentials import storage_options
from mooring.server.app import create_app
from mooring.server.settings import ServerSettings
from mooring.server.vending import VendingSettings
from mooring.tables.versions import manifest_name
from tests.lakes import MOTO, Lake
from tests.own_irc import run_own
from tests.server.served import Served, at, kind_of


def test_table_is_described_as_the_document_says(served):
    served.fill("t", 1, 2, 3)
    response = served.get(served.table("t"))
    metadata = response.json()["metadata"]
    assert "metadata-location" not in response.json()
    info = served.catalog.describe_table(served.lake.id("t"))
    assert metadata["location"].startswith("file:///")
    assert unquote(urlsplit(metadata["location"]).path) == info.location
    properties = metadata["properties"]
    assert properties["table_type"] == "lance"
    assert properties["managed_by"] == ("impl" if served.lake.kind.metastore else "storage")
    assert metadata["current-snapshot-id"] == 3
    assert metadata["current-schema-id"] == 1
    assert [one["schema-id"] for one in metadata["schemas"]] == [1]
    field = {"id": 1, "name": "n", "required": False, "type": "long", "doc": "arrow: int64"}
    assert metadata["schemas"][0]["fields"] == [field]
    assert [one["snapshot-id"] for one in metadata["snapshots"]] == [1, 2, 3]
    assert [one["snapshot-id"] for one in metadata["snapshot-log"]] == [1, 2, 3]


def test_engines_of_iceberg_find_nothing_to_open_and_nowhere_to_write(served):
    served.fill("t", 1, 2)
    metadata = served.load("t")
    for one in metadata["snapshots"]:
        assert one["manifest-list"].startswith("lance://this_is_a_lance_table/")
    properties = metadata["properties"]
    assert properties["gc.enabled"] == "false"
    assert properties["write.data.path"].startswith("lance://this_is_a_lance_table/")
    assert properties["write.metadata.path"].startswith("lance://this_is_a_lance_table/")


def test_metadata_is_what_iceberg_for_java_demands(served):
    served.fill("t", 1, 2, 3)
    metadata = served.load("t")
    times = [one["timestamp-ms"] for one in metadata["snapshot-log"]]
    assert times == sorted(times)
    assert metadata["last-updated-ms"] >= times[-1]
    assert metadata["last-sequence-number"] == 3
    assert [one["sequence-number"] for one in metadata["snapshots"]] == [1, 2, 3]
    assert [one.get("parent-snapshot-id") for one in metadata["snapshots"]] == [None, 1, 2]
    assert metadata["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert metadata["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert (metadata["default-spec-id"], metadata["default-sort-order-id"]) == (0, 0)
    assert (metadata["format-version"], metadata["last-column-id"]) == (2, 1)
    assert metadata["last-partition-id"] == 999
    for one in metadata["snapshots"]:
        assert all(isinstance(value, str) for value in one["summary"].values())


def test_times_never_go_back_although_those_of_copied_files_do(plain):
    plain.fill("t", 1, 2, 3)
    newest = plain.lake.store.location(f"t.lance/_versions/{manifest_name(3)}")
    os.utime(newest, (1_000_000_000, 1_000_000_000))
    times = [one["timestamp-ms"] for one in plain.load("t")["snapshot-log"]]
    assert times == sorted(times)
    assert plain.load("t")["last-updated-ms"] == times[-1]


def test_uuid_stays_and_differs_from_that_of_other_tables(served):
    served.fill("t", 1)
    served.fill("u", 1)
    first = served.load("t")["table-uuid"]
    served.catalog.table(served.lake.id("t")).insert(pa.table({"n": [2]}))
    assert served.load("t")["table-uuid"] == first
    assert served.load("u")["table-uuid"] != first


def test_metadata_is_derived_from_the_table_whoever_changed_it(plain):
    plain.fill("t", 1)
    lance.write_dataset(pa.table({"n": [2]}), plain.lake.store.location("t.lance"), mode="append")
    plain.lake.dataset("t").add_columns({"m": "n * 2"})
    metadata = plain.load("t")
    assert metadata["current-snapshot-id"] == 3
    assert [one["name"] for one in metadata["schemas"][0]["fields"]] == ["n", "m"]


def test_field_keeps_its_number_when_it_is_renamed(served):
    served.fill("t", 1)
    table = served.catalog.table(served.lake.id("t"))
    table.columns.add({"m": "n * 2"})
    table.columns.drop("n")
    assert [one["id"] for one in served.load("t")["schemas"][0]["fields"]] == [2]


def test_declared_table_has_a_snapshot_so_that_nobody_takes_it_for_empty(served):
    served.catalog.declare_table(served.lake.id("t"))
    metadata = served.load("t")
    assert metadata["current-snapshot-id"] == 0
    assert [one["snapshot-id"] for one in metadata["snapshots"]] == [0]
    assert metadata["refs"] == {"main": {"type": "branch", "snapshot-id": 0}}
    assert metadata["schemas"][0]["fields"] == []


def test_tags_are_refs_and_those_of_branches_are_not(served):
    served.fill("t", 1, 2, 3)
    table = served.catalog.table(served.lake.id("t"))
    table.tags.create("first", 1)
    table.branches.create("dev")
    table.insert(pa.table({"n": [9]}), branch="dev")
    table.tags.create("of-dev", branch="dev")
    assert served.load("t")["refs"] == {
        "first": {"type": "tag", "snapshot-id": 1},
        "main": {"type": "branch", "snapshot-id": 3},
    }


def test_snapshots_can_be_limited_to_those_that_have_names(served):
    served.fill("t", 1, 2, 3, 4)
    served.catalog.table(served.lake.id("t")).tags.create("second", 2)
    told = served.load("t", params={"snapshots": "refs"})
    assert [one["snapshot-id"] for one in told["snapshots"]] == [2, 4]
    assert len(served.load("t", params={"snapshots": "all"})["snapshots"]) == 4
    assert served.get(served.table("t"), params={"snapshots": "some"}).status_code == 400


def test_unchanged_table_is_not_sent_again(served):
    served.fill("t", 1)
    tag = served.get(served.table("t")).headers["etag"]
    for known in (tag, f"W/{tag}", f'"another", {tag}'):
        again = served.get(served.table("t"), headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
    served.catalog.table(served.lake.id("t")).insert(pa.table({"n": [2]}))
    changed = served.get(served.table("t"), headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


def test_absent_table_and_namespace_are_told_apart(served):
    assert kind_of(served.get(served.table("x"))) == (404, "NoSuchTableException")
    assert kind_of(served.get("/namespaces/nope/tables")) == (404, "NoSuchNamespaceException")
    assert served.head(served.table("x")).status_code == 404
    served.fill("t", 1)
    assert served.head(served.table("t")).status_code == 204
    assert served.head(at(served.namespace)).status_code == 204
    assert served.head("/namespaces/nope").status_code == 404


def test_dropped_table_is_not_seen(served):
    served.fill("t", 1)
    served.fill("u", 1)
    served.lake.drop("t")
    assert served.names() == ["u"]
    assert served.head(served.table("t")).status_code == 404


def test_change_table_is_no_lance_table(metastore):
    metastore.fill("t", 1)
    create_change_table(
        metastore.catalog, [*metastore.namespace, "c"], pa.schema([("k", pa.int64())])
    )
    assert metastore.names() == ["t"]
    assert metastore.get(metastore.table("c")).status_code == 404
    assert metastore.delete(metastore.table("c")).status_code == 404
    assert metastore.head(metastore.table("c")).status_code == 404


def test_tables_of_the_root_are_seen_in_a_namespace_that_stands_for_it(compat):
    compat.fill("t", 1)
    compat.lake.make("a")
    assert compat.get("/namespaces").json()["namespaces"] == [["a"], ["root"]]
    assert compat.names() == ["t"]
    assert compat.get("/namespaces/root").json() == {"namespace": ["root"], "properties": {}}
    assert compat.get("/namespaces", params={"parent": "root"}).json()["namespaces"] == []
    assert kind_of(compat.get("/namespaces/root%1Fa")) == (404, "NoSuchNamespaceException")
    assert kind_of(compat.post("/namespaces", {"namespace": ["root"]}))[0] == 409
    assert kind_of(compat.post("/namespaces", {"namespace": ["root", "b"]}))[0] == 406
    assert kind_of(compat.delete("/namespaces/root"))[0] == 400


def test_name_for_the_root_is_refused_where_a_namespace_has_it(compat):
    compat.lake.make("root", "a")
    with pytest.raises(InvalidInputError, match="--root-namespace"):
        create_app(compat.lake.connect())
    app = create_app(compat.lake.connect(), ServerSettings(root_namespace="top"))
    assert app is not None


def test_metastore_has_no_namespace_for_the_root(metastore):
    assert metastore.get("/namespaces").json()["namespaces"] == [["main"]]
    assert metastore.head("/namespaces/root").status_code == 404


def test_iceberg_catalog_has_no_namespace_for_the_root(compat):
    """Its tables lie in namespaces, of which one may well be called so."""
    compat.fill("t", 1)
    with run_own(compat.catalog) as uri:
        client = TestClient(create_app(mooring.connect(f"iceberg+{uri}")), base_url="http://x")
        assert client.get("/iceberg/v1/namespaces").json()["namespaces"] == [["root"]]
        (found,) = client.get("/iceberg/v1/namespaces/root/tables").json()["identifiers"]
        assert found == {"namespace": ["root"], "name": "t"}
        loaded = client.get("/iceberg/v1/namespaces/root/tables/t").json()["metadata"]
        assert loaded["location"] == compat.load("t")["location"]


def test_damaged_table_is_told_as_such_and_others_are_seen(compat):
    compat.fill("t", 1, 2)
    compat.fill("u", 1)
    for one in compat.versions("t").glob("*.manifest"):
        one.write_bytes(b"\0" * 500)
    refused = compat.get(compat.table("t"))
    assert refused.status_code == 500
    assert "cannot be opened" in refused.json()["error"]["message"]
    assert "changed" not in refused.text
    assert compat.names() == ["t", "u"]
    assert compat.load("u")["current-snapshot-id"] == 1


@pytest.mark.s3
def test_table_in_a_bucket_is_told_with_how_it_is_reached(moto, prefix, clock):
    lake = Lake(MOTO, moto.uri(prefix), moto.options, clock)
    lake.create("t", [1])
    role = "arn:aws:iam::123456789012:role/lake"
    secrets = [value for key, value in moto.options.items() if "secret" in key.lower()]
    asking = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    vending = VendingSettings(role, sts_endpoint=moto.endpoint)
    with Served(lake, ServerSettings(vending=vending)) as served:
        quiet = served.get(served.table("t"))
        assert quiet.json()["metadata"]["location"] == lake.store.location("t.lance")
        assert quiet.json()["config"]["s3.endpoint"] == moto.endpoint
        told = served.get(served.table("t"), headers=asking)
        assert not any(secret in text for secret in secrets for text in (quiet.text, told.text))
        (one,) = told.json()["storage-credentials"]
        assert one["prefix"] == told.json()["metadata"]["location"]
        options = storage_options(one["prefix"], told.json()["config"], [one])
        assert lance.dataset(one["prefix"], storage_options=options).count_rows() == 1
