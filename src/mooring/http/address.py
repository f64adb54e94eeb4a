"""Addresses of servers: what is one, and how it is shown."""

from __future__ import annotations

from urllib.parse import urlsplit

__all__ = ["is_address", "show_address", "trim_address"]


def is_address(text: str) -> bool:
    """Whether a text is the address of a server."""
    try:
        parts = urlsplit(text.strip())
        return parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False


def trim_address(text: str) -> str:
    """Return an address without what paths begin with."""
    return text.strip().rstrip("/").removesuffix("/v1").rstrip("/")


def show_address(text: str) -> str:
    """Return an address for messages: what may be a password is left out."""
    before, at, after = text.strip().rpartition("@")
    scheme, sep, _ = before.partition("://")
    return (f"{scheme}{sep}{after}" if sep else after) if at else text.strip()
