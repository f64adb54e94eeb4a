"""The questions: every operation of the specification, and the arguments that tend to be ignored.

Each has tables of its own, and looks whether what was asked for was done.

Spec: lance-rest-openapi, every operation.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import lance_namespace as spec
import pyarrow as pa
import pyarrow.ipc
from lance_namespace_urllib3_client.models.query_table_request_vector import (
    QueryTableRequestVector,
)

from mooring.store import open_store
from mooring.survey.subject import expect, get, is_refused, make_body
from mooring.tables.seal import renumber

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.survey.subject import Subject

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Callable[[Subject], None]] = {}


def _question(title: str) -> Callable[[Callable[[Subject], None]], Callable[[Subject], None]]:
    def add(asked: Callable[[Subject], None]) -> Callable[[Subject], None]:
        QUESTIONS[title] = asked
        return asked

    return add


# -- namespaces ----------------------------------------------------------------------------------


@_question("create_namespace")
def _create_namespace(subject: Subject) -> None:
    name = subject.namespace(properties={"owner": "me"})
    subject.ask("namespace_exists", id=[name])


@_question("create_namespace, mode exist_ok")
def _create_namespace_again(subject: Subject) -> None:
    name = subject.namespace(properties={"owner": "me"})
    subject.ask("create_namespace", id=[name], mode="exist_ok", properties={"owner": "you"})
    found = subject.ask("describe_namespace", id=[name]).properties or {}
    expect(that=found.get("owner") == "me", what="the properties changed")


@_question("create_namespace, mode overwrite")
def _overwrite_namespace(subject: Subject) -> None:
    name = subject.namespace(properties={"owner": "me"})
    subject.ask("create_namespace", id=[name], mode="overwrite", properties={"owner": "you"})
    found = subject.ask("describe_namespace", id=[name]).properties or {}
    expect(that=found.get("owner") == "you", what="the properties stayed")


@_question("create_namespace, a wrong mode is refused")
def _wrong_mode(subject: Subject) -> None:
    refused = is_refused(subject, "create_namespace", id=[subject.name("n")], mode="sideways")
    expect(that=refused, what="it was taken")


@_question("describe_namespace")
def _describe_namespace(subject: Subject) -> None:
    name = subject.namespace(properties={"owner": "me"})
    found = subject.ask("describe_namespace", id=[name]).properties
    expect(that=(found or {}).get("owner") == "me", what="the properties are gone")


@_question("namespace_exists")
def _namespace_exists(subject: Subject) -> None:
    subject.ask("namespace_exists", id=[subject.namespace()])
    expect(that=is_refused(subject, "namespace_exists", id=["absent"]), what="an absent one exists")


@_question("list_namespaces")
def _list_namespaces(subject: Subject) -> None:
    name = subject.namespace()
    expect(that=name in subject.ask("list_namespaces", id=[]).namespaces, what="it is not listed")


@_question("list_namespaces, an absent parent is refused")
def _list_absent(subject: Subject) -> None:
    subject.namespace()
    expect(that=is_refused(subject, "list_namespaces", id=["absent"]), what="it lists nothing")


@_question("drop_namespace")
def _drop_namespace(subject: Subject) -> None:
    name = subject.namespace()
    subject.ask("drop_namespace", id=[name])
    expect(that=is_refused(subject, "namespace_exists", id=[name]), what="it is still there")


@_question("drop_namespace, mode skip")
def _skip_absent(subject: Subject) -> None:
    subject.namespace()
    subject.ask("drop_namespace", id=["absent"], mode="skip")


@_question("drop_namespace, behavior cascade")
def _cascade(subject: Subject) -> None:
    name = subject.namespace()
    subject.ask("create_table", make_body(), id=[name, "t"])
    subject.ask("drop_namespace", id=[name], behavior="cascade")
    expect(that=is_refused(subject, "table_exists", id=[name, "t"]), what="its table stayed")


# -- tables --------------------------------------------------------------------------------------


@_question("create_table")
def _create_table(subject: Subject) -> None:
    expect(that=subject.count(subject.table()) == len(range(4)), what="rows are missing")


@_question("create_table, mode exist_ok")
def _create_again(subject: Subject) -> None:
    table = subject.table()
    subject.ask("create_table", make_body(rows=9), id=table, mode="exist_ok")
    expect(that=subject.count(table) == len(range(4)), what="the rows changed")


@_question("create_table, mode overwrite")
def _overwrite(subject: Subject) -> None:
    table = subject.table()
    subject.ask("create_table", make_body(rows=9), id=table, mode="overwrite")
    expect(that=subject.count(table) == len(range(9)), what="the rows stayed")


@_question("create_table, an absent namespace is refused")
def _create_nowhere(subject: Subject) -> None:
    refused = is_refused(subject, "create_table", make_body(), id=["absent", subject.name()])
    expect(that=refused, what="it was created")


@_question("declare_table")
def _declare(subject: Subject) -> None:
    table = subject.place()
    subject.ask("declare_table", id=table)
    subject.ask("table_exists", id=table)


@_question("describe_table")
def _describe(subject: Subject) -> None:
    found = subject.ask("describe_table", id=subject.table(), load_detailed_metadata=True)
    expect(that=found.version == 1 and found.var_schema is not None, what="details are missing")


@_question("table_exists")
def _exists(subject: Subject) -> None:
    subject.ask("table_exists", id=subject.table())
    expect(
        that=is_refused(subject, "table_exists", id=[*subject.within, "absent"]),
        what="an absent one exists",
    )


@_question("list_tables")
def _list_tables(subject: Subject) -> None:
    table = subject.table()
    found = subject.ask("list_tables", id=subject.within).tables
    expect(that=table[-1] in found, what="it is not listed")


@_question("list_all_tables")
def _list_all(subject: Subject) -> None:
    table = subject.table()
    found = subject.ask("list_all_tables").tables
    expect(that=any(table[-1] in one for one in found), what="it is not listed")


@_question("register_table")
def _register(subject: Subject) -> None:
    _registered(subject)


def _registered(subject: Subject, **fields: Any) -> list[str]:  # noqa: ANN401  # a request's fields
    table = subject.table()
    location = subject.locate(table)
    subject.ask("deregister_table", id=table)
    # The same name: in a plain directory it is given by the location.
    subject.ask("register_table", id=table, location=location, **fields)
    subject.ask("table_exists", id=table)
    return table


@_question("register_table, properties")
def _register_properties(subject: Subject) -> None:
    table = _registered(subject, properties={"owner": "me"})
    found = subject.ask("describe_table", id=table).properties or {}
    expect(that=found.get("owner") == "me", what="the properties are gone")


@_question("register_table, mode overwrite")
def _register_over(subject: Subject) -> None:
    space = subject.namespace()
    for name, rows in (("old", 4), ("new", 9)):
        subject.ask("create_table", make_body(rows=rows), id=[space, name])
    location = subject.locate([space, "new"])
    subject.ask("deregister_table", id=[space, "new"])
    subject.ask("register_table", id=[space, "old"], location=location, mode="overwrite")
    found = subject.ask("count_table_rows", id=[space, "old"]).count
    expect(that=found == len(range(9)), what="the name kept its table")


@_question("deregister_table")
def _deregister(subject: Subject) -> None:
    table = subject.table()
    subject.ask("deregister_table", id=table)
    expect(that=is_refused(subject, "describe_table", id=table), what="it is still there")


@_question("rename_table")
def _rename(subject: Subject) -> None:
    table, new = subject.table(), subject.place()
    subject.ask("rename_table", id=table, new_table_name=new[-1])
    expect(that=subject.count(new) == len(range(4)), what="the rows are gone")
    expect(that=is_refused(subject, "table_exists", id=table), what="the old name stayed")


@_question("drop_table")
def _drop(subject: Subject) -> None:
    table = subject.table()
    subject.ask("drop_table", id=table)
    expect(that=is_refused(subject, "table_exists", id=table), what="it is still there")


# -- rows ----------------------------------------------------------------------------------------


@_question("insert_into_table")
def _insert(subject: Subject) -> None:
    table = subject.table()
    subject.ask("insert_into_table", make_body(4), id=table)
    expect(that=subject.count(table) == len(range(8)), what="the rows are missing")


@_question("insert_into_table, mode overwrite")
def _insert_over(subject: Subject) -> None:
    table = subject.table()
    subject.ask("insert_into_table", make_body(rows=1), id=table, mode="overwrite")
    expect(that=subject.count(table) == 1, what="the old rows stayed")


@_question("insert_into_table, a declared table")
def _insert_first(subject: Subject) -> None:
    table = subject.place()
    subject.ask("declare_table", id=table)
    subject.ask("insert_into_table", make_body(), id=table)
    expect(that=subject.count(table) == len(range(4)), what="the rows are missing")


@_question("insert_into_table, branch")
def _insert_branch(subject: Subject) -> None:
    table = subject.table()
    subject.ask("create_table_branch", id=table, name="dev")
    subject.ask("insert_into_table", make_body(4), id=table, branch="dev")
    expect(that=subject.count(table) == len(range(4)), what="it went to main")
    found = subject.ask("count_table_rows", id=table, branch="dev").count
    expect(that=found == len(range(8)), what="it did not arrive")


@_question("merge_insert_into_table")
def _merge(subject: Subject) -> None:
    table = subject.table()
    subject.ask(
        "merge_insert_into_table",
        make_body(2),
        id=table,
        on=["n"],
        when_matched_update_all=True,
        when_not_matched_insert_all=True,
    )
    expect(that=subject.count(table) == len(range(6)), what="the rows are not merged")


@_question("merge_insert_into_table, deletion by a condition")
def _merge_delete(subject: Subject) -> None:
    table = subject.table()
    subject.ask(
        "merge_insert_into_table",
        make_body(2),
        id=table,
        on=["n"],
        when_matched_update_all=True,
        when_not_matched_by_source_delete=True,
        when_not_matched_by_source_delete_filt="n = 0",
    )
    expect(that=subject.count(table) == len(range(3)), what="the condition does not count")


@_question("update_table")
def _update(subject: Subject) -> None:
    table = subject.table()
    done = subject.ask("update_table", id=table, updates=[["n", "n + 9"]], predicate="n = 1")
    expect(that=done.updated_rows == 1, what="other rows changed")


@_question("update_table, properties")
def _update_properties(subject: Subject) -> None:
    table = subject.table()
    subject.ask("update_table", id=table, updates=[["n", "n"]], properties={"owner": "me"})
    found = subject.ask("describe_table", id=table).properties or {}
    expect(that=found.get("owner") == "me", what="the properties are gone")


@_question("delete_from_table")
def _delete(subject: Subject) -> None:
    table = subject.table()
    subject.ask("delete_from_table", id=table, predicate="n < 2")
    expect(that=subject.count(table) == len(range(2)), what="the rows stayed")


@_question("restore_table")
def _restore(subject: Subject) -> None:
    table = subject.table()
    subject.ask("delete_from_table", id=table, predicate="true")
    subject.ask("restore_table", id=table, version=1)
    expect(that=subject.count(table) == len(range(4)), what="the rows did not come back")


# -- queries -------------------------------------------------------------------------------------


def _rows(response: Any) -> pa.Table:  # noqa: ANN401  # a response, or its bytes
    data = response if isinstance(response, bytes) else response.data
    return pyarrow.ipc.open_file(io.BytesIO(data)).read_all()


def _plain(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  # a request's fields
    return {"vector": QueryTableRequestVector(), "k": 10, **fields}


@_question("query_table")
def _query(subject: Subject) -> None:
    found = _rows(subject.ask("query_table", id=subject.table(), **_plain(filter="n > 1")))
    expect(that=found.num_rows == len(range(2)), what="the filter does not count")


@_question("query_table, vector")
def _query_vector(subject: Subject) -> None:
    vector = QueryTableRequestVector(single_vector=[3.0, 1.0])
    found = _rows(subject.ask("query_table", id=subject.table(), vector=vector, k=1))
    expect(that=found["n"].to_pylist() == [3], what="the nearest row is another")


@_question("query_table, full text")
def _query_text(subject: Subject) -> None:
    table = subject.table()
    subject.ask("create_table_scalar_index", id=table, column="word", index_type="FTS")
    text = {"string_query": {"query": "2", "columns": ["word"]}}
    found = _rows(subject.ask("query_table", id=table, **_plain(full_text_query=text)))
    expect(that=found["n"].to_pylist() == [2], what="other rows were found")


@_question("query_table, version")
def _query_version(subject: Subject) -> None:
    table = subject.table()
    subject.ask("delete_from_table", id=table, predicate="true")
    found = _rows(subject.ask("query_table", id=table, **_plain(version=1)))
    expect(that=found.num_rows == len(range(4)), what="the version does not count")


@_question("count_table_rows")
def _count(subject: Subject) -> None:
    found = subject.ask("count_table_rows", id=subject.table(), predicate="n > 1").count
    expect(that=found == len(range(2)), what="the filter does not count")


@_question("explain_table_query_plan")
def _explain(subject: Subject) -> None:
    table = subject.table()
    query = spec.QueryTableRequest(id=table, **_plain(filter="n > 1"))
    subject.ask("explain_table_query_plan", id=table, query=query)


@_question("analyze_table_query_plan")
def _analyze(subject: Subject) -> None:
    subject.ask("analyze_table_query_plan", id=subject.table(), **_plain(filter="n > 1"))


# -- columns and metadata ------------------------------------------------------------------------


@_question("alter_table_add_columns")
def _add_columns(subject: Subject) -> None:
    new = [{"name": "m", "expression": "n * 2"}]
    subject.ask("alter_table_add_columns", id=subject.table(), new_columns=new)


@_question("alter_table_alter_columns")
def _alter_columns(subject: Subject) -> None:
    changed = [{"path": "n", "rename": "m"}]
    subject.ask("alter_table_alter_columns", id=subject.table(), alterations=changed)


@_question("alter_table_drop_columns")
def _drop_columns(subject: Subject) -> None:
    subject.ask("alter_table_drop_columns", id=subject.table(), columns=["word"])


@_question("alter_table_backfill_columns")
def _backfill(subject: Subject) -> None:
    table = subject.table()
    new = [{"name": "m", "computed": "n * 2"}]
    subject.ask("alter_table_add_columns", id=table, new_columns=new)
    subject.ask("alter_table_backfill_columns", id=table, column="m")


@_question("update_table_schema_metadata")
def _schema_metadata(subject: Subject) -> None:
    subject.ask("update_table_schema_metadata", id=subject.table(), metadata={"a": "b"})


@_question("update_field_metadata")
def _field_metadata(subject: Subject) -> None:
    updates = [{"path": "n", "metadata": {"unit": "s"}}]
    subject.ask("update_field_metadata", id=subject.table(), updates=updates)


# -- indexes and statistics ----------------------------------------------------------------------


def _indexed(subject: Subject) -> list[str]:
    table = subject.table()
    subject.ask("create_table_scalar_index", id=table, column="n", index_type="BTREE", name="by_n")
    return table


@_question("create_table_scalar_index")
def _scalar_index(subject: Subject) -> None:
    _indexed(subject)


@_question("create_table_index")
def _vector_index(subject: Subject) -> None:
    subject.ask(
        "create_table_index",
        id=subject.table(),
        column="vector",
        index_type="IVF_FLAT",
        num_partitions=1,
        distance_type="l2",
    )


@_question("list_table_indices")
def _list_indices(subject: Subject) -> None:
    found = subject.ask("list_table_indices", id=_indexed(subject)).indexes
    expect(that=[one.index_name for one in found] == ["by_n"], what="it is not listed")


@_question("describe_table_index_stats")
def _index_stats(subject: Subject) -> None:
    table = _indexed(subject)
    found = subject.ask("describe_table_index_stats", id=table, index_name="by_n")
    expect(that=found.num_indexed_rows == len(range(4)), what="rows are not counted")


@_question("drop_table_index")
def _drop_index(subject: Subject) -> None:
    table = _indexed(subject)
    subject.ask("drop_table_index", id=table, index_name="by_n")
    expect(that=not subject.ask("list_table_indices", id=table).indexes, what="it is still there")


@_question("get_table_stats")
def _stats(subject: Subject) -> None:
    found = subject.ask("get_table_stats", id=subject.table())
    expect(that=found.num_rows == len(range(4)), what="rows are not counted")


# -- versions, tags, branches, transactions ------------------------------------------------------


@_question("list_table_versions")
def _list_versions(subject: Subject) -> None:
    table = subject.table()
    subject.ask("delete_from_table", id=table, predicate="n = 1")
    asked = subject.ask("list_table_versions", id=table, descending=True).versions
    expect(that=[one.version for one in asked] == [2, 1], what="the order does not count")


@_question("describe_table_version")
def _describe_version(subject: Subject) -> None:
    found = subject.ask("describe_table_version", id=subject.table(), version=1)
    expect(that=get(get(found, "version"), "version") == 1, what="it is another")


@_question("create_table_version")
def _create_version(subject: Subject) -> None:
    subject.ask("create_table_version", **_next_version(subject))


def _next_version(subject: Subject) -> dict[str, Any]:
    """Stage a manifest for a table's second version."""
    table = subject.table()
    described = subject.ask("describe_table", id=table)
    store = open_store(described.location, described.storage_options or {})
    (manifest,) = (one for one in store.list_dir("_versions").files if one.endswith(".manifest"))
    body = store.get(f"_versions/{manifest}")
    number = f"{2**64 - 3:020d}"
    staged = f"_versions/{number}.manifest-0a1b2c3d"
    store.put(staged, renumber(manifest, body or b"", 2))
    path = described.location.removeprefix("file://").strip("/")
    return {"id": table, "version": 2, "manifest_path": f"{path}/{staged}", "naming_scheme": "V2"}


