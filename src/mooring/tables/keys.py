"""The key of a table: columns by which upserts know its rows, so that appends mind it, too.

An upsert notes its key, by a create-only put of `_keys/key.json` in the table's directory, before
it reads the version in which it looks for its rows. The first note stands for the life of the
table. An append through ``mooring.ingest`` looks for the note right before each version number is
taken. Let an upsert U note its key at time K, read version v and make version n, and an append A
look at time L and make version m:

- m is at most v: U has read A's rows, and updates them.
- m is between v and n: U is shown version m before n is taken, refuses, and looks again.
- m is after n: A took its number when n was there, so L is after n and hence after K. A sees the
  note and inserts only what is not in the version before, strictly: whatever version comes between
  its look and its number makes it look again.

So no order of the two leaves a key twice, and neither does one of two upserts, each of which is
shown the other, or of two appends that see the note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.tables.place import Place

__all__ = ["KEYS_DIR", "forget_key", "note_key", "read_key"]

KEYS_DIR = "_keys"
_NAME = f"{KEYS_DIR}/key.json"


class _Key(msgspec.Struct, frozen=True):
    """A key: the content of the note."""

    columns: list[str]


def note_key(place: Place, columns: Sequence[str]) -> tuple[str, ...]:
    """Make a key known for the life of a table, unless it has one; return the one it has.

    Args:
        place: The table's directory.
        columns: The key's columns, whose order does not matter.
    """
    wanted = tuple(sorted(columns))
    place.store.put_new(place.path(_NAME), msgspec.json.encode(_Key(list(wanted))))
    return read_key(place) or wanted


def read_key(place: Place) -> tuple[str, ...] | None:
    """Return the key of a table, its columns in order; None where it has none."""
    body = place.store.get(place.path(_NAME))
    return None if body is None else tuple(msgspec.json.decode(body, type=_Key).columns)


def forget_key(place: Place) -> None:
    """Delete the note, with the directory of a table that did not come about."""
    place.store.delete([place.path(_NAME)])
    place.store.prune(place.directory)
