"""Pages of sorted names.

A token holds the last name that was given, so pages stay right while names come and go: none
that was there throughout is missed or repeated.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["take_page"]


def take_page(
    names: Sequence[str], token: str | None, limit: int | None
) -> tuple[list[str], str | None]:
    """Cut a page from sorted names.

    Args:
        names: All names, sorted.
        token: What the page before answered; empty or None for the first page.
        limit: The most names a page holds; None for all.

    Returns:
        The page, and the token of the next one or None.

    Raises:
        InvalidInputError: the token or the limit makes no sense.
    """
    if limit is not None and limit < 1:
        msg = f"a page cannot hold {limit} names: the limit starts at 1"
        raise InvalidInputError(msg)
    start = bisect_right(names, _decode(token)) if token else 0
    end = len(names) if limit is None else start + limit
    page = list(names[start:end])
    return page, _encode(page[-1]) if page and end < len(names) else None


def _encode(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _decode(token: str) -> str:
    try:
        padded = token + "=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as exc:
        msg = "the page token is not one that this catalog gave"
        raise InvalidInputError(msg) from exc
