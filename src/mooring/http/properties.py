"""String properties by which a server is reached, read into values of its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.config import parse_flag
from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["COMMON", "check_patience", "read_properties"]

_HEADER = "header."
_NUMBERS = ("timeout_s", "page_size")
_FLAGS = ("verify", "delegation")
_TEXTS = (
    "uri",
    "token",
    "credential",
    "oauth2_server_uri",
    "scope",
    "ca_file",
    "client_cert",
    "client_key",
)
# What every server may be reached by, beside the texts that its kind has.
COMMON = frozenset({*_TEXTS, *_NUMBERS, *_FLAGS})


def read_properties(
    properties: Mapping[str, str], texts: Collection[str], *, known: Collection[str], kind: str
) -> dict[str, Any]:
    """Return what the properties say, by the names of the settings, with all headers.

    Args:
        properties: As they were given.
        texts: Those of its kind that are taken as they are.
        known: All that make sense, also those that somebody else reads.
        kind: What has them, with its article.

    Raises:
        InvalidInputError: one is unknown or makes no sense.
    """
    headers = {
        key.removeprefix(_HEADER): value
        for key, value in properties.items()
        if key.startswith(_HEADER)
    }
    given = {key: value for key, value in properties.items() if not key.startswith(_HEADER)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        msg = f"unknown property {quote(unknown[0])} of {kind}: known are"
        raise InvalidInputError(f"{msg} {', '.join(sorted(known))} and {_HEADER}*")
    if not given.get("uri"):
        msg = f"{kind} needs the property 'uri': the address of its REST server"
        raise InvalidInputError(msg)
    chosen: dict[str, Any] = {key: given[key] for key in (*_TEXTS, *texts) if given.get(key)}
    chosen |= {key: _number(key, given[key]) for key in _NUMBERS if key in given}
    chosen |= {key: parse_flag(given[key], key) for key in _FLAGS if key in given}
    return chosen | {"headers": headers}


def _number(key: str, text: str) -> int | float:
    try:
        return int(text) if key == "page_size" else float(text)
    except ValueError:
        msg = f"property {quote(key)} is a number, not {quote(text)}"
        raise InvalidInputError(msg) from None


def check_patience(timeout_s: float, page_size: int) -> None:
    """Refuse a time or a page that nothing fits into.

    Raises:
        InvalidInputError: a number is not above zero.
    """
    if timeout_s <= 0 or page_size < 1:
        msg = (
            "the timeout and the size of a page must be above zero, not"
            f" {timeout_s} s and {page_size}"
        )
        raise InvalidInputError(msg)
