"""Cells of a preview: one value each, as much of it as there is room for, and how it is shown."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.amounts import how_many
from mooring.server.ui.formats import size
from mooring.server.ui.rows.image_kinds import HEAD_BYTES, LARGEST_BYTES, image_type
from mooring.server.ui.rows.values import Shortener, is_binary, is_list, is_text, kind_of
from mooring.server.ui.rows.vectors import Vector, is_vector, read_vector, summarize

if TYPE_CHECKING:
    import pyarrow as pa

    from mooring.tables.blobs import Blob

__all__ = ["Cell", "binary_cell", "blob_cell", "make_cell"]

_BRIEF = 80
_LINES = 4
_HEX_BYTES = 8
_ITEMS = 64
_VECTOR_VALUES = 32
_TOO_LARGE = f"a picture of more than {size(LARGEST_BYTES)}, which is not shown"


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One value of a row.

    Attributes:
        kind: ``null``, ``number``, ``boolean``, ``text``, ``time``, ``binary``, ``blob``,
            ``nested`` or ``vector``.
        value: As JSON knows it, or its beginning: binary is base64, NaN a text.
        is_cut: Whether there is more of it.
        size_bytes: How large a text, binary value or blob is.
        length: How many values a list has.
        vector: What is told of a vector.
        image: Where the picture is that a binary value is, where it can be shown.
        media_type: What picture it is.
        note: What else to know.
        href: Where all of it is.
        like_href: Where the rows are that are like this one, by this vector.
    """

    kind: str
    value: Any = None
    is_cut: bool = False
    size_bytes: int | None = None
    length: int | None = None
    vector: Vector | None = None
    image: str = ""
    media_type: str = ""
    note: str = ""
    href: str = ""
    like_href: str = ""

    @property
    def text(self) -> str:
        """All that the page has of the value, as text."""
        match self.kind:
            case "null":
                return "null"
            case "binary" | "blob":
                return _hex(base64.b64decode(self.value or ""), self.size_bytes or 0)
            case "nested" | "vector":
                return json.dumps(self.value, ensure_ascii=False)
            case "boolean":
                return "true" if self.value else "false"
            case _:
                return str(self.value)

    @property
    def brief(self) -> str:
        """What is seen of it while it is folded."""
        text = self.text
        return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}\N{HORIZONTAL ELLIPSIS}"

    @property
    def is_folded(self) -> bool:
        """Whether there is more of it than is seen at once."""
        text = self.text
        return self.is_cut or len(text) > _BRIEF or text.count("\n") > _LINES

    @property
    def is_empty(self) -> bool:
        """Whether it is a text without letters."""
        return self.kind == "text" and self.value == ""

    @property
    def extent(self) -> str:
        """How much of it there is."""
        if self.length is not None:
            return how_many(self.length, "value")
        return "" if self.size_bytes is None else size(self.size_bytes)

    @property
    def image_name(self) -> str:
        """What the picture is, for whoever does not see it."""
        return f"{self.media_type.removeprefix('image/').upper()}, {self.extent}"


def make_cell(value: pa.Scalar, longest: int) -> Cell:
    """Show a value.

    Args:
        value: Any but a blob.
        longest: So many characters of it are shown at most.
    """
    if not value.is_valid:
        return Cell(kind="null")
    kind = value.type
    if is_vector(kind):
        return _vector_cell(value)
    if is_binary(kind):
        head = bytes(memoryview(value.as_buffer())[:HEAD_BYTES])
        return binary_cell(head, value.as_buffer().size)
    shortener = Shortener(longest, _ITEMS)
    plain = shortener.plain(value)
    if isinstance(plain, str) and len(plain) > longest:
        plain, shortener.is_cut = plain[:longest], True
    return Cell(
        kind=kind_of(kind),
        value=plain,
        is_cut=shortener.is_cut,
        size_bytes=value.as_buffer().size if is_text(kind) else None,
        length=len(value.values) if is_list(kind) else None,
    )


def binary_cell(head: bytes, size_bytes: int, kind: str = "binary") -> Cell:
    """Show a binary value by its first bytes; one that is a picture says so."""
    media_type = image_type(head)
    is_large = media_type is not None and size_bytes > LARGEST_BYTES
    return Cell(
        kind=kind,
        value=base64.b64encode(head[:_HEX_BYTES]).decode(),
        is_cut=size_bytes > _HEX_BYTES,
        size_bytes=size_bytes,
        media_type=media_type or "",
        note=f"a picture of more than {size(LARGEST_BYTES)}, which is not shown"
        if is_large
        else "",
    )


def blob_cell(blob: Blob | None, head: bytes | None) -> Cell:
    """Show a blob by what is known of it and its first bytes."""
    if blob is None:
        return Cell(kind="null")
    if not blob.is_own:
        return Cell(kind="blob", note=f"lies elsewhere: {blob.uri}")
    return binary_cell(head or b"", blob.size_bytes, "blob")


def _vector_cell(value: Any) -> Cell:  # noqa: ANN401  # a scalar of a list
    numbers = read_vector(value)
    shortener = Shortener(0, _VECTOR_VALUES)
    return Cell(
        kind="vector",
        value=shortener.plain(value),
        is_cut=shortener.is_cut,
        length=len(numbers),
        vector=summarize(numbers),
    )


def _hex(head: bytes, size_bytes: int) -> str:
    """Write the first bytes in pairs of digits."""
    more = " \N{HORIZONTAL ELLIPSIS}" if size_bytes > len(head) else ""
    return f"{head.hex(' ')}{more}"
