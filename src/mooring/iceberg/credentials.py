"""The right to use a table's storage, as an Iceberg catalog vends it, in Lance's words.

Spec: Iceberg REST catalog, "LoadTableResult": of the storage credentials, that of the longest
prefix of the location counts; without one, the table's configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mooring.tables.api import EXPIRES_AT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["EXPIRES_AT", "storage_options"]

_S3_KEYS = {
    "s3.access-key-id": "aws_access_key_id",
    "s3.secret-access-key": "aws_secret_access_key",
    "s3.session-token": "aws_session_token",
    "s3.session-token-expires-at-ms": EXPIRES_AT,
}
_GCS_KEYS = {
    "gcs.oauth2.token": "google_storage_token",
    "gcs.oauth2.token-expires-at": EXPIRES_AT,
}
_ADLS_KEYS = {
    "adls.sas-token": "azure_storage_sas_token",
    "adls.account-name": "azure_storage_account_name",
    "adls.account-key": "azure_storage_account_key",
    "adls.auth.shared-key.account.name": "azure_storage_account_name",
    "adls.auth.shared-key.account.key": "azure_storage_account_key",
}
# After each follows the account, or its whole host.
_SAS_TOKEN, _SAS_EXPIRY = "adls.sas-token.", "adls.sas-token-expires-at-ms."
_SECRET = ("s3.access-key", "s3.secret", "s3.session", "gcs.oauth2.", "adls.sas", "adls.a")


def storage_options(
    location: str, config: Mapping[str, str], credentials: Sequence[Mapping[str, Any]] = ()
) -> dict[str, str]:
    """Return the storage options by which Lance reaches a location.

    Args:
        location: Of the table.
        config: Of the table, as the catalog sent it.
        credentials: The storage credentials that came with it.

    Returns:
        What the catalog said about this kind of storage; nothing where it said nothing.
    """
    translate = _TRANSLATIONS.get(urlsplit(location).scheme.lower())
    if translate is None:
        return {}
    return translate(location, _texts(_choose(location, config, credentials)))


def _choose(
    location: str, config: Mapping[str, str], credentials: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return what counts for a location."""
    matching = [one for one in credentials if _covers(str(one.get("prefix") or ""), location)]
    if not matching:
        return config
    best = max(matching, key=lambda one: len(str(one.get("prefix") or "")))
    # Regions and endpoints hold for all, but a key of one and a token of the other do not fit.
    shared = {key: value for key, value in config.items() if not key.startswith(_SECRET)}
    return {**shared, **(best.get("config") or {})}


def _covers(prefix: str, location: str) -> bool:
    """Whether a prefix is one of a location; ``s3`` alone is of all in S3."""
    return _plain(location).startswith(_plain(prefix))


def _plain(location: str) -> str:
    """Write one place in one way: Hadoop has more names for S3."""
    scheme, mark, rest = location.partition("://")
    plain = "s3" if scheme.lower() in {"s3a", "s3n"} else scheme.lower()
    return f"{plain}{mark}{rest}"


def _for_s3(_location: str, found: Mapping[str, str]) -> dict[str, str]:
    options = _rename(found, _S3_KEYS)
    region = found.get("s3.region") or found.get("client.region")
    if region:
        options["aws_region"] = region
    endpoint = found.get("s3.endpoint")
    if endpoint:
        options["aws_endpoint"] = endpoint
    if endpoint and endpoint.lower().startswith("http://"):
        options["allow_http"] = "true"
    if found.get("s3.path-style-access", "").lower() == "true":
        options["aws_virtual_hosted_style_request"] = "false"
    return options


def _for_gcs(_location: str, found: Mapping[str, str]) -> dict[str, str]:
    options = _rename(found, _GCS_KEYS)
    if found.get("gcs.no-auth", "").lower() == "true":
        options["google_skip_signature"] = "true"
    return options


def _for_adls(location: str, found: Mapping[str, str]) -> dict[str, str]:
    options = _rename(found, _ADLS_KEYS)
    account = _account_of(location) or _only_account(found)
    if account is None:
        return options
    token, expires = (_of_account(found, start, account) for start in (_SAS_TOKEN, _SAS_EXPIRY))
    vended = {"azure_storage_sas_token": token, EXPIRES_AT: expires}
    options |= {key: value for key, value in vended.items() if value}
    return {"azure_storage_account_name": account, **options} if options else options


def _account_of(location: str) -> str | None:
    """Return the account of ``abfss://container@account.dfs.core.windows.net/path``."""
    _, at, host = urlsplit(location).netloc.rpartition("@")
    return host.partition(".")[0] if at and host else None


def _only_account(found: Mapping[str, str]) -> str | None:
    hosts = [key.removeprefix(_SAS_TOKEN) for key in found if key.startswith(_SAS_TOKEN)]
    return hosts[0].partition(".")[0] if len(hosts) == 1 else None


def _of_account(found: Mapping[str, str], start: str, account: str) -> str | None:
    named = (
        value
        for key, value in found.items()
        if key.startswith(start) and key.removeprefix(start).partition(".")[0] == account
    )
    return next(named, None)


def _rename(found: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {ours: found[theirs] for theirs, ours in names.items() if found.get(theirs)}


def _texts(found: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in found.items() if value is not None}


_TRANSLATIONS: Mapping[str, Callable[[str, Mapping[str, str]], dict[str, str]]] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _for_s3),
    **dict.fromkeys(("gs", "gcs"), _for_gcs),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az", "adl"), _for_adls),
}
