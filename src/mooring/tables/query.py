"""Queries: which rows and columns of a table, by filter, by vector and by words.

Batches come from Lance to the caller as they are: none is copied, and a result may be larger than
memory.

Spec: lance-rest-openapi, QueryTable, ExplainTableQueryPlan, AnalyzeTableQueryPlan, CountTableRows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mooring.errors import InvalidInputError, TableColumnNotFoundError
from mooring.identifiers import quote
from mooring.tables.failures import translated
from mooring.tables.field_paths import list_fields, parse_path
from mooring.tables.filters import parsing, whole
from mooring.tables.full_text import Indexed, over_columns, parse_text, to_lance
from mooring.tables.handle import NEWEST, At
from mooring.tables.nearest import plan_search
from mooring.tables.query_vector import QueryVector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance import LanceDataset
    from lance.dataset import LanceScanner

    from mooring.tables.full_text import Text
    from mooring.tables.handle import TableHandle

__all__ = ["Query", "analyze", "build_query", "count", "explain", "indexed_columns", "run"]

_DISTANCE, _SCORE = "_distance", "_score"
_UNLIMITED = 2**63
_EVERYTHING = 2**62
_INVERTED = "Inverted"
# What Lance reads ahead, and hands out at a time: as fast as its own bounds, which are those of
# a machine that does nothing else, on local disks and with a fraction of the memory.
_AHEAD_BYTES, _BATCH_BYTES = 32 * 1024 * 1024, 4 * 1024 * 1024
# Files of these formats know no batches by size, and Lance warns of each.
_BATCHES_BY_ROWS = {"0.1", "2.0"}
_OF_A_SEARCH = (
    "vector_column",
    "k",
    "distance",
    "nprobes",
    "minimum_nprobes",
    "maximum_nprobes",
    "ef",
    "refine_factor",
    "lower_bound",
    "upper_bound",
    "bypass_vector_index",
)
_POSITIVE = ("k", "nprobes", "minimum_nprobes", "maximum_nprobes", "ef", "refine_factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to read of a table.

    Attributes:
        columns: Paths of fields, or names for the result and the expression of each; all columns
            unless given.
        where: An SQL expression that holds for the rows.
        limit: At most so many rows.
        offset: So many rows are skipped.
        vector: Looks for the nearest vectors.
        vector_column: In which column; found where there is one, or one that is called `vector`.
        k: How many of the nearest, and for each of several vectors; `limit` or 10 unless given.
        distance: How it is measured: l2, cosine, dot or hamming.
        nprobes: How many partitions of an index are searched, if neither of the next two is given.
        minimum_nprobes: At least so many.
        maximum_nprobes: At most so many.
        ef: How many candidates an HNSW index keeps.
        refine_factor: Of so many times more candidates the exact distance is computed.
        lower_bound: The least distance.
        upper_bound: Distances are below this.
        prefilter: Whether the filter applies before the nearest or best are taken, not after.
        bypass_vector_index: Whether to compare with all vectors instead.
        fast_search: Whether to leave out rows that no index covers yet.
        text: Words to look for; with a vector, the nearest of those that match.
        with_row_id: Whether to return `_rowid`, too.
        version: At this version.
        tag: At this tag.
        branch: Of this branch.
    """

    columns: Sequence[str] | Mapping[str, str] | None = None
    where: str | None = None
    limit: int | None = None
    offset: int | None = None
    vector: QueryVector | None = None
    vector_column: str | None = None
    k: int | None = None
    distance: str | None = None
    nprobes: int | None = None
    minimum_nprobes: int | None = None
    maximum_nprobes: int | None = None
    ef: int | None = None
    refine_factor: int | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    prefilter: bool | None = None
    bypass_vector_index: bool = False
    fast_search: bool = False
    text: Text | None = None
    with_row_id: bool = False
    version: int | None = None
    tag: str | None = None
    branch: str | None = None

    def __post_init__(self) -> None:
        """Refuse numbers out of their range, and parts of a search that is none."""
        for name in ("limit", "offset", *_POSITIVE):
            value, least = getattr(self, name), int(name in _POSITIVE)
            if value is not None and value < least:
                msg = f"{name} is {value}: it must be at least {least}"
                raise InvalidInputError(msg)
        few, many = self.minimum_nprobes, self.maximum_nprobes
        if few is not None and many is not None and few > many:
            msg = f"minimum_nprobes is {few}, more than maximum_nprobes, which is {many}"
            raise InvalidInputError(msg)
        low, high = self.lower_bound, self.upper_bound
        if any(bound is not None and math.isnan(bound) for bound in (low, high)):
            msg = "a bound of the distance is not a number: leave it out"
            raise InvalidInputError(msg)
        if low is not None and high is not None and low > high:
            msg = f"lower_bound is {low}, more than upper_bound, which is {high}"
            raise InvalidInputError(msg)
        if self.vector is None:
            self._refuse_parts_of_a_search()

    def _refuse_parts_of_a_search(self) -> None:
        for name in _OF_A_SEARCH:
            if getattr(self, name) not in {None, False}:
                hint = "; say limit instead" if name == "k" else ""
                msg = f"{name} is of a search for a vector, but the query has none{hint}"
                raise InvalidInputError(msg)

    @property
    def at(self) -> At:
        """The state of the table that is read."""
        return At(self.version, self.tag, self.branch)


