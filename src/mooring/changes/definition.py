"""What a change table is: its columns, keys, order, partitions and buckets.

A table version of the metastore keeps it. Columns are known by numbers that never change, in the
schema and in every file, so that a column may be renamed, dropped and added anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec.structs import replace as with_fields

from mooring.changes.column_types import require_column_types
from mooring.changes.transforms import check_field, parse_field, show_field
from mooring.clock import RandomIds
from mooring.errors import InvalidInputError, UnreadableError
from mooring.identifiers import quote
from mooring.metastore import (
    Lifecycle,
    PartitionField,
    PartitionScheme,
    SortField,
    SortScheme,
    TableVersion,
)
from mooring.tables.key_types import require_key_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["DEFAULT", "FIELD_ID", "VERSION", "Definition", "default_of", "field_id"]

VERSION = "1"
PARQUET = "application/parquet"
FIELD_ID = b"PARQUET:field_id"
DEFAULT = b"mooring.default"
_KEYS, _ORDER, _BUCKETS, _LAST = "merge_keys", "merge_order", "buckets", "last_field_id"
_IDENTITY = "identity"
_MOST_BUCKETS = 4096
# Beginnings of names that readers add columns under.
_OURS = "_change_"


@dataclass(frozen=True)
class Definition:
    """A change table's columns, and how rows are told apart, parted and sorted.

    Attributes:
        schema: The columns, each with its number.
        keys: The columns by which rows are merged; without any, rows are only added.
        order: The column whose greater value wins; without one the later change does.
        partitions: How rows are parted.
        sort: How rows of a file are sorted.
        buckets: Into how many parts a partition is divided by the hash of the key.
        last_id: The greatest number that a column ever had.
        properties: Of the table's owner.
        identity: A random id: a table that is made anew under the same name is another one.
    """

    schema: pa.Schema
    keys: tuple[str, ...] = ()
    order: str | None = None
    partitions: tuple[PartitionField, ...] = ()
    sort: tuple[SortField, ...] = ()
    buckets: int = 1
    last_id: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    identity: str = ""

    @classmethod
    def make(
        cls,
        schema: pa.Schema,
        *,
        keys: Sequence[str] = (),
        order: str | None = None,
        partition_by: Iterable[str | PartitionField] = (),
        sort_by: Iterable[str | SortField] = (),
        buckets: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Definition:
        """Define a new table.

        Args:
            schema: Its columns.
            keys: Those by which rows are merged.
            order: The column whose greater value wins.
            partition_by: Columns or transforms: ``month(at)``, ``bucket(16, id)``.
            sort_by: Columns; ``-at`` sorts downwards.
            buckets: How many buckets a partition has; 8 with keys unless given.
            properties: A description, an owner.

        Raises:
            InvalidInputError: something does not fit the schema.
        """
        numbered = pa.schema([_numbered(one, number) for number, one in enumerate(schema, start=1)])
        found = cls(
            numbered,
            tuple(keys),
            order,
            tuple(parse_field(one) if isinstance(one, str) else one for one in partition_by),
            tuple(_sort_field(one) if isinstance(one, str) else one for one in sort_by),
            buckets if buckets is not None else (8 if keys else 1),
            len(numbered),
            dict(properties or {}),
            RandomIds().new_id(),
        )
        found.check()
        require_column_types(numbered)
        return found

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            InvalidInputError: it does not.
        """
        names = self.schema.names
        if not names:
            raise InvalidInputError("a change table needs columns")
        for name in names:
            if names.count(name) > 1 or name.startswith(_OURS):
                why = "comes twice" if names.count(name) > 1 else f"begins with {_OURS}"
                raise InvalidInputError(f"column {quote(name)} {why}: rename it")
        if self.keys:
            require_key_types(self.schema, self.keys, "the change table")
        self._check_order()
        for one in self.partitions:
            check_field(one, self.schema)
            if self.keys and one.columns[0] not in self.keys:
                msg = (
                    f"rows are parted by {quote(one.columns[0])}, which is no merge key: a row"
                    " that changes its partition could not be found any more; make it a key"
                )
                raise InvalidInputError(msg)
        for field_ in self.sort:
            self._require(field_.columns[0], "rows cannot be sorted by")
        if not 1 <= self.buckets <= _MOST_BUCKETS or (self.buckets > 1 and not self.keys):
            msg = f"buckets are 1 to {_MOST_BUCKETS}, and 1 without merge keys; not {self.buckets}"
            raise InvalidInputError(msg)

    def _check_order(self) -> None:
        if self.order is None:
            return
        self._require(self.order, "rows cannot be ordered by")
        kind = self.schema.field(self.order).type
        if not self.keys or self.order in self.keys or pa.types.is_nested(kind):
            msg = f"{quote(self.order)} cannot be the merge order: it takes keys, and is none"
            raise InvalidInputError(msg)
        if pa.types.is_float16(kind):
            msg = f"{quote(self.order)} cannot be the merge order: it is {kind}, take float or more"
            raise InvalidInputError(msg)

    def _require(self, name: str, what: str) -> None:
        if name not in self.schema.names:
            msg = f"{what} {quote(name)}: columns are {', '.join(self.schema.names)}"
            raise InvalidInputError(msg)

    # -- columns ---------------------------------------------------------------------------------

    @cached_property
    def names_by_id(self) -> dict[int, str]:
        """What the column of a number is called."""
        return {field_id(one): one.name for one in self.schema}

    @cached_property
    def ids_by_name(self) -> dict[str, int]:
        """The number of each column."""
        return {one.name: field_id(one) for one in self.schema}

    @property
    def is_keyed(self) -> bool:
        """Whether rows are merged."""
        return bool(self.keys)

    def add_columns(self, fields: Iterable[pa.Field], defaults: Mapping[str, Any]) -> Definition:
        """Return the table with more columns; older rows have their defaults, or null.

        Raises:
            InvalidInputError: a name is taken, or a default is no value of the column's type.
        """
        found, last = self.schema, self.last_id
        fields = list(fields)
        require_column_types(fields)
        for one in fields:
            last += 1
            if not one.nullable and defaults.get(one.name) is None:
                msg = f"column {quote(one.name)} needs a default: older rows have no value in it"
                raise InvalidInputError(msg)
            found = found.append(_numbered(one, last, defaults.get(one.name)))
        return self._with(found, last)

    def drop_columns(self, names: Iterable[str]) -> Definition:
        """Return the table without some columns.

        Raises:
            InvalidInputError: there is no such column, or it is needed.
        """
        found = self.schema
        for name in names:
            self._require(name, "there is no column")
            self._require_free(name)
            found = found.remove(found.get_field_index(name))
        return self._with(found, self.last_id)

    def rename_column(self, name: str, new: str) -> Definition:
        """Return the table with another name for a column; its number stays.

        Raises:
            InvalidInputError: there is no such column, or the name is taken.
        """
        self._require(name, "there is no column")
        place = self.schema.get_field_index(name)
        found = self.schema.set(place, self.schema.field(name).with_name(new))

        def renamed(columns: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(new if column == name else column for column in columns)

        return replace(
            self._with(found, self.last_id, check=False),
            keys=renamed(self.keys),
            order=new if self.order == name else self.order,
            partitions=tuple(_on(one, renamed(one.columns)) for one in self.partitions),
            sort=tuple(_on(one, renamed(one.columns)) for one in self.sort),
        ).checked()

    def widen_column(self, name: str, kind: pa.DataType) -> Definition:
        """Return the table with a wider type for a column.

        Raises:
            InvalidInputError: there is no such column, or values would not fit.
        """
        self._require(name, "there is no column")
        old = self.schema.field(name)
        if not _is_wider(old.type, kind):
            msg = f"column {quote(name)} is {old.type}, whose values may not fit {kind}"
            raise InvalidInputError(msg)
        place = self.schema.get_field_index(name)
        return self._with(self.schema.set(place, old.with_type(kind)), self.last_id)

    def _require_free(self, name: str) -> None:
        used = {
            *self.keys,
            *([self.order] if self.order else []),
            *(column for one in self.partitions for column in one.columns),
            *(column for one in self.sort for column in one.columns),
        }
        if name in used:
            msg = f"column {quote(name)} cannot go: rows are merged, parted or sorted by it"
            raise InvalidInputError(msg)

    def _with(self, schema: pa.Schema, last: int, *, check: bool = True) -> Definition:
        found = replace(self, schema=schema, last_id=last)
        return found.checked() if check else found

    def checked(self) -> Definition:
        """Return it if it makes sense.

        Raises:
            InvalidInputError: it does not.
        """
        self.check()
        return self

    # -- as an object ----------------------------------------------------------------------------

    def to_version(self) -> TableVersion:
        """Return the table version that keeps it."""
        ours = {
            _KEYS: json.dumps(self.keys),
            _BUCKETS: str(self.buckets),
            _LAST: str(self.last_id),
            _IDENTITY: self.identity,
            **({_ORDER: self.order} if self.order else {}),
        }
        return TableVersion(
            version=VERSION,
            schema=self.schema.serialize().to_pybytes(),
            partition_scheme=PartitionScheme(fields=self.partitions) if self.partitions else None,
            sort_scheme=SortScheme(fields=self.sort) if self.sort else None,
            content_types=(PARQUET,),
            state=Lifecycle.ACTIVE,
            properties={**self.properties, **ours},
        )

    @classmethod
    def from_version(cls, version: TableVersion, what: str) -> Definition:
        """Read it from a table version.

        Raises:
            UnreadableError: it is damaged.
        """
        given = dict(version.properties)
        try:
            schema = pa.ipc.read_schema(pa.py_buffer(version.schema or b""))
            keys = tuple(json.loads(given.pop(_KEYS, "[]")))
            buckets, last = int(given.pop(_BUCKETS, "1")), int(given.pop(_LAST, "0"))
        except (pa.ArrowException, ValueError) as exc:
            raise UnreadableError(f"the definition of {what} is damaged: {exc}") from exc
        identity = given.pop(_IDENTITY, "")
        return cls(
            schema,
            keys,
            given.pop(_ORDER, None),
            version.partition_scheme.fields if version.partition_scheme else (),
            version.sort_scheme.fields if version.sort_scheme else (),
            buckets,
            last,
            given,
            identity,
        )

    def describe(self) -> dict[str, str]:
        """Tell it in words, for people."""
        return {
            "keys": ", ".join(self.keys) or "-",
            "order": self.order or "-",
            "partitions": ", ".join(map(show_field, self.partitions)) or "-",
            "sort": ", ".join(_show_sort(one) for one in self.sort) or "-",
            "buckets": str(self.buckets),
        }


def field_id(field_: pa.Field) -> int:
    """Return the number of a column; 0 where it has none."""
    return int((field_.metadata or {}).get(FIELD_ID, b"0"))


def default_of(field_: pa.Field) -> pa.Scalar:
    """Return the value of a column in rows that have none."""
    told = (field_.metadata or {}).get(DEFAULT)
    if told is None:
        return pa.scalar(None, field_.type)
    return pa.scalar(json.loads(told)).cast(field_.type)


def _numbered(one: pa.Field, number: int, default: object = None) -> pa.Field:
    """Give a column its number, and a default."""
    metadata = {
        key: value for key, value in (one.metadata or {}).items() if key not in {FIELD_ID, DEFAULT}
    }
    metadata[FIELD_ID] = str(number).encode()
    if default is not None:
        try:
            told = json.dumps(default)
            pa.scalar(json.loads(told)).cast(one.type)
        except (TypeError, pa.ArrowException) as exc:
            msg = f"{default!r} cannot be the default of column {quote(one.name)}, {one.type}"
            raise InvalidInputError(msg) from exc
        metadata[DEFAULT] = told.encode()
    return one.with_metadata(metadata)


def _sort_field(text: str) -> SortField:
    return SortField(columns=(text.lstrip("-"),), descending=text.startswith("-"))


def _show_sort(one: SortField) -> str:
    return f"{'-' if one.descending else ''}{','.join(one.columns)}"


def _on(one: Any, columns: tuple[str, ...]) -> Any:  # noqa: ANN401  # a partition or sort field
    return with_fields(one, columns=columns)


def _is_wider(old: pa.DataType, new: pa.DataType) -> bool:
    if old == new:
        return True
    both = (old, new)
    if all(map(pa.types.is_signed_integer, both)) or all(map(pa.types.is_floating, both)):
        return bool(new.bit_width > old.bit_width)
    text = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return bool(text.get(old) == new)
