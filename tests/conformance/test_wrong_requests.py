"""Wrong requests: each is refused by the fitting error, in plain words, and nothing changes.

Spec: lance-rest-openapi, the error codes; "a wrong column, type, filter, version or
index is a clear error of that code, never an internal one".
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import lance_namespace as spec
import pyarrow as pa
import pyarrow.ipc
import pytest
from lance_namespace.errors import LanceNamespaceError
from lance_namespace_urllib3_client.models.query_table_request_vector import (
    QueryTableRequestVector,
)

from mooring.errors import MooringError
from mooring.survey.models import MODELS
from tests.conformance.wrong_world import World, make_rows, to_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.table import Table

NO_TABLE, TABLE_EXISTS, NO_INDEX, INDEX_EXISTS, NO_TAG, TAG_EXISTS = 4, 5, 6, 7, 8, 9
NO_TRANSACTION, NO_VERSION, NO_COLUMN, INVALID, TAKEN, STATE, SCHEMA = 10, 11, 12, 13, 14, 19, 20
NO_NAMESPACE, NAMESPACE_EXISTS, NOT_EMPTY, NO_BRANCH, BRANCH_EXISTS = 1, 2, 3, 22, 23
UNSUPPORTED = 0

BODY = to_body(make_rows(100))
NO_VECTOR = QueryTableRequestVector()
VECTOR = QueryTableRequestVector(single_vector=[1.0, 1.0])
QUERY: dict[str, Any] = {"vector": NO_VECTOR, "k": 10}
SEARCH: dict[str, Any] = {"vector": VECTOR, "k": 2}
MERGE: dict[str, Any] = {"on": ["n"], "when_matched_update_all": True}
WITH_BODY = ("create_table", "insert_into_table", "merge_insert_into_table")


@dataclass(frozen=True)
class Wrong:
    """A wrong request, and the codes that fit.

    Attributes:
        why: What is wrong with it.
        operation: The operation.
        codes: The codes that fit; several where the kinds of catalogs differ.
        fields: Those of the request; the table is `t` unless given.
        body: The rows.
    """

    why: str
    operation: str
    codes: tuple[int, ...]
    fields: dict[str, Any] = field(default_factory=dict)
    body: bytes = BODY

    @property
    def data(self) -> tuple[bytes, ...]:
        return (self.body,) if self.operation in WITH_BODY else ()


def wrong(
    why: str, operation: str, codes: int | tuple[int, ...], body: bytes = BODY, **fields: Any
) -> Wrong:
    some = codes if isinstance(codes, tuple) else (codes,)
    return Wrong(why, operation, some, {"id": ["t"], **fields}, body)


# -- the table -----------------------------------------------------------------------------------

# Every operation on a table, by a request that would be right.
RIGHT: dict[str, dict[str, Any]] = {
    "alter_table_add_columns": {"new_columns": [{"name": "c", "expression": "n"}]},
    "alter_table_alter_columns": {"alterations": [{"path": "n", "rename": "m"}]},
    "alter_table_backfill_columns": {"column": "n"},
    "alter_table_drop_columns": {"columns": ["f"]},
    "alter_transaction": {"actions": [{"setPropertyAction": {"key": "a", "value": "b"}}]},
    "analyze_table_query_plan": QUERY,
    "batch_delete_table_versions": {"ranges": [{"start_version": 1, "end_version": 2}]},
    "count_table_rows": {},
    "create_table_branch": {"name": "x"},
    "create_table_index": {"column": "v", "index_type": "IVF_FLAT", "num_partitions": 1},
    "create_table_scalar_index": {"column": "f", "index_type": "BTREE"},
    "create_table_tag": {"tag": "x", "version": 1},
    "create_table_version": {"version": 9, "manifest_path": "x"},
    "delete_from_table": {"predicate": "true"},
    "delete_table_branch": {"name": "dev"},
    "delete_table_tag": {"tag": "one"},
    "deregister_table": {},
    "describe_table": {},
    "describe_table_index_stats": {"index_name": "by_n"},
    "describe_table_version": {},
    "describe_transaction": {},
    "drop_table": {},
    "drop_table_index": {"index_name": "by_n"},
    "explain_table_query_plan": {"query": spec.QueryTableRequest(**QUERY)},
    "get_table_stats": {},
    "get_table_tag_version": {"tag": "one"},
    "insert_into_table": {},
    "list_table_branches": {},
    "list_table_indices": {},
    "list_table_tags": {},
    "list_table_versions": {},
    "merge_insert_into_table": MERGE,
    "query_table": QUERY,
    "rename_table": {"new_table_name": "new"},
    "restore_table": {"version": 1},
    "table_exists": {},
    "update_field_metadata": {"updates": [{"path": "n", "metadata": {"a": "b"}}]},
    "update_table": {"updates": [["n", "n + 1"]]},
    "update_table_schema_metadata": {"metadata": {"a": "b"}},
    "update_table_tag": {"tag": "one", "version": 2},
}
OF_A_TRANSACTION = ("alter_transaction", "describe_transaction")
# What there is to say about a table that is only declared.
OF_DECLARED = (
    "batch_delete_table_versions",
    "deregister_table",
    "describe_table",
    "drop_table",
    "insert_into_table",
    "list_table_branches",
    "list_table_tags",
    "list_table_versions",
    "merge_insert_into_table",
    "rename_table",
    "table_exists",
)
NAMES: dict[str, tuple[list[str] | None, tuple[int, ...]]] = {
    "absent": (["absent"], (NO_TABLE,)),
    "dropped": (["gone"], (NO_TABLE,)),
    "of a namespace": (["ns"], (NO_TABLE,)),
    "in an absent namespace": (["absent", "t"], (NO_TABLE, NO_NAMESPACE)),
    "the root": ([], (INVALID,)),
    "none": (None, (INVALID,)),
    "empty": ([""], (INVALID,)),
    "a delimiter": (["a$b"], (INVALID, NO_TABLE)),
    "a slash": (["a/b"], (INVALID,)),
    "the parent": ([".."], (INVALID,)),
    "itself": (["."], (INVALID,)),
    "a NUL": (["a\0b"], (INVALID,)),
    "a new line": (["a\nb"], (INVALID,)),
    "half a character": (["\ud800"], (INVALID,)),
    "300 characters": (["x" * 300], (INVALID, NO_TABLE)),
    "unicode": (["\u00fc\U0001f6a2"], (NO_TABLE,)),
}


def _names() -> list[Wrong]:
    found = []
    for why, (names, codes) in NAMES.items():
        for operation, fields in RIGHT.items():
            few = {"query_table", "insert_into_table", "drop_table", "describe_table"}
            if why not in {"absent", "dropped", "the root"} and operation not in few:
                continue
            of = [*names, "1"] if names is not None and operation in OF_A_TRANSACTION else names
            # A plain directory says first that it renames nothing.
            also = (UNSUPPORTED,) if operation == "rename_table" else ()
            found.append(Wrong(why, operation, (*codes, *also), {"id": of, **fields}))
    missing = (NO_TABLE, NO_VERSION, NO_TAG, NO_BRANCH, NO_TRANSACTION, INVALID)
    for operation, fields in RIGHT.items():
        if operation not in OF_DECLARED:
            of = ["declared", "1"] if operation in OF_A_TRANSACTION else ["declared"]
            found.append(Wrong("declared", operation, missing, {"id": of, **fields}))
    return found


# -- filters and expressions ---------------------------------------------------------------------

FILTERS: dict[str, tuple[int, ...]] = {
    "": (INVALID,),
    "   ": (INVALID,),
    "n >": (INVALID,),
    "'": (INVALID,),
    "`n": (INVALID,),
    "(((((": (INVALID,),
    "--": (INVALID,),
    "\0": (INVALID,),
    "n = '\ud800'": (INVALID,),
    "n = 'x'": (INVALID,),
    "n = 99999999999999999999999": (INVALID,),
    "n": (INVALID,),
    "s": (INVALID,),
    "n + 1": (INVALID,),
    "null": (INVALID,),
    "b and n": (INVALID,),
    "nope = 1": (NO_COLUMN,),
    "p.z = 1": (NO_COLUMN,),
    "t.n = 1": (NO_COLUMN,),
    "_distance > 1": (NO_COLUMN,),
    "nofunc(n)": (INVALID,),
    "n = 1; DROP TABLE t": (INVALID,),
    "n = 1 LIMIT 1": (INVALID,),
    "n = 1 ORDER BY n": (INVALID,),
    "n in (select 1)": (INVALID,),
    "sum(n) = 1": (INVALID,),
    "row_number() over () = 1": (INVALID,),
    "n = ?": (INVALID,),
    "n = $1": (INVALID,),
    "n / 0 = 1": (INVALID,),
    "10 / (n - 5) > 1": (INVALID,),
    "cast(s as int) = 1": (INVALID,),
    "cast(s as nosuch) = 1": (INVALID,),
    "chr(-1) = 'a'": (INVALID,),
    "make_date(n, n, n) is null": (INVALID,),
    "p = 1": (INVALID,),
    "v = 1": (INVALID,),
    "tags = 'a'": (INVALID,),
    "regexp_like(s, '(')": (INVALID,),
    "(" * 400 + "n = 1" + ")" * 400: (INVALID,),
    "not " * 400 + "b": (INVALID,),
    "+".join(["n"] * 4000) + " > 1": (INVALID,),
    "b" + " is true" * 2000: (INVALID,),
}
# What fails in some row only fails when rows are read.
FAIL_IN_ROWS = (
    "n / 0 = 1",
    "10 / (n - 5) > 1",
    "cast(s as int) = 1",
    "chr(-1) = 'a'",
    "make_date(n, n, n) is null",
)
EXPRESSIONS: dict[str, int] = {
    "": INVALID,
    "n +": INVALID,
    "nope": NO_COLUMN,
    "p.z": NO_COLUMN,
    "nofunc(n)": INVALID,
    "n; DROP TABLE t": INVALID,
    "n LIMIT 1": INVALID,
    "sum(n)": INVALID,
    "?": INVALID,
    "n / 0": INVALID,
    "cast(s as int)": INVALID,
    "+".join(["n"] * 4000): INVALID,
}


def _filters() -> list[Wrong]:
    found = []
    for text, codes in FILTERS.items():
        for operation, name, more in (
            ("query_table", "filter", QUERY),
            ("count_table_rows", "predicate", {}),
            ("delete_from_table", "predicate", {}),
            ("update_table", "predicate", {"updates": [["f", "1.0"]]}),
        ):
            found.append(wrong(text[:30], operation, codes, **{**more, name: text}))
        if text not in FAIL_IN_ROWS and "\ud800" not in text:
            query = spec.QueryTableRequest(**QUERY, filter=text)
            found.append(wrong(text[:30], "explain_table_query_plan", codes, query=query))
            found.append(wrong(text[:30], "analyze_table_query_plan", codes, **QUERY, filter=text))
    return found


def _expressions() -> list[Wrong]:
    found = []
    for text, code in EXPRESSIONS.items():
        why = text[:30]
        column = [{"name": "c", "expression": text}]
        found.append(wrong(why, "alter_table_add_columns", code, new_columns=column))
        found.append(wrong(why, "update_table", code, updates=[["f", text]]))
        if text:
            named = {"column_aliases": {"a": text}}
            found.append(wrong(why, "query_table", code, **QUERY, columns=named))
        for name in ("when_matched_update_all_filt", "when_not_matched_by_source_delete_filt"):
            same = to_body(make_rows(0))
            some = (code, INVALID, NO_COLUMN) if "sum" in text or "p." in text else code
            condition = f"{text} = 1" if text and ";" not in text else text
            more = {"when_not_matched_by_source_delete": True} if "delete" in name else {}
            asked = {**MERGE, **more, name: condition}
            found.append(wrong(why, "merge_insert_into_table", some, same, **asked))
    return found


# -- versions, branches, tags ---------------------------------------------------------------------

VERSIONS = (0, -1, 10**9, 2**63, 2**64, 2**200)
REFERENCES = ("../x", "a//b", "a/", "/", "a b", "a\0b", "..", ".", "a..b", "x.lock", "x" * 400)


def _versions() -> list[Wrong]:
    found = []
    both = (NO_VERSION, INVALID)
    for version in VERSIONS:
        why = f"version {version:.3g}"
        for operation in (
            "count_table_rows",
            "describe_table",
            "describe_table_version",
            "list_table_indices",
            "restore_table",
            "table_exists",
        ):
            found += [wrong(why, operation, NO_VERSION, version=version)]
        on_dev = {**QUERY, "version": version, "branch": "dev"}
        stats = {"index_name": "by_n", "version": version}
        staged = {"version": version, "manifest_path": "t.lance/_versions/x.manifest"}
        found += [
            wrong(why, "query_table", NO_VERSION, **QUERY, version=version),
            wrong(why, "query_table", NO_VERSION, **on_dev),
            wrong(why, "restore_table", NO_VERSION, version=version, branch="dev"),
            wrong(why, "describe_table_index_stats", NO_VERSION, **stats),
            wrong(why, "create_table_tag", both, tag="x", version=version),
            wrong(why, "update_table_tag", both, tag="one", version=version),
            wrong(why, "create_table_branch", both, name="x", from_version=version),
            wrong(why, "create_table_version", INVALID, **staged),
            wrong(why, "describe_transaction", NO_TRANSACTION, id=["t", str(version)]),
        ]
    for start, end in ((5, 1), (-1, 5), (1, -5)):
        ranges = [{"start_version": start, "end_version": end}]
        found.append(
            wrong(f"{start} to {end}", "batch_delete_table_versions", INVALID, ranges=ranges)
        )
    return found


def _references() -> list[Wrong]:
    found = []
    branched = {
        operation: fields
        for operation, fields in RIGHT.items()
        if "branch" in _fields(operation) and operation != "explain_table_query_plan"
    }
    for branch, code in (("absent", NO_BRANCH), *((name, INVALID) for name in REFERENCES)):
        why = f"branch {branch[:20]}"
        for operation, fields in branched.items():
            if code == INVALID and branch != "../x" and operation != "query_table":
                continue
            # The branch is asked for first or last.
            some = (code, INVALID) if operation == "create_table_version" else code
            found.append(wrong(why, operation, some, **{**fields, "branch": branch}))
        asked = {"name": "x", "from_branch": branch}
        found.append(wrong(why, "create_table_branch", code, **asked))
        found.append(wrong(why, "delete_table_branch", code, name=branch))
        if code == INVALID:
            found.append(wrong(why, "create_table_branch", INVALID, name=branch))
    for tag, code in (("absent", NO_TAG), ("\u00fc", INVALID), *((n, INVALID) for n in REFERENCES)):
        why = f"tag {tag[:20]}"
        found += [
            wrong(why, "get_table_tag_version", code, tag=tag),
            wrong(why, "delete_table_tag", code, tag=tag),
            wrong(why, "update_table_tag", code, tag=tag, version=1),
            wrong(why, "describe_table", code, tag=tag),
        ]
        if code == INVALID:
            found.append(wrong(why, "create_table_tag", INVALID, tag=tag, version=1))
    return [
        *found,
        wrong("empty", "create_table_tag", INVALID, tag="", version=1),
        wrong("empty", "create_table_branch", INVALID, name=""),
        wrong("main", "create_table_branch", INVALID, name="main"),
        wrong("main", "delete_table_branch", INVALID, name="main"),
        wrong("taken", "create_table_branch", BRANCH_EXISTS, name="dev"),
        wrong("taken", "create_table_tag", TAG_EXISTS, tag="one", version=1),
        wrong("tag and version", "describe_table", INVALID, tag="one", version=1),
        wrong("tag and branch", "describe_table", INVALID, tag="one", branch="dev"),
        wrong("unknown", "describe_transaction", NO_TRANSACTION, id=["t", "nope"]),
        wrong("no table", "describe_transaction", INVALID, id=["t"]),
        wrong(
            "unknown",
            "alter_transaction",
            NO_TRANSACTION,
            id=["t", "nope"],
            **RIGHT["alter_transaction"],
        ),
    ]


def _fields(operation: str) -> set[str]:
    return set(MODELS[operation].model_fields)


# -- rows -----------------------------------------------------------------------------------------


def _file(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pyarrow.ipc.new_file(sink, rows.schema) as writer:
        writer.write(rows)
    return sink.getvalue()


def _broken(body: bytes) -> bytes:
    middle = len(body) // 2
    return body[:middle] + b"\xff" * 40 + body[middle + 40 :]


def _column(values: pa.Array, name: str = "x") -> bytes:
    return to_body(pa.table({name: values}))


UNREADABLE = {
    "empty": b"",
    "text": b'{"n": 1}',
    "garbage": b"hello world" * 10,
    "a file": _file(make_rows()),
    "cut in the schema": BODY[:100],
    "cut in the rows": BODY[: len(BODY) - 200],
    "broken": _broken(BODY),
}
UNSTORABLE = {
    "a name twice": to_body(pa.RecordBatch.from_arrays([pa.array([1])] * 2, names=["n", "n"])),
    "a reserved name": _column(pa.array([1]), "_rowid"),
    "a dot": _column(pa.array([1]), "a.b"),
    "vectors of nothing": _column(pa.array([[]], pa.list_(pa.float32(), 0))),
    "a union": _column(pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])),
    "run ends": _column(pa.RunEndEncodedArray.from_arrays([1], [5])),
    "list views": _column(pa.array([[1]], pa.list_view(pa.int32()))),
}
UNFITTING = {
    "another column": _column(pa.array([1])),
    "another case": _column(pa.array([1]), "N"),
    "text for numbers": _column(pa.array(["x"]), "n"),
    "fractions": _column(pa.array([1.5]), "n"),
    "other vectors": _column(pa.array([[1.0]], pa.list_(pa.float32(), 1)), "v"),
    "another struct": _column(pa.array([{"x": "a"}]), "p"),
}


def _bodies() -> list[Wrong]:
    found = []
    for why, body in UNREADABLE.items():
        found += [
            wrong(why, "insert_into_table", INVALID, body),
            wrong(why, "insert_into_table", INVALID, body, mode="overwrite"),
            wrong(why, "insert_into_table", INVALID, body, id=["declared"]),
            wrong(why, "insert_into_table", INVALID, body, branch="dev"),
            wrong(why, "merge_insert_into_table", INVALID, body, **MERGE),
            wrong(why, "merge_insert_into_table", INVALID, body, id=["declared"], **MERGE),
            wrong(why, "create_table", INVALID, body, id=["new"]),
            wrong(why, "create_table", INVALID, body, mode="overwrite"),
        ]
    for why, body in UNSTORABLE.items():
        found += [
            wrong(why, "insert_into_table", SCHEMA, body),
            wrong(why, "insert_into_table", SCHEMA, body, mode="overwrite"),
            wrong(why, "insert_into_table", SCHEMA, body, id=["declared"]),
            wrong(why, "create_table", SCHEMA, body, id=["new"]),
            wrong(why, "create_table", SCHEMA, body, mode="overwrite"),
        ]
    for why, body in UNFITTING.items():
        found.append(wrong(why, "insert_into_table", SCHEMA, body))
        found.append(wrong(why, "insert_into_table", SCHEMA, body, branch="dev"))
    return found


def _merges() -> list[Wrong]:
    merge = "merge_insert_into_table"
    twice = to_body(pa.concat_tables([make_rows(0), make_rows(0)]))
    without = to_body(make_rows().drop_columns(["n"]))
    other = to_body(make_rows().rename_columns(["m", "s", "f", "b", "p", "tags", "v"]))
    return [
        wrong("nothing to do", merge, INVALID, on=["n"]),
        wrong("no key", merge, INVALID, on=None, when_matched_update_all=True),
        wrong("an unknown key", merge, NO_COLUMN, **{**MERGE, "on": ["nope"]}),
        wrong("a key of no column", merge, NO_COLUMN, **{**MERGE, "on": ["p.x"]}),
        wrong("a key that the rows lack", merge, NO_COLUMN, without, **MERGE),
        wrong("a key that the table lacks", merge, NO_COLUMN, other, **{**MERGE, "on": ["m"]}),
        wrong("a key twice", merge, INVALID, twice, **MERGE),
        *(
            wrong(f"timeout {text}", merge, INVALID, **MERGE, timeout=text)
            for text in ("", "x", "-1s", "1 year", "nan", "1e3s")
        ),
    ]


def _updates() -> list[Wrong]:
    update = "update_table"
    return [
        wrong("no column", update, INVALID, updates=[]),
        wrong("a column twice", update, INVALID, updates=[["n", "1"], ["n", "2"]]),
        wrong("no expression", update, INVALID, updates=[["n"]]),
        wrong("too many", update, INVALID, updates=[["n", "1", "2"]]),
        wrong("an unknown column", update, NO_COLUMN, updates=[["nope", "1"]]),
        wrong("a fraction", update, (INVALID, SCHEMA), updates=[["n", "'x'"]]),
        wrong("empty", "delete_from_table", INVALID, predicate=""),
        wrong("mode", "insert_into_table", INVALID, mode="sideways"),
        wrong("mode", "insert_into_table", INVALID, mode="create"),
        wrong("mode", "create_table", INVALID, id=["new"], mode="append"),
        wrong("exists", "create_table", TABLE_EXISTS),
        wrong("options", "create_table", UNSUPPORTED, id=["new"], storage_options={"a": "b"}),
        wrong("nowhere", "create_table", (NO_NAMESPACE, NO_TABLE, INVALID), id=["absent", "t"]),
    ]


# -- searches -------------------------------------------------------------------------------------


def _searches() -> list[Wrong]:
    def single(*numbers: float) -> dict[str, Any]:
        return {"vector": QueryTableRequestVector(single_vector=list(numbers)), "k": 2}

    def text(**query: Any) -> dict[str, Any]:
        return {**QUERY, "full_text_query": {"structured_query": {"query": query}}}

    ragged = QueryTableRequestVector(multi_vector=[[1.0, 2.0], [1.0]])
    both = QueryTableRequestVector(single_vector=[1.0, 1.0], multi_vector=[[1.0, 1.0]])
    nan, query = math.nan, "query_table"
    word = {"terms": "word", "column": "s"}
    found = [
        wrong("one number", query, INVALID, **single(1.0)),
        wrong("three numbers", query, INVALID, **single(1.0, 2.0, 3.0)),
        wrong("not a number", query, INVALID, **single(nan, 1.0)),
        wrong("infinite", query, INVALID, **single(math.inf, 1.0)),
        wrong("ragged", query, INVALID, vector=ragged, k=2),
        wrong("two kinds", query, INVALID, vector=both, k=2),
        wrong("bound", query, INVALID, **SEARCH, lower_bound=nan),
        wrong("bound", query, INVALID, **SEARCH, upper_bound=nan),
        wrong("bounds", query, INVALID, **SEARCH, lower_bound=5.0, upper_bound=1.0),
        wrong("probes", query, INVALID, **SEARCH, minimum_nprobes=5, maximum_nprobes=2),
        wrong("no distance", query, INVALID, **SEARCH, distance_type="nope"),
        wrong("distance of bits", query, INVALID, **SEARCH, distance_type="hamming"),
        wrong("no column", query, NO_COLUMN, **SEARCH, vector_column="nope"),
        wrong("no vectors", query, INVALID, **SEARCH, vector_column="n"),
        wrong("k", query, INVALID, vector=VECTOR, k=-1),
        wrong("k", query, INVALID, vector=NO_VECTOR, k=-1),
        wrong("offset", query, INVALID, **QUERY, offset=-1),
        wrong("columns", query, NO_COLUMN, **QUERY, columns={"column_names": ["nope"]}),
        wrong("columns", query, NO_COLUMN, **QUERY, columns={"column_names": ["p.z"]}),
        wrong("columns", query, NO_COLUMN, **QUERY, columns={"column_names": ["_distance"]}),
        wrong("columns", query, NO_COLUMN, **QUERY, columns={"column_names": ["n;"]}),
        wrong("columns", query, INVALID, **QUERY, columns={"column_names": ["n", "n"]}),
        wrong(
            "two kinds of columns",
            query,
            INVALID,
            **QUERY,
            columns={"column_names": ["n"], "column_aliases": {"a": "n"}},
        ),
        wrong("no words", query, INVALID, **text()),
        wrong("two words", query, INVALID, **text(match=word, phrase=word)),
        wrong("no positions", query, INVALID, **text(phrase=word)),
        wrong("no column", query, NO_COLUMN, **text(match={**word, "column": "nope"})),
        wrong("no text", query, INVALID, **text(match={**word, "column": "n"})),
        wrong("operator", query, INVALID, **text(match={**word, "operator": "xor"})),
        wrong("fuzziness", query, INVALID, **text(match={**word, "fuzziness": 2**40})),
        wrong("boost", query, INVALID, **text(match={**word, "boost": nan})),
        wrong("nothing", query, INVALID, **text(multi_match={"match_queries": []})),
        wrong(
            "nothing must",
            query,
            INVALID,
            **text(boolean={"must": [], "must_not": [{"match": word}], "should": []}),
        ),
        wrong(
            "no index",
            query,
            INVALID,
            id=["other"],
            **QUERY,
            full_text_query={"string_query": {"query": "word"}},
        ),
        wrong(
            "two tables",
            "explain_table_query_plan",
            INVALID,
            query=spec.QueryTableRequest(id=["other"], **QUERY),
        ),
        wrong(
            "two branches",
            "explain_table_query_plan",
            INVALID,
            branch="dev",
            query=spec.QueryTableRequest(branch="x", **QUERY),
        ),
    ]
    for name in ("nprobes", "minimum_nprobes", "maximum_nprobes", "ef", "refine_factor"):
        found.append(wrong(name, query, INVALID, **SEARCH, **{name: -1}))
        found.append(wrong(f"{name}, no vector", query, INVALID, **QUERY, **{name: 3}))
    return found


# -- indexes and columns ---------------------------------------------------------------------------


def _indexes() -> list[Wrong]:
    create, scalar = "create_table_index", "create_table_scalar_index"
    flat = {"column": "v", "index_type": "IVF_FLAT", "num_partitions": 1}
    tree = {"column": "f", "index_type": "BTREE"}
    pq = {**flat, "index_type": "IVF_PQ"}
    words = {"column": "s", "index_type": "FTS", "name": "words"}
    found = [
        wrong("kind", create, INVALID, column="v", index_type="nope"),
        wrong("kind", create, INVALID, column="v", index_type=""),
        wrong("kind", scalar, INVALID, **flat),
        wrong("numbers have no words", create, INVALID, column="n", index_type="FTS"),
        wrong("text is no vector", create, INVALID, column="s", index_type="IVF_PQ"),
        wrong("vectors have no order", create, INVALID, column="v", index_type="BTREE"),
        wrong("numbers have no place", scalar, INVALID, column="n", index_type="RTREE", name="x"),
        wrong("no list", scalar, INVALID, column="n", index_type="LABEL_LIST", name="x"),
        wrong("column", create, NO_COLUMN, **{**flat, "column": "nope"}),
        wrong("column", scalar, NO_COLUMN, **{**tree, "column": "p.z"}),
        wrong("column", scalar, NO_COLUMN, **{**tree, "column": "_rowid"}),
        wrong("name", scalar, INDEX_EXISTS, **{**tree, "name": "by_n"}),
        wrong("name", scalar, INVALID, **{**tree, "name": " "}),
        wrong("of another kind", scalar, INVALID, **tree, m=3),
        wrong("of another kind", create, INVALID, **flat, stem=True),
        wrong("said twice", create, INVALID, **flat, target_partition_size=1),
        wrong("distance", create, INVALID, **flat, distance_type="nope"),
        wrong("does not divide", create, INVALID, **pq, num_sub_vectors=3),
        wrong("tokenizer", scalar, INVALID, **words, base_tokenizer="nope"),
        wrong("language", scalar, INVALID, **words, language="Klingon"),
        wrong("too long", scalar, INVALID, **words, max_token_length=2**70),
        wrong("index", "describe_table_index_stats", NO_INDEX, index_name="nope"),
        wrong("index", "drop_table_index", NO_INDEX, index_name="nope"),
        wrong("no index", "describe_table_index_stats", INVALID),
        wrong("no index", "drop_table_index", INVALID, index_name=""),
        wrong("not yet", "describe_table_index_stats", NO_INDEX, index_name="by_n", version=1),
    ]
    for name in ("num_partitions", "sample_rate", "max_iterations", "num_sub_vectors", "num_bits"):
        for value in (0, -1, 2**70):
            found += [wrong(f"{name} {value:.0e}", create, INVALID, **{**pq, name: value})]
    return found


def _columns() -> list[Wrong]:
    add, alter, drop = (f"alter_table_{verb}_columns" for verb in ("add", "alter", "drop"))
    meta, fill = "update_field_metadata", "alter_table_backfill_columns"
    column = {"name": "c", "expression": "n"}

    def changed(**change: Any) -> dict[str, Any]:
        return {"alterations": [change]}

    def noted(*updates: tuple[str, dict[str, Any]]) -> dict[str, Any]:
        return {"updates": [{"path": path, "metadata": values} for path, values in updates]}

    found = [
        wrong("none", add, INVALID, new_columns=[]),
        wrong("taken", add, SCHEMA, new_columns=[{"name": "n", "expression": "f"}]),
        wrong("twice", add, SCHEMA, new_columns=[column, column]),
        wrong("nothing", add, INVALID, new_columns=[{"name": "c"}]),
        wrong("two", add, INVALID, new_columns=[{**column, "computed": "n"}]),
        wrong(
            "the second is wrong",
            add,
            NO_COLUMN,
            new_columns=[column, {"name": "d", "expression": "nope"}],
        ),
        wrong("none", alter, INVALID, alterations=[]),
        wrong("nothing", alter, INVALID, **changed(path="n")),
        wrong("path", alter, NO_COLUMN, **changed(path="nope", rename="z")),
        wrong("path", alter, NO_COLUMN, **changed(path="p.z", rename="z")),
        wrong("path", alter, INVALID, **changed(path="`n", rename="z")),
        wrong("taken", alter, SCHEMA, **changed(path="n", rename="s")),
        wrong("name", alter, INVALID, **changed(path="n", rename="_rowid")),
        wrong("type", alter, INVALID, **changed(path="n", data_type={"type": "nope"})),
        wrong("type", alter, INVALID, **changed(path="n", data_type={})),
        wrong("cast", alter, (INVALID, SCHEMA), **changed(path="s", data_type={"type": "int8"})),
        wrong(
            "the second is wrong",
            alter,
            NO_COLUMN,
            alterations=[{"path": "n", "rename": "z"}, {"path": "nope", "rename": "y"}],
        ),
        wrong("none", drop, INVALID, columns=[]),
        wrong("path", drop, NO_COLUMN, columns=["nope"]),
        wrong("path", drop, NO_COLUMN, columns=["n", "p.z"]),
        wrong("all", drop, SCHEMA, columns=["n", "s", "f", "b", "p", "tags", "v"]),
        wrong("no expression", fill, INVALID, column="n"),
        wrong("path", fill, NO_COLUMN, column="nope"),
        wrong("inside", fill, UNSUPPORTED, column="p.x"),
        wrong("none", meta, INVALID, updates=[]),
        wrong("path", meta, NO_COLUMN, **noted(("nope", {"a": "b"}))),
        wrong("second path", meta, NO_COLUMN, **noted(("n", {"a": "b"}), ("nope", {"a": "b"}))),
        wrong("twice", meta, INVALID, **noted(("n", {"a": "b"}), ("n", {"c": "d"}))),
        wrong("key", meta, INVALID, **noted(("n", {"lance-schema:unenforced-primary-key": "x"}))),
        wrong("key", meta, SCHEMA, **noted(("n", {"lance-schema:unenforced-primary-key": "true"}))),
        wrong("none", "update_table_schema_metadata", INVALID),
    ]
    for name in ("", " ", "a.b", "a`b", "_rowid", "_distance"):
        new = [{"name": name, "expression": "n"}]
        found.append(wrong(f"name {name}", add, INVALID, new_columns=new))
    for name in (
        "concurrency",
        "intra_applier_concurrency",
        "min_checkpoint_size",
        "max_checkpoint_size",
        "batch_checkpoint_flush_interval_seconds",
        "read_version",
        "task_size",
        "num_frags",
        "checkpoint_size",
        "commit_granularity",
    ):
        found += [wrong(name, fill, UNSUPPORTED, column="n", **{name: 1})]
    for name in ("cluster", "manifest"):
        found += [wrong(name, fill, UNSUPPORTED, column="n", **{name: "x"})]
    return found


# -- the catalog -----------------------------------------------------------------------------------


def _catalog() -> list[Wrong]:
    found = []
    nowhere = (NO_NAMESPACE, NO_TABLE, INVALID, UNSUPPORTED)
    for operation in (
        "list_namespaces",
        "list_tables",
        "list_all_tables",
        "list_table_tags",
        "list_table_branches",
        "list_table_indices",
        "list_table_versions",
    ):
        own = [] if operation in {"list_namespaces", "list_tables", "list_all_tables"} else ["t"]
        found += [
            wrong("limit 0", operation, INVALID, id=own, limit=0),
            wrong("limit -1", operation, INVALID, id=own, limit=-1),
            wrong("token", operation, INVALID, id=own, page_token="no token", limit=1),
        ]
    for operation in ("describe_namespace", "namespace_exists", "drop_namespace", "list_tables"):
        found.append(wrong("absent", operation, nowhere, id=["absent"]))
        found.append(wrong("a slash", operation, nowhere, id=["a/b"]))
        found.append(wrong("a table", operation, nowhere, id=["t"]))
    staged = "t.lance/_versions/x.manifest"
    entry = {"id": ["t"], "version": 9, "manifest_path": staged}
    return [
        *found,
        wrong("mode", "create_namespace", (INVALID, UNSUPPORTED), id=["x"], mode="sideways"),
        wrong("root", "create_namespace", (INVALID, NAMESPACE_EXISTS, UNSUPPORTED), id=[]),
        wrong("nowhere", "create_namespace", nowhere, id=["absent", "x"]),
        wrong("root", "drop_namespace", (INVALID, UNSUPPORTED), id=[]),
        wrong("mode", "drop_namespace", (INVALID, UNSUPPORTED), id=["ns"], mode="sideways"),
        wrong("behavior", "drop_namespace", (INVALID, UNSUPPORTED), id=["ns"], behavior="x"),
        wrong("ttl", "drop_namespace", (INVALID, UNSUPPORTED), id=["ns"], context={"ttl": "x"}),
        wrong("ttl", "drop_table", INVALID, context={"ttl": "soon"}),
        wrong("exists", "declare_table", TABLE_EXISTS),
        wrong("outside", "declare_table", (INVALID, UNSUPPORTED), id=["new"], location="/etc"),
        wrong("outside", "register_table", (INVALID, NO_TABLE), id=["new"], location="../x"),
        wrong("nothing there", "register_table", (INVALID, NO_TABLE), id=["new"], location="new"),
        wrong("mode", "register_table", INVALID, id=["new"], location="x", mode="sideways"),
        wrong("taken", "rename_table", (TABLE_EXISTS, UNSUPPORTED), new_table_name="other"),
        wrong("name", "rename_table", (INVALID, UNSUPPORTED), new_table_name="a/b"),
        wrong("nowhere", "rename_table", nowhere, new_table_name="x", new_namespace_id=["absent"]),
        wrong("outside", "create_table_version", INVALID, version=9, manifest_path="../../x"),
        wrong("outside", "create_table_version", INVALID, version=5, manifest_path="/etc/passwd"),
        Wrong("none", "batch_create_table_versions", (INVALID,), {"entries": []}),
        Wrong("outside", "batch_create_table_versions", (INVALID,), {"entries": [entry]}),
        Wrong("two", "batch_create_table_versions", (UNSUPPORTED,), {"entries": [entry, entry]}),
        Wrong("none", "batch_commit_tables", (INVALID,), {"operations": []}),
        Wrong("nothing", "batch_commit_tables", (INVALID,), {"operations": [{}]}),
        Wrong("nothing twice", "batch_commit_tables", (INVALID,), {"operations": [{}, {}]}),
        Wrong(
            "two",
            "batch_commit_tables",
            (UNSUPPORTED,),
            {
                "operations": [
                    {"deregister_table": {"id": ["t"]}},
                    {"declare_table": {"id": ["another"]}},
                ]
            },
        ),
        wrong(
            "views",
            "create_materialized_view",
            UNSUPPORTED,
            kind="x",
            source_query="x",
            output_schema="x",
        ),
        wrong("views", "refresh_materialized_view", UNSUPPORTED),
        wrong("no action", "alter_transaction", INVALID, id=["t", "1"], actions=[]),
    ]


CASES = [
    *_names(),
    *_filters(),
    *_expressions(),
    *_versions(),
    *_references(),
    *_bodies(),
    *_merges(),
    *_updates(),
    *_searches(),
    *_indexes(),
    *_columns(),
    *_catalog(),
]


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "manifest"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("wrong") / "lake", manifest=request.param)


def _check_words(message: str) -> None:
    """Refuse words that only those understand who know Lance's sources."""
    assert message.strip()
    for noise in (".rs:", "Schema {", "Field {", "panicked", "Traceback", "0x"):
        assert noise not in message
    assert len(message) < 20_000


