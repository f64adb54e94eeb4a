"""The files that a transaction writes into a catalog of deltacat, exactly as its library does.

The chain decides for us. For its readers a transaction is committed by its log, which is written
after the entry of the chain; until then they pass over what is staged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.metastore.deltacat import codec
from mooring.metastore.deltacat.commits import DeltacatCommits
from mooring.metastore.deltacat.layout import (
    PAUSED_DIR,
    RUNNING_DIR,
    FileName,
    canonical_digest,
    file_path,
    is_txn_id,
    log_dir,
    parse_file,
    parse_log,
)
from mooring.metastore.deltacat.locators import Around, write_alias, write_locator
from mooring.metastore.layout import TXN_DIR, Operation
from mooring.metastore.locator import Kind
from mooring.metastore.model import CommitState, Partition, Stream, TableVersion, decode_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.metastore.deltacat.kept import Dictionary
    from mooring.metastore.dialect import Others, View
    from mooring.metastore.entry import Change, Record
    from mooring.metastore.locator import Locator
    from mooring.metastore.model import MetaObject
    from mooring.metastore.timeline import Ids, Parts
    from mooring.store import Store

__all__ = ["DeltacatDialect"]

_NS_PER_MS = 1_000_000
# As its library restates them: without zeros in front.
_VERSION = re.compile(r"(?:\w*\.)?(?:0|[1-9][0-9]*)")
_LARGEST_POSITION = 2**63 - 1
_encoder = msgspec.msgpack.Encoder()


class DeltacatDialect:
    """The layout of the deltacat library."""

    name = "deltacat"

    def __init__(self, root: str = "") -> None:
        """Write for a root.

        Args:
            root: As its library names it; its logs hold it.
        """
        self._root = root

    def txn_id(self, start_ms: int, unique: str) -> str:
        """Return the start in nanoseconds and the unique part."""
        return f"{start_ms * _NS_PER_MS}_{unique}"

    def digest(self, locator: Locator) -> str:
        """Return the digest of the object's own name."""
        return canonical_digest(locator.parts)

    def aliases(self, value: MetaObject) -> list[Parts]:
        """Return the format of a committed stream, or the values of a committed partition."""
        return codec.aliases(value)

    def check(self, locator: Locator, value: MetaObject) -> None:
        """Refuse versions and positions that its library does not take.

        Raises:
            InvalidInputError: it does not.
        """
        if isinstance(value, TableVersion) and not _VERSION.fullmatch(value.version):
            msg = (
                f"{quote(value.version)} cannot be a table version of a deltacat catalog: "
                f"name it like '1' or 'name.1'"
            )
            raise InvalidInputError(msg)
        position = getattr(value, "stream_position", None) if value.kind is Kind.DELTA else None
        if position is not None and not 0 <= position <= _LARGEST_POSITION:
            msg = f"{quote(str(locator))} has position {position}: deltacat takes 63 bits"
            raise InvalidInputError(msg)

    def files(self, record: Record, view: View) -> Iterator[tuple[str, bytes]]:
        """Go through revision files and mapping files."""
        for change in record.changes:
            body = _body(change, view)
            if body is not None:
                yield _revision_path(record, change), body
            for path in _mapping_paths(record, change):
                yield path, b""

    def log(self, record: Record, view: View) -> tuple[str, bytes]:
        """Return the file by which its library takes the transaction as committed."""
        end_ns = max(record.start_ms, record.end_ms) * _NS_PER_MS
        found: Dictionary = {
            "operations": [_operation(record, change, view) for change in record.changes],
            "_time_provider": {"type": "TransactionSystemTimeProvider", "params": {}},
            "start_time": record.start_ms * _NS_PER_MS,
            "catalog_root_normalized": self._root,
            "id": record.txn_id,
            "end_time": end_ns,
        }
        if record.message is not None:
            found["commit_message"] = record.message
        return f"{log_dir(record.txn_id)}/{end_ns}", _encoder.encode(found)

    def is_logged(self, txn_id: str, store: Store) -> bool:
        """Whether the log of a transaction is there: its name is the time of its end."""
        if not is_txn_id(txn_id):
            return False
        return any(name.isdecimal() for name in store.list_dir(log_dir(txn_id)).files)

    def logged_by(self, path: str) -> str | None:
        """Read a transaction from the path of its log."""
        found = parse_log(path)
        return None if found is None else found[0]

    def is_held(self, txn_id: str, store: Store) -> bool:
        """Whether its library works on a transaction, whatever the chain says."""
        held = [f"{folder}/{txn_id}" for folder in (RUNNING_DIR, PAUSED_DIR)]
        return bool(store.existing(held))

    def writer_of(self, path: str) -> str | None:
        """Read a transaction from the name of a revision or mapping file."""
        found = None if path.startswith(f"{TXN_DIR}/") else parse_file(path)
        return None if found is None else found.txn_id

    def others(self, store: Store) -> Others | None:
        """Return the writers of the library itself."""
        return DeltacatCommits(store)


