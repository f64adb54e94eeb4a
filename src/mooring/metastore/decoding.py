"""Reading what a metastore keeps: a file that makes no sense is damaged, and is named."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from mooring.errors import UnreadableError

__all__ = ["decode_with"]

_T = TypeVar("_T")


def decode_with(decoder: msgspec.msgpack.Decoder[_T], body: bytes, where: str) -> _T:
    """Read a file.

    Raises:
        UnreadableError: it is damaged.
    """
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as exc:
        msg = f"'{where}' is damaged ({exc}): restore it from a copy"
        raise UnreadableError(msg) from exc
