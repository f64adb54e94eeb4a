"""The schema of a version as pages show it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from mooring.server.ui.type_words import is_vector, say_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.tables.indexes import Index
    from mooring.tables.schema_tree import TreeField

__all__ = ["Column", "columns_of"]

_DEEPEST = 6  # what lies deeper is not moved further to the right


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a table.

    Attributes:
        name: Its own name.
        path: Its path.
        depth: In how many others it lies.
        indent: How far to the right it stands.
        type: Its type, in words.
        arrow_type: Its type, as Arrow writes it.
        is_vector: Whether it holds vectors.
        nullable: Whether it takes nulls.
        id: Its number; None where it has none.
        is_key: Whether it belongs to the primary key.
        default: What rows without a value have; None where that is null.
        metadata: What is kept with it.
        indexes: The names of the indexes that cover it.
    """

    name: str
    path: str
    depth: int = 0
    indent: int = 0
    type: str
    arrow_type: str
    is_vector: bool = False
    nullable: bool
    id: int | None
    is_key: bool
    default: str | None = None
    metadata: dict[str, str] = {}
    indexes: list[str] = []


def columns_of(fields: Sequence[TreeField], indexes: Sequence[Index]) -> list[Column]:
    """Put a schema in words.

    Args:
        fields: The fields.
        indexes: The indexes of the same version.
    """
    covering: dict[str, list[str]] = defaultdict(list)
    for index in indexes:
        for path in index.columns:
            covering[path].append(index.name)
    return [
        Column(
            name=one.name,
            path=one.path,
            depth=one.depth,
            indent=min(one.depth, _DEEPEST),
            type=say_type(one.type, one.metadata),
            arrow_type=str(one.type),
            is_vector=is_vector(one.type),
            nullable=one.nullable,
            id=one.id,
            is_key=one.is_key,
            metadata=dict(sorted(one.metadata.items())),
            indexes=covering.get(one.path, []),
        )
        for one in fields
    ]