@_question("batch_create_table_versions, one")
def _batch_create(subject: Subject) -> None:
    subject.ask("batch_create_table_versions", entries=[_next_version(subject)])


@_question("batch_create_table_versions, several together")
def _batch_create_two(subject: Subject) -> None:
    entries = [_next_version(subject), _next_version(subject)]
    subject.ask("batch_create_table_versions", entries=entries)


@_question("batch_delete_table_versions")
def _batch_delete(subject: Subject) -> None:
    table = subject.table()
    subject.ask("delete_from_table", id=table, predicate="n = 1")
    ranges = [{"start_version": 1, "end_version": 2}]
    subject.ask("batch_delete_table_versions", id=table, ranges=ranges)
    found = subject.ask("list_table_versions", id=table).versions
    expect(that=[one.version for one in found] == [2], what="the record is still there")


@_question("batch_commit_tables, one")
def _batch_commit(subject: Subject) -> None:
    table = subject.place()
    subject.ask("batch_commit_tables", operations=[{"declare_table": {"id": table}}])
    subject.ask("table_exists", id=table)


@_question("batch_commit_tables, several together")
def _batch_commit_two(subject: Subject) -> None:
    operations = [{"declare_table": {"id": subject.place()}} for _ in range(2)]
    subject.ask("batch_commit_tables", operations=operations)


