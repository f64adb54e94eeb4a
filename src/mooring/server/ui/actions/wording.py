"""How actions speak of what they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.amounts import how_many
from mooring.identifiers import ObjectId, quote
from mooring.namespace.properties import PROTECTED

if TYPE_CHECKING:
    from mooring.server.ui.visit import Visit

__all__ = ["guard_of", "named", "some", "tables_and_namespaces"]

_MOST_LISTED = 100


def named(one: ObjectId) -> str:
    """Name an object."""
    return quote(str(one)) if one.names else "the root"


def tables_and_namespaces(tables: int, namespaces: int) -> str:
    """Count what is in a namespace; empty where nothing is."""
    counted = ((tables, "table"), (namespaces, "namespace"))
    return " and ".join(how_many(number, noun) for number, noun in counted if number)


def some(names: list[str]) -> list[str]:
    """Return some of many names, with how many are left out."""
    left = len(names) - _MOST_LISTED
    return [*names[:_MOST_LISTED], f"… and {left:,} more"] if left > 0 else names


def guard_of(visit: Visit, about: ObjectId) -> ObjectId | None:
    """Return the namespace around an object that is protected, or is the object, if one is."""
    namespaces = visit.atlas.picture().look.namespaces
    for level in range(about.level, 0, -1):
        one = ObjectId(about.names[:level])
        if (namespaces.get(one) or {}).get(PROTECTED) == "true":
            return one
    return None
