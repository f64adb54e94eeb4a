"""No argument is silently ignored: each makes a difference somewhere, or is refused.

Each field of each request has a request that is right without it. With the field the answer, the
error or what is in the catalog afterwards is another. Only identity and context mean nothing
here, but for the time to live in the context of a drop.

Every argument that the reference ignores in silence is honoured or refused.
"""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path
from typing import Any

import lance
import lance_namespace as spec
import pyarrow as pa
import pyarrow.ipc
import pytest
from lance_namespace.errors import LanceNamespaceError
from lance_namespace_urllib3_client.models.query_table_request_vector import (
    QueryTableRequestVector,
)
from pydantic import BaseModel

from mooring.survey.models import MODELS
from tests.conformance.wrong_world import World, make_rows, to_body

BODY = to_body(make_rows(100))
NO_VECTOR = QueryTableRequestVector()
VECTOR = QueryTableRequestVector(single_vector=[1.0, 1.0])
QUERY: dict[str, Any] = {"vector": NO_VECTOR, "k": 10}
SEARCH: dict[str, Any] = {"vector": VECTOR, "k": 3}
MERGE: dict[str, Any] = {"on": ["n"], "when_not_matched_insert_all": True}
KEPT = "kept"
# Stands for a manifest that is staged as the next version of a table.
STAGED = "staged"
MEANINGLESS = {"identity", "context"}
WITH_BODY = {
    "create_table": BODY,
    "insert_into_table": BODY,
    "merge_insert_into_table": to_body(pa.concat_tables([make_rows(2, 4), make_rows(100)])),
}
Arguments = dict[str, tuple[dict[str, Any], Any]]

_QUERY: Arguments = {
    "branch": (QUERY, "dev"),
    "bypass_vector_index": (QUERY, True),
    "columns": (QUERY, {"column_names": ["n"]}),
    "distance_type": (SEARCH, "dot"),
    "ef": (QUERY, 5),
    "fast_search": (SEARCH, True),
    "filter": (QUERY, "n > 5"),
    "full_text_query": (QUERY, {"string_query": {"query": "3", "columns": ["s"]}}),
    "k": (QUERY, 2),
    "lower_bound": (SEARCH, 1.0),
    "maximum_nprobes": (QUERY, 5),
    "minimum_nprobes": (QUERY, 5),
    "nprobes": (QUERY, 5),
    "offset": (QUERY, 2),
    "prefilter": ({**SEARCH, "filter": "n > 5"}, True),
    "refine_factor": (QUERY, 5),
    "upper_bound": (SEARCH, 1.0),
    "vector": (QUERY, VECTOR),
    "vector_column": (SEARCH, "n"),
    "version": (QUERY, 1),
    "with_row_id": (QUERY, True),
}
_TREE = {"column": "f", "index_type": "BTREE"}
_FLAT = {"column": "v", "index_type": "IVF_FLAT", "num_partitions": 1}
_PQ = {**_FLAT, "index_type": "IVF_PQ"}
_WORDS = {"column": "s", "index_type": "FTS", "name": "words"}
_INDEX: Arguments = {
    "branch": (_TREE, "dev"),
    "column": (_TREE, "n"),
    "index_type": (_TREE, "BITMAP"),
    "name": (_TREE, "another"),
    "distance_type": (_TREE, "cosine"),
    "num_partitions": (_TREE, 2),
    "num_sub_vectors": (_TREE, 1),
    "num_bits": (_TREE, 8),
    "sample_rate": (_TREE, 2),
    "max_iterations": (_TREE, 2),
    "target_partition_size": (_TREE, 2),
    "m": (_TREE, 2),
    "ef_construction": (_TREE, 2),
    "with_position": (_TREE, True),
    "base_tokenizer": (_WORDS, "nope"),
    "language": (_WORDS, "nope"),
    "max_token_length": (_TREE, 2),
    "lower_case": (_TREE, True),
    "stem": (_TREE, True),
    "remove_stop_words": (_TREE, True),
    "ascii_folding": (_TREE, True),
}
_FILL = {"column": "filled"}
_VERSION = {"version": 5, "manifest_path": STAGED}
_PAGE: Arguments = {"limit": ({}, 1), "page_token": ({}, "no token")}
_NAMED_BRANCH: Arguments = {"branch": ({}, "dev")}

