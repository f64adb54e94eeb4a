"""The files in which Lance keeps transactions, as far as Lance itself cannot tell what is in them.

Lance's Python classes do not know every operation, and stumble over some that they know. The name
of a version's transaction file is in its manifest, and what the file says is a protobuf message of
which a few fields are enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["TRANSACTIONS_DIR", "UNKNOWN", "TransactionFile", "named_in"]

TRANSACTIONS_DIR = "_transactions"
UNKNOWN = "Unknown"
_NAME = re.compile(rb"[0-9]+-[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\.txn")
_READ_VERSION, _UUID, _PROPERTY = 1, 2, 4
_KEY, _VALUE = 1, 2
_OPERATIONS = {
    100: "Append",
    101: "Delete",
    102: "Overwrite",
    103: "CreateIndex",
    104: "Rewrite",
    105: "Merge",
    106: "Restore",
    107: "ReserveFragments",
    108: "Update",
    109: "Project",
    110: "UpdateConfig",
    111: "DataReplacement",
    112: "UpdateMemWalState",
    113: "Clone",
    114: "UpdateBases",
}
_MORE = 0x80


def named_in(manifest: bytes) -> list[str]:
    """Find the names of transaction files in a manifest: there is one, or none."""
    return [name.decode() for name in _NAME.findall(manifest)]


@dataclass(frozen=True, slots=True)
class TransactionFile:
    """What a transaction file says.

    Attributes:
        read_version: The version it was made from.
        uuid: Its identifier.
        operation: What it did.
        properties: What its writer gave along.
    """

    read_version: int
    uuid: str
    operation: str
    properties: Mapping[str, str]

    @classmethod
    def decode(cls, body: bytes) -> TransactionFile:
        """Read a file, as far as it can be read."""
        fields = list(_read_fields(body))
        read_version = next((at for number, at, _ in fields if number == _READ_VERSION), 0)
        uuid = next((text for number, _, text in fields if number == _UUID), b"")
        done = next((_OPERATIONS[number] for number, *_ in fields if number in _OPERATIONS), None)
        pairs = [_read_pair(text) for number, _, text in fields if number == _PROPERTY]
        return cls(read_version, uuid.decode(), done or UNKNOWN, dict(pairs))


def _read_pair(body: bytes) -> tuple[str, str]:
    texts = {number: text.decode() for number, _, text in _read_fields(body)}
    return texts.get(_KEY, ""), texts.get(_VALUE, "")


def _read_fields(body: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Go through the fields of a message: number, and value as a number or as bytes."""
    at = 0
    while at < len(body):
        key, at = _read_varint(body, at)
        number, kind = key >> 3, key & 7
        value, text = 0, b""
        match kind:
            case 0:
                value, at = _read_varint(body, at)
            case 1 | 5:
                at += 8 if kind == 1 else 4
            case 2:
                length, at = _read_varint(body, at)
                text = body[at : at + length]
                at += length
            case _:
                return
        yield number, value, text


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(body):
        byte = body[at]
        at += 1
        value |= (byte & ~_MORE) << shift
        if byte < _MORE:
            break
        shift += 7
    return value, at