def _body(change: Change, view: View) -> bytes | None:
    """Return the content of a revision; of one that deletes, what the object was last."""
    if change.body is not None:
        value: MetaObject | None = decode_object(change.body, "/".join(change.ids))
    else:
        value = view.value_of(change.ids)
    if value is None:
        return None  # it came and went within the transaction
    if change.operation is Operation.DELETE and isinstance(value, Stream | Partition):
        value = msgspec.structs.replace(value, state=CommitState.DEPRECATED)
    return codec.encode(value, change.ids, _around(change.ids, value, view))


def _around(ids: Ids, value: MetaObject | None, view: View) -> Around:
    kind = Kind.at(len(ids))
    if kind in {Kind.NAMESPACE, Kind.TABLE}:
        return Around(name="|".join(view.name_of(ids)))
    stream = value if kind is Kind.STREAM else _above(ids, Kind.STREAM, view)
    partition = value if kind is Kind.PARTITION else _above(ids, Kind.PARTITION, view)
    return Around(
        stream_format=stream.format if isinstance(stream, Stream) else None,
        partition_values=(
            codec.partition_values(partition) if isinstance(partition, Partition) else []
        ),
    )


def _above(ids: Ids, kind: Kind, view: View) -> MetaObject | None:
    return view.value_of(ids[: kind.level]) if len(ids) > kind.level else None


def _revision_path(record: Record, change: Change) -> str:
    return file_path(FileName(change.ids, change.revision, change.operation, record.txn_id))


def _mapping_paths(record: Record, change: Change) -> list[str]:
    return [
        file_path(FileName(change.ids, name.revision, name.operation, record.txn_id, name.digest))
        for name in change.names
    ]


def _operation(record: Record, change: Change, view: View) -> Dictionary:
    """Tell what was done to an object, as a log of its library does."""
    value = view.value_of(change.ids)
    around = _around(change.ids, value, view)
    levels = range(1, Kind.TABLE.level + 1)
    above = tuple("|".join(view.name_of(change.ids[:level])) for level in levels)
    named = Around(around.name, around.stream_format, around.partition_values, above)
    scheme_id = codec.scheme_id(value) if isinstance(value, Partition) else None
    is_found_by_alias = value is not None and bool(codec.aliases(value))
    target: Dictionary = {
        "id": change.ids[-1],
        "locator": write_locator(change.ids, named),
        "locator_alias": (write_alias(change.ids, named, scheme_id) if is_found_by_alias else None),
    }
    found: Dictionary = {
        "type": change.operation.value,
        "dest_metafile": target,
        "src_metafile": target if change.operation is Operation.UPDATE else None,
        "read_limit": None,
    }
    if change.names:
        found["locator_write_paths"] = _mapping_paths(record, change)
    return {**found, "metafile_write_paths": [_revision_path(record, change)]}
