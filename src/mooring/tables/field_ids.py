"""The numbers of a table's fields, which stay with them when they are renamed or moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance import LanceDataset

__all__ = ["ROOT", "FieldIds", "field_ids"]

# Not the number of a field: Lance counts from 0.
ROOT = -1


@dataclass(frozen=True, slots=True)
class FieldIds:
    """A field's number, and those of the fields that lie in it.

    Attributes:
        id: As Lance counts; `ROOT` for the table itself.
        children: In the order of the fields. Lance numbers the fields of a struct, the element of
            a list and the entries of a map (which hold its key and its value), but not the element
            of a fixed-size list of numbers.
    """

    id: int
    children: tuple[FieldIds, ...] = ()


def field_ids(dataset: LanceDataset) -> FieldIds:
    """Return the numbers of all fields of a table, in the order of its schema."""
    return FieldIds(ROOT, _read(dataset.lance_schema.fields()))


def _read(fields: Iterable[Any]) -> tuple[FieldIds, ...]:
    # Lance's description of its fields leaves out half of what they can.
    return tuple(FieldIds(one.id(), _read(one.children())) for one in fields)
