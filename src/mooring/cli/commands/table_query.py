"""The verbs of ``mooring table`` that read it: query, count, schema."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mooring.cli.closeness import known_or_close, open_table, suggesting
from mooring.cli.completion import complete_columns
from mooring.cli.options import LiveName, command
from mooring.cli.properties import show_properties
from mooring.cli.row_options import SHOWN, FileFormat, OfFormat, RowLimit, ToFile
from mooring.cli.session import Session, parse_pairs
from mooring.cli.shown_rows import show_rows, stream_rows, write_rows
from mooring.cli.states import AtTag, AtVersion, Branch
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from mooring.tables.handle import TableHandle
    from mooring.tables.query import Query

__all__ = ["add_to"]

_SEARCH = (
    "distance",
    "nprobes",
    "minimum_nprobes",
    "maximum_nprobes",
    "ef",
    "refine_factor",
    "lower_bound",
    "upper_bound",
    "prefilter",
    "bypass_vector_index",
    "fast_search",
)

Where = Annotated[
    str | None,
    typer.Option("--where", "-w", metavar="FILTER", help="Which rows, in SQL: n > 3 AND c = 'x'."),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Which columns, separated by commas; all by default.",
        autocompletion=complete_columns,
    ),
]


@command
def query_command(  # each option is one of the query's
    session: Session,
    name: LiveName,
    columns: Names = None,
    where: Where = None,
    limit: RowLimit = None,
    offset: Annotated[
        int | None, typer.Option("--offset", metavar="NUMBER", min=0, help="Skip so many rows.")
    ] = None,
    vector: Annotated[
        str | None,
        typer.Option(
            "--vector", metavar="VECTOR", help="The nearest to this: [0.1, 0.2], or @FILE of it."
        ),
    ] = None,
    vector_column: Annotated[
        str | None,
        typer.Option(
            "--vector-column",
            metavar="COLUMN",
            help="Where to look for it; not needed where one column has vectors.",
            autocompletion=complete_columns,
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("-k", metavar="NUMBER", min=1, help="How many of the nearest; 10 by default."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="WORDS", help="The best matches of a full-text search."),
    ] = None,
    text_columns: Annotated[
        list[str] | None,
        typer.Option(
            "--text-columns",
            metavar="NAMES",
            help="Where to look for words; where there is a full-text index by default.",
            autocompletion=complete_columns,
        ),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            "--search",
            metavar="KEY=VALUE",
            help=f"How to search: {', '.join(_SEARCH)}; may be repeated.",
        ),
    ] = None,
    version: AtVersion = None,
    tag: AtTag = None,
    branch: Branch = None,
    row_id: Annotated[bool, typer.Option("--row-id", help="Show each row's id, too.")] = False,
    to: ToFile = None,
    file_format: OfFormat = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how the query would run instead.")
    ] = False,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run the query and show where its time went instead.")
    ] = False,
) -> None:
    """Show rows: in the order they are stored, or what a filter or search finds.

    People see shortened values, in as many columns as the terminal has room for. Files and
    programs get every value whole: JSON has binary as base64, and NaN as null.
    """
    from mooring.tables.query import build_query

    query = build_query(
        _split(columns),
        where,
        limit=limit,
        offset=offset,
        vector=None if vector is None else _parse_vector(vector),
        vector_column=vector_column,
        k=k,
        text=text,
        text_columns=_split(text_columns),
        version=version,
        tag=tag,
        branch=branch,
        with_row_id=row_id,
        **{"prefilter": True, **_parse_search(search or [])},
    )
    kind = None if to is None else _kind(to, file_format)
    table = open_table(session.open_catalog(), name)
    said = [*(_split(columns) or ()), *(_split(text_columns) or ())]
    with suggesting(table, *said, where, vector_column, tag, branch):
        reading = _Reading(session, table.handle, query)
        if explain or analyze:
            reading.show_plan(measured=analyze)
        elif to is not None and kind is not None:
            reading.write(to, kind)
        elif session.output.is_for_people:
            reading.show()
        else:
            reading.stream()


@command
def count_command(
    session: Session,
    name: LiveName,
    where: Where = None,
    version: AtVersion = None,
    tag: AtTag = None,
    branch: Branch = None,
) -> None:
    """Count the rows, or those that a filter selects."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, where, tag, branch):
        rows = table.count(where, version=version, tag=tag, branch=branch)
    if session.output.is_for_people:
        session.output.names([str(rows)])
    else:
        session.output.record({"table": name, "rows": rows})


@command
def schema_command(
    session: Session,
    name: LiveName,
    version: AtVersion = None,
    tag: AtTag = None,
    branch: Branch = None,
) -> None:
    """Show the columns, their types and metadata; fields of structs follow them."""
    from mooring.tables.handle import At

    at = At(version, tag, branch)
    table = open_table(session.open_catalog(), name)
    with suggesting(table, tag, branch), table.handle.reading(at) as dataset:
        schema = dataset.schema
    fields = list(_fields(schema))
    columns = ["name", "type", "nullable", "dimension", "metadata"]
    if not session.output.is_for_people:
        session.output.rows(columns, fields)
        return
    # Most tables have neither; a column of dashes tells nothing.
    shown = [*columns[:3], *(name for name in columns[3:] if any(row[name] for row in fields))]
    session.output.rows(shown, [{**row, "metadata": _pairs(row["metadata"])} for row in fields])
    show_properties(session.output, _texts(schema.metadata))


