"""Pages of listings.

Whoever asks without a token gets everything at once, as the document demands; the first of several
pages is asked for with an empty one.

Spec: iceberg-rest-openapi, "PageToken".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.identifiers import is_name, quote
from mooring.namespace.paging import cut, take_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.server.iceberg.calls import Call

__all__ = ["take"]

_LARGEST = 10_000
_DIGITS = 9


def take(
    call: Call,
    list_names: Callable[[str | None, int | None], list[str]],
    is_seen: Callable[[str], bool] | None = None,
) -> tuple[list[str], str | None]:
    """Take the page of sorted names that a request asks for.

    Args:
        call: The request.
        list_names: Gives the names after one, and of them so many.
        is_seen: Whether the client may see a name; all unless given. Pages are cut of those: a
            token holds the last name of one.

    Returns:
        The names, and the token of the next page or None.

    Raises:
        InvalidInputError: the token or the size makes no sense.
    """
    size = _size(call.query.get("pageSize"))
    token = call.query.get("pageToken")
    if is_seen is not None:
        # What may be seen is found out before pages are cut.
        seen = [name for name in list_names(None, None) if is_name(name) and is_seen(name)]
        list_names = partial(cut, seen)
    names, following = take_page(list_names, token, None if token is None else size)
    # What other programs named on a disk may be no text at all, and nobody could ask for it.
    return [name for name in names if is_name(name)], following


def _size(text: str | None) -> int:
    if text is None:
        return _LARGEST
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS or int(text) < 1:
        raise InvalidInputError(f"'pageSize' is a number from 1, not {quote(text)}")
    return min(int(text), _LARGEST)
