"""What a commit asks for, told apart: a version of Lance's, properties, or what is refused.

An Iceberg engine changes a table by changing its metadata. A Lance table's are derived from it, so
that most of what an engine may ask for has no meaning here, and each refusal says what has.

Spec: iceberg-rest-openapi, "TableUpdate"; iceberg-namespace, "Requirement for Implementation
Managed Table".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from mooring.errors import InvalidInputError, UnsupportedError
from mooring.iceberg.snapshots import MAIN, SCHEMA_ID, Snapshot
from mooring.identifiers import quote
from mooring.server.iceberg.metadata import FORMAT_VERSION
from mooring.server.iceberg.properties import is_kept_from_clients, to_catalog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Changes", "read_updates"]

T = TypeVar("T", bound=msgspec.Struct)
_LAST_ADDED = -1
_COLUMNS = 'change columns with Lance or "mooring table column"'
_LAYOUT = "a Lance table has none"

# What to do instead.
_REFUSED: Mapping[str, str] = {
    "add-spec": f"partitions: {_LAYOUT}; index columns instead",
    "set-default-spec": f"partitions: {_LAYOUT}; index columns instead",
    "remove-partition-specs": f"partitions: {_LAYOUT}",
    "add-sort-order": f"a sort order: {_LAYOUT}",
    "set-default-sort-order": f"a sort order: {_LAYOUT}",
    "remove-schemas": "schemas: a Lance table's is that of its newest version",
    "remove-snapshot-ref": ('a branch or tag: use "mooring table branch" or "mooring table tag"'),
    "set-statistics": "statistics: Lance keeps its own",
    "remove-statistics": "statistics: Lance keeps its own",
    "set-partition-statistics": "statistics: Lance keeps its own",
    "remove-partition-statistics": "statistics: Lance keeps its own",
    "enable-row-lineage": "row lineage: Lance keeps its own row ids",
    "add-encryption-key": "encryption keys: Lance has none",
    "remove-encryption-key": "encryption keys: Lance has none",
    "add-view-version": "views: it is a table",
    "set-current-view-version": "views: it is a table",
}


class _Snapshot(msgspec.Struct, frozen=True, rename="kebab"):
    """As much of a snapshot as must be right to be read at all."""

    snapshot_id: int
    summary: dict[str, str] = {}
    timestamp_ms: int = 0


class _AddSnapshot(msgspec.Struct, frozen=True):
    snapshot: dict[str, Any]


class _SetRef(msgspec.Struct, frozen=True, rename="kebab"):
    ref_name: str
    snapshot_id: int
    type: str = "branch"


class _SetProperties(msgspec.Struct, frozen=True):
    updates: dict[str, str]


class _RemoveProperties(msgspec.Struct, frozen=True):
    removals: list[str]


class _RemoveSnapshots(msgspec.Struct, frozen=True, rename="kebab"):
    snapshot_ids: list[int]


class _AssignUuid(msgspec.Struct, frozen=True):
    uuid: str


class _Upgrade(msgspec.Struct, frozen=True, rename="kebab"):
    format_version: int


class _AddSchema(msgspec.Struct, frozen=True):
    schema: dict[str, Any]


class _SetSchema(msgspec.Struct, frozen=True, rename="kebab"):
    schema_id: int


class _SetLocation(msgspec.Struct, frozen=True):
    location: str


@dataclass
class Changes:
    """What one commit asks of one table.

    Attributes:
        snapshot: The version to make.
        main: What main is to name; None where that is not said.
        properties: To set, or to remove where None.
        beside: What means nothing beside a version, and is refused alone unless it is so already.
        removed: Versions whose snapshots are to go.
    """

    snapshot: Snapshot | None = None
    main: int | None = None
    properties: dict[str, str | None] = field(default_factory=dict)
    beside: list[msgspec.Struct] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)

    def require_meaning(self, metadata: Mapping[str, Any]) -> None:
        """Refuse what cannot be done to a Lance table, and what cannot be decided together.

        Raises:
            UnsupportedError: it has no meaning here.
            InvalidInputError: it is several things at once.
        """
        if self.snapshot is not None and self.properties:
            raise InvalidInputError(
                "properties and a version cannot be decided together: send two requests"
            )
        if self.snapshot is None:
            self._require_nothing_new(metadata)
        known = {one["snapshot-id"] for one in metadata["snapshots"]}
        gone = [version for version in self.removed if version in known]
        if gone:
            raise UnsupportedError(
                f"version {gone[0]} is one of the Lance table's: clean up versions with Lance or"
                ' "mooring table cleanup"'
            )

    def _require_nothing_new(self, metadata: Mapping[str, Any]) -> None:
        if self.main is not None and self.main != metadata["current-snapshot-id"]:
            raise UnsupportedError(
                "main of a Lance table is its newest version: go back to another with Lance or"
                ' "mooring table restore"'
            )
        for one in self.beside:
            reason = _why_new(one, metadata)
            if reason is not None:
                raise UnsupportedError(reason)


def read_updates(updates: Sequence[Mapping[str, Any]]) -> Changes:
    """Tell apart what a commit asks for.

    Raises:
        InvalidInputError: an update is not as it should be, or is there twice.
        UnsupportedError: it has no meaning for a Lance table, whatever its state.
    """
    changes = Changes()
    for update in updates:
        _add(changes, update)
    return changes


def _add(changes: Changes, update: Mapping[str, Any]) -> None:
    action = update.get("action")
    match action:
        case "add-snapshot":
            _add_snapshot(changes, _read(update, _AddSnapshot))
        case "set-snapshot-ref":
            _set_ref(changes, _read(update, _SetRef))
        case "set-properties":
            _set_properties(changes, _read(update, _SetProperties).updates)
        case "remove-properties":
            removals = _read(update, _RemoveProperties).removals
            _set_properties(changes, dict.fromkeys(removals))
        case "remove-snapshots":
            changes.removed += _read(update, _RemoveSnapshots).snapshot_ids
        case _:
            changes.beside.append(_read(update, _beside(action)))


def _beside(action: object) -> type[msgspec.Struct]:
    shapes: Mapping[object, type[msgspec.Struct]] = {
        "assign-uuid": _AssignUuid,
        "upgrade-format-version": _Upgrade,
        "add-schema": _AddSchema,
        "set-current-schema": _SetSchema,
        "set-location": _SetLocation,
    }
    if isinstance(action, str) and action in shapes:
        return shapes[action]
    if isinstance(action, str) and action in _REFUSED:
        raise UnsupportedError(f"'{action}' would change {_REFUSED[action]}")
    raise InvalidInputError(f"{quote(str(action))} is no update of a table")


def _add_snapshot(changes: Changes, update: _AddSnapshot) -> None:
    if changes.snapshot is not None:
        raise InvalidInputError("a commit makes one version of a table, not several")
    _read(update.snapshot, _Snapshot)
    changes.snapshot = Snapshot.from_json(update.snapshot)


def _set_ref(changes: Changes, update: _SetRef) -> None:
    if update.ref_name != MAIN or update.type != "branch":
        raise UnsupportedError(
            f"{quote(update.ref_name)} cannot be set here: make branches and tags with Lance,"
            ' "mooring table branch" or "mooring table tag"'
        )
    changes.main = update.snapshot_id


def _set_properties(changes: Changes, updates: Mapping[str, str | None]) -> None:
    for key in updates:
        if is_kept_from_clients(key):
            raise UnsupportedError(
                f"property {quote(key)} cannot be changed here: it says what the Lance table is,"
                " or is the catalog's own"
            )
    changes.properties |= {to_catalog(key): value for key, value in updates.items()}


def _why_new(one: msgspec.Struct, metadata: Mapping[str, Any]) -> str | None:
    """Say why an update is refused where no version is made; None where it is so already."""
    match one:
        case _AssignUuid(uuid) if uuid.lower() != metadata["table-uuid"]:
            return "the uuid of a Lance table follows from its location, and cannot be set"
        case _Upgrade(version) if version > FORMAT_VERSION:
            return f"a Lance table is shown in version {FORMAT_VERSION} of Iceberg's format"
        case _AddSchema(schema) if schema.get("fields") != metadata["schemas"][0]["fields"]:
            return f"the schema of a Lance table is that of its newest version: {_COLUMNS}"
        case _SetSchema(number) if number not in {SCHEMA_ID, _LAST_ADDED}:
            return f"the schema of a Lance table is that of its newest version: {_COLUMNS}"
        case _SetLocation(location) if location.rstrip("/") != metadata["location"].rstrip("/"):
            return "a Lance table cannot be moved: copy it, then register the copy"
    return None


def _read(update: Mapping[str, Any], shape: type[T]) -> T:
    try:
        return msgspec.convert(update, shape)
    except msgspec.ValidationError as exc:
        what = update.get("action", "snapshot")
        raise InvalidInputError(f"{quote(str(what))} is not as it should be: {exc}") from exc