# By operation and field: a request that is right, and the field's value that changes the outcome.
ARGUMENTS: dict[str, Arguments] = {
    "alter_table_add_columns": {
        "branch": ({"new_columns": [{"name": "c", "expression": "n"}]}, "dev"),
        "new_columns": (
            {"new_columns": [{"name": "c", "expression": "n"}]},
            [{"name": "d", "computed": "n"}],
        ),
    },
    "alter_table_alter_columns": {
        "branch": ({"alterations": [{"path": "n", "rename": "m"}]}, "dev"),
        "alterations": (
            {"alterations": [{"path": "n", "rename": "m"}]},
            [{"path": "n", "data_type": {"type": "int32"}}],
        ),
    },
    "alter_table_backfill_columns": {
        "branch": (_FILL, "dev"),
        "column": (_FILL, "n"),
        "where": (_FILL, "n > 2"),
        "concurrency": (_FILL, 1),
        "intra_applier_concurrency": (_FILL, 1),
        "min_checkpoint_size": (_FILL, 1),
        "max_checkpoint_size": (_FILL, 1),
        "batch_checkpoint_flush_interval_seconds": (_FILL, 1.0),
        "read_version": (_FILL, 1),
        "task_size": (_FILL, 1),
        "num_frags": (_FILL, 1),
        "checkpoint_size": (_FILL, 1),
        "commit_granularity": (_FILL, 1),
        "cluster": (_FILL, "x"),
        "manifest": (_FILL, "x"),
    },
    "alter_table_drop_columns": {
        "branch": ({"columns": ["f"]}, "dev"),
        "columns": ({"columns": ["f"]}, ["b"]),
    },
    "alter_transaction": {
        "actions": (
            {"actions": [{"setPropertyAction": {"key": "a", "value": "b"}}]},
            [{"setPropertyAction": {"key": "a", "value": "c"}}],
        ),
    },
    "analyze_table_query_plan": _QUERY,
    "batch_commit_tables": {
        "operations": (
            {"operations": [{"declare_table": {"id": ["one"]}}]},
            [{"declare_table": {"id": ["two"]}}],
        ),
    },
    "batch_create_table_versions": {
        "entries": (
            {"entries": [{"id": ["t"], **_VERSION}]},
            [{"id": ["t"], "version": 5, "manifest_path": "x"}],
        ),
    },
    "batch_delete_table_versions": {
        "branch": ({"ranges": [{"start_version": 3, "end_version": 4}]}, "dev"),
        "ranges": (
            {"ranges": [{"start_version": 3, "end_version": 4}]},
            [{"start_version": 3, "end_version": 5}],
        ),
    },
    "count_table_rows": {
        "branch": ({}, "dev"),
        "predicate": ({}, "n > 5"),
        "version": ({}, 1),
    },
    "create_materialized_view": {},
    "create_namespace": {
        "mode": ({"id": ["ns"]}, "exist_ok"),
        "properties": ({"id": ["new"]}, {"a": "b"}),
    },
    "create_table": {
        "mode": ({}, "overwrite"),
        "properties": ({"id": ["new"]}, {"a": "b"}),
        "storage_options": ({"id": ["new"]}, {"a": "b"}),
    },
    "create_table_branch": {
        "name": ({"name": "x"}, "y"),
        "from_branch": ({"name": "x"}, "dev"),
        "from_version": ({"name": "x"}, 1),
    },
    "create_table_index": _INDEX,
    "create_table_scalar_index": _INDEX,
    "create_table_tag": {
        "tag": ({"tag": "x", "version": 1}, "y"),
        "version": ({"tag": "x", "version": 1}, 2),
        "branch": ({"tag": "x", "version": 5}, "dev"),
    },
    "create_table_version": {
        "version": (_VERSION, 7),
        "branch": (_VERSION, "dev"),
        "manifest_path": (_VERSION, "x"),
        "manifest_size": (_VERSION, 1),
        "e_tag": (_VERSION, "another"),
        "metadata": (_VERSION, {"a": "b"}),
        "naming_scheme": (_VERSION, "V1"),
    },
    "declare_table": {
        "location": ({"id": ["new"]}, "elsewhere"),
        "properties": ({"id": ["new"]}, {"a": "b"}),
    },
    "delete_from_table": {
        "branch": ({"predicate": "n > 2"}, "dev"),
        "predicate": ({"predicate": "n > 2"}, "n > 3"),
    },
    "delete_table_branch": {"name": ({"name": "dev"}, "absent")},
    "delete_table_tag": {"tag": ({"tag": "one"}, "absent")},
    "deregister_table": {},
    "describe_namespace": {},
    "describe_table": {
        "branch": ({"load_detailed_metadata": True}, "dev"),
        "check_declared": ({"id": ["declared"]}, True),
        "load_detailed_metadata": ({}, True),
        "tag": ({}, "one"),
        "version": ({}, 1),
        "with_table_uri": ({}, True),
    },
    "describe_table_index_stats": {
        "branch": ({"index_name": "by_n"}, "dev"),
        "index_name": ({"index_name": "by_n"}, "by_s"),
        "version": ({"index_name": "by_n"}, 1),
    },
    "describe_table_version": {"branch": ({}, "dev"), "version": ({}, 1)},
    "describe_transaction": {},
    "drop_namespace": {
        "behavior": ({"id": ["ns"]}, "cascade"),
        "mode": ({"id": ["absent"]}, "skip"),
        "context": ({"id": ["ns"], "behavior": "cascade"}, {"ttl": "soon"}),
    },
    "drop_table": {"context": ({}, {"ttl": "soon"})},
    "drop_table_index": {
        "branch": ({"index_name": "by_n"}, "dev"),
        "index_name": ({"index_name": "by_n"}, "by_s"),
    },
    "explain_table_query_plan": {
        "branch": ({"query": spec.QueryTableRequest(**QUERY)}, "dev"),
        "query": (
            {"query": spec.QueryTableRequest(**QUERY)},
            spec.QueryTableRequest(**QUERY, filter="n > 2"),
        ),
    },
    "get_table_stats": _NAMED_BRANCH,
    "get_table_tag_version": {"tag": ({"tag": "one"}, "absent")},
    "insert_into_table": {"branch": ({}, "dev"), "mode": ({}, "overwrite")},
    "list_all_tables": {**_PAGE, "include_declared": ({}, False)},
    "list_namespaces": {"limit": ({"id": []}, 0), "page_token": ({"id": []}, "no token")},
    "list_table_branches": {"limit": ({}, 0), "page_token": ({}, "no token")},
    "list_table_indices": {**_PAGE, **_NAMED_BRANCH, "version": ({}, 1)},
    "list_table_tags": {"limit": ({}, 0), "page_token": ({}, "no token")},
    "list_table_versions": {**_PAGE, **_NAMED_BRANCH, "descending": ({}, False)},
    "list_tables": {
        "limit": ({"id": []}, 1),
        "page_token": ({"id": []}, "no token"),
        "include_declared": ({"id": []}, False),
    },
    "merge_insert_into_table": {
        "branch": (MERGE, "dev"),
        "on": (MERGE, ["b"]),
        "when_matched_update_all": (MERGE, True),
        "when_matched_update_all_filt": (MERGE, "source.n > 2"),
        "when_not_matched_insert_all": ({"on": ["n"], "when_matched_update_all": True}, True),
        "when_not_matched_by_source_delete": (MERGE, True),
        "when_not_matched_by_source_delete_filt": (MERGE, "n = 0"),
        "timeout": (MERGE, "soon"),
    },
    "namespace_exists": {},
    "query_table": _QUERY,
    "refresh_materialized_view": {},
    "register_table": {
        "location": ({"id": [KEPT], "location": KEPT}, "absent"),
        "mode": ({"id": ["t"], "location": KEPT}, "overwrite"),
        "properties": ({"id": [KEPT], "location": KEPT}, {"a": "b"}),
    },
    "rename_table": {
        "new_table_name": ({"new_table_name": "x"}, "y"),
        "new_namespace_id": ({"new_table_name": "x"}, ["ns"]),
    },
    "restore_table": {"version": ({"version": 1}, 2), "branch": ({"version": 1}, "dev")},
    "table_exists": {"version": ({}, 99)},
    "update_field_metadata": {
        "branch": ({"updates": [{"path": "n", "metadata": {"a": "b"}}]}, "dev"),
        "updates": (
            {"updates": [{"path": "n", "metadata": {"a": "b"}}]},
            [{"path": "n", "metadata": {"a": "c"}}],
        ),
    },
    "update_table": {
        "branch": ({"updates": [["f", "1.0"]]}, "dev"),
        "predicate": ({"updates": [["f", "1.0"]]}, "n > 2"),
        "properties": ({"updates": [["f", "1.0"]]}, {"a": "b"}),
        "updates": ({"updates": [["f", "1.0"]]}, [["f", "2.0"]]),
    },
    "update_table_schema_metadata": {
        "branch": ({"metadata": {"a": "b"}}, "dev"),
        "metadata": ({"metadata": {"a": "b"}}, {"a": "c"}),
    },
    "update_table_tag": {
        "tag": ({"tag": "one", "version": 2}, "absent"),
        "version": ({"tag": "one", "version": 2}, 3),
        "branch": ({"tag": "one", "version": 2}, "dev"),
    },
}
# What only means something elsewhere, and where that is shown.
ELSEWHERE = {
    # There are no secrets on a disk; tests/conformance/test_pylance.py.
    ("declare_table", "vend_credentials"),
    ("describe_table", "vend_credentials"),
    # Lance has no plan that it tells in more words; tests/conformance/test_queries.py.
    ("explain_table_query_plan", "verbose"),
    # Both ways give the same rows; below.
    ("merge_insert_into_table", "use_index"),
}
# These refuse whatever they are asked.
NOT_OFFERED = {"create_materialized_view", "refresh_materialized_view"}
_CHANGING = re.compile(
    r"elapsed=\S+|metrics=\[.*?\]|[0-9a-f]{8}-[0-9a-f-]{27}|'(created_at|timestamp_millis|e_tag"
    r"|index_uuid|transaction_id|job_id|mooring\.at_ms)': [^,}]+|_rowid_\d+|\d{13}"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("arguments") / "lake", manifest=True)
    new = {"new_columns": [{"name": "filled", "computed": "n * 2"}]}
    world.ask("create_table", to_body(make_rows()), id=[KEPT])
    left = world.ask("deregister_table", id=[KEPT]).location
    Path(left).rename(world.root / KEPT)
    for branch in (None, "dev"):
        world.ask("alter_table_add_columns", id=["t"], branch=branch, **new)
    world.keep()
    return world