def _tagged(subject: Subject) -> list[str]:
    table = subject.table()
    subject.ask("create_table_tag", id=table, tag="first", version=1)
    return table


@_question("create_table_tag")
def _create_tag(subject: Subject) -> None:
    _tagged(subject)


@_question("get_table_tag_version")
def _get_tag(subject: Subject) -> None:
    found = subject.ask("get_table_tag_version", id=_tagged(subject), tag="first")
    expect(that=found.version == 1, what="it is another")


@_question("list_table_tags")
def _list_tags(subject: Subject) -> None:
    found = subject.ask("list_table_tags", id=_tagged(subject)).tags
    expect(that="first" in found, what="it is not listed")


@_question("update_table_tag")
def _update_tag(subject: Subject) -> None:
    table = _tagged(subject)
    subject.ask("delete_from_table", id=table, predicate="n = 1")
    subject.ask("update_table_tag", id=table, tag="first", version=2)
    found = subject.ask("get_table_tag_version", id=table, tag="first")
    expect(that=found.version == len(range(2)), what="it stayed")


@_question("delete_table_tag")
def _delete_tag(subject: Subject) -> None:
    table = _tagged(subject)
    subject.ask("delete_table_tag", id=table, tag="first")
    expect(that=not subject.ask("list_table_tags", id=table).tags, what="it is still there")


