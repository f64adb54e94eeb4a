"""From a path or URI and options to the store behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mooring.errors import InvalidInputError
from mooring.store.local import LocalStore
from mooring.store.reported import reported

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mooring.store.api import Store

__all__ = ["open_store"]

_REMOTE = {"s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "memory"}
# What somebody writes who means a server.
_SERVERS = {"http", "https", "lance", "iceberg"}


def open_store(uri: str | Path, options: Mapping[str, str] | None = None) -> Store:
    """Open the store at a plain path or a URI.

    Args:
        uri: A path, ``file://``, ``s3://``, ``gs://``, ``az://`` or ``memory://``.
        options: What follows ``storage.`` in a catalog's properties.

    Raises:
        InvalidInputError: the scheme or an option is unknown.
    """
    return reported(_open(str(uri), options))


def _open(text: str, options: Mapping[str, str] | None) -> Store:
    scheme, separator, _ = text.partition("://")
    if not text:
        msg = "a catalog needs a location: a path or an s3://, gs:// or az:// URI"
        raise InvalidInputError(msg)
    if not separator:
        return LocalStore(text)
    if scheme == "file":
        return LocalStore(unquote(urlsplit(text).path))
    if scheme not in _REMOTE:
        known = ", ".join(sorted(_REMOTE | {"file"}))
        msg = f"'{scheme}://' is not a kind of store Mooring knows; it knows {known}"
        if scheme in _SERVERS:
            msg = (
                f"'{scheme}://' is no store: write lance+http://HOST/lance for a server of"
                " Mooring's or another of Lance REST, iceberg+http://HOST for an Iceberg REST one"
            )
        raise InvalidInputError(msg)
    # obstore costs 40 ms to import, which a catalog on disk need not pay.
    from mooring.store.remote import RemoteStore

    return RemoteStore(text, options or {})