def _stage(world: World) -> str:
    """Stage the next version of a table, which is the same as its newest."""
    versions = Path(world.ask("describe_table", id=["t"]).location) / "_versions"
    newest = min(versions.glob("*.manifest"))
    staged = versions / f"{int(newest.stem) - 1:020d}.manifest-staged"
    shutil.copy(newest, staged)
    return str(staged).lstrip("/")


def _fill_in(world: World, value: Any) -> Any:
    """Put a manifest that is staged where a request names one, and the number that it has."""
    if isinstance(value, list):
        return [_fill_in(world, one) for one in value]
    if isinstance(value, dict) and value.get("manifest_path") == STAGED:
        newest = world.ask("describe_table_version", id=["t"]).version.version
        version = value["version"] if value["version"] == newest + 2 else newest + 1
        return {**value, "manifest_path": _stage(world), "version": version}
    return value


def _outcome(world: World, operation: str, fields: dict[str, Any]) -> tuple[str, str]:
    """Send a request to a catalog that is always the same; tell what came of it."""
    own = ["t", "1"] if operation in {"alter_transaction", "describe_transaction"} else ["t"]
    asked = {"id": own, **fields} if "id" in MODELS[operation].model_fields else fields
    asked = {name: _fill_in(world, value) for name, value in _fill_in(world, asked).items()}
    body = (WITH_BODY[operation],) if operation in WITH_BODY else ()
    before = world.files()
    try:
        answer = _told(world.ask(operation, *body, **asked))
    except LanceNamespaceError as exc:
        answer = f"error {int(exc.code)}"
    state = _state(world) if world.files() != before else ""
    if state or STAGED in str(asked):
        world.reset()
    return answer, state


