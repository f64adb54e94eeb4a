"""Questions about reading rows."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import lance_namespace as spec
import pyarrow as pa
import pyarrow.ipc
from lance_namespace_urllib3_client.models.query_table_request_vector import (
    QueryTableRequestVector,
)

from mooring.survey.question import collect_into
from mooring.survey.subject import expect

if TYPE_CHECKING:
    from mooring.survey.question import Question
    from mooring.survey.subject import Subject

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Question] = {}
_question = collect_into(QUESTIONS)


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
