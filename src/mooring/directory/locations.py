"""Where the tables of a manifest lie that get a fresh directory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mooring.directory.layout import TABLE_SUFFIX
from mooring.errors import InvalidNameError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from mooring.clock import IdSource
    from mooring.tables.manifest import ManifestRow

__all__ = ["any_by_hash", "is_by_hash", "looks_by_hash", "new_location"]

_HASH_DIGITS = 8
_BY_HASH = re.compile(rf"[0-9a-f]{{{_HASH_DIGITS}}}_")
_ANY_BY_HASH = re.compile(f"\t{_BY_HASH.pattern}")
_MAX_FILE_NAME_BYTES = 255


def new_location(object_id: str, ids: IdSource) -> str:
    """Choose a directory for a new table: a random hash, then its identifier.

    Raises:
        InvalidNameError: the directory's name would be too long.
    """
    location = f"{ids.new_id()[:_HASH_DIGITS]}_{object_id}"
    if location.endswith(TABLE_SUFFIX):
        location += "_"  # else readers of directories would take it for a table of the root
    size = len(location.encode())
    if size > _MAX_FILE_NAME_BYTES:
        most = _MAX_FILE_NAME_BYTES - _HASH_DIGITS - 1
        msg = (
            f"{quote(object_id[:40] + '…')} cannot name a table: with its namespaces it has"
            f" {size - _HASH_DIGITS - 1} bytes and {most} is the most for a directory's name"
        )
        raise InvalidNameError(msg)
    return location


def looks_by_hash(name: str) -> bool:
    """Whether a name begins as a directory that was chosen for a table."""
    return _BY_HASH.match(name) is not None


def any_by_hash(names: list[str]) -> bool:
    """Whether any of these names begins so; one look at all of them is faster than one at each."""
    return _ANY_BY_HASH.search("\t".join(["", *names])) is not None


def is_by_hash(row: ManifestRow) -> bool:
    """Whether a table lies in a directory that was chosen for it."""
    location = row.location or ""
    return looks_by_hash(location) and location[_HASH_DIGITS + 1 :] == row.object_id
