"""What must hold of a table for a commit to land, as its writer demands.

Spec: iceberg-rest-openapi, "TableRequirement".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from mooring.errors import ConcurrentModificationError
from mooring.iceberg.snapshots import MAIN
from mooring.identifiers import quote
from mooring.namespace.presence import already_there
from mooring.server.iceberg.versions import DECLARED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.identifiers import ObjectId

__all__ = ["AssertRef", "Requirement", "check_requirements", "pins_main"]


class AssertCreate(
    msgspec.Struct, frozen=True, tag_field="type", tag="assert-create", rename="kebab"
):
    """There must be no such table."""


class AssertUuid(
    msgspec.Struct, frozen=True, tag_field="type", tag="assert-table-uuid", rename="kebab"
):
    """It must be this table, and no other of its name."""

    uuid: str


class AssertRef(
    msgspec.Struct, frozen=True, tag_field="type", tag="assert-ref-snapshot-id", rename="kebab"
):
    """A branch or tag must name this version; none where it is left out."""

    ref: str
    snapshot_id: int | None = None


class AssertLastField(
    msgspec.Struct,
    frozen=True,
    tag_field="type",
    tag="assert-last-assigned-field-id",
    rename="kebab",
):
    """No field was added."""

    last_assigned_field_id: int


class AssertSchema(
    msgspec.Struct, frozen=True, tag_field="type", tag="assert-current-schema-id", rename="kebab"
):
    """It must have this schema."""

    current_schema_id: int


class AssertLastPartition(
    msgspec.Struct,
    frozen=True,
    tag_field="type",
    tag="assert-last-assigned-partition-id",
    rename="kebab",
):
    """No field of a partition was added."""

    last_assigned_partition_id: int


class AssertSpec(
    msgspec.Struct, frozen=True, tag_field="type", tag="assert-default-spec-id", rename="kebab"
):
    """It must be partitioned so."""

    default_spec_id: int


class AssertSortOrder(
    msgspec.Struct,
    frozen=True,
    tag_field="type",
    tag="assert-default-sort-order-id",
    rename="kebab",
):
    """It must be sorted so."""

    default_sort_order_id: int


Requirement: TypeAlias = (
    AssertCreate
    | AssertUuid
    | AssertRef
    | AssertLastField
    | AssertSchema
    | AssertLastPartition
    | AssertSpec
    | AssertSortOrder
)

_COMPARED: Mapping[type, tuple[str, str, str]] = {
    AssertUuid: ("the uuid", "uuid", "table-uuid"),
    AssertLastField: ("the last field id", "last_assigned_field_id", "last-column-id"),
    AssertSchema: ("the schema id", "current_schema_id", "current-schema-id"),
    AssertLastPartition: (
        "the last partition id",
        "last_assigned_partition_id",
        "last-partition-id",
    ),
    AssertSpec: ("the partition spec", "default_spec_id", "default-spec-id"),
    AssertSortOrder: ("the sort order", "default_sort_order_id", "default-sort-order-id"),
}


def pins_main(requirements: Sequence[Requirement]) -> bool:
    """Whether a commit says on which version it builds."""
    return any(isinstance(one, AssertRef) and one.ref == MAIN for one in requirements)


def check_requirements(
    table: ObjectId, requirements: Sequence[Requirement], metadata: Mapping[str, Any]
) -> None:
    """Refuse a commit whose demands do not hold.

    Raises:
        ConcurrentModificationError: one does not.
        TableAlreadyExistsError: it demanded that there be no such table.
    """
    for one in requirements:
        if isinstance(one, AssertCreate):
            raise already_there(table)
        what, wanted, found = _compare(one, metadata)
        if wanted != found:
            msg = (
                f"{what} of table {quote(str(table))} is {_show(found)} and not {_show(wanted)}:"
                " load it again, then retry"
            )
            raise ConcurrentModificationError(msg)


def _compare(one: Requirement, metadata: Mapping[str, Any]) -> tuple[str, object, object]:
    """Return what a demand is about, what it wants, and what is."""
    if isinstance(one, AssertRef):
        # Of a table that has no version yet, main names version 0, or none.
        return f"the version of {quote(one.ref)}", one.snapshot_id or None, _version(one, metadata)
    what, attribute, key = _COMPARED[type(one)]
    return what, getattr(one, attribute), metadata[key]


def _version(one: AssertRef, metadata: Mapping[str, Any]) -> int | None:
    found = metadata["refs"].get(one.ref, {}).get("snapshot-id", DECLARED)
    return None if found == DECLARED else found


def _show(value: object) -> str:
    return "none" if value is None else str(value)
