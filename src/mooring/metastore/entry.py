"""What a commit writes into the chain: which objects changed, to what, and under which names.

Spec: deltacat-storage-model, "Transaction Log Directory".
"""

from __future__ import annotations

import msgspec

from mooring.metastore.decoding import decode_with
from mooring.metastore.layout import Operation
from mooring.metastore.locator import Kind

__all__ = [
    "Change",
    "Entry",
    "NameChange",
    "Record",
    "Remapped",
    "decode_entry",
    "decode_record",
    "encode_entry",
    "encode_record",
]


class NameChange(msgspec.Struct, frozen=True, array_like=True):
    """A name or alias that begins or ends to mean an object.

    Attributes:
        digest: Of the canonical string.
        parts: The name itself.
        operation: ``create`` where it begins, ``delete`` where it ends.
        revision: The number of the mapping file.
        is_alias: Whether the object has another name that counts more.
    """

    digest: str
    parts: tuple[str, ...]
    operation: Operation
    revision: int
    is_alias: bool = False


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One object's change.

    Attributes:
        ids: The ids from its namespace down to itself.
        kind: What it is.
        operation: What was done.
        revision: The number of the revision.
        body: The object as it is now; None where it was deleted.
        names: Names that begin or end.
    """

    ids: tuple[str, ...]
    kind: Kind
    operation: Operation
    revision: int
    body: bytes | None = None
    names: tuple[NameChange, ...] = ()


class Remapped(msgspec.Struct, frozen=True, array_like=True):
    """A mapping file of a child whose canonical string changed with the name of its parent."""

    ids: tuple[str, ...]
    digest: str
    operation: Operation
    revision: int


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A committed transaction.

    Attributes:
        txn_id: Its start and a uuid.
        by: Who committed it.
        start_ms: When it began, by its own clock, which decides nothing.
        end_ms: When it was committed, by the same.
        message: What it was for.
        changes: What it did.
        remapped: Mapping files that follow from a rename of what lies above.
        writes: Keys of what it changed.
        touches: Keys of parents whose children it changed.
        adopted: Whether another library committed it, by its own rules and with a log of its own.
    """

    txn_id: str
    by: str
    start_ms: int
    end_ms: int
    message: str | None = None
    changes: tuple[Change, ...] = ()
    remapped: tuple[Remapped, ...] = ()
    writes: frozenset[str] = frozenset()
    touches: frozenset[str] = frozenset()
    adopted: bool = False


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One object of the chain: transactions that share a put, or ids that may commit no more.

    Attributes:
        nonce: Random; tells this entry from another with the same content.
        records: The transactions, in their order.
        aborted: Transactions that a sweep has given up.
    """

    nonce: str
    records: tuple[Record, ...] = ()
    aborted: tuple[str, ...] = ()


_encoder = msgspec.msgpack.Encoder(order="sorted")
_decoder = msgspec.msgpack.Decoder(Entry)
_record_decoder = msgspec.msgpack.Decoder(Record)


def encode_entry(entry: Entry) -> bytes:
    """Write an entry as it is kept."""
    return _encoder.encode(entry)


def encode_record(record: Record) -> bytes:
    """Write the log of a committed transaction."""
    return _encoder.encode(record)


def decode_record(body: bytes, where: str) -> Record:
    """Read the log of a committed transaction.

    Raises:
        UnreadableError: it is damaged.
    """
    return decode_with(_record_decoder, body, where)


def decode_entry(body: bytes, where: str) -> Entry:
    """Read an entry.

    Raises:
        UnreadableError: it is damaged.
    """
    return decode_with(_decoder, body, where)
