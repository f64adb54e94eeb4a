"""Arrow schemas as Iceberg's, and back.

Every Arrow schema has an Iceberg one: the mapping does not fail, and picks a type that holds every
value (`uint64` becomes `decimal(20,0)`). The one exception is time in nanoseconds, which version 2
of Iceberg's format does not have: it is shown in microseconds, and the field's doc says so. Each
field's doc ends with the Arrow type that it has.

Spec: iceberg-namespace, "Using Lance Table in IRC with Iceberg Tooling".
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mooring.errors import InvalidInputError
from mooring.iceberg.arrow_names import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    format_field,
    parse_field,
)
from mooring.iceberg.field_numbers import Counted, Kept
from mooring.identifiers import quote
from mooring.tables.field_ids import ROOT, FieldIds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mooring.iceberg.field_numbers import Numbers

__all__ = ["last_column_id", "same_fields", "to_arrow", "to_iceberg"]

_ARROW = "arrow: "
_NARROWED = "shown in microseconds"
_BETWEEN = " | "
_DOC = re.compile(r"(?:(?P<told>.*?) \| )?arrow: (?P<type>.*?)(?: \| .*)?", re.DOTALL)
# Where people and tools describe a field.
_DESCRIPTIONS = (b"description", b"comment")

_DEPTH_LIMIT = 64
_MOST_DIGITS = 38

_EXTENSIONS = {
    "arrow.bool8": "boolean",
    "arrow.json": "string",
    "arrow.uuid": "uuid",
    "lance.bfloat16": "float",
    "lance.blob.v2": "binary",
    "lance.json": "string",
}
_PLAIN: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.uint8(): "int",
    pa.uint16(): "int",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date32(): "date",
    pa.date64(): "date",  # whole days by Arrow's own rule, though it counts milliseconds
}
_LISTS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)
_NATURAL: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "unknown": pa.null(),
}
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
_FIXED = re.compile(r"fixed\[(\d{1,9})\]")


def to_iceberg(
    schema: pa.Schema, ids: FieldIds | None = None, *, schema_id: int = 1
) -> dict[str, Any]:
    """Return an Arrow schema as Iceberg's; every schema has one.

    Args:
        schema: Of a table.
        ids: The numbers of its fields; without them they are counted.
        schema_id: The number of the schema.
    """
    numbers = Counted() if ids is None else Kept(ids)
    writer = _Writer(numbers)
    fields = writer.fields(schema, ids or FieldIds(ROOT), "")
    return {"type": "struct", "schema-id": schema_id, "fields": fields}


def last_column_id(schema: Mapping[str, Any]) -> int:
    """Return the highest number of an Iceberg schema's fields; 0 for one without fields."""
    return max(_numbers(schema), default=0)


