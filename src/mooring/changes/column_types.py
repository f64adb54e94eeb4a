"""Which types columns of a change table can have: those that can be written, read and merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["require_column_types"]


def require_column_types(fields: Iterable[pa.Field]) -> None:
    """Refuse columns whose rows could be written and never be read again.

    Raises:
        InvalidInputError: there is one.
    """
    for one in fields:
        try:
            _try(one.type)
        except pa.ArrowException as exc:
            msg = f"column {quote(one.name)} is {one.type}, which a change table cannot keep: {exc}"
            raise InvalidInputError(f"{msg}; give it another type") from exc


def _try(kind: pa.DataType) -> None:
    """Do with two values what a write and a merge do with many."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c": pa.nulls(2, kind)}), sink)
    read = pq.read_table(pa.BufferReader(sink.getvalue()))["c"].cast(kind)
    taken = read.take(pa.array([1, 0])).combine_chunks()
    pc.if_else(pa.array([True, False]), pa.scalar(None, kind), taken)
