"""The numbers of an Iceberg schema's fields: those of Lance, or counted.

A field's number is Lance's plus one, as Iceberg counts from one. What Iceberg numbers and Lance
does not (the element of a fixed-size list) gets one above all of Lance's, made of the number of
the field that it lies in, so that it stays as long as that one does.

Spec: iceberg-namespace, "Using Lance Table in IRC with Iceberg Tooling".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.tables.field_ids import FieldIds

__all__ = ["Counted", "Kept", "Numbers"]

# Lance's numbers stay far below, and Iceberg keeps the last 200 of 31 bits for itself.
_FIRST_MADE, _MADE_LIMIT = 2**30, 2**31 - 256
_MADE_PER_FIELD = 64


class Numbers(Protocol):
    """Gives fields their numbers."""

    def take(self, known: FieldIds | None, above: int) -> int:
        """Return the number of a field.

        Args:
            known: Lance's number of it, if it has one.
            above: Lance's number of the nearest field around it that has one.
        """
        ...


class Counted:
    """Numbers fields as they come."""

    def __init__(self) -> None:
        self._last = 0

    def take(self, known: FieldIds | None, above: int) -> int:  # noqa: ARG002  # see Numbers
        """Return the next number."""
        self._last += 1
        return self._last


class Kept:
    """Numbers fields as Lance does, and makes up what Lance has no number for."""

    def __init__(self, ids: FieldIds) -> None:
        self._taken = {one.id + 1 for one in _walk(ids)}
        self._made: Counter[int] = Counter()

    def take(self, known: FieldIds | None, above: int) -> int:
        """Return the number of a field; see `Numbers`."""
        if known is not None:
            return known.id + 1
        room = _MADE_LIMIT - _FIRST_MADE
        offset = (above + 1) * _MADE_PER_FIELD + self._made[above]
        self._made[above] += 1
        while _FIRST_MADE + offset % room in self._taken:
            offset += 1
        number = _FIRST_MADE + offset % room
        self._taken.add(number)
        return number


def _walk(ids: FieldIds) -> Iterator[FieldIds]:
    yield ids
    for child in ids.children:
        yield from _walk(child)
