"""Requests that read the rows of a table.

Spec: lance-rest-openapi, QueryTable, ExplainTableQueryPlan, AnalyzeTableQueryPlan, CountTableRows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance_namespace as spec
from lance_namespace.errors import from_error_code
from pydantic import ValidationError

from mooring.errors import InvalidInputError, MooringError
from mooring.namespace.lance.requests import Requests, worded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from mooring.tables.query import Query

    QueryRequest = spec.QueryTableRequest | spec.AnalyzeTableQueryPlanRequest

__all__ = ["QueryRequests"]

# What a request and a query call alike.
_SAME = (
    "offset",
    "vector_column",
    "minimum_nprobes",
    "maximum_nprobes",
    "lower_bound",
    "upper_bound",
    "prefilter",
    "version",
)
# The specification allows 0 for these, which is as good as not to say anything.
_NOT_ZERO = ("nprobes", "ef", "refine_factor")
_FLAGS = ("bypass_vector_index", "fast_search", "with_row_id")


class QueryRequests(Requests):
    """Rows by filter, by vector and by words."""

    @worded
    def query_table(
        self, request: spec.QueryTableRequest | dict[str, Any]
    ) -> spec.QueryTableResponse:
        """Answer a query by an Arrow IPC file, which is in memory as a whole.

        `k` is how many rows are returned after the `offset`; 0 is all of them, or ten where
        vectors are searched. Several vectors are searched each on its own, and `query_index` tells
        of which one a row is; of a column of lists of vectors they are one search.
        """
        return spec.QueryTableResponse(data=_write_file(self._run(request)))

    @worded
    def query_table_stream(
        self, request: spec.QueryTableRequest | dict[str, Any]
    ) -> pa.RecordBatchReader:
        """Answer a query by a stream of batches, of a result of any size."""
        import pyarrow as pa

        rows = self._run(request)
        return pa.RecordBatchReader.from_batches(rows.schema, _worded_batches(rows))

    def _run(self, request: spec.QueryTableRequest | dict[str, Any]) -> pa.RecordBatchReader:
        from mooring.tables.query import run  # imports lance

        asked = _model(request) if isinstance(request, dict) else request
        return run(self._locate(asked.id), _read(asked))

    @worded
    def count_table_rows(self, request: spec.CountTableRowsRequest) -> spec.CountTableRowsResponse:
        """Count the rows, or those for which the predicate holds."""
        from mooring.tables.handle import At  # imports lance
        from mooring.tables.query import count

        at = At(request.version, branch=request.branch)
        found = count(self._locate(request.id), request.predicate, at)
        return spec.CountTableRowsResponse(count=found)

    @worded
    def explain_table_query_plan(self, request: spec.ExplainTableQueryPlanRequest) -> str:
        """Tell how a query would be answered."""
        from mooring.tables.query import explain  # imports lance

        inner = request.query
        table = _agree("id", request.id, inner.id)
        branch = _agree("branch", request.branch, inner.branch)
        query = _read(inner.model_copy(update={"branch": branch}))
        return explain(self._locate(table), query, verbose=bool(request.verbose))

    @worded
    def analyze_table_query_plan(self, request: spec.AnalyzeTableQueryPlanRequest) -> str:
        """Answer a query, and tell what each step of it took."""
        from mooring.tables.query import analyze  # imports lance

        return analyze(self._locate(request.id), _read(request))


def _model(request: dict[str, Any]) -> spec.QueryTableRequest:
    """Read a request that is no model, as pylance takes it, too.

    Raises:
        InvalidInputError: it does not fit the model.
    """
    try:
        return spec.QueryTableRequest.model_validate({"vector": {}, "k": 0, **request})
    except ValidationError as exc:
        raise InvalidInputError(f"this is no query: {exc}") from exc


def _read(request: QueryRequest) -> Query:
    """Read the query of a request.

    Raises:
        InvalidInputError: the request contradicts itself, or a part of it makes no sense.
    """
    from mooring.tables.query import build_query  # imports lance

    vector = _either(request.vector, "single_vector", "multi_vector")
    columns = _either(request.columns, "column_names", "column_aliases")
    how: dict[str, Any] = {name: getattr(request, name) for name in _SAME}
    how.update((name, getattr(request, name) or None) for name in _NOT_ZERO)
    how.update((name, bool(getattr(request, name))) for name in _FLAGS)
    how["k" if vector else "limit"] = request.k or None
    return build_query(
        columns,
        request.filter,
        vector=vector,
        distance=request.distance_type,
        branch=request.branch,
        **_read_text(request),
        **how,
    )


def _read_text(request: QueryRequest) -> dict[str, Any]:
    found = _either(request.full_text_query, "string_query", "structured_query")
    if found is None:
        return {}
    if hasattr(found, "columns"):
        return {"text": found.query, "text_columns": found.columns}
    return {"text": found.query.to_dict()}


def _either(model: Any, first: str, second: str) -> Any:  # noqa: ANN401  # any of the models
    """Return which of two fields is given; an empty one is not.

    Raises:
        InvalidInputError: both are.
    """
    if model is None:
        return None
    one, other = getattr(model, first), getattr(model, second)
    if one and other:
        msg = f"the query has both {first} and {second}: give one of them"
        raise InvalidInputError(msg)
    return one or other or None


def _agree(what: str, outer: Any, inner: Any) -> Any:  # noqa: ANN401  # a name or names
    """Return what a request says, or the query in it.

    Raises:
        InvalidInputError: they differ.
    """
    if outer and inner and outer != inner:
        msg = f"the request's {what} is {outer!r}, but that of its query is {inner!r}"
        raise InvalidInputError(msg)
    return outer or inner


def _write_file(rows: pa.RecordBatchReader) -> bytes:
    import pyarrow as pa
    import pyarrow.ipc

    sink = pa.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, rows.schema) as writer:
        for batch in _writable(rows):
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def _writable(rows: pa.RecordBatchReader) -> pa.RecordBatchReader | Sequence[pa.RecordBatch]:
    """Return batches that one file may hold: it has one dictionary for a column."""
    if not any("dictionary<" in str(field.type) for field in rows.schema):
        return rows
    return rows.read_all().unify_dictionaries().to_batches()


def _worded_batches(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        with rows:  # whoever stops reading needs the rest no more
            yield from rows
    except MooringError as exc:
        raise from_error_code(exc.code, str(exc)) from exc
