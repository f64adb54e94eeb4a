"""Addresses of servers: what is one, and how it is shown."""

from __future__ import annotations

from urllib.parse import urlsplit

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

__all__ = ["is_address", "require_address", "show_address", "trim_address"]


def is_address(text: str) -> bool:
    """Whether a text is the address of a server."""
    try:
        parts = urlsplit(text.strip())
        return parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False


def require_address(text: str, server: str) -> None:
    """Refuse what is no address.

    Args:
        text: What was given.
        server: What it should be the address of, with its article.

    Raises:
        InvalidInputError: it is none.
    """
    if not is_address(text):
        msg = f"{quote(show_address(text))} is no address of {server}: write http:// or https://"
        raise InvalidInputError(f"{msg} and the host")


def trim_address(text: str) -> str:
    """Return an address without what paths begin with."""
    return text.strip().rstrip("/").removesuffix("/v1").rstrip("/")


def show_address(text: str) -> str:
    """Return an address for messages: what may be a password is left out."""
    before, at, after = text.strip().rpartition("@")
    scheme, sep, _ = before.partition("://")
    return (f"{scheme}{sep}{after}" if sep else after) if at else text.strip()
