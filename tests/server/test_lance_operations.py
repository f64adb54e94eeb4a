"""Every operation of the published document, in the form that it has there.

Spec: lance-rest-openapi, "paths".
"""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from mooring.identifiers import ObjectId
from mooring.namespace.located import locate
from mooring.server.lance.operations import OPERATIONS
from tests.lakes import COMPAT_DISK, DISK, METASTORE_DISK, Lake
from tests.server.lance_served import LanceServed
from tests.server.served import _Stager

VECTORS = pa.table(
    {
        "n": pa.array(range(4), pa.int64()),
        "word": [f"word {n}" for n in range(4)],
        "vector": pa.array([[float(n), 1.0] for n in range(4)], pa.list_(pa.float32(), 2)),
    }
)


@pytest.fixture(params=[COMPAT_DISK, DISK, METASTORE_DISK], ids=lambda kind: kind.name)
def any_lance(request, tmp_path, clock):
    with LanceServed(Lake(request.param, str(tmp_path / "lake"), {}, clock)) as served:
        yield served


@pytest.fixture
def lance_served(tmp_path, clock):
    with LanceServed(Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)) as served:
        yield served


def test_every_operation_is_the_method_of_its_name():
    """As the document names them, but for one: its method has the words in another order."""
    odd = {"UpdateFieldMetadata": "update_field_metadata"}
    for one in OPERATIONS:
        words = "".join(f"_{c.lower()}" if c.isupper() else c for c in one.name).lstrip("_")
        assert one.call == odd.get(one.name, words)
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS) == 54


# -- namespaces ------------------------------------------------------------------------------------


def test_namespaces(lance_served):
    served = lance_served
    made = served.post("/namespace/a/create", {"id": ["a"], "properties": {"owner": "ada"}})
    assert made.status_code == 200
    assert made.json()["properties"]["owner"] == "ada"
    served.post("/namespace/a$b/create")
    assert served.client.get("/namespace/$/list").json() == {"namespaces": ["a"]}
    assert served.client.get("/namespace/a/list").json() == {"namespaces": ["b"]}
    assert served.post("/namespace/a/describe").json()["properties"]["owner"] == "ada"
    again = served.post("/namespace/a/create")
    assert (again.status_code, again.json()["code"]) == (409, 2)
    full = served.post("/namespace/a/drop")
    assert (full.status_code, full.json()["code"]) == (409, 3)
    assert served.post("/namespace/a$b/drop").status_code == 200
    absent = served.post("/namespace/a$b/describe")
    assert (absent.status_code, absent.json()["code"]) == (404, 1)


def test_existence_is_told_by_the_status_alone(any_lance):
    served = any_lance
    served.create("t")
    name = "$".join(served.within) or "$"
    for path in (f"/namespace/{name}/exists", served.at("t", "exists")):
        found = served.post(path)
        assert (found.status_code, found.content) == (200, b"")
    absent = served.post(served.at("absent", "exists"))
    assert (absent.status_code, absent.json()["code"]) == (404, 4)


# -- the lives of tables ---------------------------------------------------------------------------


def test_a_table_from_its_first_row_to_its_last(any_lance):
    served = any_lance
    served.create("t")
    assert served.ask("t", "count_rows") == 3
    more = served.send("t", "insert", pa.table({"n": [4]}))
    assert more.json() == {"num_inserted_rows": 1, "version": 2}
    merged = served.send(
        "t",
        "merge_insert",
        pa.table({"n": [4, 5]}),
        params={"on": "n", "when_not_matched_insert_all": "true"},
    )
    assert merged.json()["num_inserted_rows"] == 1
    assert served.ask("t", "update", {"updates": [["n", "n + 10"]], "predicate": "n = 5"}) == {
        "updated_rows": 1,
        "version": 4,
    }
    assert served.ask("t", "delete", {"predicate": "n = 15"})["version"] == 5
    assert sorted(served.query("t")["n"].to_pylist()) == [1, 2, 3, 4]
    assert served.ask("t", "count_rows", {"predicate": "n > 2"}) == 2
    assert served.ask("t", "count_rows", {"version": 1}) == 3
    assert served.ask("t", "stats")["num_rows"] == 4
    served.ask("t", "restore", {"version": 1})
    assert served.ask("t", "count_rows") == 3
    assert served.ask("t", "drop")["id"] == served.id("t")
    assert served.post(served.at("t", "describe")).status_code == 404


