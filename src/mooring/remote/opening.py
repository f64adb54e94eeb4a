"""From string properties to a remote catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.config import parse_flag
from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.remote.backend import RemoteBackend
from mooring.remote.connection import Connection
from mooring.remote.settings import RemoteSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.clock import Clock

__all__ = ["KNOWN", "open_remote"]

_HEADER = "header."
_NUMBERS = ("timeout_s", "page_size")
_FLAGS = ("verify", "delegation")
_TEXTS = (
    "uri",
    "delimiter",
    "mooring_uri",
    "token",
    "credential",
    "oauth2_server_uri",
    "scope",
    "api_key",
    "ca_file",
    "client_cert",
    "client_key",
)
KNOWN = frozenset({*_TEXTS, *_NUMBERS, *_FLAGS})


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
    given = dict(properties)
    headers = {
        key.removeprefix(_HEADER): given.pop(key) for key in list(given) if key.startswith(_HEADER)
    }
    unknown = sorted(set(given) - KNOWN)
    if unknown:
        msg = f"unknown property {quote(unknown[0])} of a Lance REST server: known are"
        raise InvalidInputError(f"{msg} {', '.join(sorted(KNOWN))} and {_HEADER}*")
    if not given.get("uri"):
        msg = "a remote catalog needs the property 'uri': the address of a Lance REST server"
        raise InvalidInputError(msg)
    chosen: dict[str, Any] = {key: given[key] for key in _TEXTS if given.get(key)}
    chosen |= {key: _number(key, given[key]) for key in _NUMBERS if key in given}
    chosen |= {key: parse_flag(given[key], key) for key in _FLAGS if key in given}
    connection = Connection(
        RemoteSettings(headers=headers, **chosen),
        author=author,
        read_only=read_only,
        storage_options=storage_options,
        clock=clock,
    )
    return RemoteBackend(connection)


def _number(key: str, text: str) -> int | float:
    try:
        return int(text) if key == "page_size" else float(text)
    except ValueError:
        msg = f"property {quote(key)} is a number, not {quote(text)}"
        raise InvalidInputError(msg) from None
