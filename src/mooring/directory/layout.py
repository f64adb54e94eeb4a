"""Names of files in a directory catalog.

    flights.lance/                                            a table's directory
    flights.lance/.lance-reserved                             declared, no data yet
    flights.lance/.lance-deregistered                         hidden from readers of the V1 rules
    flights.lance-state.00000000000000000001                  a decision about the table
    flights.lance-state.00000000000000000001.deleted.<t>.<d>  its hint, for listings
    flights.deleted                                           a drop marker of another program
    _mooring-catalog.00000000000000000001                     the catalog's settings

Spec: directory-namespace, "V1: Directory Listing"; soft-delete, "Marker naming/location".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mooring.errors import InvalidNameError
from mooring.identifiers import check_name, is_name, quote
from mooring.store.numbered import SEQ_DIGITS, format_seq

__all__ = [
    "DEREGISTERED",
    "FOREIGN_SUFFIX",
    "MAX_NAME_BYTES",
    "RESERVED",
    "TABLE_SUFFIX",
    "StateFile",
    "check_table_name",
    "decision_path",
    "filter_table_names",
    "foreign_marker_path",
    "hint_path",
    "is_table_name",
    "nested_marker_path",
    "parse_state_file",
    "reserved_marker_path",
    "table_dir",
]

TABLE_SUFFIX = ".lance"
RESERVED = ".lance-reserved"
DEREGISTERED = ".lance-deregistered"
FOREIGN_SUFFIX = ".deleted"
_STATE_INFIX = ".lance-state."
_STATE_FILE = re.compile(
    rf"(?P<name>.+){re.escape(_STATE_INFIX)}(?P<seq>\d{{{SEQ_DIGITS}}})(?:\.(?P<hint>[a-z0-9.]+))?",
    re.DOTALL | re.ASCII,
)
# The longest hint is `undropping.<time>.<duration>`, both numbers in base 36.
_LONGEST_HINT = len("undropping") + 2 * (1 + 9)
# File systems take 255 bytes a name; the longest is a hint's.
MAX_NAME_BYTES = 255 - len(_STATE_INFIX) - SEQ_DIGITS - 1 - _LONGEST_HINT


def table_dir(name: str) -> str:
    """Return the directory of a table."""
    return name + TABLE_SUFFIX


def nested_marker_path(name: str) -> str:
    """Return the marker that hides a table from readers of the V1 rules."""
    return f"{name}{TABLE_SUFFIX}/{DEREGISTERED}"


def reserved_marker_path(name: str) -> str:
    """Return the marker of a declared table."""
    return f"{name}{TABLE_SUFFIX}/{RESERVED}"


def foreign_marker_path(name: str) -> str:
    """Return the drop marker that other programs write beside a table."""
    return name + FOREIGN_SUFFIX


def decision_path(name: str, seq: int) -> str:
    """Return the path of a decision; it never holds the outcome, so contenders meet on it."""
    return f"{name}{_STATE_INFIX}{format_seq(seq)}"


def hint_path(name: str, seq: int, hint: str) -> str:
    """Return the path of a decision's hint."""
    return f"{decision_path(name, seq)}.{hint}"


@dataclass(frozen=True, slots=True)
class StateFile:
    """A decision's or a hint's file name, read."""

    name: str
    seq: int
    hint: str | None


def parse_state_file(file_name: str) -> StateFile | None:
    """Read the name of a decision or hint; None for any other file."""
    if _STATE_INFIX not in file_name:
        return None
    match = _STATE_FILE.fullmatch(file_name)
    return StateFile(match["name"], int(match["seq"]), match["hint"]) if match else None


def is_table_name(name: str) -> bool:
    """Whether this layout can keep a table of this name."""
    return (
        is_name(name)
        and _STATE_INFIX not in name
        and not name.endswith(FOREIGN_SUFFIX)
        and (len(name) <= MAX_NAME_BYTES // 4 or len(name.encode()) <= MAX_NAME_BYTES)
    )


def filter_table_names(names: list[str]) -> list[str]:
    """Leave out what this layout cannot keep; one look at all of them mostly suffices."""
    everything = "\t".join(names)
    longest = max(map(len, names), default=0)
    is_fine = (
        longest <= MAX_NAME_BYTES // 4
        and _STATE_INFIX not in everything
        and f"{FOREIGN_SUFFIX}\t" not in f"{everything}\t"
        and is_name(everything.replace("\t", "-"))
        and everything.count("\t") == len(names) - 1
        and not {"", ".", ".."}.intersection(names)
    )
    return names if is_fine else [name for name in names if is_table_name(name)]


def check_table_name(name: str) -> None:
    """Refuse a name that this layout cannot keep.

    Raises:
        InvalidNameError: it reads as an entry of the lifecycle, or is too long.
    """
    check_name(name)
    if _STATE_INFIX in name or name.endswith(FOREIGN_SUFFIX):
        msg = (
            f"{quote(name)} cannot name a table in a directory: names with '{_STATE_INFIX}' or"
            f" ending in '{FOREIGN_SUFFIX}' mark what happened to other tables"
        )
        raise InvalidNameError(msg)
    size = len(name.encode())
    if size > MAX_NAME_BYTES:
        msg = (
            f"{quote(name[:40] + '…')} cannot name a table in a directory: it has {size} bytes"
            f" and {MAX_NAME_BYTES} is the most that leaves room for file name suffixes"
        )
        raise InvalidNameError(msg)