def test_a_query_needs_neither_a_vector_nor_a_number_of_rows(any_lance):
    """The models demand both; RestNamespace sends an empty one and 0."""
    served = any_lance
    served.create("t", VECTORS)
    for body in ({}, {"vector": {}, "k": 0}, {"vector": None, "k": None}):
        assert served.query("t", body).num_rows == 4
        assert isinstance(served.ask("t", "analyze_plan", body), str)
    assert served.query(
        "t", {"filter": "n > 1", "columns": {"column_names": ["n"]}}
    ).to_pydict() == {"n": [2, 3]}
    near = served.query("t", {"vector": {"single_vector": [3.0, 1.0]}, "k": 1})
    assert near["n"].to_pylist() == [3]
    plan = served.ask("t", "explain_plan", {"query": {"filter": "n > 1"}, "verbose": True})
    assert "n > " in plan
    other = served.post(served.at("t", "explain_plan"), {"query": {"id": ["other"]}})
    assert (other.status_code, other.json()["code"]) == (400, 13)


def test_a_description_has_the_fields_of_the_document(lance_served):
    served = lance_served
    served.create("t", VECTORS)
    asked = {"with_table_uri": "true", "load_detailed_metadata": "true", "check_declared": "true"}
    found = served.ask("t", "describe", params=asked)
    assert found["table_uri"] == f"file://{found['location']}".replace("file://file://", "file://")
    assert [field["name"] for field in found["schema"]["fields"]] == ["n", "word", "vector"]
    assert found["is_only_declared"] is False
    assert (found["table"], found["namespace"]) == ("t", served.within)
    assert "var_schema" not in found
    plain = served.ask("t", "describe")
    assert not {"schema", "table_uri", "stats"} & set(plain)


def test_tables_are_declared_registered_renamed_and_forgotten(lance_served, tmp_path):
    served = lance_served
    declared = served.ask("d", "declare")
    assert declared["location"].startswith(served.lake.uri)
    assert served.client.get("/namespace/$/table/list").json() == {"tables": ["d"]}
    hidden = served.client.get("/namespace/$/table/list", params={"include_declared": "false"})
    assert hidden.json() == {"tables": []}
    assert served.client.get("/table", params={"include_declared": False}).json() == {"tables": []}
    lance.write_dataset(VECTORS, str(tmp_path / "lake" / "beside.lance"))
    assert served.ask("r", "register", {"location": "beside.lance"})["location"]
    served.ask("r", "rename", {"new_table_name": "s"})
    assert served.ask("s", "deregister")["id"] == ["s"]
    taken = served.post(served.at("d", "declare"))
    assert (taken.status_code, taken.json()["code"]) == (409, 5)
    moved = served.post(served.at("absent", "rename"), {"new_table_name": "x"})
    assert (moved.status_code, moved.json()["code"]) == (404, 4)


def test_modes_and_properties_of_a_table_are_parameters(lance_served):
    served = lance_served
    served.create("t")
    again = served.send("t", "create", VECTORS)
    assert (again.status_code, again.json()["code"]) == (409, 5)
    kept = served.send("t", "create", VECTORS, params={"mode": "ExistOk"})
    assert kept.status_code == 200
    assert served.ask("t", "count_rows") == 3
    words = {"mode": "overwrite", "properties": '{"owner": "ada"}'}
    assert served.send("t", "create", VECTORS, params=words).status_code == 200
    assert served.ask("t", "describe")["properties"]["owner"] == "ada"
    silly = served.send("t", "create", VECTORS, params={"mode": "silly"})
    assert (silly.status_code, silly.json()["code"]) == (400, 13)
    silly = served.send("t", "create", VECTORS, params={"properties": '{"n": 1}'})
    assert (silly.status_code, silly.json()["code"]) == (400, 13)
    own = served.send(
        "u", "create", VECTORS, params={"storage_options": '{"endpoint": "http://x"}'}
    )
    assert (own.status_code, own.json()["code"]) == (400, 0)
    assert served.send("t", "insert", VECTORS, params={"mode": "Overwrite"}).json() == {
        "num_inserted_rows": 4,
        "version": 3,
    }


