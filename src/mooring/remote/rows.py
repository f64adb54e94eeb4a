"""Rows on their way to a server, of which only a little is in memory at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.tables.ipc_chunks import chunks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["ARROW_STREAM", "stream_chunks"]

ARROW_STREAM = "application/vnd.apache.arrow.stream"
_AT_ONCE = 1024 * 1024


def stream_chunks(rows: pa.RecordBatchReader) -> Iterator[bytes]:
    """Write rows as an Arrow IPC stream, some of it at a time."""
    return chunks_of(rows.schema, rows, size_bytes=_AT_ONCE)
