"""The indexes of a table: what each covers, and what to do about rows that it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mooring.server.ui.table.subject import Subject, TableView, find_subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mooring.server.ui.visit import Visit
    from mooring.tables.indexes import Index
    from mooring.tables.portrait import Portrait

__all__ = ["IndexesView", "ShownIndex", "show_indexes", "shown_indexes"]

_PURPOSES = {
    "BTREE": "finds rows by value or range",
    "BITMAP": "finds rows by one of few values",
    "LABELLIST": "finds rows by values in a list",
    "NGRAM": "finds rows by parts of words",
    "ZONEMAP": "skips what cannot match",
    "BLOOMFILTER": "skips what cannot match",
    "RTREE": "finds rows by place",
    "INVERTED": "finds rows by words",
}
_TEXT_PARAMETERS = ("base_tokenizer", "language", "with_position", "stem", "remove_stop_words")
# How Lance built it, and not what it is.
_HIDDEN = frozenset({"runtime_hints"})


class ShownIndex(msgspec.Struct, frozen=True, kw_only=True):
    """An index.

    Attributes:
        name: Its name.
        columns: What it covers.
        type: Its type, in Lance's writing.
        purpose: What it is good for.
        rows_indexed: Live rows that it covers.
        rows_unindexed: Rows that it does not.
        covered: The part of the rows that it covers, from 0 to 1.
        fragments: How many fragments it covers.
        segments: How many segments it has.
        size_bytes: What they take; None where that was not kept.
        created_at_ms: When the first of them was written; None where that was not kept.
        format_version: Of its files.
        details: What its type has to tell.
        extend: What covers the rest, in Python; empty where all is covered.
        rebuild: The command that builds it anew over all rows; empty where all is covered.
    """

    name: str
    columns: list[str]
    type: str
    purpose: str
    rows_indexed: int
    rows_unindexed: int
    covered: float
    fragments: int
    segments: int
    size_bytes: int | None
    created_at_ms: int | None
    format_version: int
    details: dict[str, str]
    extend: str = ""
    rebuild: str = ""


class IndexesView(TableView, frozen=True, kw_only=True):
    """The indexes of a table.

    Attributes:
        indexes: All of them, sorted by name.
        rows: How many rows there are.
        fragments: How many fragments there are.
        create: The command that makes an index.
    """

    indexes: list[ShownIndex] = msgspec.field(default_factory=list)
    rows: int = 0
    fragments: int = 0
    create: str = ""


def show_indexes(visit: Visit) -> IndexesView:
    """Show the indexes of a table.

    Raises:
        TableNotFoundError: there is no live table of this name.
    """
    found = find_subject(visit)
    if not isinstance(found, Subject):
        return IndexesView(id=list(visit.table.names), lack=found)
    portrait = found.portrait
    at = [] if portrait.version == portrait.newest else ["--version", str(portrait.version)]
    of = [f"--branch={portrait.at.branch}"] if portrait.at.branch else []
    return IndexesView(
        cli=visit.cli("table", "index", "list", *at, *of, names=[found.name]),
        id=list(visit.table.names),
        shown=found.shown("indexes"),
        indexes=shown_indexes(found),
        rows=portrait.shape.rows,
        fragments=len(portrait.shape.pieces),
        create=visit.cli(
            *("table", "index", "create", "--type=BTREE", *of),
            names=[found.name, _first_column(portrait)],
        ),
    )


def shown_indexes(subject: Subject) -> list[ShownIndex]:
    """Put the indexes of a table in words."""
    return [_shown(subject, index) for index in subject.portrait.indexes]


def _shown(subject: Subject, index: Index) -> ShownIndex:
    rows = subject.portrait.shape.rows
    # Of an older version nothing can be built any more.
    lags = index.rows_unindexed > 0 and subject.portrait.version == subject.portrait.newest
    return ShownIndex(
        name=index.name,
        columns=list(index.columns),
        type=index.kind,
        purpose=_purpose(index.kind),
        rows_indexed=index.rows_indexed,
        rows_unindexed=index.rows_unindexed,
        covered=min(index.rows_indexed / rows, 1.0) if rows else 1.0,
        fragments=index.fragments,
        segments=index.segments,
        size_bytes=index.size_bytes,
        created_at_ms=int(index.created_at.timestamp() * 1000) if index.created_at else None,
        format_version=index.format_version,
        details=dict(_details(index.details)),
        extend=_extend(subject, index) if lags else "",
        rebuild=_rebuild(subject, index) if lags else "",
    )


def _purpose(kind: str) -> str:
    folded = kind.replace("_", "").upper()
    return "finds the nearest vectors" if "IVF" in folded else _PURPOSES.get(folded, "")


def _details(details: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in details.items():
        name = f"{above}{key}".replace("_", " ")
        if value is None or key in _HIDDEN:
            continue
        if isinstance(value, dict):
            yield from _details(value, f"{name} ")
        else:
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def _extend(subject: Subject, index: Index) -> str:
    branch = subject.portrait.at.branch
    on = f", branch={branch!r}" if branch else ""
    return f"table.indexes.extend([{index.name!r}]{on})"


def _rebuild(subject: Subject, index: Index) -> str:
    """Write the command that builds an index anew, with the parameters that are known of it."""
    details = index.details
    compression = details.get("compression") or {}
    known: dict[str, Any] = {
        "distance_type": index.distance,
        "num_sub_vectors": compression.get("num_sub_vectors"),
    }
    if index.kind.upper() == "INVERTED":
        known |= {name: details.get(name) for name in _TEXT_PARAMETERS}
    given = [f"--set={name}={_value(one)}" for name, one in known.items() if one is not None]
    branch = subject.portrait.at.branch
    return subject.visit.cli(
        *("table", "index", "create", "--replace"),
        *(f"--type={index.kind}", f"--name={index.name}", *given),
        *([f"--branch={branch}"] if branch else []),
        names=[subject.name, index.columns[0]],
    )


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_column(portrait: Portrait) -> str:
    return portrait.fields[0].path if portrait.fields else "COLUMN"