def test_how_long_a_dropped_table_is_kept_is_context(any_lance):
    """DropTable has no body: the header is how a client of the document says it."""
    served = any_lance
    served.create("t")
    served.create("u")
    served.ask("t", "drop", headers={"x-mooring-ttl": "1d"})
    served.ask("u", "drop", {"context": {"ttl": "7d"}})
    ends = {
        one.id.name: one.expires_at_ms - one.deleted_at_ms
        for one in served.catalog.backend.list_purgable_tables()
    }
    day = 24 * 3600 * 1000
    assert ends == {"t": day, "u": 7 * day}
    silly = served.post(served.at("t", "drop"), headers={"x-mooring-ttl": "soon"})
    assert (silly.status_code, silly.json()["code"]) == (400, 13)


def test_how_long_a_dropped_namespace_is_kept_is_context(lance_served):
    served = lance_served
    served.post("/namespace/a/create")
    served.client.post("/table/a$t/create", content=b"", headers={"content-type": "text/csv"})
    served.catalog.create_table(["a", "t"], VECTORS)
    body = {"behavior": "cascade", "context": {"ttl": "2d"}}
    assert served.post("/namespace/a/drop", body).status_code == 200
    [gone] = served.catalog.backend.list_purgable_tables()
    assert gone.expires_at_ms - gone.deleted_at_ms == 2 * 24 * 3600 * 1000


# -- versions --------------------------------------------------------------------------------------


def test_versions(lance_served):
    served = lance_served
    served.create("t")
    served.send("t", "insert", pa.table({"n": [4]}))
    page = served.ask("t", "version/list", params={"limit": 1})
    assert [one["version"] for one in page["versions"]] == [2]
    rest = served.ask("t", "version/list", params={"page_token": page["page_token"]})
    assert [one["version"] for one in rest["versions"]] == [1]
    up = served.ask("t", "version/list", params={"descending": "false"})
    assert [one["version"] for one in up["versions"]] == [1, 2]
    assert served.ask("t", "version/describe", {"version": 1})["version"]["version"] == 1
    absent = served.post(served.at("t", "version/describe"), {"version": 9})
    assert (absent.status_code, absent.json()["code"]) == (404, 11)
    ranges = {"ranges": [{"start_version": 1, "end_version": 2}]}
    assert served.ask("t", "version/delete", ranges)["deleted_count"] >= 0


def test_versions_of_several_tables_are_created_at_once(tmp_path, clock):
    """The tables of a batch stand in its body, where each may be of another namespace."""
    with LanceServed(Lake(METASTORE_DISK, str(tmp_path / "lake"), {}, clock)) as served:
        served.create("t")
        served.create("u")
        entries = []
        for name in ("t", "u"):
            handle = locate(served.catalog.backend, ObjectId.of(served.id(name)))
            stager = _Stager(handle.ledger)
            with pytest.raises(OSError, match="is unknown"):
                handle.open_through(stager).insert(pa.table({"n": [9]}))
            version, path = stager.staged
            entries.append({"id": served.id(name), "version": version, "manifest_path": path})
        made = served.post("/table/version/batch-create", {"entries": entries})
        assert [one["version"] for one in made.json()["versions"]] == [2, 2]
        assert served.ask("u", "count_rows") == 4
        again = served.post("/table/version/batch-create", {"entries": entries})
        assert (again.status_code, again.json()["code"]) == (409, 14)
        operations = {"operations": [{"deregister_table": {"id": served.id("u")}}]}
        assert served.post("/table/batch-commit", operations).json()["results"]
        assert served.post(served.at("u", "describe")).status_code == 404


# -- columns, indexes, tags, branches --------------------------------------------------------------


def test_columns(lance_served):
    served = lance_served
    served.create("t", VECTORS)
    added = served.ask("t", "add_columns", {"new_columns": [{"name": "m", "expression": "n * 2"}]})
    assert added["version"] == 2
    served.ask("t", "alter_columns", {"alterations": [{"path": "m", "rename": "twice"}]})
    told = {"updates": [{"path": "twice", "metadata": {"unit": "s"}}]}
    assert served.ask("t", "update_field_metadata", told)["fields"] == {"twice": {"unit": "s"}}
    assert served.ask("t", "drop_columns", {"columns": ["twice"]})["version"] == 5
    absent = served.post(served.at("t", "drop_columns"), {"columns": ["twice"]})
    assert (absent.status_code, absent.json()["code"]) == (404, 12)
    computed = [{"name": "c", "computed": {"expression": "n + 1"}}]
    made = served.post(served.at("t", "add_columns"), {"new_columns": computed})
    if made.status_code == 200:
        done = served.post(served.at("t", "backfill_column"), {"column": "c"})
        assert done.status_code == 202
        assert done.json()["job_id"]


