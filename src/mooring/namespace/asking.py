"""Questions to a catalog whose server answers about one namespace or one table at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mooring.identifiers import ObjectId

__all__ = ["ask_each", "namespaces_below"]

_AT_ONCE = 16

S = TypeVar("S")
T = TypeVar("T")


def namespaces_below(
    namespace: ObjectId, list_namespaces: Callable[[ObjectId], Sequence[str]]
) -> Iterator[ObjectId]:
    """Go through a namespace and all below it, each before those in it.

    Args:
        namespace: Where to begin.
        list_namespaces: Names the direct child namespaces of one.
    """
    yield namespace
    for name in list_namespaces(namespace):
        yield from namespaces_below(namespace.child(name), list_namespaces)


def ask_each(ask: Callable[[S], T], subjects: Sequence[S]) -> list[T]:
    """Ask about each of several, some at once; the answers come in their order."""
    with ThreadPoolExecutor(_AT_ONCE) as askers:
        return list(askers.map(ask, subjects))