def _told(answer: Any) -> str:
    if isinstance(answer, BaseModel):
        values = answer.model_dump()
        if isinstance(values.get("data"), bytes):
            rows = pyarrow.ipc.open_file(io.BytesIO(values["data"])).read_all()
            return str(rows.to_pylist())
        return _CHANGING.sub("", str(values))
    return _CHANGING.sub("", str(answer))


def _state(world: World) -> str:
    """Tell all that is in the catalog, without what differs from one time to the next."""
    ask = world.ask
    told = [ask("list_all_tables"), ask("list_namespaces", id=[]), _properties(world)]
    for table in ask("list_all_tables").tables:
        if table in {"t", "new", "x", "y", KEPT}:
            told += _table_state(world, table)
    return _CHANGING.sub("", "\n".join(str(one) for one in told))


def _properties(world: World) -> list[Any]:
    ask = world.ask
    spaces = ask("list_namespaces", id=[]).namespaces
    tables = ask("list_all_tables").tables
    return [
        *(ask("describe_namespace", id=[name]) for name in spaces),
        *(ask("describe_table", id=name.split("$")).properties for name in tables),
    ]


def _table_state(world: World, table: str) -> list[Any]:
    ask, of = world.ask, {"id": [table]}
    branches = ask("list_table_branches", **of).branches
    told: list[Any] = [sorted((name, one.parent_branch) for name, one in branches.items())]
    told += [ask("list_table_tags", **of), len(ask("list_table_versions", **of).versions)]
    for branch in (None, *sorted(branches)):
        if not ask("list_table_versions", **of).versions:
            break
        there = {**of, "branch": branch}
        told.append(_told(ask("query_table", **there, **{**QUERY, "k": 0})))
        told.append(ask("describe_table", **there, load_detailed_metadata=True).var_schema)
        told.append(ask("list_table_versions", **there).versions[0].metadata)
        indices = ask("list_table_indices", **there).indexes
        told += [(one.index_name, one.index_type, one.columns) for one in indices]
    if table == "t":
        told.append(ask("describe_transaction", id=["t", "1"]).properties)
    return told


