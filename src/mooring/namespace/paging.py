"""Pages of sorted names.

A token holds the last name that was given, so pages stay right while names come and go: none
that was there throughout is missed or repeated.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["cut", "take_page"]


def cut(
    names: Sequence[str],
    after: str | None,
    limit: int | None,
    is_wanted: Callable[[str], bool] | None = None,
) -> list[str]:
    """Cut some of sorted names: those after a name, and of them the first ones."""
    start = bisect_right(names, after) if after is not None else 0
    if is_wanted is None:
        return list(names[start:] if limit is None else names[start : start + limit])
    return list(islice(filter(is_wanted, islice(names, start, None)), limit))


def take_page(
    list_names: Callable[[str | None, int | None], list[str]], token: str | None, limit: int | None
) -> tuple[list[str], str | None]:
    """Take a page of sorted names.

    Args:
        list_names: Gives the names after one, and of them so many.
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
    after = _decode(token) if token else None
    # One more than the page tells whether there is a next.
    names = list_names(after, None if limit is None else limit + 1)
    if limit is None or len(names) <= limit:
        return names, None
    return names[:limit], _encode(names[limit - 1])


def _encode(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _decode(token: str) -> str:
    try:
        padded = token + "=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as exc:
        msg = "the page token is not one that this catalog gave"
        raise InvalidInputError(msg) from exc
