"""Fields of a schema by their paths: `name`, `outer.inner`, `` outer.`with.dots` ``.

Spec: lance-rest-openapi, "Lance field path" in the descriptions of columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FieldPath", "format_path", "list_fields", "parse_path", "quoted"]

_SEGMENT = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_PLAIN = re.compile(r"[^.`]+")


@dataclass(frozen=True, slots=True)
class FieldPath:
    """Where a field is in a schema, and of which type."""

    names: tuple[str, ...]
    type: pa.DataType

    def __str__(self) -> str:
        """Write the path, quoted where a name would be misread."""
        return format_path(self.names)


def list_fields(schema: Iterable[pa.Field]) -> Iterator[FieldPath]:
    """Walk a schema's fields and those inside its structs, outer ones first."""
    for field in schema:
        yield FieldPath((field.name,), field.type)
        if pa.types.is_struct(field.type):
            for inner in list_fields(field.type):
                yield FieldPath((field.name, *inner.names), inner.type)


def parse_path(text: str) -> tuple[str, ...]:
    """Read the names of a path; what is no path is one name."""
    names = tuple(quoted.replace("``", "`") or plain for quoted, plain in _SEGMENT.findall(text))
    return names or (text,)


def format_path(names: Iterable[str]) -> str:
    """Write a path: a name that would be misread is quoted, and no other."""
    return ".".join(name if _PLAIN.fullmatch(name) else quoted(name) for name in names)


def quoted(name: str) -> str:
    """Write a column's name so that SQL reads it as one, whatever is in it."""
    return f"`{name.replace('`', '``')}`"
