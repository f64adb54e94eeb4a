"""The content of one value, which may be large: it is read a part at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from mooring.errors import InvalidInputError
from mooring.server.ui.rows.values import Shortener, is_binary, is_text
from mooring.tables.blobs import describe_blob

if TYPE_CHECKING:
    import pyarrow as pa

    from mooring.tables.snapshot import Snapshot

__all__ = ["BytesContent", "Content", "HexLine", "Part", "open_bytes", "open_content"]

_TEXT_BYTES = 64 * 1024
_DUMP_BYTES = 4 * 1024
_LINE_BYTES = 16
# Of a nested value, no more of its parts are written, and so much of a text in it.
_MOST_ITEMS, _MOST_CHARACTERS = 100_000, 100_000
_PRINTABLE = range(0x20, 0x7F)
_CONTINUES, _MASK = 0x80, 0xC0


class HexLine(msgspec.Struct, frozen=True, kw_only=True):
    """Some bytes, as digits and as letters where they are some."""

    at: str
    digits: str
    letters: str


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a value.

    Attributes:
        begin: Where it begins.
        end: Where it ends.
        text: What it is, of text.
        lines: What it is, of bytes.
    """

    begin: int
    end: int
    text: str = ""
    lines: list[HexLine] = []


class Content(Protocol):
    """All of a value.

    Attributes:
        size: How much there is of it.
        unit: Of what.
        is_cut: Whether there is more, which is not shown anywhere.
    """

    @property
    def size(self) -> int: ...  # noqa: D102  # see above

    @property
    def unit(self) -> str: ...  # noqa: D102  # see above

    @property
    def is_cut(self) -> bool: ...  # noqa: D102  # see above

    @property
    def step(self) -> int:
        """How long a part is."""
        ...

    def part(self, begin: int) -> Part:
        """Return the part from somewhere on."""
        ...


@dataclass(frozen=True, slots=True)
class TextContent:
    """A text, of which parts are made where a character begins."""

    buffer: memoryview
    unit: str = "bytes"
    is_cut: bool = False
    step: int = _TEXT_BYTES

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return len(self.buffer)

    def part(self, begin: int) -> Part:
        """Return the part from somewhere on."""
        first, last = self._boundary(begin), self._boundary(begin + self.step)
        text = bytes(self.buffer[first:last]).decode("utf-8", "replace")
        return Part(begin=first, end=last, text=text)

    def _boundary(self, at: int) -> int:
        """Return where the character begins that lies here."""
        at = min(at, self.size)
        while 0 < at < self.size and self.buffer[at] & _MASK == _CONTINUES:
            at -= 1
        return at


@dataclass(frozen=True, slots=True)
class WrittenContent:
    """A value that is written as JSON."""

    written: str
    is_cut: bool
    unit: str = "characters"
    step: int = _TEXT_BYTES

    @property
    def size(self) -> int:
        """How long that is."""
        return len(self.written)

    def part(self, begin: int) -> Part:
        """Return the part from somewhere on."""
        end = min(begin + self.step, self.size)
        return Part(begin=begin, end=end, text=self.written[begin:end])


class Bytes(Protocol):
    """Bytes that are read where they are needed."""

    def __call__(self, begin: int, length: int, /) -> bytes:
        """Return some of them."""
        ...


@dataclass(frozen=True, slots=True)
class BytesContent:
    """Binary, or a blob."""

    read: Bytes
    size: int
    unit: str = "bytes"
    is_cut: bool = False
    step: int = _DUMP_BYTES

    def part(self, begin: int) -> Part:
        """Return the part from somewhere on."""
        content = self.read(begin, min(self.step, self.size - begin))
        lines = [
            _line(begin + at, content[at : at + _LINE_BYTES])
            for at in range(0, len(content), _LINE_BYTES)
        ]
        return Part(begin=begin, end=begin + len(content), lines=lines)


def open_content(snapshot: Snapshot, column: str, row: int, value: pa.Scalar) -> Content:
    """Return all of a value.

    Args:
        snapshot: The version.
        column: The column.
        row: The row's id.
        value: The value, or the description of a blob.

    Raises:
        InvalidInputError: it is null, or lies elsewhere.
    """
    if column in snapshot.blob_columns or is_binary(value.type):
        return open_bytes(snapshot, column, row, value)
    if value.is_valid and is_text(value.type):
        return TextContent(memoryview(_buffer(value)))
    shortener = Shortener(_MOST_CHARACTERS, _MOST_ITEMS)
    plain = shortener.plain(value)
    return WrittenContent(_write(plain), shortener.is_cut)


def _write(plain: object) -> str:
    """Write a value as JSON; what is nested deeper than a list of plain ones, on many lines."""
    if isinstance(plain, str):
        return plain
    parts = plain if isinstance(plain, list) else [plain]
    is_deep = any(isinstance(part, dict | list) for part in parts)
    return json.dumps(plain, ensure_ascii=False, indent=2 if is_deep else None)


def open_bytes(snapshot: Snapshot, column: str, row: int, value: pa.Scalar) -> BytesContent:
    """Return all of a binary value or blob.

    Raises:
        InvalidInputError: it is neither, or null, or lies elsewhere.
    """
    if column in snapshot.blob_columns:
        blob = describe_blob(value.as_py())
        if blob is None:
            raise InvalidInputError("the value is null: there is nothing to show")
        if not blob.is_own:
            msg = f"the value lies elsewhere, at {blob.uri}, and is not fetched from there"
            raise InvalidInputError(msg)

        def read(begin: int, length: int) -> bytes:
            [content] = snapshot.blob_parts(column, [(row, begin, max(0, length))])
            return content or b""

        return BytesContent(read, blob.size_bytes)
    if not value.is_valid or not is_binary(value.type):
        raise InvalidInputError("the value is null, or not binary: there is nothing to show")
    buffer = memoryview(_buffer(value))
    return BytesContent(lambda begin, length: bytes(buffer[begin : begin + length]), len(buffer))


def _buffer(value: Any) -> Any:  # noqa: ANN401  # a scalar with bytes
    return value.as_buffer()


def _line(at: int, content: bytes) -> HexLine:
    letters = "".join(chr(byte) if byte in _PRINTABLE else "\N{MIDDLE DOT}" for byte in content)
    return HexLine(at=f"{at:08x}", digits=content.hex(" "), letters=letters)
