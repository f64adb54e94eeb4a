"""Keys of what a transaction reads and changes, by which commits are held against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.metastore.layout import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.metastore.entry import Change

__all__ = ["children_key", "name_key", "object_key", "touched_keys", "written_keys"]


def object_key(ids: tuple[str, ...]) -> str:
    """Return the key of an object."""
    return f"o:{'/'.join(ids)}"


def name_key(parent: tuple[str, ...], parts: tuple[str, ...]) -> str:
    """Return the key of a name below a parent."""
    return f"n:{'/'.join(parent)}:{'|'.join(parts)}"


def children_key(parent: tuple[str, ...]) -> str:
    """Return the key of which children a parent has, and what they are called."""
    return f"c:{'/'.join(parent)}"


def written_keys(changes: Iterable[Change]) -> frozenset[str]:
    """Return the keys that follow from changes."""
    found = set()
    for change in changes:
        found.add(object_key(change.ids))
        found.update(name_key(change.ids[:-1], name.parts) for name in change.names)
    return frozenset(found)


def touched_keys(changes: Iterable[Change]) -> frozenset[str]:
    """Return the keys of parents whose children come, go or are renamed by changes."""
    return frozenset(
        children_key(change.ids[:-1])
        for change in changes
        if change.operation is not Operation.UPDATE or change.names
    )
