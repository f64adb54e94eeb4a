"""The message in a manifest's file, as far as it must be read without Lance.

Spec: the format of Lance's manifests: a message of protobuf, its length before it, a footer behind.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from typing import TYPE_CHECKING

from mooring.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "FOOTER",
    "LENGTH",
    "find_message",
    "read_fields",
    "schema_digest",
    "write_bytes",
    "write_number",
]

FOOTER = struct.Struct("<qHH4s")
LENGTH = struct.Struct("<I")
_MAGIC = b"LANC"
_SCHEMA_FIELD = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def schema_digest(path: str, body: bytes) -> str | None:
    """Return a digest of the schema that a manifest has; None for one of an unknown form."""
    try:
        _, message = find_message(path, body)
        digest = sha256()
        for number, value in read_fields(message):
            if number == _SCHEMA_FIELD and isinstance(value, bytes):
                digest.update(LENGTH.pack(len(value)) + value)
    except (UnreadableError, IndexError, KeyError):
        return None
    return digest.hexdigest()


def find_message(path: str, body: bytes) -> tuple[int, bytes]:
    """Find the message in a manifest's file: where its length is written, and its bytes.

    Raises:
        UnreadableError: the file is of another form.
    """
    try:
        start, _, _, magic = FOOTER.unpack(body[-FOOTER.size :])
        (length,) = LENGTH.unpack_from(body, start)
    except struct.error as exc:
        raise _damaged(path) from exc
    begin = start + LENGTH.size
    message = body[begin : begin + length]
    if magic != _MAGIC or len(message) != length or begin + length + FOOTER.size != len(body):
        raise _damaged(path)
    return start, message


def _damaged(path: str) -> UnreadableError:
    return UnreadableError(f"'{path}' is not a manifest of a form that is known")


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Go through the fields of a message: numbers with numbers or bytes."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _read_varint(message, at)
            yield number, value
        elif kind == _BYTES:
            length, at = _read_varint(message, at)
            yield number, message[at : at + length]
            at += length
        else:
            at += {_FIXED64: 8, _FIXED32: 4}[kind]


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:  # noqa: PLR2004  # the highest bit says that more follows
            return value, at


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004  # seven bits a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def write_number(number: int, value: int) -> bytes:
    """Write a field that is a number."""
    return _varint(number << 3 | _VARINT) + _varint(value)


def write_bytes(number: int, value: bytes) -> bytes:
    """Write a field that is text, bytes or a message."""
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value
