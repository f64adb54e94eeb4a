"""What a command shows: data on standard output, everything else on standard error.

A command hands over rows or a record and does not know the format. Text is for people: aligned
columns, and a bordered table on a terminal. The other three formats are for programs.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import unicodedata
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from mooring.config import mask_uris

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.table import Table

    Row = Mapping[str, object]

__all__ = ["Format", "Output", "display_width", "is_coloured", "write_table"]

_GAP = "  "
_ABSENT = "-"
_WIDE = {"W", "F"}
_RED, _PLAIN = "\033[1;31m", "\033[0m"


class Format(StrEnum):
    """How data is written."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"


class Output:
    """Writes in one format."""

    def __init__(self, form: Format, *, quiet: bool = False) -> None:
        """Choose a format.

        Args:
            form: How data is written.
            quiet: Write no messages.
        """
        self.format = form
        self.is_quiet = quiet

    @property
    def is_for_people(self) -> bool:
        """Whether data is written as text to read."""
        return self.format is Format.TABLE

    # -- data --------------------------------------------------------------------------------

    def rows(self, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Write rows: a table, a JSON list, a JSON object a line, or CSV with a header."""
        match self.format:
            case Format.TABLE:
                write_table(sys.stdout, columns, list(rows))
            case Format.JSON:
                _write_list(rows)
            case Format.NDJSON:
                for row in rows:
                    _write_line(_to_json(row))
            case Format.CSV:
                _write_csv(columns, rows)

    def cells(self, headings: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
        """Write cells for people under headings that are names of their own, as they are."""
        shown = [[_show(cell) for cell in row] for row in [headings, *cells]]
        _write_grid(sys.stdout, shown[0], shown[1:])

    def record(self, record: Row) -> None:
        """Write one record: lines of names and values, or one object or CSV row."""
        match self.format:
            case Format.TABLE:
                _write_pairs(sys.stdout, record)
            case Format.JSON:
                _write_line(_to_json(record, indent=2))
            case Format.NDJSON | Format.CSV:
                self.rows(list(record), [record])

    def names(self, names: Sequence[str]) -> None:
        """Write names: bare lines for people, rows with the column ``name`` for programs."""
        if not self.is_for_people:
            self.rows(["name"], [{"name": name} for name in names])
            return
        sys.stdout.writelines(f"{_show(name)}\n" for name in names)

    def gap(self) -> None:
        """Leave a line between two tables; on a terminal their borders are enough."""
        if self.is_for_people and not sys.stdout.isatty():
            sys.stdout.write("\n")

    def change(self, record: Row, sentence: str) -> None:
        """Tell a change that was made: a sentence for people, a record for programs."""
        if self.is_for_people:
            self.message(sentence)
        else:
            self.record(record)

    # -- all else ------------------------------------------------------------------------------

    def message(self, text: str) -> None:
        """Tell people something; programs read the data."""
        if self.is_for_people and not self.is_quiet:
            self.notice(text)

    def notice(self, text: str) -> None:
        """Tell something that must be seen, whatever the format."""
        sys.stderr.write(f"{_show(mask_uris(text))}\n")

    def error(self, kind: str, code: int, message: str) -> None:
        """Tell a failure, as JSON where the data is JSON."""
        message = mask_uris(message)
        if self.format in {Format.JSON, Format.NDJSON}:
            error = {"code": code, "type": kind, "message": message}
            sys.stderr.write(_to_json({"error": error}, stream=sys.stderr) + "\n")
            return
        word = f"{_RED}error:{_PLAIN}" if is_coloured(sys.stderr) else "error:"
        sys.stderr.write(f"{word} {_show_lines(message)}\n")


def is_coloured(stream: TextIO) -> bool:
    """Whether colours may be written: on a terminal that knows them, unless NO_COLOR is set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def write_table(stream: TextIO, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Write rows under a header: bordered on a terminal, else aligned by spaces."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    is_terminal = stream.isatty()
    _write_grid(stream, columns if is_terminal else [name.upper() for name in columns], cells)


def _write_grid(stream: TextIO, headings: Sequence[str], cells: list[list[str]]) -> None:
    if stream.isatty():
        _print_rich(stream, _rich_table(headings, cells))
        return
    stream.writelines(_align([list(headings), *cells]))


def _write_pairs(stream: TextIO, record: Row) -> None:
    pairs = [[name, _cell(value)] for name, value in record.items()]
    if stream.isatty():
        _print_rich(stream, _rich_table(None, pairs))
        return
    stream.writelines(_align(pairs))


def _rich_table(columns: Sequence[str] | None, cells: list[list[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.ROUNDED, header_style="bold", border_style="dim")
    table.show_header = columns is not None
    for heading in columns or ("", ""):
        table.add_column(Text(heading), overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _print_rich(stream: TextIO, table: Table) -> None:
    from rich.console import Console

    Console(file=stream, highlight=False).print(table)


def _align(lines: list[list[str]]) -> Iterable[str]:
    widths = [max(map(display_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (
            cell + " " * (width - display_width(cell))
            for cell, width in zip(line, widths, strict=True)
        )
        yield _GAP.join(padded).rstrip() + "\n"


def display_width(text: str) -> int:
    """Count the cells of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in _WIDE)
        for letter in text
    )


def _cell(value: object) -> str:
    if value is None:
        return _ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _show(value if isinstance(value, str) else _to_json(value))


def _show(text: str) -> str:
    """Escape what a terminal would obey: names on a disk can hold anything."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _show_lines(text: str) -> str:
    return "\n".join(_show(line) for line in text.splitlines())


def _to_json(value: object, *, indent: int | None = None, stream: TextIO | None = None) -> str:
    encoding = ((stream or sys.stdout).encoding or "").lower().replace("-", "")
    return json.dumps(value, indent=indent, ensure_ascii=encoding != "utf8")


def _write_line(text: str, end: str = "\n") -> None:
    # A name that is no valid Unicode is a lone surrogate here, and in JSON its escape.
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + end)


def _write_list(rows: Iterable[Row]) -> None:
    """Write a JSON list row by row, laid out as if it were written at once."""
    separator = "[\n"
    for row in rows:
        text = _to_json(dict(row), indent=2).replace("\n", "\n  ")
        _write_line(f"{separator}  {text}", end="")
        separator = ",\n"
    sys.stdout.write("[]\n" if separator == "[\n" else "\n]\n")


def _write_csv(columns: Sequence[str], rows: Iterable[Row]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_csv_cell(row.get(column)) for column in columns])


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else _to_json(value)
    return text.encode("utf-8", "backslashreplace").decode()
