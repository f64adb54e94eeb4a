"""Rows made to fit a table: columns by name, values by a cast that loses nothing.

What the types decide is decided once, before anything is read: `require_fit` refuses a source that
cannot fit. What the values decide is decided row by row: one that does not fit is left out, with
the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mooring.errors import TableSchemaValidationError
from mooring.identifiers import quote
from mooring.ingest.types import Fits, fits, plain, widened

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Fitted", "Misfit", "compare", "fit", "require_fit"]

_FAILURES = (pa.ArrowException, ValueError, TypeError, OverflowError)
_SHOWN = 60


@dataclass(frozen=True)
class Misfit:
    """A column of a source that the table cannot take as it is.

    Attributes:
        name: The column.
        source: Its type in the source; None where only the table has it.
        target: Its type in the table; None where the table lacks it.
        widened: The type that the table's column can get for it.
    """

    name: str
    source: pa.DataType | None
    target: pa.DataType | None
    widened: pa.DataType | None = None

    @property
    def is_curable(self) -> bool:
        """Whether the table can be changed to take it."""
        return self.target is None or self.widened is not None


def compare(
    source: pa.Schema, natural: pa.Schema, target: pa.Schema, *, evolve: bool = False
) -> list[Misfit]:
    """Tell which columns of a source a table cannot take.

    Args:
        source: What is read.
        natural: The types that new columns get.
        target: The table's schema.
        evolve: Whether to name columns, too, whose values may fit, and that could be widened.
    """
    found = []
    for field in source:
        wanted = natural.field(field.name).type
        if field.name not in target.names:
            found.append(Misfit(field.name, wanted, None))
            continue
        has = target.field(field.name).type
        better = widened(has, wanted)
        if fits(field.type, has) is Fits.NEVER or (evolve and better is not None):
            found.append(Misfit(field.name, wanted, has, better))
    missing = [field for field in target if field.name not in source.names and not field.nullable]
    return found + [Misfit(field.name, None, field.type) for field in missing]


def require_fit(misfits: Iterable[Misfit], source: str, what: str) -> None:
    """Refuse a source of which a table cannot take a column.

    Raises:
        TableSchemaValidationError: it has one.
    """
    for misfit in misfits:
        name = quote(misfit.name)
        cure = "; --evolve changes the table" if misfit.is_curable else ""
        if misfit.source is None:
            msg = f"{source} lacks the column {name}, which may not be null in {what}"
        elif misfit.target is None:
            msg = f"{source} has the column {name} ({misfit.source}), which {what} lacks{cure}"
        else:
            msg = (
                f"the column {name} of {source} is {misfit.source}, which does not fit"
                f" {misfit.target} in {what}{cure}"
            )
        raise TableSchemaValidationError(msg)


@dataclass(frozen=True)
class Fitted:
    """Rows that fit, and why the others do not.

    Attributes:
        rows: The rows, with the table's schema.
        wrong: By its place among the rows that came, why one is left out.
    """

    rows: pa.RecordBatch
    wrong: dict[int, str]


def fit(batch: pa.RecordBatch, target: pa.Schema) -> Fitted:
    """Make rows fit a table.

    Args:
        batch: The rows.
        target: The table's schema.
    """
    columns: list[pa.Array] = []
    wrong: dict[int, str] = {}
    for field in target:
        column, failures = _fit_column(batch, field)
        columns.append(column)
        for index, reason in failures.items():
            wrong.setdefault(index, reason)
    for name in batch.schema.names:
        if name not in target.names:
            wrong |= {
                index: f"it has the column {quote(name)}, which the table lacks"
                for index in np.flatnonzero(_valid(batch[name])).tolist()
                if index not in wrong
            }
    if not wrong:
        return Fitted(pa.RecordBatch.from_arrays(columns, schema=target), wrong)
    keep = np.ones(batch.num_rows, dtype=bool)
    keep[list(wrong)] = False
    kept = [column.filter(pa.array(keep)) for column in columns]
    return Fitted(pa.RecordBatch.from_arrays(kept, schema=target), wrong)


def _valid(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = column.is_valid().to_numpy(
        zero_copy_only=False
    )
    return found


def _fit_column(batch: pa.RecordBatch, field: pa.Field) -> tuple[pa.Array, dict[int, str]]:
    if field.name not in batch.schema.names:
        return _nulls(batch.num_rows, field.type), {}
    source = batch[field.name]
    column, failed = _cast_all(source, _caster(source.type, field.type), field.type)
    wrong = {
        index: f"{_show(source[index])} in column {quote(field.name)} does not fit {field.type}"
        for index in failed
    }
    if not field.nullable and column.null_count:
        missing = np.flatnonzero(~_valid(column)).tolist()
        reason = f"column {quote(field.name)} is null, which the table does not allow"
        wrong |= {index: reason for index in missing if index not in wrong}
    return column, wrong


def _nulls(count: int, kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.nulls(count, kind.storage_type))
    return pa.nulls(count, kind)


def _show(value: pa.Scalar) -> str:
    text = repr(value.as_py())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_Cast = Callable[[pa.Array], pa.Array]


def _cast_all(source: pa.Array, cast: _Cast, kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """Cast a column; return it with nulls in place of what does not fit, and where that is."""
    try:
        return cast(source), []
    except _FAILURES:
        pass
    failed: list[int] = []
    pieces = list(_halve(source, 0, cast, failed))
    whole = [_nulls(1, kind) if piece is None else piece for piece in pieces]
    return pa.concat_arrays(whole), failed


def _halve(
    source: pa.Array, before: int, cast: _Cast, failed: list[int]
) -> Iterable[pa.Array | None]:
    """Cast by halves until the values that do not fit are alone."""
    if len(source) > 1:
        try:
            yield cast(source)
        except _FAILURES:
            half = len(source) // 2
            yield from _halve(source[:half], before, cast, failed)
            yield from _halve(source[half:], before + half, cast, failed)
        return
    try:
        yield cast(source)
    except _FAILURES:
        failed.append(before)
        yield None


def _caster(source: pa.DataType, target: pa.DataType) -> _Cast:
    """Choose how values of a type become those of another."""
    if source.equals(target):
        return lambda column: column
    if isinstance(target, pa.BaseExtensionType):
        inner = _caster(source, target.storage_type)
        return lambda column: pa.ExtensionArray.from_storage(target, inner(column))
    if isinstance(source, pa.BaseExtensionType):
        inner = _caster(source.storage_type, target)
        return lambda column: inner(column.storage)
    if pa.types.is_dictionary(source):
        inner = _caster(source.value_type, target)
        return lambda column: inner(column.dictionary_decode())
    text = pa.types.is_string(source) or pa.types.is_large_string(source)
    if text and not pa.types.is_string(plain(target)) and not pa.types.is_large_string(target):
        return lambda column: _cast_text(column, target)
    return lambda column: column.cast(target)


def _cast_text(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_nested(target):
        values = [None if text is None else json.loads(text) for text in column.to_pylist()]
        return pa.array(values, target)
    trimmed = column if pa.types.is_binary(target) else pc.utf8_trim_whitespace(column)
    if pa.types.is_time(target):
        from datetime import time

        return pa.array(
            [None if text is None else time.fromisoformat(text) for text in trimmed.to_pylist()],
            target,
        )
    return trimmed.cast(target)