def test_metadata_of_a_schema_is_a_plain_map_both_ways(lance_served):
    served = lance_served
    served.create("t")
    words = {"team": "x", "id": "no identifier"}
    assert served.ask("t", "schema_metadata/update", words) == words
    assert served.ask("t", "schema_metadata/update", {}) == {}
    silly = served.post(served.at("t", "schema_metadata/update"), {"n": 1})
    assert (silly.status_code, silly.json()["code"]) == (400, 13)


def test_indexes(lance_served):
    served = lance_served
    served.create("t", VECTORS)
    made = {"column": "n", "index_type": "BTREE", "name": "by n"}
    served.ask("t", "create_scalar_index", made)
    [index] = served.ask("t", "index/list")["indexes"]
    assert index["index_name"] == "by n"
    assert served.ask("t", "index/by%20n/stats", {"index_name": "by n"})["num_indexed_rows"] == 4
    other = served.post(served.at("t", "index/by%20n/stats"), {"index_name": "by m"})
    assert (other.status_code, other.json()["code"]) == (400, 13)
    served.ask("t", "index/by%20n/drop")
    absent = served.post(served.at("t", "index/by%20n/drop"))
    assert (absent.status_code, absent.json()["code"]) == (404, 6)
    wrong = served.post(served.at("t", "create_index"), {**made, "column": "absent"})
    assert (wrong.status_code, wrong.json()["code"]) == (404, 12)


def test_tags_and_branches(any_lance):
    served = any_lance
    served.create("t")
    served.ask("t", "tags/create", {"tag": "first", "version": 1})
    served.ask("t", "tags/create", {"tag": "second", "version": 1})
    again = served.post(served.at("t", "tags/create"), {"tag": "first", "version": 1})
    assert (again.status_code, again.json()["code"]) == (409, 9)
    page = served.ask("t", "tags/list", params={"limit": 1})
    assert list(page["tags"]) == ["first"]
    rest = served.ask("t", "tags/list", params={"page_token": page["page_token"]})
    assert list(rest["tags"]) == ["second"]
    assert served.ask("t", "tags/version", {"tag": "first"}) == {"version": 1}
    served.send("t", "insert", pa.table({"n": [4]}))
    served.ask("t", "tags/update", {"tag": "first", "version": 2})
    served.ask("t", "tags/delete", {"tag": "second"})
    absent = served.post(served.at("t", "tags/version"), {"tag": "second"})
    assert (absent.status_code, absent.json()["code"]) == (404, 8)
    served.ask("t", "branches/create", {"name": "try"})
    assert list(served.ask("t", "branches/list")["branches"]) == ["try"]
    served.send("t", "insert", pa.table({"n": [5]}), params={"branch": "try"})
    assert served.ask("t", "count_rows", {"branch": "try"}) == 5
    assert served.ask("t", "count_rows") == 4
    served.ask("t", "branches/delete", {"name": "try"})
    absent = served.send("t", "insert", pa.table({"n": [5]}), params={"branch": "try"})
    assert (absent.status_code, absent.json()["code"]) == (404, 22)


def test_transactions(any_lance):
    served = any_lance
    served.create("t")
    done = served.ask("t", "restore", {"version": 1})["transaction_id"]
    path = f"/transaction/{'$'.join([*served.id('t'), done])}"
    assert served.post(f"{path}/describe").json()["status"].lower() == "succeeded"
    action = {"setPropertyAction": {"key": "note", "value": "checked"}}
    altered = served.post(f"{path}/alter", {"actions": [action]})
    assert altered.json()["properties"]["note"] == "checked"
    none = served.post(f"{path}/alter", {"actions": [{}]})
    assert (none.status_code, none.json()["code"]) == (400, 13)
    absent = served.post(f"{path}x/describe")
    assert (absent.status_code, absent.json()["code"]) == (404, 10)


def test_what_a_catalog_cannot_do_says_so(lance_served):
    served = lance_served
    view = {"kind": "query", "source_query": "SELECT 1", "output_schema": "{}"}
    made = served.post("/materialized_view/v/create", view)
    assert (made.status_code, made.json()["code"]) == (400, 0)
    refreshed = served.client.post("/materialized_view/v/refresh")
    assert (refreshed.status_code, refreshed.json()["code"]) in {(400, 0), (404, 4)}
