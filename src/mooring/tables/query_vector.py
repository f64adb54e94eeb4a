"""The vector, or vectors, that a query looks for."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from mooring.errors import InvalidInputError

__all__ = ["QueryVector"]

_LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class QueryVector:
    """Numbers to look for.

    Attributes:
        rows: The vectors.
        several: Whether they were given as several, if only one; results tell of which one.
    """

    rows: tuple[tuple[float, ...], ...]
    several: bool = False

    @classmethod
    def parse(cls, value: object) -> QueryVector | None:
        """Read a list, tuple or array of numbers, or of such lists; None for an empty one.

        Raises:
            InvalidInputError: it is none, or holds what is no finite number.
        """
        items = _listed(value)
        if not items:
            return None
        several = not isinstance(_plain(items[0]), int | float)
        rows = [_listed(item) for item in items] if several else [items]
        return cls(tuple(_numbers(row) for row in rows), several)


def _listed(value: object) -> list[object]:
    """Return the items of a sequence."""
    if value is None:
        return []
    value = _plain(value)
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        msg = f"a query's vector is a list of numbers, or of such lists, not {value!r}"
        raise InvalidInputError(msg)
    return list(value)


def _plain(value: object) -> object:
    """Return an array or scalar of NumPy or Arrow as a list or number."""
    for method in ("tolist", "as_py"):
        if hasattr(value, method):
            return getattr(value, method)()
    return value


def _numbers(row: list[object]) -> tuple[float, ...]:
    numbers = []
    for item in row:
        number = _plain(item)
        if not isinstance(number, int | float) or not abs(number) <= _LARGEST:
            msg = f"a query's vector holds finite numbers only, not {item!r}"
            raise InvalidInputError(msg)
        numbers.append(float(number))
    return tuple(numbers)
