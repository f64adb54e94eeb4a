"""How a table's files are reached, in the words of Iceberg's clients.

What is no secret goes to everybody. Credentials are those of the server itself and let their
holder write, so that only writers get them, and only where the server was told to hand them out.

Spec: iceberg-rest-openapi, "LoadTableResult", "StorageCredential".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.server.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.server.iceberg.calls import Call

__all__ = ["credentials_of", "settings_of", "vends_to"]

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
_SECRET: Mapping[str, tuple[str, ...]] = {
    "aws_access_key_id": ("s3.access-key-id",),
    "access_key_id": ("s3.access-key-id",),
    "aws_secret_access_key": ("s3.secret-access-key",),
    "secret_access_key": ("s3.secret-access-key",),
    "aws_session_token": ("s3.session-token",),
    "aws_token": ("s3.session-token",),
    "session_token": ("s3.session-token",),
    "account_key": ("adls.account-key",),
    "azure_storage_account_key": ("adls.account-key",),
    "sas_key": ("adls.sas-token",),
    "sas_token": ("adls.sas-token",),
    "azure_storage_sas_key": ("adls.sas-token",),
    "azure_storage_sas_token": ("adls.sas-token",),
    "google_storage_token": ("gcs.oauth2.token",),
}
_STYLES = ("aws_virtual_hosted_style_request", "virtual_hosted_style_request")


def settings_of(info: TableInfo) -> dict[str, str]:
    """Return how a table is reached, without anything secret."""
    found = _translated(info.storage_options, _PLAIN)
    for name in _STYLES:
        style = _lowered(info.storage_options).get(name)
        if style is not None:
            found["s3.path-style-access"] = "false" if style.lower() == "true" else "true"
    return found


def vends_to(call: Call, table: ObjectId) -> bool:
    """Whether whoever asks may have the credentials of the store."""
    may_write = call.identity.may(Role.WRITER, call.catalog, table)
    return call.settings.vend_credentials and may_write


def credentials_of(info: TableInfo, location: str) -> list[dict[str, Any]]:
    """Return the credentials of the store that a table lies in; none where it needs none."""
    secrets = _translated(info.storage_options, _SECRET)
    if not secrets:
        return []
    return [{"prefix": location, "config": {**settings_of(info), **secrets}}]


def _translated(options: Mapping[str, str], words: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    lowered = _lowered(options)
    return {iceberg: value for name, value in lowered.items() for iceberg in words.get(name, ())}


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
