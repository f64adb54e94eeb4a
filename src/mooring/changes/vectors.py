"""Vector columns of published tables: from a function, an array column, or several numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mooring.errors import InvalidInputError, MooringError
from mooring.identifiers import quote
from mooring.upkeep.functions import FunctionText, parse_function

if TYPE_CHECKING:
    from mooring.changes.definition import Definition

__all__ = ["Vector", "parse_vector"]

_FORM = re.compile(r"(?P<name>[^=\[\]]+)(\[(?P<size>[0-9]+)\])?=(?P<source>.+)")
_FLOATS = (pa.float16(), pa.float32(), pa.float64())


@dataclass(frozen=True)
class Vector:
    """A column of vectors that all have one length.

    Attributes:
        name: The column's name in the published table.
        columns: Of the change table: one that holds arrays, or several that hold numbers; with a
            function, what it gets, which is all that is published unless given.
        function: ``module:function`` or ``file.py:function``. It gets a `pyarrow.RecordBatch` and
            returns a vector for each row, kept as float32. It travels, and is kept, with the text
            of its file.
        size: How long vectors are; the first one tells unless given.
    """

    name: str
    columns: tuple[str, ...] = ()
    function: str | FunctionText | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        """Read the function, and refuse what makes no sense.

        Raises:
            InvalidInputError: it has no source, or there is no such function.
        """
        object.__setattr__(self, "columns", tuple(self.columns))
        if not self.name:
            raise InvalidInputError("a vector column needs a name")
        if isinstance(self.function, str):
            object.__setattr__(self, "function", parse_function(self.function))
        if self.function is None and not self.columns:
            msg = f"vector {quote(self.name)} comes from a function or from columns: name them"
            raise InvalidInputError(msg)
        if self.size is not None and self.size < 1:
            raise InvalidInputError(f"a vector has at least one number, not {self.size}")

    @property
    def text(self) -> FunctionText | None:
        """The function as it travels."""
        return self.function if isinstance(self.function, FunctionText) else None

    @property
    def source(self) -> str:
        """Where it comes from, for people."""
        if self.text is None:
            return ", ".join(self.columns)
        return f"{self.text.origin}:{self.text.name}"

    @property
    def identity(self) -> list[object]:
        """Whatever makes other vectors of the same rows."""
        text = self.text
        function = None if text is None else [text.name, text.text or text.origin]
        return [self.name, list(self.columns), function, self.size]

    def check(self, table: Definition, what: str) -> None:
        """Refuse columns that make no vectors.

        Raises:
            InvalidInputError: one is missing, or of another type.
        """
        for name in self.columns:
            if name not in table.schema.names:
                known = ", ".join(table.schema.names)
                lack = f"{what} has no column {quote(name)} for vector {quote(self.name)}"
                msg = f"{lack}: it has {known}"
                raise InvalidInputError(msg)
        if self.text is not None:
            return
        for name in self.columns:
            kind = table.schema.field(name).type
            fits = _is_number(kind) if len(self.columns) > 1 else _is_array(kind)
            if not fits:
                wanted = "numbers" if len(self.columns) > 1 else "arrays of numbers"
                msg = (
                    f"column {quote(name)} of {what} is {kind}, and vector {quote(self.name)}"
                    f" takes {wanted}: name one column of arrays, several of numbers, or a function"
                )
                raise InvalidInputError(msg)

    def known_type(self, table: Definition) -> pa.DataType | None:
        """Return the column's type, where the table or the size tells it."""
        if self.text is None and len(self.columns) > 1:
            return pa.list_(pa.float32(), len(self.columns))
        if self.text is None:
            kind = table.schema.field(self.columns[0]).type
            if pa.types.is_fixed_size_list(kind):
                return pa.list_(_element(kind.value_type), kind.list_size)
            return None if self.size is None else pa.list_(_element(kind.value_type), self.size)
        return None if self.size is None else pa.list_(pa.float32(), self.size)

    def compute(self, given: pa.RecordBatch, kind: pa.DataType | None) -> pa.Array:
        """Make a vector of each row; null where a row has none.

        Args:
            given: What it is made of.
            kind: The column's type; found from the first vector unless given.

        Raises:
            InvalidInputError: the function failed, or vectors differ in length.
        """
        if self.text is not None:
            return self._fit(self._call(self.text, given), kind, given.num_rows)
        if len(self.columns) == 1:
            return self._fit(given.column(0), kind, given.num_rows)
        columns = [column.cast(pa.float32()) for column in given.columns]
        missing = np.zeros(given.num_rows, bool)
        for column in columns:
            missing |= column.is_null().to_numpy(zero_copy_only=False)
        numbers = [
            column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float32)
            for column in columns
        ]
        values = pa.array(np.stack(numbers, axis=1).ravel() if given.num_rows else [], pa.float32())
        return pa.FixedSizeListArray.from_arrays(values, len(columns), mask=pa.array(missing))

    def _call(self, function: FunctionText, given: pa.RecordBatch) -> pa.Array:
        what = f"the function {function} of vector {quote(self.name)}"
        try:
            found = function.load()(given)
        except MooringError:
            raise
        except Exception as exc:
            raise InvalidInputError(f"{what} failed: {type(exc).__name__}: {exc}") from exc
        try:
            return _to_array(found)
        except (pa.ArrowException, TypeError, ValueError) as exc:
            raise InvalidInputError(f"{what} returned no vectors: {exc}") from exc

    def _fit(self, found: pa.Array, kind: pa.DataType | None, rows: int) -> pa.Array:
        """Give arrays the column's type."""
        if len(found) != rows:
            given = f"{len(found):,} vectors for a batch of {rows:,} rows"
            msg = f"vector {quote(self.name)}: the function gave {given}: return one for each"
            raise InvalidInputError(msg)
        if pa.types.is_null(found.type):
            return found if kind is None else pa.nulls(rows, kind)
        if not _is_array(found.type):
            msg = f"vector {quote(self.name)} takes arrays of numbers, not {found.type}"
            raise InvalidInputError(msg)
        lengths = pc.unique(pc.list_value_length(found)).drop_null().to_pylist()
        wanted = kind.list_size if kind is not None else (lengths[0] if lengths else None)
        if any(length != wanted for length in lengths) or wanted == 0:
            msg = (
                f"vector {quote(self.name)} has lengths of {', '.join(map(str, sorted(lengths)))}:"
                f" all of a column have one, here {wanted}"
            )
            raise InvalidInputError(msg)
        if wanted is None:
            return pa.nulls(rows)
        element = pa.float32() if self.text is not None else _element(found.type.value_type)
        return found.cast(kind or pa.list_(element, wanted))


