"""What deltacat writes and the model has no place for: noted on reading, put back on writing.

Whatever a dictionary says beyond the model, or otherwise than the model would write it, is kept as
it is. It is put back as long as it reads as what the model says; where the model was changed since,
the model counts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Dictionary", "as_dict", "as_list", "beyond", "put_back"]

Dictionary: TypeAlias = dict[str, object]


def as_dict(value: object) -> Dictionary:
    """Return a dictionary as it is, and an empty one for anything else."""
    return cast("Dictionary", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """Return a list as it is, and an empty one for anything else."""
    return list(value) if isinstance(value, list | tuple) else []


def beyond(found: Dictionary, written: Dictionary) -> Dictionary:
    """Return what a dictionary says otherwise than the model writes it."""
    kept: Dictionary = {}
    for key, value in found.items():
        ours = written.get(key)
        if key in written and ours == value:
            continue
        if isinstance(value, dict) and isinstance(ours, dict):
            kept[key] = beyond(as_dict(value), as_dict(ours))
        else:
            kept[key] = value
    return kept


def put_back(
    written: Dictionary, kept: Dictionary, still: Callable[[Dictionary], bool]
) -> Dictionary:
    """Return what the model writes with what was kept, as far as it says the same.

    Args:
        written: What the model writes.
        kept: What was found otherwise.
        still: Whether a dictionary reads as the model.
    """
    found = written
    for key, value in kept.items():
        ours = found.get(key)
        if isinstance(value, dict) and isinstance(ours, dict):
            around = partial(_within, found, key, still)
            found = {**found, key: put_back(as_dict(ours), as_dict(value), around)}
        elif still({**found, key: value}):
            found = {**found, key: value}
    return found


def _within(
    around: Dictionary, key: str, still: Callable[[Dictionary], bool], inner: Dictionary
) -> bool:
    return still({**around, key: inner})
