"""The schema of an opened table as a tree: every field with its number, outer ones first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mooring.tables.field_paths import format_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lance import LanceDataset

__all__ = ["TreeField", "schema_tree"]


@dataclass(frozen=True, slots=True)
class TreeField:
    """A field of a table.

    Attributes:
        name: Its own name.
        path: Its path in canonical writing.
        depth: In how many others it lies.
        type: Its type.
        nullable: Whether it takes nulls.
        id: Its number, which stays when it is renamed.
        metadata: What is kept with it.
        is_key: Whether it belongs to the primary key, which nothing enforces.
    """

    name: str
    path: str
    depth: int
    type: pa.DataType
    nullable: bool
    id: int
    metadata: Mapping[str, str]
    is_key: bool


def schema_tree(dataset: LanceDataset) -> list[TreeField]:
    """Return the fields of a table, each followed by those that lie in it.

    Fields of structs in a list or map follow these: what stands between has a name of Arrow's only.
    """
    # Lance's description of its fields leaves out half of what they can.
    fields: Sequence[Any] = dataset.lance_schema.fields()
    return list(_walk(fields, ()))


def _walk(fields: Sequence[Any], above: tuple[str, ...], depth: int = 0) -> Iterator[TreeField]:
    for field in fields:
        names = (*above, field.name())
        arrow = field.to_arrow()
        yield TreeField(
            name=names[-1],
            path=format_path(names),
            depth=depth,
            type=arrow.type,
            nullable=bool(arrow.nullable),
            id=int(field.id()),
            metadata=dict(field.metadata),
            is_key=bool(field.is_unenforced_primary_key()),
        )
        yield from _within(field, arrow.type, names, depth + 1)


def _within(
    field: Any,  # noqa: ANN401  # see schema_tree
    kind: pa.DataType,
    names: tuple[str, ...],
    depth: int,
) -> Iterator[TreeField]:
    if isinstance(kind, pa.BaseExtensionType):
        return
    children = field.children()
    if pa.types.is_struct(kind):
        yield from _walk(children, names, depth)
    elif pa.types.is_nested(kind):
        # The item of a list, or the entries of a map: what is in them is what people named.
        for child in children:
            yield from _within(child, child.to_arrow().type, (*names, child.name()), depth)
