"""From string properties to an Iceberg catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.config import parse_flag
from mooring.errors import InvalidInputError
from mooring.http.properties import COMMON, read_properties
from mooring.iceberg.backend import IcebergBackend
from mooring.iceberg.client import RestClient
from mooring.iceberg.connection import Connection
from mooring.iceberg.properties import MANAGED_BY, ManagedBy
from mooring.iceberg.settings import ClientSettings
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.clock import Clock

__all__ = ["KNOWN", "open_iceberg"]

_TEXTS = ("warehouse", "prefix", "audience", "resource")
# How other clients of Iceberg catalogs write the same.
_ALSO = {
    "auth_token": "token",
    "oauth2-server-uri": "oauth2_server_uri",
    "rest-page-size": "page_size",
}
KNOWN = frozenset({*_TEXTS, *COMMON, *_ALSO, "root", MANAGED_BY, "checked_listing"})


def open_iceberg(
    properties: Mapping[str, str],
    storage_options: Mapping[str, str],
    *,
    author: str,
    read_only: bool = False,
    clock: Clock | None = None,
) -> IcebergBackend:
    """Open the backend of an Iceberg catalog; nothing is asked of its server yet.

    Args:
        properties: How the server is reached, and where new tables lie.
        storage_options: How tables are reached.
        author: In whose name changes are recorded.
        read_only: Refuse every change.
        clock: Stamps changes.

    Raises:
        InvalidInputError: a property is unknown or makes no sense.
        MissingExtraError: what speaks to servers is not installed.
    """
    given = {_ALSO.get(key, key): value for key, value in properties.items()}
    chosen = read_properties(given, _TEXTS, known=KNOWN, kind="an Iceberg catalog")
    connection = Connection(
        RestClient(ClientSettings(**chosen)),
        author=author,
        read_only=read_only,
        storage_options=storage_options,
        clock=clock,
    )
    return IcebergBackend(
        connection,
        root=given.get("root"),
        managed_by=_managed_by(given.get(MANAGED_BY)),
        checked_listing=parse_flag(given.get("checked_listing", "false"), "checked_listing"),
    )


def _managed_by(text: str | None) -> ManagedBy:
    chosen = (text or ManagedBy.STORAGE.value).lower()
    if chosen not in set(ManagedBy):
        msg = f"property '{MANAGED_BY}' is 'storage' or 'impl', not {quote(chosen)}"
        raise InvalidInputError(msg)
    return ManagedBy(chosen)
