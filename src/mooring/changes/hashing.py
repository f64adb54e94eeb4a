"""Hashes of keys, the same in every process and release: rows of a key always share a bucket.

Each column becomes 64 bits a value; columns are mixed in their order. What is equal hashes equal
after a column was widened, too: all integers count as 64 bits, and all floats as doubles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    Words = np.ndarray[Any, np.dtype[np.uint64]]

__all__ = ["bucket_of", "hash_rows"]

_NULL = np.uint64(0x9E3779B97F4A7C15)
_PRIME = np.uint64(0x100000001B3)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hash_rows(columns: Sequence[pa.ChunkedArray]) -> Words:
    """Hash rows by some columns."""
    rows = len(columns[0]) if columns else 0
    found = np.zeros(rows, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            found = _mix(found * _PRIME + _hash(column))
    return found


def bucket_of(hashes: Words, buckets: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the bucket of each hash."""
    return (hashes % np.uint64(buckets)).astype(np.int64)


def _hash(column: pa.ChunkedArray) -> Words:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # what a chunked array without chunks becomes
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    found = _mix(_words(array))
    if array.null_count:
        found[np.asarray(array.is_null())] = _NULL
    return found


def _words(array: pa.Array) -> Words:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _words(array.dictionary_decode())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return _numbers(array.cast(pa.int64(), safe=False))
    if pa.types.is_floating(kind):
        doubles = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        # Zero has two signs, and what is no number many forms.
        plain = np.where(np.isnan(doubles), np.nan, doubles + 0.0)
        return plain.view(np.uint64).copy()
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()  # noqa: PLR2004  # bits
        return _numbers(array.view(width).cast(pa.int64()))
    if pa.types.is_decimal(kind):
        return _words(array.cast(pa.string()))
    return _bytes(array.cast(pa.large_binary()))


def _numbers(array: pa.Array) -> Words:
    found: Words = array.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64).copy()
    return found


def _bytes(array: pa.Array) -> Words:
    """Hash bytes by a polynomial, all values at once."""
    array = pc.fill_null(array, b"")
    rows = len(array)
    offsets = np.frombuffer(array.buffers()[1], np.int64, rows + 1, array.offset * 8)
    lengths = np.diff(offsets)
    found: Words = lengths.astype(np.uint64)
    total = int(offsets[-1] - offsets[0]) if rows else 0
    if not total:
        return found
    data = np.frombuffer(array.buffers()[2], np.uint8, total, int(offsets[0]))
    starts = offsets[:-1] - offsets[0]
    places = np.arange(total) - np.repeat(starts, lengths)
    terms = (data.astype(np.uint64) + np.uint64(1)) * _powers(int(lengths.max()))[places]
    filled = lengths > 0
    found[filled] += np.add.reduceat(terms, starts[filled])
    return found


def _powers(count: int) -> Words:
    with np.errstate(over="ignore"):
        return np.cumprod(np.full(count, _PRIME, dtype=np.uint64), dtype=np.uint64)


def _mix(words: Words) -> Words:
    """Spread what differs little over all bits."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * _FIRST
        words = (words ^ (words >> np.uint64(27))) * _SECOND
        return words ^ (words >> np.uint64(31))