@pytest.mark.parametrize("operation", sorted({case.operation for case in CASES}))
def test_a_wrong_request_is_refused_in_plain_words_and_changes_nothing(world, operation):
    failures = []
    for case in (case for case in CASES if case.operation == operation):
        before = world.files()
        try:
            answer = world.ask(case.operation, *case.data, **case.fields)
            told = f"answered {answer!r:.80}"
        except LanceNamespaceError as exc:
            told = "" if int(exc.code) in case.codes else f"code {int(exc.code)}: {exc}"
            _check_words(str(exc))
        except BaseException as exc:  # noqa: BLE001  # a panic is no Exception
            told = f"{type(exc).__name__}: {exc}"
        if told:
            failures.append(f"{case.why!r}: {told[:200]}; expected {case.codes}")
        if world.files() != before:
            changed = {name for name, _ in world.files().items() ^ before.items()}
            failures.append(f"{case.why!r} changed {sorted(changed)[:3]}")
            world.reset()
    assert not failures, "\n".join(failures)


def test_wrong_requests_are_known_for_every_operation():
    assert {case.operation for case in CASES} == set(MODELS)


# -- as people write it ----------------------------------------------------------------------------

ROWS = make_rows(100)
# By what is wrong: the code that fits, and the call.
CALLS: dict[str, tuple[int, Callable[[Table], object]]] = {
    "a filter that does not parse": (INVALID, lambda t: t.query(where="n >").read_all()),
    "a filter with a second statement": (INVALID, lambda t: t.delete("n = 1; DROP TABLE t")),
    "a filter with a limit": (INVALID, lambda t: t.delete("n = 1 LIMIT 1")),
    "a filter that fails in some row": (
        INVALID,
        lambda t: t.query(where="10 / (n - 5) > 1").read_all(),
    ),
    "a filter with a placeholder": (INVALID, lambda t: t.delete("n = ?")),
    "a filter without end": (INVALID, lambda t: t.count("+".join(["n"] * 4000) + " > 1")),
    "an empty filter": (INVALID, lambda t: t.update({"f": "1.0"}, "")),
    "a filter of an unknown column": (NO_COLUMN, lambda t: t.delete("nope = 1")),
    "an unknown column to set": (NO_COLUMN, lambda t: t.update({"nope": "1"})),
    "nothing to set": (INVALID, lambda t: t.update({})),
    "an expression with a second one": (INVALID, lambda t: t.update({"f": "1.0; DROP"})),
    "a negative version": (NO_VERSION, lambda t: t.query(version=-1)),
    "a version too large": (NO_VERSION, lambda t: t.count(version=2**64)),
    "a version to restore": (NO_VERSION, lambda t: t.restore(2**70)),
    "a version to open": (NO_VERSION, lambda t: t.to_lance(version=-1)),
    "a tag": (NO_TAG, lambda t: t.query(tag="absent")),
    "a tag that none can be": (INVALID, lambda t: t.count(tag="../x")),
    "a tag that is too long": (INVALID, lambda t: t.to_lance(tag="x" * 400)),
    "a branch": (NO_BRANCH, lambda t: t.insert(ROWS, branch="absent")),
    "a branch that none can be": (INVALID, lambda t: t.insert(ROWS, branch="../x")),
    "a branch to make": (INVALID, lambda t: t.branches.create("a//b")),
    "a branch to delete": (NO_BRANCH, lambda t: t.branches.delete("absent")),
    "a tag to make": (INVALID, lambda t: t.tags.create("a b", 1)),
    "a tag of no version": (NO_VERSION, lambda t: t.tags.create("x", 10**9)),
    "a tag to delete": (NO_TAG, lambda t: t.tags.delete("absent")),
    "rows of another schema": (SCHEMA, lambda t: t.insert(pa.table({"x": [1]}))),
    "rows with a dot": (SCHEMA, lambda t: t.insert(pa.table({"a.b": [1]}), overwrite=True)),
    "no rows": (INVALID, lambda t: t.insert(5)),
    "a key": (NO_COLUMN, lambda t: t.merge(ROWS, "nope")),
    "a key twice": (
        INVALID,
        lambda t: t.merge(pa.concat_tables([make_rows(0), make_rows(0)]), "n"),
    ),
    "a condition": (INVALID, lambda t: t.merge(ROWS, "n", update_if="source.n = 1; DROP")),
    "a condition of nothing": (
        INVALID,
        lambda t: t.merge(ROWS, "n", update=False, update_if="source.n = 1"),
    ),
    "a vector": (INVALID, lambda t: t.query(vector=[1.0])),
    "a vector of no numbers": (INVALID, lambda t: t.query(vector=[math.nan, 1.0])),
    "a bound": (INVALID, lambda t: t.query(vector=[1.0, 1.0], lower_bound=math.nan)),
    "k": (INVALID, lambda t: t.query(vector=[1.0, 1.0], k=0)),
    "a limit": (INVALID, lambda t: t.query(limit=-1)),
    "an offset": (INVALID, lambda t: t.query(offset=-1)),
    "columns": (NO_COLUMN, lambda t: t.query("nope")),
    "words": (NO_COLUMN, lambda t: t.query(text="a", text_columns="nope")),
    "an argument of Lance": (INVALID, lambda t: t.to_arrow(filter="n >")),
    "a plan": (NO_COLUMN, lambda t: t.explain(where="nope = 1")),
    "an analysis": (NO_COLUMN, lambda t: t.analyze(where="nope = 1")),
    "an index": (INVALID, lambda t: t.indexes.create("n", "nope")),
    "an index of no column": (NO_COLUMN, lambda t: t.indexes.create("nope")),
    "an index of no number": (
        INVALID,
        lambda t: t.indexes.create("v", "IVF_FLAT", num_partitions=-1),
    ),
    "an index to drop": (NO_INDEX, lambda t: t.indexes.drop("nope")),
    "a column to add": (INVALID, lambda t: t.columns.add({"c": "n; DROP"})),
    "a column that is there": (SCHEMA, lambda t: t.columns.add({"n": "f"})),
    "a computed column": (INVALID, lambda t: t.columns.add_computed({"c": "n +"})),
    "a column to alter": (NO_COLUMN, lambda t: t.columns.alter("nope", rename="x")),
    "a column to drop": (NO_COLUMN, lambda t: t.columns.drop("nope")),
    "a column to fill": (INVALID, lambda t: t.columns.backfill("n", expression="")),
    "a filter of a backfill": (
        INVALID,
        lambda t: t.columns.backfill("f", where="n = 1; DROP", expression="1.0"),
    ),
    "a column's metadata": (NO_COLUMN, lambda t: t.columns.update_metadata("nope", {"a": "b"})),
    "a branch to gather": (NO_BRANCH, lambda t: t.stats(branch="absent")),
    "a branch to compact": (NO_BRANCH, lambda t: t.compact(branch="absent")),
    "a version to compare": (NO_VERSION, lambda t: t.diff(10**9)),
    "a transaction": (NO_TRANSACTION, lambda t: t.transaction("nope")),
}


@pytest.mark.parametrize("why", CALLS)
def test_a_wrong_call_of_a_table_raises_an_error_of_ours_and_changes_nothing(world, why):
    code, call = CALLS[why]
    table = world.catalog.table("t")
    before = world.files()
    with pytest.raises(MooringError) as caught:
        call(table)
    assert caught.value.code == code, caught.value
    _check_words(str(caught.value))
    assert world.files() == before