def same_fields(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two Iceberg schemas have the same fields, with the same numbers and docs.

    The numbers of the schemas do not matter, nor how servers write types.
    """
    return bool(_spaceless(one.get("fields")) == _spaceless(other.get("fields")))


def to_arrow(schema: Mapping[str, Any]) -> pa.Schema:
    """Return an Iceberg schema as Arrow's.

    A field is of the Arrow type that its doc names, where that type would be shown as the
    Iceberg type that the field has, and else of the nearest.

    Args:
        schema: As Iceberg clients send it.

    Raises:
        InvalidInputError: it is not a schema, or has a type that Arrow and Lance have not.
    """
    return pa.schema([_read_field(one, 0) for one in _fields_of(schema, "the schema")])


class _Writer:
    """Writes Arrow fields as Iceberg's, with numbers and names that no two share."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._names: set[str] = set()

    def fields(self, fields: Iterable[pa.Field], ids: FieldIds, above: str) -> list[dict[str, Any]]:
        """Write the fields of a schema or a struct.

        Args:
            fields: In their order.
            ids: Of what they lie in.
            above: The full name of what they lie in, and a dot.
        """
        return [self._field(one, self._number(ids, at), above) for at, one in enumerate(fields)]

    def type(self, field: pa.Field, ids: FieldIds, path: str) -> str | dict[str, Any]:
        """Write a field's type."""
        kind = _stored(field)
        if isinstance(kind, str):
            return kind
        if pa.types.is_struct(kind):
            return {"type": "struct", "fields": self.fields(kind, ids, f"{path}.")}
        if pa.types.is_map(kind):
            return self._map(kind, ids, path)
        if _is_list(kind):
            return self._list(kind, ids, path)
        return _primitive(kind)

    def _field(self, field: pa.Field, number: tuple[int, FieldIds], above: str) -> dict[str, Any]:
        name = self._name(field, above)
        return {
            "id": number[0],
            "name": name,
            "required": not field.nullable,
            "type": self.type(field, number[1], above + name),
            "doc": _write_doc(field, name),
        }

    def _list(self, kind: Any, ids: FieldIds, path: str) -> dict[str, Any]:  # noqa: ANN401  # untyped
        number, below = self._number(ids, 0)
        return {
            "type": "list",
            "element-id": number,
            "element-required": not kind.value_field.nullable,
            "element": self.type(kind.value_field, below, f"{path}.element"),
        }

    def _map(self, kind: Any, ids: FieldIds, path: str) -> dict[str, Any]:  # noqa: ANN401  # untyped
        entries = ids.children[0] if ids.children else FieldIds(ids.id)
        key, below_key = self._number(entries, 0)
        value, below_value = self._number(entries, 1)
        return {
            "type": "map",
            "key-id": key,
            "key": self.type(kind.key_field, below_key, f"{path}.key"),
            "value-id": value,
            "value-required": not kind.item_field.nullable,
            "value": self.type(kind.item_field, below_value, f"{path}.value"),
        }

    def _number(self, around: FieldIds, at: int) -> tuple[int, FieldIds]:
        """Return a field's number, and those of what lies in it."""
        known = around.children[at] if at < len(around.children) else None
        return self._numbers.take(known, around.id), known or FieldIds(around.id)

    def _name(self, field: pa.Field, above: str) -> str:
        """Return the field's name, or one near it where Iceberg could not tell two fields apart.

        Iceberg finds fields by names that are joined with dots, so that the field `b.c` of a
        struct stands in the way of the field `c` of its field `b`.
        """
        inner = list(_names_below(field))
        name, tries = field.name or "_", 1
        while any(above + name + below in self._names for below in inner):
            tries += 1
            name = f"{field.name}_{tries}"
        self._names.update(above + name + below for below in inner)
        return name


def _names_below(field: pa.Field) -> Iterator[str]:
    """List the names that come with a field: its own, and those of elements, keys and values."""
    yield ""
    kind = _stored(field)
    if isinstance(kind, str):
        return
    for name, inner in _unnamed(kind):
        yield from (f".{name}{below}" for below in _names_below(inner))


def _unnamed(kind: Any) -> list[tuple[str, pa.Field]]:  # noqa: ANN401  # PyArrow ships no types
    """Return what lies in a list or a map, by Iceberg's names."""
    if pa.types.is_map(kind):
        return [("key", kind.key_field), ("value", kind.item_field)]
    return [("element", kind.value_field)] if _is_list(kind) else []


def _is_list(kind: pa.DataType) -> bool:
    return any(is_this(kind) for is_this in _LISTS)


def _stored(field: pa.Field) -> pa.DataType | str:
    """Return what a field's values are, past encodings, or the Iceberg type that they mean."""
    kind: Any = field.type
    name = (field.metadata or {}).get(EXTENSION_NAME, b"").decode(errors="replace")
    while name not in _EXTENSIONS:
        if isinstance(kind, pa.BaseExtensionType):
            name, kind = kind.extension_name, kind.storage_type
        elif pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        else:
            return kind
    return _EXTENSIONS[name]


def _primitive(kind: Any) -> str:  # noqa: ANN401  # PyArrow ships no types
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_decimal(kind):
        return _decimal(kind.precision, kind.scale)
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]" if kind.byte_width else "binary"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_time(kind):
        return "time"
    # What else is left has no type of Iceberg's that holds it, but can be written out.
    return "long" if pa.types.is_duration(kind) else "string"


def _decimal(precision: int, scale: int) -> str:
    """Return a decimal with room for all digits; Iceberg has no scale outside the precision."""
    digits = max(precision - min(scale, 0), scale)
    return f"decimal({digits},{max(scale, 0)})" if digits <= _MOST_DIGITS else "string"


def _write_doc(field: pa.Field, name: str) -> str:
    metadata = field.metadata or {}
    told = next((metadata[key] for key in _DESCRIPTIONS if metadata.get(key)), b"")
    parts = [
        told.decode(errors="replace"),
        _ARROW + format_field(field),
        _NARROWED if _is_narrowed(field) else "",
        f"named {json.dumps(field.name, ensure_ascii=False)} in Lance" * (name != field.name),
    ]
    return _BETWEEN.join(part for part in parts if part)


def _is_narrowed(field: pa.Field) -> bool:
    """Tell whether a field has times in nanoseconds that no other field's doc tells of."""
    kind: Any = _stored(field)
    if isinstance(kind, str):
        return False
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return bool(kind.unit == "ns")
    return any(_is_narrowed(inner) for _, inner in _unnamed(kind))


def _numbers(kind: object) -> Iterator[int]:
    """List all numbers in an Iceberg type."""
    if not isinstance(kind, dict):
        return
    yield from (kind[key] for key in ("element-id", "key-id", "value-id") if key in kind)
    for key in ("element", "key", "value"):
        yield from _numbers(kind.get(key))
    for one in kind.get("fields", ()):
        yield one["id"]
        yield from _numbers(one["type"])


