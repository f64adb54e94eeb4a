"""The shape of a published table: its columns, and how they are made of a change table's."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.changes.definition import default_of
from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.tables.index_kinds import IndexKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.changes.definition import Definition
    from mooring.changes.publication import Publication
    from mooring.changes.vectors import Vector

__all__ = ["Shape"]

# A function gets so many rows at once.
_BATCH = 8192
_AS = " as "


@dataclass(frozen=True)
class Shape:
    """The columns of a published table; it travels.

    Attributes:
        columns: Each column's name in the change table, and in the published one.
        fields: The published ones, that of the vectors left out.
        vector: A column of vectors, if any.
        vector_type: Its type, where it is known yet.
    """

    columns: tuple[tuple[str, str], ...]
    fields: tuple[pa.Field, ...]
    vector: Vector | None = None
    vector_type: pa.DataType | None = None

    @classmethod
    def of(cls, publication: Publication, table: Definition, what: str) -> Shape:
        """Work out the columns.

        Raises:
            InvalidInputError: a column is not there, comes twice, or a merge key is missing.
        """
        vector = publication.vector
        pairs = [_pair(text) for text in publication.columns or table.schema.names]
        if vector is not None:
            vector.check(table, what)
            # An array column becomes a column of vectors of its own name.
            own = (vector.columns[0] if len(vector.columns) == 1 else None, vector.name)
            pairs = [pair for pair in pairs if pair != own]
        _check(pairs, vector, table, what)
        # An upsert that lacks a column can make a row without it, whatever the column demands.
        fields = tuple(
            pa.field(
                name,
                table.schema.field(source).type,
                table.is_keyed or table.schema.field(source).nullable,
            )
            for source, name in pairs
        )
        kind = vector.known_type(table) if vector is not None else None
        found = cls(tuple(pairs), fields, vector, kind)
        found._check_indexes(publication, what)
        return found

    def _check_indexes(self, publication: Publication, what: str) -> None:
        kinds = {one.name: one.type for one in self.fields}
        for index in publication.indexes:
            is_vector = self.vector is not None and index.column == self.vector.name
            if index.column not in kinds and not is_vector:
                msg = (
                    f"{what} is published without a column {quote(index.column)} for an index:"
                    f" it has {', '.join([*kinds, *([self.vector.name] if self.vector else [])])}"
                )
                raise InvalidInputError(msg)
            kind = IndexKind.parse(index.kind)
            known = kinds.get(index.column, self.vector_type or pa.list_(pa.float32(), 16))
            kind.read(index.parameters, known)
            if kind.is_vector != pa.types.is_fixed_size_list(known):
                msg = f"column {quote(index.column)} of {what} takes no index of kind {index.kind}"
                raise InvalidInputError(msg)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the change table that it is made of."""
        extra = self.vector.columns if self.vector is not None else ()
        return tuple(dict.fromkeys([*(source for source, _ in self.columns), *extra]))

    @property
    def schema(self) -> pa.Schema:
        """The published columns; the vectors come last."""
        if self.vector is None:
            return pa.schema(self.fields)
        return pa.schema([*self.fields, pa.field(self.vector.name, self.vector_type or pa.null())])

    def published(self, names: Sequence[str]) -> list[str]:
        """Return what columns of the change table are called here."""
        known = dict(self.columns)
        return [known[name] for name in names]

    def digest(self, table: Definition) -> str:
        """Return the same text for whatever makes the same rows."""
        columns = [
            [
                table.ids_by_name[source],
                name,
                str(table.schema.field(source).type),
                str(default_of(table.schema.field(source))),
            ]
            for source, name in self.columns
        ]
        vector = None
        if self.vector is not None:
            sources = [
                [table.ids_by_name[name], str(table.schema.field(name).type)]
                for name in self.vector.columns
            ]
            vector = [self.vector.identity, sources]
        told = json.dumps([columns, vector, list(table.keys)])
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    def make(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Make published rows of merged ones.

        Raises:
            InvalidInputError: a function failed, or vectors differ in length.
        """
        if self.vector is None:
            yield from self._renamed(rows).combine_chunks().to_batches()
            return
        for start in range(0, rows.num_rows, _BATCH):
            part = rows.slice(start, _BATCH).combine_chunks()
            vectors = self.vectors(part)
            columns = [*self._renamed(part).columns, vectors]
            yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches()

    def vectors(self, rows: pa.Table) -> pa.Array:
        """Compute the vectors of merged rows."""
        assert self.vector is not None  # noqa: S101  # asked before
        chosen = self._renamed(rows)
        if self.vector.columns:
            chosen = rows.select(list(self.vector.columns))
        batches = chosen.combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=chosen.schema)
        return self.vector.compute(batch, self.vector_type)

    def _renamed(self, rows: pa.Table) -> pa.Table:
        columns = [rows[source] for source, _ in self.columns]
        return pa.Table.from_arrays(columns, schema=pa.schema(self.fields))


def _pair(text: str) -> tuple[str, str]:
    """Read ``a``, or ``a as b``."""
    source, found, name = text.partition(_AS)
    return (source.strip(), name.strip()) if found else (text.strip(), text.strip())


def _check(
    pairs: Sequence[tuple[str, str]], vector: Vector | None, table: Definition, what: str
) -> None:
    names = [name for _, name in pairs] + ([vector.name] if vector is not None else [])
    for source, name in pairs:
        if source not in table.schema.names:
            known = ", ".join(table.schema.names)
            raise InvalidInputError(f"{what} has no column {quote(source)}: it has {known}")
        if not name or names.count(name) > 1:
            msg = f"column {quote(name or source)} would be published twice: rename one with 'as'"
            raise InvalidInputError(msg)
    missing = [key for key in table.keys if key not in {source for source, _ in pairs}]
    if missing:
        msg = (
            f"the published columns of {what} lack {', '.join(map(quote, missing))} of its merge"
            " keys, by which changed rows are found again: add them"
        )
        raise InvalidInputError(msg)