def build_query(
    columns: str | Sequence[str] | Mapping[str, str] | None = None,
    where: str | None = None,
    *,
    vector: object = None,
    text: str | Mapping[str, Any] | Text | None = None,
    text_columns: str | Sequence[str] | None = None,
    **how: Any,  # noqa: ANN401  # the fields of Query
) -> Query:
    """Make a query of what callers have.

    Args:
        columns: A field's path, several, or names and expressions.
        where: The filter.
        vector: A list, tuple or array of numbers, or of such lists.
        text: Words, a query of `mooring.tables.full_text`, or one as the specification writes it.
        text_columns: Where to look for words; where there is a full-text index unless given.
        how: The other fields of a query.

    Raises:
        InvalidInputError: something of it makes no sense.
    """
    return Query(
        columns=(columns,) if isinstance(columns, str) else columns,
        where=where,
        vector=QueryVector.parse(vector),
        text=_read_text(text, text_columns),
        **how,
    )


def run(
    handle: TableHandle, query: Query, opened: LanceDataset | None = None
) -> pa.RecordBatchReader:
    """Answer a query by a stream of batches.

    What fails while the stream is read raises errors of ours, too.

    Args:
        handle: The table.
        query: What to read of it.
        opened: The table at the state that is read, where somebody opened it already.

    Raises:
        TableColumnNotFoundError: a column, or one in an expression, is not there.
        InvalidInputError: the filter, an expression or the search makes no sense.
        TableVersionNotFoundError: there is no such version.
        TableTagNotFoundError: there is no such tag.
        TableBranchNotFoundError: there is no such branch.
    """
    with _scanning(handle, query, opened) as scanner:
        rows = scanner.to_reader()
    return pa.RecordBatchReader.from_batches(rows.schema, _batches(rows, handle.what))


def explain(handle: TableHandle, query: Query, *, verbose: bool = False) -> str:
    """Tell how Lance would answer a query.

    Raises:
        MooringError: as `run` does.
    """
    with _scanning(handle, query) as scanner:
        return scanner.explain_plan(verbose=verbose)


def analyze(handle: TableHandle, query: Query) -> str:
    """Answer a query, and tell how long each step took and how many rows came of it.

    Raises:
        MooringError: as `run` does.
    """
    with _scanning(handle, query) as scanner:
        return scanner.analyze_plan()


def count(
    handle: TableHandle,
    where: str | None = None,
    at: At = NEWEST,
    opened: LanceDataset | None = None,
) -> int:
    """Count the rows, or those for which a filter holds.

    Raises:
        MooringError: as `run` does.
    """
    with _reading(handle, at, opened) as dataset, _naming_columns(dataset, handle.what):
        if where is None:
            return int(dataset.count_rows())
        # Not by the table's own count, where what Lance cannot plan ends in a panic.
        with parsing(where, handle.what):
            scanner = dataset.scanner(columns=[], with_row_id=True, filter=whole(where))
            return int(scanner.count_rows())


@contextmanager
def _reading(
    handle: TableHandle, at: At, opened: LanceDataset | None = None
) -> Iterator[LanceDataset]:
    if opened is None:
        with handle.reading(at) as dataset:
            yield dataset
        return
    with translated(handle.what):
        yield opened


