"""Rows to measure with: eight columns of mixed types, the same every time."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.ipc

__all__ = ["mixed_rows", "stream"]


def mixed_rows(count: int) -> pa.Table:
    """Make so many rows, with an id that counts."""
    chance = np.random.default_rng(7)
    words = pa.array([f"word {number}" for number in range(1000)])
    return pa.table(
        {
            "id": np.arange(count, dtype=np.int64),
            "kind": chance.integers(0, 100, count, dtype=np.int32),
            "price": chance.random(count),
            "share": chance.random(count).astype(np.float32),
            "word": words.take(pa.array(chance.integers(0, 1000, count))),
            "code": pa.array([f"{number:012x}" for number in chance.integers(0, 2**40, count)]),
            "is_new": chance.random(count) > 0.5,
            "at": pa.array(
                chance.integers(1_600_000_000_000_000, 1_700_000_000_000_000, count),
                pa.timestamp("us", tz="UTC"),
            ),
        }
    )


def stream(rows: pa.Table) -> bytes:
    """Write rows as an Arrow IPC stream, as requests of the namespace carry them."""
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()
