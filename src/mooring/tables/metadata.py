"""Metadata of a table's schema and of its fields.

Spec: lance-rest-openapi, UpdateTableSchemaMetadata and UpdateFieldMetadata.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError, TableSchemaValidationError
from mooring.identifiers import quote
from mooring.tables.commits import Committed
from mooring.tables.fields import find
from mooring.tables.handle import At

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance import LanceDataset

    from mooring.tables.fields import Found
    from mooring.tables.handle import TableHandle

__all__ = [
    "FieldMetadata",
    "FieldsCommitted",
    "SchemaCommitted",
    "replace_schema_metadata",
    "update_field_metadata",
]

_PRIMARY_KEY = "lance-schema:unenforced-primary-key"
_TRUE = frozenset({"true", "1", "yes"})


@dataclass(frozen=True, slots=True)
class FieldMetadata:
    """A change of one field's metadata.

    Attributes:
        path: The field's path.
        values: What to set; None removes a key.
        replace: Whether keys that are not named go.
    """

    path: str
    values: Mapping[str, str | None]
    replace: bool = False


@dataclass(frozen=True, slots=True)
class SchemaCommitted:
    """What a change of the schema's metadata made.

    Attributes:
        commit: The version and transaction.
        metadata: All there is now.
    """

    commit: Committed
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FieldsCommitted:
    """What a change of fields' metadata made.

    Attributes:
        commit: The version and transaction.
        fields: All the metadata of each field that was named, by its canonical path.
    """

    commit: Committed
    fields: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def replace_schema_metadata(
    handle: TableHandle, values: Mapping[str, str], *, branch: str | None = None
) -> SchemaCommitted:
    """Make these the metadata of the schema; what is not named goes."""
    with handle.changing(At(branch=branch)) as dataset:
        metadata = dataset.update_schema_metadata(dict(values), replace=True)
        return SchemaCommitted(Committed.of(dataset), metadata)


def update_field_metadata(
    handle: TableHandle, updates: Sequence[FieldMetadata], *, branch: str | None = None
) -> FieldsCommitted:
    """Change the metadata of fields by one commit.

    Raises:
        TableColumnNotFoundError: a path leads to no field.
        InvalidInputError: nothing is named, or one field twice.
    """
    if not updates:
        msg = f"name at least one field of {handle.what} whose metadata is to change"
        raise InvalidInputError(msg)
    with handle.changing(At(branch=branch)) as dataset:
        found = [find(dataset, update.path, handle.what) for update in updates]
        _require_different(found)
        for one, update in zip(found, updates, strict=True):
            _check_key(dataset, one, update.values)
        if any(update.replace for update in updates):
            # Lance merges all or replaces all, so what a merge would give is worked out here.
            values = {
                one.path: _merged(one, update) for one, update in zip(found, updates, strict=True)
            }
            dataset.update_field_metadata(values, replace=True)
        else:
            dataset.update_field_metadata(
                {one.path: dict(update.values) for one, update in zip(found, updates, strict=True)}
            )
        return FieldsCommitted(Committed.of(dataset), _read(dataset, found, handle.what))


def _require_different(found: Sequence[Found]) -> None:
    paths = [one.path for one in found]
    for path in paths:
        if paths.count(path) > 1:
            msg = f"field {quote(path)} is named twice: name it once with all its metadata"
            raise InvalidInputError(msg)


def _check_key(dataset: LanceDataset, one: Found, values: Mapping[str, str | None]) -> None:
    """Refuse what Lance would only refuse after it wrote a transaction's file, and leave that."""
    for name, value in values.items():
        if not name.startswith(_PRIMARY_KEY):
            continue
        is_position = name != _PRIMARY_KEY
        known = (value or "").isdigit() if is_position else (value or "").lower() in _TRUE
        if not known:
            wanted = "a position from 1 on" if is_position else "true"
            msg = f"'{name}' makes {quote(one.path)} part of the primary key: it is {wanted}"
            raise InvalidInputError(msg)
        if not one.is_nested and dataset.schema.field(one.name).nullable:
            msg = f"column {quote(one.path)} may hold nulls, and a primary key must not"
            raise TableSchemaValidationError(msg)


def _merged(one: Found, update: FieldMetadata) -> dict[str, str | None]:
    before = {} if update.replace else dict(one.metadata)
    after = {**before, **update.values}
    return {key: value for key, value in after.items() if value is not None}


def _read(dataset: LanceDataset, found: Sequence[Found], what: str) -> dict[str, dict[str, str]]:
    return {one.path: dict(find(dataset, one.path, what).metadata) for one in found}