def _spaceless(value: Any, key: str = "") -> Any:  # noqa: ANN401  # JSON
    if isinstance(value, dict):
        return {name: _spaceless(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_spaceless(inner) for inner in value]
    is_type = isinstance(value, str) and key in {"type", "element", "key", "value"}
    return value.replace(" ", "") if is_type else value


def _fields_of(kind: Mapping[str, Any], what: str) -> list[Mapping[str, Any]]:
    fields = kind.get("fields")
    if not isinstance(fields, list) or not all(isinstance(one, dict) for one in fields):
        msg = f"{what} has no list of fields: send an Iceberg schema"
        raise InvalidInputError(msg)
    return fields


def _read_field(spec: Mapping[str, Any], depth: int) -> pa.Field:
    name, doc = spec.get("name"), spec.get("doc")
    if not isinstance(name, str) or not name:
        msg = "a field of the schema has no name: give it one"
        raise InvalidInputError(msg)
    nullable = not spec.get("required", False)
    match = _DOC.fullmatch(doc) if isinstance(doc, str) else None
    field = _promised(match["type"], spec, name) if match else None
    if field is None:
        field = _natural(spec.get("type"), name, f"column {quote(name)}", depth)
    told = match["told"] if match else doc
    metadata = {**(field.metadata or {}), **({_DESCRIPTIONS[0]: told} if told else {})}
    field = field.with_nullable(nullable)
    return field.with_metadata(metadata) if metadata else field


def _promised(text: str, spec: Mapping[str, Any], name: str) -> pa.Field | None:
    """Return a field of the type that a doc names, if Iceberg would show it as it stands there."""
    try:
        field = _registered(parse_field(text, name))
    except ValueError:
        return None
    shown = _Writer(Counted()).type(field, FieldIds(ROOT), "")
    return field if _bare(shown) == _bare(spec.get("type")) else None


def _registered(field: pa.Field) -> pa.Field:
    """Turn a field whose metadata names an extension into one of that type, if PyArrow knows it.

    Raises:
        ValueError: the extension cannot be made of this.
    """
    try:
        return pa.ipc.read_schema(pa.schema([field]).serialize()).field(0)
    except (KeyError, NotImplementedError, TypeError, pa.ArrowException) as exc:
        raise ValueError(str(exc)) from exc


def _bare(kind: object) -> object:
    """Return an Iceberg type without numbers and docs, to compare it."""
    if not isinstance(kind, dict):
        return kind.replace(" ", "") if isinstance(kind, str) else kind
    if kind.get("type") == "struct":
        return [
            (one.get("name"), bool(one.get("required")), _bare(one.get("type")))
            for one in _fields_of(kind, "a struct")
        ]
    required = ("element-required", "value-required")
    inner = [(key, _bare(kind[key])) for key in ("element", "key", "value") if key in kind]
    return [kind.get("type"), *inner, *(bool(kind[key]) for key in required if key in kind)]


def _natural(kind: object, name: str, what: str, depth: int) -> pa.Field:
    """Make a field of the Arrow type that is nearest to an Iceberg type."""
    if depth > _DEPTH_LIMIT:
        msg = f"{what} nests more than {_DEPTH_LIMIT} types: make it less deep"
        raise InvalidInputError(msg)
    if isinstance(kind, dict):
        return pa.field(name, _natural_nested(kind, what, depth + 1))
    text = kind.replace(" ", "") if isinstance(kind, str) else ""
    if text == "uuid":
        metadata = {EXTENSION_NAME: b"arrow.uuid", EXTENSION_METADATA: b""}
        return _registered(pa.field(name, pa.binary(16), metadata=metadata))
    found = _NATURAL.get(text) or _natural_sized(text)
    if found is None:
        known = "send a type that Iceberg's format has in version 2"
        msg = f"{what} is of type {quote(str(kind))}, which Lance cannot store: {known}"
        raise InvalidInputError(msg)
    return pa.field(name, found)


def _natural_sized(text: str) -> pa.DataType | None:
    if (fixed := _FIXED.fullmatch(text)) and int(fixed[1]):
        return pa.binary(int(fixed[1]))
    decimal = _DECIMAL.fullmatch(text)
    if decimal and 0 < int(decimal[1]) <= _MOST_DIGITS and int(decimal[2]) <= int(decimal[1]):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return None


def _natural_nested(kind: Mapping[str, Any], what: str, depth: int) -> pa.DataType:
    if kind.get("type") == "struct":
        return pa.struct([_read_field(one, depth) for one in _fields_of(kind, what)])
    if kind.get("type") == "list":
        element = _natural(kind.get("element"), "item", what, depth)
        return pa.list_(element.with_nullable(not kind.get("element-required", False)))
    if kind.get("type") == "map":
        key = _natural(kind.get("key"), "key", what, depth)
        value = _natural(kind.get("value"), "value", what, depth)
        required = bool(kind.get("value-required", False))
        return pa.map_(key.with_nullable(False), value.with_nullable(not required))  # noqa: FBT003  # PyArrow's takes no keyword
    msg = f"{what} is of a type that Iceberg does not have: send a struct, a list or a map"
    raise InvalidInputError(msg)
