"""The vector search of a query, as Lance takes it.

Lance sets memory aside for as many results as it is asked for, and ends the process where there
is not as much: what is asked for is cut to the rows that there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mooring.errors import InvalidInputError, TableColumnNotFoundError
from mooring.identifiers import quote
from mooring.tables.field_paths import list_fields, parse_path

if TYPE_CHECKING:
    from lance import LanceDataset

    from mooring.tables.field_paths import FieldPath
    from mooring.tables.query import Query
    from mooring.tables.query_vector import QueryVector

__all__ = ["DEFAULT_K", "Search", "plan_search"]

DEFAULT_K = 10
_USUAL = "vector"
_FEW = 10_000
_LARGEST = 2**31 - 1
_BFLOAT16 = "lance.bfloat16"


@dataclass(frozen=True, slots=True)
class Search:
    """A vector search as Lance takes it.

    Attributes:
        arguments: What is searched, and how.
        limit: At most so many rows of what was found.
    """

    arguments: dict[str, Any]
    limit: int | None


def plan_search(dataset: LanceDataset, vector: QueryVector, query: Query, what: str) -> Search:
    """Find the column and write the search for Lance.

    Args:
        dataset: The table, opened.
        vector: The query's vector.
        query: The query.
        what: The table, for messages.

    Raises:
        TableColumnNotFoundError: there is no such column.
        InvalidInputError: the column holds no vectors, or vectors of another dimension; without
            a column, that there are several candidates.
    """
    column = _find(dataset.schema, query.vector_column, what)
    _check_dimension(vector, column)
    # Several vectors for a column of single ones are several searches, each with results of its
    # own; for a column of several they are one search.
    is_batch = vector.several and pa.types.is_fixed_size_list(_storage(column.type))
    k = _wanted(query)
    skipped = 0 if is_batch else query.offset or 0
    limit = query.limit if is_batch else min(k, k if query.limit is None else query.limit)
    most = _count(dataset, k + skipped, query)
    found = min(k + skipped, most)
    return Search(
        {
            "column": str(column),
            "q": _numbers(vector, column),
            "k": found,
            "metric": query.distance,
            "refine_factor": _cut(query.refine_factor, most // found),
            "use_index": not query.bypass_vector_index,
            # Lance wants at least as many candidates as are refined, skipped ones included.
            "ef": query.ef and min(query.ef + skipped * (query.refine_factor or 1), most),
            "distance_range": _range(query),
            **_probes(query),
        },
        limit if skipped or (limit is not None and limit != k) else None,
    )


def _wanted(query: Query) -> int:
    if query.k is not None:
        return query.k
    return query.limit or DEFAULT_K


def _count(dataset: LanceDataset, wanted: int, query: Query) -> int:
    """Tell how many results there can be; where few are wanted, they are few enough."""
    if max(wanted * (query.refine_factor or 1), query.ef or 0) <= _FEW:
        return _FEW
    return max(dataset.count_rows(), 1)


def _cut(value: int | None, most: int) -> int | None:
    return None if value is None else min(value, most)


def _probes(query: Query) -> dict[str, int | None]:
    least, most = query.minimum_nprobes, query.maximum_nprobes
    if least is None and most is None:
        return {"nprobes": _cut(query.nprobes, _LARGEST)}
    return {
        "minimum_nprobes": _cut(least, _LARGEST),
        "maximum_nprobes": _cut(most, _LARGEST),
    }


def _range(query: Query) -> tuple[float | None, float | None] | None:
    if query.lower_bound is None and query.upper_bound is None:
        return None
    return query.lower_bound, query.upper_bound


def _numbers(vector: QueryVector, column: FieldPath) -> Any:  # noqa: ANN401  # what Lance takes
    if vector.several:
        return [list(one) for one in vector.rows]
    # Lance makes numbers without a type short ones, too short for a column of long ones.
    is_long = pa.types.is_float64(_vectors(column.type).value_type)
    return pa.array(vector.rows[0], pa.float64() if is_long else pa.float32())


def _check_dimension(vector: QueryVector, column: FieldPath) -> None:
    size = _dimension(column.type)
    for one in vector.rows:
        if len(one) != size:
            msg = (
                f"the query's vector has {len(one)} numbers, but those of column"
                f" {quote(str(column))} have {size}"
            )
            raise InvalidInputError(msg)


def _find(schema: pa.Schema, wanted: str | None, what: str) -> FieldPath:
    columns = list(list_fields(schema))
    vectors = [column for column in columns if _dimension(column.type) is not None]
    known = ", ".join(map(str, vectors)) or "none"
    if wanted is None:
        return _only(vectors, known, what)
    names = parse_path(wanted)
    found = next((column for column in columns if column.names == names), None)
    if found is None:
        msg = f"{what} has no column {quote(wanted)}; its columns of vectors: {known}"
        raise TableColumnNotFoundError(msg)
    if found not in vectors:
        msg = (
            f"column {quote(wanted)} of {what} is no column of vectors but of type {found.type};"
            f" its columns of vectors: {known}"
        )
        raise InvalidInputError(msg)
    return found


def _only(vectors: list[FieldPath], known: str, what: str) -> FieldPath:
    usual = [column for column in vectors if column.names == (_USUAL,)]
    found = usual or vectors
    if len(found) == 1:
        return found[0]
    if found:
        msg = f"{what} has several columns of vectors: say which of {known} to search"
        raise InvalidInputError(msg)
    msg = f"{what} has no column of vectors to search"
    raise TableColumnNotFoundError(msg)


def _dimension(kind: pa.DataType) -> int | None:
    """Return the dimension of a type of vectors, or of lists of them; None for other types."""
    vectors = _vectors(kind)
    if not pa.types.is_fixed_size_list(vectors):
        return None
    items = vectors.value_type
    name = getattr(items, "extension_name", None)
    searchable = pa.types.is_floating(items) or pa.types.is_uint8(items) or name == _BFLOAT16
    return vectors.list_size if searchable else None


def _vectors(kind: pa.DataType) -> pa.DataType:
    storage = _storage(kind)
    return storage.value_type if pa.types.is_list(storage) else storage


def _storage(kind: pa.DataType) -> pa.DataType:
    return getattr(kind, "storage_type", kind)
