"""From string properties to a remote catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.http.properties import COMMON, read_properties
from mooring.remote.backend import RemoteBackend
from mooring.remote.connection import Connection
from mooring.remote.settings import RemoteSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.clock import Clock

__all__ = ["KNOWN", "open_remote"]

_TEXTS = ("delimiter", "mooring_uri", "api_key")
KNOWN = frozenset({*_TEXTS, *COMMON})


def open_remote(
    properties: Mapping[str, str],
    storage_options: Mapping[str, str],
    *,
    author: str,
    read_only: bool = False,
    clock: Clock | None = None,
) -> RemoteBackend:
    """Open the backend of a catalog that a Lance REST server keeps; nothing is asked of it yet.

    Args:
        properties: How the server is reached.
        storage_options: How tables are reached.
        author: In whose name tables are written.
        read_only: Refuse every change.
        clock: Tells when something is old.

    Raises:
        InvalidInputError: a property is unknown or makes no sense.
        MissingExtraError: what speaks to servers is not installed.
    """
    chosen = read_properties(properties, _TEXTS, known=KNOWN, kind="a remote catalog")
    connection = Connection(
        RemoteSettings(**chosen),
        author=author,
        read_only=read_only,
        storage_options=storage_options,
        clock=clock,
    )
    return RemoteBackend(connection)
