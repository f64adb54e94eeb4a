"""Which of several operations a path leads to, and which methods it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from mooring.server.addresses import match_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Matched", "match_route"]


class _Route(Protocol):
    @property
    def method(self) -> str: ...


_R = TypeVar("_R", bound=_Route)


@dataclass(frozen=True, slots=True)
class Matched(Generic[_R]):
    """What a path leads to.

    Attributes:
        route: The operation; None where there is none of this method.
        path: The variable segments, by name, as they were sent.
        methods: Those that the path has.
    """

    route: _R | None
    path: Mapping[str, bytes]
    methods: tuple[str, ...]


def match_route(
    method: str, templates: Iterable[tuple[_R, Sequence[str]]], sent: Sequence[bytes]
) -> Matched[_R]:
    """Find the operation of a path.

    Args:
        method: Of HTTP.
        templates: The operations, each with its segments, names in braces for what varies.
        sent: The segments of a request, as they were sent.
    """
    found = [
        (route, path)
        for route, segments in templates
        if (path := match_path(segments, sent)) is not None
    ]
    methods = tuple(route.method for route, _ in found)
    for route, path in found:
        if route.method == method:
            return Matched(route, path, methods)
    return Matched(None, {}, methods)
