"""Where the tables of a manifest lie: fresh directories, and which given ones are accepted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mooring.directory.layout import TABLE_SUFFIX
from mooring.directory.manifest import MANIFEST_DIR
from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import check_name, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.clock import IdSource
    from mooring.tables.manifest import ManifestRow

__all__ = [
    "check_allowed",
    "check_location",
    "is_by_hash",
    "is_outside",
    "looks_by_hash",
    "new_location",
    "overlaps",
]

_HASH_DIGITS = 8
_BY_HASH = re.compile(rf"[0-9a-f]{{{_HASH_DIGITS}}}_")
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


def is_by_hash(row: ManifestRow) -> bool:
    """Whether a table lies in a directory that was chosen for it."""
    location = row.location or ""
    return looks_by_hash(location) and location[_HASH_DIGITS + 1 :] == row.object_id


def is_outside(location: str) -> bool:
    """Whether a location is not one below the root."""
    return "://" in location or location.startswith("/")


def check_location(location: str, root: str, allowed: Iterable[str]) -> str:
    """Return the location of a table that is registered, in the form in which it is stored.

    Args:
        location: A path below the root, or a path or URI outside.
        root: The catalog's root.
        allowed: What locations outside the root may begin with.

    Raises:
        InvalidInputError: it is not accepted.
    """
    inside = root.rstrip("/") + "/"
    path = location.removeprefix(inside).rstrip("/")
    if path != location.rstrip("/") and "://" in inside:
        path = unquote(path)  # a URI of the catalog's own, as it answers them
    if is_outside(path):
        return _check_outside(path, allowed)
    parts = path.split("/")
    for part in parts:
        try:
            check_name(part)
        except InvalidNameError as exc:
            msg = f"{quote(location)} cannot be the location of a table: {exc}"
            raise InvalidInputError(msg) from exc
    if parts[0] == MANIFEST_DIR:
        msg = f"{quote(location)} cannot be the location of a table: it is the catalog's own"
        raise InvalidInputError(msg)
    return path


def _check_outside(location: str, allowed: Iterable[str]) -> str:
    prefixes = [prefix.rstrip("/") + "/" for prefix in allowed if prefix.strip("/")]
    segments = location.partition("://")[2] if "://" in location else location.removeprefix("/")
    is_plain = not {"", "..", "."} & set(segments.split("/"))
    if is_plain and any(location.startswith(prefix) for prefix in prefixes):
        return location
    msg = (
        f"{quote(location)} is outside of the catalog's root and not below a location that its"
        " settings allow: give a path relative to the root, or allow it with"
        ' "mooring init --allow-location"'
    )
    raise InvalidInputError(msg)


def check_allowed(prefixes: Iterable[str]) -> None:
    """Refuse what would allow everything, or what depends on where a process was started.

    Raises:
        InvalidInputError: with the entry.
    """
    for prefix in prefixes:
        if not is_outside(prefix) or not prefix.strip("/"):
            msg = f"{quote(prefix)} cannot be an allowed location: give an absolute path or a URI"
            raise InvalidInputError(msg)


def overlaps(one: str, other: str) -> bool:
    """Whether two locations are the same, or one lies in the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
