"""The fields of an opened table: found by path, and how they are named.

Spec: lance-rest-openapi, "Lance field path": a leaf's name alone is no path of a nested field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lance.lance import _parse_field_path

from mooring.errors import InvalidInputError, TableColumnNotFoundError
from mooring.identifiers import quote
from mooring.tables.field_paths import format_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from lance import LanceDataset

__all__ = ["Found", "check_name", "find", "renamed"]

# Lance keeps these names for columns that it makes up, and some crash it.
_RESERVED = frozenset(
    {
        "_distance",
        "_relevance_score",
        "_row_created_at_version",
        "_row_last_updated_at_version",
        "_rowaddr",
        "_rowid",
        "_rowoffset",
        "_score",
    }
)


@dataclass(frozen=True, slots=True)
class Found:
    """A field of a table.

    Attributes:
        name: Its own name.
        path: Its path in canonical writing.
        is_nested: Whether it lies in another.
        type: Its type.
        metadata: Its metadata.
    """

    name: str
    path: str
    is_nested: bool
    type: pa.DataType
    metadata: Mapping[str, str]


def find(dataset: LanceDataset, path: str, what: str, *, any_case: bool = False) -> Found:
    """Find a field by its path.

    Args:
        dataset: The table.
        path: As people and requests write it.
        what: What the table is, for messages.
        any_case: Whether a segment may differ by case from the only name that it fits.

    Raises:
        InvalidInputError: this is no path.
        TableColumnNotFoundError: the table has no such field.
    """
    # Lance's description of its fields leaves out half of what they can.
    field: Any = None
    fields: Sequence[Any] = dataset.lance_schema.fields()
    names: list[str] = []
    for segment in _segments(path):
        field = _pick(fields, segment, any_case=any_case)
        if field is None:
            raise _missing(what, path, names, fields)
        names.append(field.name())
        fields = field.children()
    kind, path = field.to_arrow().type, format_path(names)
    return Found(names[-1], path, len(names) > 1, kind, dict(field.metadata))


def renamed(path: str, name: str | None) -> str:
    """Return the path that a field has under another name, if it gets one."""
    segments = _parse_field_path(path)
    return format_path([*segments[:-1], name or segments[-1]])


def check_name(name: str, what: str, *, is_nested: bool = False) -> None:
    """Refuse what cannot be the name of a column; a nested one's may have dots.

    Raises:
        InvalidInputError: it is empty, has a dot or backtick, or Lance keeps it for itself.
    """
    if not name.strip():
        msg = f"a column of {what} needs a name"
        raise InvalidInputError(msg)
    if "." in name and not is_nested:
        msg = f"{quote(name)} cannot be the name of a column: a dot leads to a field of a struct"
        raise InvalidInputError(msg)
    if "`" in name:
        msg = f"{quote(name)} cannot be the name of a column: SQL has no writing for its backtick"
        raise InvalidInputError(msg)
    if name in _RESERVED:
        msg = f"{quote(name)} cannot be the name of a column: Lance keeps it for itself"
        raise InvalidInputError(msg)


def _segments(path: str) -> list[str]:
    try:
        return _parse_field_path(path)
    except ValueError as exc:
        reason = str(exc).partition(": ")[2].partition(", /")[0] or str(exc)
        msg = f"'{path}' is not the path of a column: {reason}; write a, a.b or a.`b.c`"
        raise InvalidInputError(msg) from exc


def _pick(fields: Sequence[Any], name: str, *, any_case: bool) -> Any:  # noqa: ANN401  # see find
    exact = [field for field in fields if field.name() == name]
    if exact or not any_case:
        return exact[0] if exact else None
    alike = [field for field in fields if field.name().casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else None


def _missing(
    what: str, path: str, parents: Sequence[str], fields: Sequence[Any]
) -> TableColumnNotFoundError:
    known = ", ".join(format_path([field.name()]) for field in fields) or "no fields"
    where = quote(format_path(parents)) if parents else "it"
    return TableColumnNotFoundError(f"{what} has no column {quote(path)}: {where} has {known}")