def add_to(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    app.command("query")(query_command)
    app.command("count")(count_command)
    app.command("schema")(schema_command)


# -- queries -------------------------------------------------------------------------------------


class _Reading:
    """A query, and the ways to give its answer."""

    def __init__(self, session: Session, handle: TableHandle, query: Query) -> None:
        self._session = session
        self._output = session.output
        self._handle = handle
        self._query = query

    def show_plan(self, *, measured: bool) -> None:
        """Write how the query runs."""
        from mooring.tables.query import analyze, explain

        plan = (analyze if measured else explain)(self._handle, self._query)
        if self._output.is_for_people:
            self._output.names(plan.splitlines())
        else:
            self._output.record({"plan": plan})

    def show(self) -> None:
        """Write a screenful for people, and whether there is more."""
        query, limit = self._query, self._query.limit
        # The nearest are as many as were asked for; of anything else one more tells of the rest.
        if query.vector is None:
            limit = SHOWN if limit is None else limit
            query = replace(query, limit=limit + 1)
        more = "--limit and --offset choose, --to FILE takes all"
        show_rows(self._output, self._run(query).read_all(), limit, more)

    def stream(self) -> None:
        """Write every row for programs."""
        stream_rows(self._output, self._run(self._query))

    def write(self, file: str, kind: str) -> None:
        """Write every row to a file."""
        write_rows(self._output, self._run(self._query), file, kind)

    def _run(self, query: Query) -> pa.RecordBatchReader:
        from mooring.tables.query import run

        return run(self._handle, query)


def _kind(to: str, file_format: FileFormat | None) -> str:
    from mooring.cli.row_files import kind_of

    return kind_of(to, None if file_format is None else str(file_format))


def _split(names: Sequence[str] | None) -> list[str] | None:
    """Read names that commas separate; one with a comma in it stands in double quotes."""
    if names is None:
        return None
    found = [name.strip() for row in csv.reader(names, skipinitialspace=True) for name in row]
    if not all(found) or not found:
        msg = f"columns are names separated by commas, not '{','.join(names)}'"
        raise InvalidInputError(msg)
    return found


def _parse_vector(text: str) -> object:
    """Read a list of numbers, or the file of one.

    Raises:
        InvalidInputError: it is none.
    """
    source = text
    try:
        if text.startswith("@"):
            source = Path(text[1:]).read_text(encoding="utf-8")
        vector = json.loads(source)
    except OSError as exc:
        msg = f"'{text[1:]}' cannot be read: {exc.strerror}"
        raise InvalidInputError(msg) from exc
    except ValueError:
        vector = None
    if not isinstance(vector, list) or not vector:
        msg = "a vector is a list of numbers such as [0.1, 0.2], or @FILE with one in it"
        raise InvalidInputError(msg)
    return vector


def _parse_search(pairs: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in parse_pairs(pairs, "part of a search").items():
        if key not in _SEARCH:
            msg = f"'{key}' is no part of a search{known_or_close(key, _SEARCH)}"
            raise InvalidInputError(msg)
        found[key] = value if key == "distance" else _parse_number(key, value)
    return found


def _parse_number(key: str, text: str) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    is_flag = key in {"prefilter", "bypass_vector_index", "fast_search"}
    is_bound = key in {"lower_bound", "upper_bound"}
    wanted = bool if is_flag else (int, float) if is_bound else int
    if not isinstance(value, wanted) or isinstance(value, bool) is not is_flag:
        what = "true or false" if is_flag else "a number"
        msg = f"{key} is {what}, not '{text}'"
        raise InvalidInputError(msg)
    return value


# -- schemas -------------------------------------------------------------------------------------


def _fields(fields: Iterable[pa.Field], above: str = "") -> Iterator[dict[str, object]]:
    import pyarrow as pa

    for field in fields:
        path = f"{above}{field.name}"
        yield {
            "name": path,
            "type": str(field.type),
            "nullable": field.nullable,
            "dimension": _dimension(field.type),
            "metadata": _texts(field.metadata),
        }
        if pa.types.is_struct(field.type):
            yield from _fields(field.type, f"{path}.")


def _dimension(kind: pa.DataType) -> int | None:
    import pyarrow as pa

    return int(kind.list_size) if pa.types.is_fixed_size_list(kind) else None


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in (metadata or {}).items()
    }


def _pairs(metadata: object) -> str | None:
    pairs = metadata if isinstance(metadata, dict) else {}
    return ", ".join(f"{key}={value}" for key, value in pairs.items()) or None