@pytest.mark.parametrize("operation", sorted(ARGUMENTS))
def test_every_argument_makes_a_difference_or_is_refused(world, operation):
    ignored = []
    bases: dict[str, tuple[str, str]] = {}
    for name, (base, value) in ARGUMENTS[operation].items():
        if repr(base) not in bases:
            bases[repr(base)] = _outcome(world, operation, base)
        without = bases[repr(base)]
        if without == _outcome(world, operation, {**base, name: value}):
            ignored.append(f"{name} = {value!r}: {without[0][:200]}")
    assert not ignored, "\n".join(ignored)


@pytest.mark.parametrize("operation", sorted(MODELS))
def test_every_request_is_about_what_it_names(world, operation):
    if "id" not in MODELS[operation].model_fields or operation in NOT_OFFERED:
        return
    other = {"id": ["ns"]} if "namespace" in operation else {}
    base = next(iter(ARGUMENTS[operation].values()), (other, None))[0]
    absent = ["absent", "1"] if "transaction" in operation else ["absent"]
    if operation == "list_all_tables":
        return
    first = _outcome(world, operation, base)
    assert first != _outcome(world, operation, {**base, "id": absent})


def test_the_arguments_are_all_there_are():
    known = {(operation, name) for operation, names in ARGUMENTS.items() for name in names}
    wanted = {
        (operation, name)
        for operation, model in MODELS.items()
        for name in model.model_fields
        if name not in {*MEANINGLESS, "id"} and operation not in NOT_OFFERED
    }
    assert {pair for pair in known if pair[1] != "context"} == wanted - ELSEWHERE


@pytest.mark.parametrize("operation", sorted(NOT_OFFERED))
def test_what_is_not_offered_is_refused_whatever_is_asked(world, operation):
    asked = {"id": ["t"], "kind": "x", "source_query": "x", "output_schema": "x"}
    own = {name: asked[name] for name in asked if name in MODELS[operation].model_fields}
    assert _outcome(world, operation, own) == ("error 0", "")


@pytest.mark.parametrize(("asked", "told"), [(None, True), (True, True), (False, False)])
def test_a_merge_tells_lance_whether_to_use_an_index(world, monkeypatch, asked, told):
    heard = []
    builder = type(lance.dataset(world.catalog.table("t").location).merge_insert("n"))
    use_index = builder.use_index
    monkeypatch.setattr(
        builder, "use_index", lambda self, use: heard.append(use) or use_index(self, use)
    )
    _outcome(world, "merge_insert_into_table", {**MERGE, "use_index": asked})
    assert heard == [told]
