"""What a condition is made of, and what it comes to: for rows, and for all that a file can hold.

As in SQL a comparison with null is neither true nor false, and so is what is not true of it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from mooring.changes.literals import plain_type, to_array, to_scalar

if TYPE_CHECKING:
    from mooring.changes.literals import Value

__all__ = [
    "Among",
    "And",
    "Comparison",
    "Condition",
    "Constant",
    "IsNull",
    "Like",
    "Not",
    "Or",
    "Outcomes",
    "Range",
]


@dataclass(frozen=True, slots=True)
class Range:
    """What is known of a column's values in a file.

    Attributes:
        low: Nothing is less; None where it is not known.
        high: Nothing is greater.
        nulls: How many are null.
        rows: How many rows there are.
        is_total: Whether every value that is not null lies between; what is no number does not.
    """

    low: Value | None = None
    high: Value | None = None
    nulls: int | None = None
    rows: int | None = None
    is_total: bool = False

    @property
    def has_values(self) -> bool:
        """Whether something may be not null."""
        return self.nulls is None or self.rows is None or self.nulls < self.rows

    def reaches(self, least: Value, *, beyond: bool = False) -> bool:
        """Whether a value may be as great as another, or greater."""
        high = self.high
        return high is None or high > least or (high == least and not beyond)  # type: ignore[operator]  # of one column

    def begins(self, most: Value, *, before: bool = False) -> bool:
        """Whether a value may be as little as another, or less."""
        low = self.low
        return low is None or low < most or (low == most and not before)  # type: ignore[operator]  # of one column


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What a condition may come to for one of many rows.

    Attributes:
        true: Whether it may be true.
        false: Whether it may be false.
    """

    true: bool = True
    false: bool = True


_ANY = Outcomes()
_NONE = Outcomes(true=False, false=False)


class Known(Protocol):
    """What is known of many rows."""

    def range(self, column: str) -> Range | None:
        """Return what is known of a column; None for nothing."""


class Condition(Protocol):
    """A part of a condition."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it is about."""

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Return what it is for each row: true, false or null."""

    def outcomes(self, known: Known) -> Outcomes:
        """Return what it may come to, as far as it is known; rather too much than too little."""


@dataclass(frozen=True)
class Constant:
    """What is the same for every row; None is null."""

    value: bool | None

    @property
    def columns(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Return the value."""
        del schema
        return pc.scalar(pa.scalar(self.value, pa.bool_()))

    def outcomes(self, known: Known) -> Outcomes:
        """Return the one."""
        del known
        return Outcomes(true=self.value is True, false=self.value is False)


@dataclass(frozen=True)
class Comparison:
    """A column beside a value: ``=``, ``<``, ``<=``, ``>`` or ``>=``."""

    column: str
    operator: str
    value: Value

    @property
    def columns(self) -> frozenset[str]:
        """The column."""
        return frozenset({self.column})

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Compare."""
        column, kind = _plain(self.column, schema)
        compare = {
            "=": pc.equal,
            "<": pc.less,
            "<=": pc.less_equal,
            ">": pc.greater,
            ">=": pc.greater_equal,
        }[self.operator]
        return compare(column, pc.scalar(to_scalar(self.value, kind)))

    def outcomes(self, known: Known) -> Outcomes:
        """Compare with the least and the greatest value."""
        found = known.range(self.column)
        if found is None:
            return _ANY
        if not found.has_values:
            return _NONE
        if self.operator == "=":
            is_one = found.is_total and found.low == found.high == self.value
            return Outcomes(found.reaches(self.value) and found.begins(self.value), not is_one)
        sides = {
            "<": (found.begins(self.value, before=True), found.reaches(self.value)),
            "<=": (found.begins(self.value), found.reaches(self.value, beyond=True)),
            ">": (found.reaches(self.value, beyond=True), found.begins(self.value)),
            ">=": (found.reaches(self.value), found.begins(self.value, before=True)),
        }
        true, false = sides[self.operator]
        return Outcomes(true, false or not found.is_total)


@dataclass(frozen=True)
class Among:
    """A column that has one of some values, which are sorted; without any it has none of them."""

    column: str
    values: tuple[Value, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The column."""
        return frozenset({self.column})

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Look the column's value up."""
        column, kind = _plain(self.column, schema)
        # Zero has two signs, which are looked up by their bits.
        more = (-0.0, 0.0) if pa.types.is_floating(kind) and 0.0 in self.values else ()
        found = column.isin(to_array([*self.values, *more], kind))
        return pc.if_else(column.is_null(), pc.scalar(pa.scalar(None, pa.bool_())), found)

    def outcomes(self, known: Known) -> Outcomes:
        """Look for a value between the least and the greatest."""
        found = known.range(self.column)
        if found is None:
            return Outcomes(true=bool(self.values))
        if not found.has_values:
            return _NONE
        first = 0 if found.low is None else bisect_left(self.values, found.low)
        within = first < len(self.values) and found.reaches(self.values[first])
        is_one = found.low is not None and found.low == found.high and found.is_total
        return Outcomes(within, not (is_one and within))


