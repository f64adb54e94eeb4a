"""Options of commands that show rows, or take them from files and put them into files."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["SHOWN", "FileFormat", "OfFormat", "RowLimit", "ToFile"]

# What fits a screen; files and programs get everything.
SHOWN = 20


class FileFormat(StrEnum):
    """Formats of files with rows."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


RowLimit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        metavar="NUMBER",
        min=0,
        help=f"At most so many rows; {SHOWN} to read, and all for files and programs.",
    ),
]
ToFile = Annotated[
    str | None,
    typer.Option("--to", metavar="FILE", help="Write the rows to a file; - is standard output."),
]
OfFormat = Annotated[
    FileFormat | None, typer.Option("--format", help="The file's format; its suffix tells.")
]
