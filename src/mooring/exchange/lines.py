"""A snapshot as lines of JSON.

The first line says the format and how many lines follow; then come the namespaces, parents first,
then the tables with their locations relative to the root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from mooring.errors import InvalidInputError, UnsupportedError
from mooring.exchange.snapshot import NamespaceEntry, Snapshot, TableEntry
from mooring.identifiers import ObjectId, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FORMAT", "read_lines", "write_lines"]

FORMAT = 1
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class _Header(msgspec.Struct, frozen=True, tag_field="type", tag="mooring export"):
    format: int
    state: str
    namespaces: int
    tables: int


def write_lines(snapshot: Snapshot) -> Iterator[bytes]:
    """Write a snapshot; the same names give the same lines."""
    header = _Header(FORMAT, "live", len(snapshot.namespaces), len(snapshot.tables))
    for entry in (header, *snapshot.namespaces, *snapshot.tables):
        yield msgspec.json.encode(entry, order="deterministic") + b"\n"


def read_lines(lines: Iterable[bytes]) -> Snapshot:
    """Read a snapshot.

    Raises:
        InvalidInputError: it is none, or not whole.
        UnsupportedError: a newer release wrote it.
    """
    remaining = iter(lines)
    header = _decode(msgspec.json.Decoder(_Header), next(remaining, b""), 1)
    if header.format > FORMAT:
        msg = (
            f"this file has format {header.format} and this Mooring knows format {FORMAT}:"
            ' upgrade with "pip install --upgrade mooring"'
        )
        raise UnsupportedError(msg)
    namespaces: list[NamespaceEntry] = []
    tables: list[TableEntry] = []
    named: set[tuple[str, ...]] = set()
    decoder = msgspec.json.Decoder(NamespaceEntry | TableEntry)
    for number, line in enumerate(remaining, start=2):
        if not line.strip():
            continue
        entry = _decode(decoder, line, number)
        if entry.id in named:
            msg = f"line {number} names {quote(str(ObjectId(entry.id)))} a second time"
            raise InvalidInputError(msg)
        named.add(entry.id)
        if isinstance(entry, TableEntry):
            tables.append(entry)
        else:
            namespaces.append(entry)
    if (len(namespaces), len(tables)) != (header.namespaces, header.tables):
        msg = (
            f"the file is not whole: its first line tells of {header.namespaces} namespaces and"
            f" {header.tables} tables, and it has {len(namespaces)} and {len(tables)}"
        )
        raise InvalidInputError(msg)
    return Snapshot(
        sorted(namespaces, key=lambda entry: entry.id), sorted(tables, key=lambda entry: entry.id)
    )


def _decode(decoder: msgspec.json.Decoder[_Struct], line: bytes, number: int) -> _Struct:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        msg = f"line {number} is not one that an export writes: {exc}"
        raise InvalidInputError(msg) from exc
