"""Random conditions, beside what they mean in plain Python: true, false, or None for null."""

from __future__ import annotations

import datetime as dt
import fnmatch
import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.changes.model import Row

    Meaning = Callable[[Row], bool | None]

_COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def random_condition(
    random_: random.Random, values: dict[str, list[Any]], depth: int = 2
) -> tuple[str, Meaning]:
    """Make a condition about columns, of which some values are given."""
    kind = random_.choice(["leaf", "and", "or", "not"]) if depth else "leaf"
    if kind == "leaf":
        return _leaf(random_, values)
    text, meaning = random_condition(random_, values, depth - 1)
    if kind == "not":
        return f"NOT ({text})", lambda row: _not(meaning(row))
    other_text, other = random_condition(random_, values, depth - 1)
    if kind == "and":
        return f"({text}) AND ({other_text})", lambda row: _and(meaning(row), other(row))
    return f"({text}) or ({other_text})", lambda row: _not(
        _and(_not(meaning(row)), _not(other(row)))
    )


def _leaf(random_: random.Random, values: dict[str, list[Any]]) -> tuple[str, Meaning]:
    column = random_.choice(sorted(values))
    known = [value for value in values[column] if value is not None]
    is_text = isinstance(known[0], str)
    quoted = f'"{column}"' if random_.random() < 0.5 else column
    form = random_.choice(
        ["compare", "compare", "in", "between", "null", "like" if is_text else "in"]
    )
    if form == "compare":
        return _compare(column, quoted, random_.choice(sorted(_COMPARISONS)), random_.choice(known))
    if form == "null":
        is_not = random_.random() < 0.5
        text = f"{quoted} IS {'NOT ' if is_not else ''}NULL"
        return text, lambda row: (row[column] is None) is not is_not
    if form == "like":
        return _like(column, quoted, f"{random_.choice(known)[:1]}%")
    chosen = [random_.choice(known) for _ in range(2 if form == "between" else 3)]
    if form == "between":
        text = f"{quoted} BETWEEN {show(chosen[0])} AND {show(chosen[1])}"
        return text, lambda row: _null(row[column], lambda v: chosen[0] <= v <= chosen[1])
    return _in(
        column, quoted, chosen, has_null=random_.random() < 0.2, is_not=random_.random() < 0.3
    )


def _compare(column: str, quoted: str, sign: str, value: object) -> tuple[str, Meaning]:
    how = _COMPARISONS[sign]
    return f"{quoted} {sign} {show(value)}", lambda row: _null(row[column], lambda v: how(v, value))


def _like(column: str, quoted: str, pattern: str) -> tuple[str, Meaning]:
    plain = pattern.replace("%", "*")
    return (
        f"{quoted} LIKE {show(pattern)}",
        lambda row: _null(row[column], lambda v: fnmatch.fnmatchcase(v, plain)),
    )


def _in(
    column: str, quoted: str, chosen: list[Any], *, has_null: bool, is_not: bool
) -> tuple[str, Meaning]:
    shown = [show(value) for value in chosen] + (["NULL"] if has_null else [])

    def meaning(row: Row) -> bool | None:
        value = row[column]
        found = None if value is None else value in chosen or (None if has_null else False)
        return _not(found) if is_not else found

    return f"{quoted} {'NOT ' if is_not else ''}IN ({', '.join(shown)})", meaning


def show(value: object) -> str:
    """Write a value as SQL does."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    return repr(value)


def _null(value: object, how: Callable[[Any], bool]) -> bool | None:
    return None if value is None else how(value)


def _not(found: bool | None) -> bool | None:
    return None if found is None else not found


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True
