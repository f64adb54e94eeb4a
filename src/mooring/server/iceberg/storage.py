"""How a table's files are reached, in the words of Iceberg's clients.

What is known to be harmless goes to everybody. Credentials are made for a client and a table, where
the server was told to hand them out; its own are nobody else's.

Spec: iceberg-rest-openapi, "LoadTableResult", "StorageCredential".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mooring.errors import ServiceUnavailableError
from mooring.server.iceberg.names import SEPARATOR
from mooring.server.roles import Role
from mooring.server.vending import harmless_options
from mooring.tables.api import EXPIRES_AT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.server.iceberg.calls import Call

__all__ = ["credentials_of", "credentials_of_new", "settings_of"]

logger = logging.getLogger(__name__)

# Lance takes an option under several names.
_PLAIN: Mapping[str, tuple[str, ...]] = {
    "aws_region": ("client.region", "s3.region"),
    "region": ("client.region", "s3.region"),
    "aws_default_region": ("client.region", "s3.region"),
    "aws_endpoint": ("s3.endpoint",),
    "aws_endpoint_url": ("s3.endpoint",),
    "endpoint": ("s3.endpoint",),
    "endpoint_url": ("s3.endpoint",),
    "account_name": ("adls.account-name",),
    "azure_storage_account_name": ("adls.account-name",),
}
_VENDED: Mapping[str, tuple[str, ...]] = {
    "aws_access_key_id": ("s3.access-key-id",),
    "aws_secret_access_key": ("s3.secret-access-key",),
    "aws_session_token": ("s3.session-token",),
    EXPIRES_AT: ("s3.session-token-expires-at-ms",),
}
_STYLES = ("aws_virtual_hosted_style_request", "virtual_hosted_style_request")
_REFRESH = "client.refresh-credentials-endpoint"


def settings_of(info: TableInfo) -> dict[str, str]:
    """Return how a table is reached, without anything secret."""
    options = _lowered(harmless_options(info.storage_options))
    found = _translated(options, _PLAIN)
    for name in _STYLES:
        style = options.get(name)
        if style is not None:
            found["s3.path-style-access"] = "false" if style.lower() == "true" else "true"
    return found


def credentials_of(call: Call, info: TableInfo, location: str) -> list[dict[str, Any]]:
    """Return credentials for a table; none where the server hands out none, or none for its store.

    Args:
        call: Who asks.
        info: The table.
        location: Where it lies, as Iceberg's clients are told.

    Raises:
        ServiceUnavailableError: they are not to be had.
    """
    if call.vendor is None:
        return []
    vended = call.vendor.vend(
        info.location,
        info.storage_options,
        subject=call.identity.subject,
        writes=call.identity.may(Role.WRITER, call.catalog, info.id),
    )
    if vended is None:
        return []
    config = {**settings_of(info), **_translated(vended.options, _VENDED)}
    return [{"prefix": location, "config": {**config, _REFRESH: _path(call, info.id)}}]


def credentials_of_new(call: Call, info: TableInfo, location: str) -> list[dict[str, Any]]:
    """Return credentials for a table that was just made, which nothing may make look failed."""
    try:
        return credentials_of(call, info, location)
    except ServiceUnavailableError as exc:
        logger.warning("a new table is told without credentials: %s", exc)
        return []


def _path(call: Call, table: ObjectId) -> str:
    """Return where credentials are renewed, below the address of the server."""
    names = SEPARATOR.join(call.names.show(table.parent))
    prefix = "" if call.is_only else f"{quote(call.catalog, safe='')}/"
    where = f"namespaces/{quote(names, safe='')}/tables/{quote(table.name, safe='')}"
    return f"v1/{prefix}{where}/credentials"


def _translated(options: Mapping[str, str], words: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {iceberg: value for name, value in options.items() for iceberg in words.get(name, ())}


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
