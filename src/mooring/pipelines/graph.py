"""The order of steps: each after what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mooring.pipelines.definition import Step

__all__ = ["in_order", "needed_by"]


def in_order(steps: Mapping[str, Step]) -> list[Step]:
    """Return steps so that each comes after those it needs, else as they are written.

    Raises:
        InvalidInputError: some need each other; the ring is named.
    """
    done: dict[str, Step] = {}
    for name in steps:
        _visit(name, steps, done, [])
    return list(done.values())


def _visit(name: str, steps: Mapping[str, Step], done: dict[str, Step], above: list[str]) -> None:
    if name in done or name not in steps:
        return
    if name in above:
        ring = [*above[above.index(name) :], name]
        msg = f"steps need each other in a ring: {' -> '.join(ring)}"
        raise steps[name].place.error(msg)
    for need in steps[name].needs:
        _visit(need, steps, done, [*above, name])
    done[name] = steps[name]


def needed_by(names: Iterable[str], steps: Mapping[str, Step]) -> set[str]:
    """Return the sources and steps that some are made of, themselves included."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += steps[name].needs if name in steps else ()
    return found