@contextmanager
def _scanning(
    handle: TableHandle, query: Query, opened: LanceDataset | None = None
) -> Iterator[LanceScanner]:
    with (
        _reading(handle, query.at, opened) as dataset,
        _naming_columns(dataset, handle.what, query.columns),
        parsing(query.where, handle.what),
    ):
        yield _scan(dataset, query, handle.what)


def _scan(dataset: LanceDataset, query: Query, what: str) -> LanceScanner:
    where = None if query.where is None else whole(query.where)
    indexed = Indexed(what, lambda: indexed_columns(dataset))
    text = None if query.text is None else to_lance(query.text, indexed)
    common: dict[str, Any] = {
        "columns": _columns(query),
        "offset": None if query.offset is None else min(query.offset, _EVERYTHING),
        "fast_search": query.fast_search,
        "with_row_id": query.with_row_id,
    }
    if query.vector is None:
        limit = _cut(query.limit)
        return dataset.scanner(
            filter=where,
            full_text_query=text,
            # Lance ranks what it finds without an index only where there is a limit.
            limit=_EVERYTHING if text and limit is None else limit,
            prefilter=query.prefilter,
            **_bounds(dataset),
            **common,
        )
    search = plan_search(dataset, query.vector, query, what)
    # Lance knows words beside a vector as a filter; asked for the nearest of those that match,
    # they come first.
    first = query.prefilter if query.prefilter is not None else text is not None
    return dataset.scanner(
        filter=where if text is None else {"expr_filter": where, "search_filter": text},
        nearest=search.arguments,
        limit=_cut(search.limit),
        prefilter=first,
        **common,
    )


def _bounds(dataset: LanceDataset) -> dict[str, Any]:
    """Bound what is in memory of a result that may be larger than it."""
    if dataset.data_storage_version in _BATCHES_BY_ROWS:
        return {"io_buffer_size": _AHEAD_BYTES}
    return {"io_buffer_size": _AHEAD_BYTES, "batch_size_bytes": _BATCH_BYTES}


def _columns(query: Query) -> list[str] | dict[str, str] | None:
    """Write the projection; what a search found out comes last unless asked for elsewhere."""
    extra = _DISTANCE if query.vector else _SCORE if query.text else None
    if query.columns is None:
        return None
    if isinstance(query.columns, str | bytes):
        msg = f"columns are a list of paths, not {query.columns!r}"
        raise InvalidInputError(msg)
    if isinstance(query.columns, Mapping):
        named = {name: whole(of, "expression") for name, of in query.columns.items()}
        return {**named, extra: extra} if extra and extra not in named else named
    names = list(query.columns)
    return [*names, extra] if extra and extra not in names else names


def _cut(limit: int | None) -> int | None:
    return limit if limit is not None and limit < _UNLIMITED else None


def _read_text(
    text: str | Mapping[str, Any] | Text | None, columns: str | Sequence[str] | None
) -> Text | None:
    names = [columns] if isinstance(columns, str) else columns
    if isinstance(text, str):
        return over_columns(text, names)
    if names:
        msg = "text_columns say where to look for words: give them as text"
        raise InvalidInputError(msg)
    return parse_text(text) if isinstance(text, Mapping) else text


def indexed_columns(dataset: LanceDataset) -> list[str]:
    """Return the columns that words are looked for in: those of full-text indexes."""
    found = (
        name
        for index in dataset.describe_indices()
        if index.index_type == _INVERTED
        for name in index.field_names
    )
    return list(dict.fromkeys(found))


@contextmanager
def _naming_columns(
    dataset: LanceDataset, what: str, wanted: Sequence[str] | Mapping[str, str] | None = None
) -> Iterator[None]:
    """Tell which columns there are where one is missing."""
    try:
        with translated(what):
            yield
    except TableColumnNotFoundError as exc:
        if exc.__cause__ is None:  # an error of ours, which tells already
            raise
        fields = list(list_fields(dataset.schema))
        known = {field.names for field in fields}
        missing = next((name for name in wanted or () if parse_path(name) not in known), None)
        reason = str(exc).partition(". Valid fields are")[0]
        if missing is not None and not isinstance(wanted, Mapping):
            reason = f"{what} has no column {quote(missing)}"
        columns = ", ".join(map(str, fields))
        raise TableColumnNotFoundError(f"{reason}; its columns are {columns}") from exc


def _batches(rows: pa.RecordBatchReader, what: str) -> Iterator[pa.RecordBatch]:
    with translated(what):
        yield from rows
