"""The properties by which an Iceberg catalog tells a Lance table from a table of Iceberg's.

Spec: iceberg-namespace, "Table Definition".
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mooring.errors import InvalidInputError, InvalidTableStateError
from mooring.identifiers import quote
from mooring.namespace.properties import PROTECTED, check_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CREATED",
    "CREATED_AT_MS",
    "CREATED_BY",
    "CREATED_ID",
    "GUARDS",
    "MANAGED_BY",
    "NOWHERE",
    "OWN",
    "TABLE_TYPE",
    "ManagedBy",
    "check_updates",
    "is_lance",
    "managed_by",
    "own_properties",
    "property_changes",
    "split_updates",
    "users_properties",
]

TABLE_TYPE, MANAGED_BY = "table_type", "managed_by"
LANCE = "lance"
# The directory that was made for the table alone, and goes with it when it is purged.
CREATED = "mooring.created"
# Who made the table's entry, when, and a random id that tells whether an entry is one's own.
CREATED_BY, CREATED_AT_MS = "mooring.created-by", "mooring.created-at-ms"
CREATED_ID = "mooring.created-id"
_MOORING = "mooring."

# No engine opens this scheme, and no store can have a bucket with such a name: Iceberg's own S3
# client looks at nothing but the name.
NOWHERE = "lance://this_is_a_lance_table"

# What keeps Iceberg engines from writing into a Lance table's directory, and from tidying it.
GUARDS: Mapping[str, str] = {
    "gc.enabled": "false",
    "write.data.path": f"{NOWHERE}/write_it_with_lance",
}


class ManagedBy(StrEnum):
    """Who decides about the versions of a table."""

    STORAGE = "storage"
    IMPL = "impl"


# What nobody sets or sees: it only says that the table is a Lance table.
OWN = frozenset({TABLE_TYPE, MANAGED_BY, *GUARDS, "write.metadata.path"})


def is_lance(properties: Mapping[str, str]) -> bool:
    """Whether a table is one of Lance's; keys and values are read in any case."""
    return _any_case(properties, TABLE_TYPE) == LANCE


def managed_by(properties: Mapping[str, str], what: str) -> ManagedBy:
    """Tell who decides about a Lance table's versions: the storage, unless it says otherwise.

    Args:
        properties: Of the table.
        what: The table, for messages.

    Raises:
        InvalidTableStateError: it names somebody else.
    """
    found = _any_case(properties, MANAGED_BY) or ManagedBy.STORAGE.value
    if found not in set(ManagedBy):
        msg = (
            f"property '{MANAGED_BY}' of {what} is 'storage' or 'impl', not {quote(found)}: set it"
            " right in the Iceberg catalog"
        )
        raise InvalidTableStateError(msg)
    return ManagedBy(found)


def own_properties(by: ManagedBy) -> dict[str, str]:
    """Return what makes a table of an Iceberg catalog a Lance table."""
    return {TABLE_TYPE: LANCE, MANAGED_BY: by.value, **GUARDS}


def users_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return a table's properties without those that only say that it is a Lance table."""
    return {
        key: value
        for key, value in properties.items()
        if key.lower() not in OWN and (not key.startswith(_MOORING) or key == PROTECTED)
    }


def check_updates(updates: Mapping[str, str | None]) -> None:
    """Refuse changes of properties that could not be kept, or that say what a table is.

    Raises:
        InvalidInputError: with the reason.
    """
    check_properties(updates)
    for key in updates:
        if key.lower() in OWN:
            msg = f"property {quote(key)} says what the table is: it cannot be changed"
            raise InvalidInputError(msg)


def split_updates(
    known: Mapping[str, str], updates: Mapping[str, str | None]
) -> tuple[dict[str, str], list[str]]:
    """Return which properties are put, and which of those that are known go."""
    put = {key: value for key, value in updates.items() if value is not None}
    return put, [key for key, value in updates.items() if value is None and key in known]


def property_changes(
    known: Mapping[str, str], updates: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """Return the updates of a table's metadata that change its properties; None removes one."""
    put, removed = split_updates(known, updates)
    changes: list[dict[str, Any]] = []
    if put:
        changes.append({"action": "set-properties", "updates": put})
    if removed:
        changes.append({"action": "remove-properties", "removals": removed})
    return changes


def _any_case(properties: Mapping[str, str], wanted: str) -> str | None:
    exact = properties.get(wanted)
    if exact is None:
        exact = next((text for key, text in properties.items() if key.lower() == wanted), None)
    return None if exact is None else exact.strip().lower()
