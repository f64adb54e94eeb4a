"""Rows of a table as an answer: a screenful for people, all for programs, or a file."""

from __future__ import annotations

import shutil
import sys
from itertools import chain
from typing import TYPE_CHECKING

from mooring.amounts import how_many

if TYPE_CHECKING:
    import pyarrow as pa

    from mooring.cli.output import Output

__all__ = ["count_rows", "show_rows", "stream_rows", "write_rows"]


def show_rows(output: Output, rows: pa.Table, limit: int | None, more: str) -> None:
    """Write rows for people, and whether there are more than were asked for.

    Args:
        output: Where to.
        rows: The rows; one more than the limit where others follow.
        limit: How many to show.
        more: How to get the others.
    """
    shown = rows if limit is None else rows.slice(0, limit)
    _show_cells(output, shown.combine_chunks())
    if not rows.num_rows:
        output.message("no rows")
    elif shown.num_rows < rows.num_rows:
        output.message(f"{count_rows(shown.num_rows)}; more follow: {more}")


def _show_cells(output: Output, rows: pa.Table) -> None:
    from mooring.cli.cells import fit, show_values

    columns = [
        [cell for chunk in column.chunks for cell in show_values(chunk)] for column in rows.columns
    ]
    cells = [list(row) for row in zip(*columns, strict=True)]
    names = rows.schema.names
    if not sys.stdout.isatty():
        output.cells(names, cells)
        return
    kept, cut = fit([names, *cells], shutil.get_terminal_size().columns)
    output.cells(cut[0], cut[1:])
    if len(kept) < len(names):
        hidden = ", ".join(name for index, name in enumerate(names) if index not in kept)
        output.message(f"no room for {hidden}: choose with --columns")


def stream_rows(output: Output, reader: pa.RecordBatchReader) -> None:
    """Write every row for programs."""
    from mooring.cli.cells import plain_rows

    rows = chain.from_iterable(plain_rows(batch) for batch in reader)
    output.rows(reader.schema.names, rows)


def write_rows(output: Output, reader: pa.RecordBatchReader, file: str, kind: str) -> None:
    """Write every row to a file."""
    from mooring.cli.progress import show_progress
    from mooring.cli.row_files import STREAM, write_file

    with show_progress(output) as meter:
        count = write_file(reader, file, kind, lambda rows: meter(file, f"{rows:,} rows"))
    if file == STREAM:
        output.message(f"wrote {count_rows(count)}")
        return
    told = {"file": file, "result": "written", "rows": count}
    output.change(told, f"wrote {count_rows(count)} to '{file}'")


def count_rows(count: int) -> str:
    """Say how many rows."""
    return how_many(count, "row")