def parse_vector(text: str) -> Vector:
    """Read ``v=file.py:function``, ``v=column`` or ``v=c1,c2,c3``; ``v[384]=...`` gives a length.

    Raises:
        InvalidInputError: it is none of them.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        msg = (
            f"{quote(text)} is no vector column: write NAME=module:function, NAME=COLUMN or"
            " NAME=COLUMN,COLUMN,..."
        )
        raise InvalidInputError(msg)
    size = int(found["size"]) if found["size"] else None
    source = found["source"].strip()
    if ":" in source:
        return Vector(found["name"].strip(), function=source, size=size)
    columns = tuple(one.strip() for one in source.split(","))
    return Vector(found["name"].strip(), columns, size=size)


def _to_array(found: Any) -> pa.Array:  # noqa: ANN401  # whatever a user returns
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if isinstance(found, pa.Array):
        return found
    if isinstance(found, np.ndarray) and found.ndim == 2:  # noqa: PLR2004  # rows of numbers
        return pa.FixedSizeListArray.from_arrays(pa.array(found.ravel()), found.shape[1])
    return pa.array(found)


def _element(kind: pa.DataType) -> pa.DataType:
    return kind if kind in _FLOATS else pa.float32()


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _is_array(kind: pa.DataType) -> bool:
    is_list = (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )
    return bool(is_list and _is_number(kind.value_type))
