"""Locations of tables as Iceberg clients write them: always with a scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from mooring.namespace.home import AtHome

if TYPE_CHECKING:
    from mooring.namespace.api import Backend

__all__ = ["from_iceberg", "to_iceberg"]

# How Hadoop names the store that Lance knows as s3.
_S3 = frozenset({"s3a", "s3n"})


def to_iceberg(location: str) -> str:
    """Return where a table lies; a path on disk becomes a URI."""
    return location if "://" in location else f"file://{quote(location)}"


def from_iceberg(location: str, backend: Backend) -> str:
    """Return a location as the catalog takes it: relative to its root where it is below that."""
    plain = _plain(location)
    if not isinstance(backend, AtHome):
        return plain
    root = backend.store.location("").rstrip("/") + "/"
    if not plain.startswith(root):
        return plain
    inside = plain.removeprefix(root)
    return unquote(inside) if "://" in root else inside


def _plain(location: str) -> str:
    scheme, separator, rest = location.partition(":")
    if separator and scheme == "file":
        return unquote(urlsplit(location).path).rstrip("/") or "/"
    if separator and scheme in _S3:
        return f"s3:{rest}".rstrip("/")
    return location.rstrip("/")
