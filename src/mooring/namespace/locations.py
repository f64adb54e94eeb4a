"""Which locations of tables a catalog accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import check_name, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mooring.identifiers import ObjectId

__all__ = [
    "check_allowed",
    "check_location",
    "is_outside",
    "overlaps",
    "places_of",
    "refuse_location",
    "require_location",
]


def is_outside(location: str) -> bool:
    """Whether a location is not one below the root."""
    return "://" in location or location.startswith("/")


def refuse_location(table: ObjectId, location: str | None) -> None:
    """Refuse to let anybody choose the directory of a table that is declared.

    One that is used twice could be deleted by a purge that slept.

    Raises:
        InvalidInputError: somebody does.
    """
    if location is not None:
        shown = quote(str(table))
        msg = f"the location of table {shown} is chosen by the catalog: leave it out"
        raise InvalidInputError(msg)


def require_location(table: ObjectId, location: str | None) -> str:
    """Return the location of a table that is registered.

    Raises:
        InvalidInputError: it is missing.
    """
    if not location:
        shown = quote(str(table))
        msg = f"to register table {shown}, say where it lies, relative to the root"
        raise InvalidInputError(msg)
    return location


def check_location(
    location: str, root: str, allowed: Iterable[str], *, own: Collection[str] = ()
) -> str:
    """Return the location of a table that is registered, in the form in which it is stored.

    Args:
        location: A path below the root, or a path or URI outside.
        root: The catalog's root.
        allowed: What locations outside the root may begin with.
        own: Directories of the root that hold no tables.

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
    if parts[0] in own:
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


def places_of(location: str) -> list[str]:
    """Return a location below the root and those it lies in; one outside stands for itself."""
    if is_outside(location):
        return [location]
    parts = location.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