def _branched(subject: Subject) -> list[str]:
    table = subject.table()
    subject.ask("create_table_branch", id=table, name="dev")
    return table


@_question("create_table_branch")
def _create_branch(subject: Subject) -> None:
    _branched(subject)


@_question("list_table_branches")
def _list_branches(subject: Subject) -> None:
    found = subject.ask("list_table_branches", id=_branched(subject)).branches
    expect(that="dev" in found, what="it is not listed")


@_question("delete_table_branch")
def _delete_branch(subject: Subject) -> None:
    table = _branched(subject)
    subject.ask("delete_table_branch", id=table, name="dev")
    found = subject.ask("list_table_branches", id=table).branches
    expect(that="dev" not in found, what="it is still there")


@_question("describe_transaction")
def _describe_transaction(subject: Subject) -> None:
    table = subject.table()
    done = subject.ask("restore_table", id=table, version=1)
    subject.ask("describe_transaction", id=[*table, done.transaction_id or "none"])


@_question("alter_transaction")
def _alter_transaction(subject: Subject) -> None:
    table = subject.table()
    done = subject.ask("restore_table", id=table, version=1)
    action = {"set_property_action": {"key": "a", "value": "b"}}
    subject.ask("alter_transaction", id=[*table, done.transaction_id or "none"], actions=[action])


@_question("create_materialized_view")
def _create_view(subject: Subject) -> None:
    subject.ask(
        "create_materialized_view",
        id=subject.place(),
        kind="query",
        source_query="SELECT 1",
        output_schema="{}",
    )


@_question("refresh_materialized_view")
def _refresh_view(subject: Subject) -> None:
    subject.ask("refresh_materialized_view", id=subject.place())
