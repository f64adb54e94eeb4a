"""Which rows of a table are meant, and which files cannot have any of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.changes.conditions import Among, And, Comparison, IsNull, Range
from mooring.changes.hashing import bucket_of, hash_rows
from mooring.changes.literals import plain_type, to_array
from mooring.changes.predicate_text import parse_condition
from mooring.metastore import DeltaType

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.compute as pc

    from mooring.changes.conditions import Condition
    from mooring.changes.definition import Definition
    from mooring.changes.literals import Value
    from mooring.changes.log import Piece
    from mooring.changes.plan import BucketRead

__all__ = ["Predicate", "parse_predicate"]

_ADDING = {DeltaType.APPEND, DeltaType.ADD}
# More keys than these are not worth their hashes.
_MOST_KEYS = 256


@dataclass(frozen=True)
class Predicate:
    """A condition for rows; it travels.

    Attributes:
        text: As it was written.
        condition: What it means.
    """

    text: str
    condition: Condition

    def __str__(self) -> str:
        """Show it as it was written."""
        return self.text

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it is about."""
        return self.condition.columns

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Return what it is for each row; one for which it is null is not meant."""
        return self.condition.expression(schema)

    def prune(self, read: BucketRead, table: Definition) -> BucketRead | None:
        """Leave out what has no row that is meant, by statistics, partitions and hashes of keys.

        Returns:
            What is left of a bucket, or None where nothing is.
        """
        if not self._is_in_place(read, table):
            return None
        by_keys = frozenset(table.keys)
        pieces = [piece for piece in read.pieces if self._may_hold(piece, table, by_keys)]
        everything = frozenset(table.schema.names)
        # A row is what the last change of it made: that change has the values that it brought.
        holding = [piece for piece in pieces if self._may_hold(piece, table, everything)]
        if all(piece.type is DeltaType.DELETE for piece in holding):
            return None
        if _are_independent(pieces):
            pieces = holding
        if len(pieces) == len(read.pieces):
            return read
        kept = {id(piece) for piece in pieces}
        return replace(
            read,
            base=tuple(piece for piece in read.base if id(piece) in kept),
            changes=tuple(piece for piece in read.changes if id(piece) in kept),
        )

    def _may_hold(self, piece: Piece, table: Definition, columns: frozenset[str]) -> bool:
        """Whether a piece may have rows that are meant, as far as some columns tell."""
        return self.condition.outcomes(_PieceStatistics(piece, table, columns)).true

    def _is_in_place(self, read: BucketRead, table: Definition) -> bool:
        """Whether keys that are meant fall into a bucket, and into a partition that is hashed."""
        for one, value in zip(table.partitions, read.values, strict=False):
            if one.transform != "bucket" or value is None:
                continue
            chosen = self._chosen(one.columns[0])
            if chosen is None or len(chosen) > _MOST_KEYS:
                continue
            if value not in _hashed((chosen,), _kinds(table, one.columns), one.argument or 1):
                return False
        if not table.is_keyed or table.buckets == 1:
            return True
        keys = [self._chosen(name) for name in table.keys]
        known = tuple(one for one in keys if one is not None)
        if len(known) < len(keys) or prod(map(len, known)) > _MOST_KEYS:
            return True
        return read.bucket in _hashed(known, _kinds(table, table.keys), table.buckets)

    def _chosen(self, column: str) -> tuple[Value | None, ...] | None:
        """Return the values that a column must have one of; None where it may have any."""
        for term in _terms(self.condition):
            if isinstance(term, Comparison) and term.operator == "=" and term.column == column:
                return (term.value,)
            if isinstance(term, Among) and term.column == column:
                return term.values
            if isinstance(term, IsNull) and term.column == column:
                return (None,)
        return None


def parse_predicate(text: str, definition: Definition) -> Predicate:
    """Read a condition for rows of a table: a part of SQL.

    Columns stand for themselves or in double quotes or backticks, text in single quotes; there are
    ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``IN``, ``BETWEEN``, ``LIKE``, ``IS NULL``,
    ``AND``, ``OR``, ``NOT`` and parentheses, ``DATE '2013-01-31'`` and
    ``TIMESTAMP '2013-01-31 12:30:00'``.

    Raises:
        InvalidInputError: it cannot be read, or does not fit the columns.
    """
    return Predicate(text, parse_condition(text, definition.schema))


@dataclass(frozen=True, slots=True)
class _PieceStatistics:
    """What is known of some columns of a piece, by the statistics of its file."""

    piece: Piece
    table: Definition
    columns: frozenset[str]

    def range(self, column: str) -> Range | None:
        """Return what is known of a column; None for nothing.

        A column that the rows do not bring has its default, or what another change brought.
        """
        if column not in self.columns:
            return None
        number, file, segment = self.table.ids_by_name[column], self.piece.file, self.piece.segment
        if segment.columns is not None and number not in segment.columns:
            return None
        key = str(number)
        if key not in file.nulls:
            return None
        low, high = file.minimum.get(key), file.maximum.get(key)
        kind = self.table.schema.field(column).type
        return Range(low, high, file.nulls[key], file.rows, not pa.types.is_floating(kind))  # type: ignore[arg-type]  # stored values


def _are_independent(pieces: list[Piece]) -> bool:
    """Whether no row of some pieces changes another one."""
    types = [piece.type for piece in pieces]
    while types and types[0] is DeltaType.DELETE:
        types.pop(0)  # nothing is there yet
    return all(one in _ADDING for one in types)


def _terms(condition: Condition) -> Iterator[Condition]:
    """Give the conditions that must all be true."""
    if not isinstance(condition, And):
        yield condition
        return
    for term in condition.terms:
        yield from _terms(term)


def _kinds(table: Definition, columns: tuple[str, ...]) -> tuple[pa.DataType, ...]:
    return tuple(plain_type(table.schema.field(name).type) or pa.null() for name in columns)


@lru_cache(maxsize=256)
def _hashed(
    values: tuple[tuple[Value | None, ...], ...], kinds: tuple[pa.DataType, ...], buckets: int
) -> frozenset[int]:
    """Return the buckets of all keys that can be made of some values for each column."""
    rows = list(product(*values))
    if not rows:
        return frozenset()
    columns = [
        pa.chunked_array([to_array([row[place] for row in rows], kind)])
        for place, kind in enumerate(kinds)
    ]
    return frozenset(int(one) for one in bucket_of(hash_rows(columns), buckets))
