"""What the rows of a manifest mean: namespaces, tables, and what was dropped.

A dropped object keeps its row under an identifier of the trash, with its properties and a record
of the drop. Other programs list that row only if they ask for the trash by its name.

Spec: directory-namespace, "Manifest Table Schema".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from mooring.identifiers import DELIMITER, ObjectId
from mooring.namespace.states import TRASH
from mooring.tables.manifest import NAMESPACE, TABLE, ManifestRow

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "TRASH",
    "TRASH_PREFIX",
    "DropRecord",
    "DroppedRow",
    "RenameIntent",
    "dropped_id",
    "intent_of",
    "is_dropped",
    "is_namespace",
    "is_parked_at",
    "is_table",
    "make_dropped",
    "make_parked",
    "make_row",
    "object_id_of",
    "parent_of",
    "parked_key",
    "parked_properties",
    "properties_of",
    "read_dropped",
    "with_intent",
    "with_properties",
]

_PARKED = "directory"
_INTENT = "mooring.renaming"
TRASH_PREFIX = TRASH + DELIMITER


class DropRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is stored with a dropped object.

    Attributes:
        top: The identifier that was dropped; for the content of a namespace, that namespace's.
        seq: Larger than that of any drop of the same identifier before: clocks do not tell which
            was the last. For a parked row it is the number of the decision that hid the table.
        deleted_at_ms: When.
        ttl_ms: How long it stays in the trash; None is for ever.
        by: Who dropped it.
        metadata: The properties it had, as they were stored.
        purging: Whether its files may be gone already: it cannot come back.
        parked: Whether only the properties of a root table are kept, which lives by its directory.
    """

    top: str
    deleted_at_ms: int
    by: str
    seq: int = 0
    ttl_ms: int | None = None
    metadata: str | None = None
    purging: bool = False
    parked: bool = False


class RenameIntent(msgspec.Struct, frozen=True):
    """What is stored in the row of a root table while it moves to another name.

    Attributes:
        nonce: Random; tells this rename from any other.
        to: The identifier it gets.
        location: The directory it moves to.
        by: Who renames it.
    """

    nonce: str
    to: str
    location: str
    by: str


def intent_of(row: ManifestRow | None) -> RenameIntent | None:
    """Read the intent to rename a table; None without one."""
    text = _decoded(row).get(_INTENT)
    try:
        return msgspec.json.decode(text, type=RenameIntent) if text else None
    except msgspec.DecodeError:
        return None


def with_intent(row: ManifestRow, intent: RenameIntent | None) -> ManifestRow:
    """Return a row with another intent, or without one."""
    properties = properties_of(row)
    if intent is not None:
        properties[_INTENT] = _to_text(intent)
    return replace(row, metadata=_to_text(properties) if properties else None)


class DroppedRow(msgspec.Struct, frozen=True):
    """A row of the trash, read."""

    key: str
    drop_id: str
    object_id: str
    record: DropRecord
    row: ManifestRow

    @property
    def expires_at_ms(self) -> int | None:
        """When its time in the trash is over."""
        ttl_ms = self.record.ttl_ms
        return None if ttl_ms is None else self.record.deleted_at_ms + ttl_ms

    def restored(self, object_id: str) -> ManifestRow:
        """Return the row that an undrop brings back."""
        return replace(self.row, object_id=object_id, metadata=self.record.metadata)

    def marked_purging(self) -> ManifestRow:
        """Return the same row of the trash, from which nothing comes back."""
        record = replace(self.record, purging=True)
        return replace(self.row, metadata=msgspec.json.encode(record).decode())


def make_dropped(row: ManifestRow, drop_id: str, record: DropRecord) -> ManifestRow:
    """Return the row of the trash for an object that is dropped."""
    record = replace(record, metadata=row.metadata)
    return replace(
        row,
        object_id=f"{TRASH_PREFIX}{drop_id}{DELIMITER}{row.object_id}",
        metadata=msgspec.json.encode(record).decode(),
    )


def parked_key(name: str) -> str:
    """Return the identifier under which the row of a hidden root table is kept."""
    return f"{TRASH_PREFIX}{_PARKED}{DELIMITER}{name}"


def make_parked(row: ManifestRow, author: str, seq: int) -> ManifestRow:
    """Return the row that keeps the properties of a root table which a decision has hidden."""
    record = DropRecord(top=row.object_id, deleted_at_ms=0, by=author, seq=seq, parked=True)
    bare = with_intent(row, None)
    return replace(make_dropped(bare, _PARKED, record), location=None)


def is_parked_at(row: ManifestRow | None, seq: int) -> bool:
    """Whether a parked row is that of the decision with this number."""
    parked = read_dropped(row) if row else None
    return parked is not None and parked.record.seq == seq


def parked_properties(row: ManifestRow | None) -> dict[str, str]:
    """Return the properties that a parked row keeps."""
    parked = read_dropped(row) if row else None
    return properties_of(parked.restored(parked.object_id)) if parked else {}


def is_dropped(object_id: str) -> bool:
    """Whether an identifier is one of the trash."""
    return object_id.startswith(TRASH_PREFIX)


def dropped_id(key: str) -> str:
    """Return the identifier that a row of the trash had."""
    return key.removeprefix(TRASH_PREFIX).partition(DELIMITER)[2]


def read_dropped(row: ManifestRow) -> DroppedRow | None:
    """Read a row of the trash; None for any other."""
    if not is_dropped(row.object_id):
        return None
    drop_id = row.object_id.removeprefix(TRASH_PREFIX).partition(DELIMITER)[0]
    try:
        record = msgspec.json.decode(row.metadata or "", type=DropRecord)
    except msgspec.DecodeError:
        return None
    return DroppedRow(row.object_id, drop_id, dropped_id(row.object_id), record, row)


def is_table(row: ManifestRow | None) -> bool:
    """Whether a row is a table's."""
    return row is not None and row.object_type == TABLE


def is_namespace(row: ManifestRow | None) -> bool:
    """Whether a row is a namespace's."""
    return row is not None and row.object_type == NAMESPACE


def parent_of(object_id: str) -> str:
    """Return the identifier of the namespace that holds an object; empty for the root."""
    return object_id.rpartition(DELIMITER)[0]


def object_id_of(key: str) -> ObjectId:
    """Read the identifier of a row."""
    return ObjectId(tuple(key.split(DELIMITER))) if key else ObjectId()


def properties_of(row: ManifestRow | None) -> dict[str, str]:
    """Return the properties of an object."""
    return {key: value for key, value in _decoded(row).items() if key != _INTENT}


def _decoded(row: ManifestRow | None) -> dict[str, str]:
    if row is None or not row.metadata:
        return {}
    try:
        found = msgspec.json.decode(row.metadata)
    except msgspec.DecodeError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        key: value if isinstance(value, str) else _to_text(value) for key, value in found.items()
    }


def with_properties(row: ManifestRow, properties: Mapping[str, str]) -> ManifestRow:
    """Return a row with other properties; an intent to rename it stays."""
    bare = replace(row, metadata=_to_text(dict(properties)) if properties else None)
    intent = intent_of(row)
    return with_intent(bare, intent) if intent else bare


def make_row(
    object_id: str, kind: str, location: str | None, properties: Mapping[str, str] | None
) -> ManifestRow:
    """Return a new row."""
    return with_properties(ManifestRow(object_id, kind, location), properties or {})


def _to_text(value: object) -> str:
    return msgspec.json.encode(value).decode()