@dataclass(frozen=True)
class IsNull:
    """A column that has no value."""

    column: str

    @property
    def columns(self) -> frozenset[str]:
        """The column."""
        return frozenset({self.column})

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Ask."""
        del schema
        return pc.field(self.column).is_null()

    def outcomes(self, known: Known) -> Outcomes:
        """Ask for the count of nulls."""
        found = known.range(self.column)
        if found is None:
            return _ANY
        return Outcomes(found.nulls != 0, found.has_values)


@dataclass(frozen=True)
class Like:
    r"""Text of a pattern: ``%`` is any text, ``_`` one character; after ``\`` each is itself."""

    column: str
    pattern: str

    @property
    def columns(self) -> frozenset[str]:
        """The column."""
        return frozenset({self.column})

    @property
    def prefix(self) -> str:
        """What the text begins with."""
        found = ""
        letters = iter(self.pattern)
        for letter in letters:
            if letter in "%_":
                break
            found += next(letters, "") if letter == "\\" else letter
        return found

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Match."""
        column, _ = _plain(self.column, schema)
        return pc.match_like(column, self.pattern)

    def outcomes(self, known: Known) -> Outcomes:
        """Compare the beginnings of the least and the greatest value."""
        found = known.range(self.column)
        if found is None:
            return _ANY
        if not found.has_values:
            return _NONE
        prefix = self.prefix
        is_past = isinstance(found.low, str) and found.low[: len(prefix)] > prefix
        return Outcomes(found.reaches(prefix) and not is_past)


@dataclass(frozen=True)
class Not:
    """What is not so."""

    term: Condition

    @property
    def columns(self) -> frozenset[str]:
        """Those of the term."""
        return self.term.columns

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Turn it round; null stays null."""
        return pc.invert(self.term.expression(schema))

    def outcomes(self, known: Known) -> Outcomes:
        """Turn them round."""
        found = self.term.outcomes(known)
        return Outcomes(found.false, found.true)


@dataclass(frozen=True)
class And:
    """What is all so."""

    terms: tuple[Condition, ...]

    @property
    def columns(self) -> frozenset[str]:
        """Those of the terms."""
        return frozenset().union(*(term.columns for term in self.terms))

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Join; false and null is false."""
        return _join(pc.and_kleene, [term.expression(schema) for term in self.terms])

    def outcomes(self, known: Known) -> Outcomes:
        """Join."""
        found = [term.outcomes(known) for term in self.terms]
        return Outcomes(all(one.true for one in found), any(one.false for one in found))


@dataclass(frozen=True)
class Or:
    """What is so in one way at least."""

    terms: tuple[Condition, ...]

    @property
    def columns(self) -> frozenset[str]:
        """Those of the terms."""
        return frozenset().union(*(term.columns for term in self.terms))

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """Join; true or null is true."""
        return _join(pc.or_kleene, [term.expression(schema) for term in self.terms])

    def outcomes(self, known: Known) -> Outcomes:
        """Join."""
        found = [term.outcomes(known) for term in self.terms]
        return Outcomes(any(one.true for one in found), all(one.false for one in found))


def _join(how: object, parts: list[pc.Expression]) -> pc.Expression:
    """Join expressions as a tree that is not deep: hundreds of them may come."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [how(left, right) for left, right in pairs] + rest  # type: ignore[operator]
    return parts[0]


def _plain(name: str, schema: pa.Schema) -> tuple[pc.Expression, pa.DataType]:
    """Return a column as it is compared, and its type."""
    kind = schema.field(name).type
    plain = plain_type(kind)
    column = pc.field(name)
    return (column if plain == kind else column.cast(plain)), plain
