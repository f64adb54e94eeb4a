"""Which operation a path leads to.

Paths are matched as they were sent, before they are decoded, so that a name may hold whatever a
path is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.server.lance.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.server.lance.operation import Operation

__all__ = ["Matched", "find_operation"]


@dataclass(frozen=True, slots=True)
class Matched:
    """What a path leads to.

    Attributes:
        operation: The operation; None where there is none of this method.
        path: The variable segments, by name, as they were sent.
        method: The one that the path has; None where there is no such path.
    """

    operation: Operation | None
    path: Mapping[str, bytes]
    method: str | None


# The variable segments are left out of the keys, so that one look finds a path.
_BY_PATH = {
    tuple(None if segment.startswith("{") else segment.encode() for segment in one.segments): one
    for one in OPERATIONS
}
_VARIABLE = ((), (2,), (2, 4))


def find_operation(method: str, segments: Sequence[bytes]) -> Matched:
    """Find what a path leads to.

    Args:
        method: Of HTTP.
        segments: The path from ``v1`` on, in parts, as they were sent.
    """
    for places in _VARIABLE:
        key = tuple(None if at in places else one for at, one in enumerate(segments))
        found = _BY_PATH.get(key)
        if found is not None:
            path = {
                name.strip("{}"): sent
                for name, sent in zip(found.segments, segments, strict=True)
                if name.startswith("{")
            }
            return Matched(found if found.method == method else None, path, found.method)
    return Matched(None, {}, None)
