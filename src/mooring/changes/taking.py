"""Taking rows by their numbers, of columns with more text than one array can hold.

Arrow puts all of a column together to take values of it, and 2 GiB of text do not go into one array
of type `string`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["take_rows", "take_values"]

_MOST = 2**29
_WIDE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def take_rows(rows: pa.Table, numbers: Numbers) -> pa.Table:
    """Return the rows of some numbers, in their order."""
    columns = [take_values(column, numbers) for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def take_values(column: pa.ChunkedArray, numbers: Numbers) -> pa.ChunkedArray:
    """Return the values of some numbers, in their order."""
    wide = _WIDE.get(column.type)
    if wide is None or column.nbytes < _MOST:
        return column.take(pa.array(numbers))
    whole = pa.concat_arrays(column.cast(wide).chunks)
    return pa.chunked_array(_in_parts(whole, numbers, column.type), column.type)


def _in_parts(whole: pa.Array, numbers: Numbers, kind: pa.DataType) -> list[pa.Array]:
    """Take values in parts that are small enough, each with its own text."""
    about = whole.nbytes * len(numbers) // max(len(whole), 1)
    taken = whole.take(pa.array(numbers)) if about < _MOST or len(numbers) <= 1 else None
    if taken is not None and (taken.nbytes < 2 * _MOST or len(numbers) <= 1):
        return [taken.cast(kind)]
    half = len(numbers) // 2
    return [*_in_parts(whole, numbers[:half], kind), *_in_parts(whole, numbers[half:], kind)]
