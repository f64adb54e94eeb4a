"""What differs between the schemas of two versions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lance import LanceDataset
    from lance.lance.schema import LanceField

__all__ = ["SchemaChange", "SchemaChangeKind", "compare_schemas"]


class SchemaChangeKind(StrEnum):
    """What happened to a field."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    TYPE = "type"
    NULLABILITY = "nullability"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference.

    Attributes:
        path: The field as the new version names it, or the old one where it is gone; empty for
            the schema itself.
        kind: What happened to it.
        before: How it was, None where it was not.
        after: How it is, None where it is not.
    """

    path: str
    kind: SchemaChangeKind
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class _Field:
    """A field by its number, which a renaming keeps."""

    id: int
    type: str
    nullable: bool
    metadata: Mapping[bytes, bytes]


def compare_schemas(before: LanceDataset, after: LanceDataset) -> Iterator[SchemaChange]:
    """Say what differs, field by field; those of structs on their own."""
    old = dict(_flatten(before.schema, before.lance_schema.fields()))
    new = dict(_flatten(after.schema, after.lance_schema.fields()))
    renamed = _find_renamed(old, new)
    for path, was in old.items():
        if path not in new and path not in renamed.values():
            yield SchemaChange(path, SchemaChangeKind.REMOVED, was.type, None)
    for path, field in new.items():
        if path in renamed:
            yield SchemaChange(path, SchemaChangeKind.RENAMED, renamed[path], path)
        earlier = old.get(renamed.get(path, path))
        if earlier is None:
            yield SchemaChange(path, SchemaChangeKind.ADDED, None, field.type)
        else:
            yield from _compare(path, earlier, field)
    yield from _compare_metadata("", before.schema.metadata or {}, after.schema.metadata or {})


def _flatten(
    fields: Iterable[pa.Field], numbered: Iterable[LanceField], above: str = ""
) -> Iterator[tuple[str, _Field]]:
    for field, number in zip(fields, numbered, strict=True):
        path = f"{above}{field.name}"
        is_struct = pa.types.is_struct(field.type)
        text = "struct" if is_struct else str(field.type)
        yield path, _Field(number.id(), text, field.nullable, field.metadata or {})
        if is_struct:
            yield from _flatten(field.type, number.children(), f"{path}.")


def _find_renamed(old: Mapping[str, _Field], new: Mapping[str, _Field]) -> dict[str, str]:
    """Find the fields that have another name only, by their new one."""
    gone = {field.id: path for path, field in old.items() if path not in new}
    return {
        path: gone[field.id]
        for path, field in new.items()
        if path not in old and field.id in gone and old[gone[field.id]].type == field.type
    }


def _compare(path: str, old: _Field, new: _Field) -> Iterator[SchemaChange]:
    if old.type != new.type:
        yield SchemaChange(path, SchemaChangeKind.TYPE, old.type, new.type)
    if old.nullable != new.nullable:
        yield SchemaChange(path, SchemaChangeKind.NULLABILITY, _nullability(old), _nullability(new))
    yield from _compare_metadata(path, old.metadata, new.metadata)


def _compare_metadata(
    path: str, old: Mapping[bytes, bytes], new: Mapping[bytes, bytes]
) -> Iterator[SchemaChange]:
    if old != new:
        yield SchemaChange(path, SchemaChangeKind.METADATA, _text(old), _text(new))


def _nullability(field: _Field) -> str:
    return "nullable" if field.nullable else "not null"


def _text(metadata: Mapping[bytes, bytes]) -> str | None:
    pairs = sorted((key.decode(), value.decode()) for key, value in metadata.items())
    return ", ".join(f"{key}={value}" for key, value in pairs) or None
