"""The right to use a table's storage that a server hands out, beside what its user brings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mooring.config import is_secret
from mooring.tables.api import EXPIRES_AT

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["prefer"]

_SERVICE = re.compile(r"^(aws|google|azure_storage|azure)_")
# Options that say by what right a store is used, and are no secrets themselves.
_RIGHTS = ("service_account", "skip_signature", "use_azure_cli", "web_identity", "msi_endpoint")


def prefer(handed: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the storage options of a user over those that a server hands out.

    Whoever brings a right of their own gets none of the server's with it: a key of one and a
    session of the other do not fit, and what does not come to an end is not to be renewed.

    Args:
        handed: What the server says.
        given: What the user says.
    """
    said = {_bare(key) for key in given}
    kept = {key: text for key, text in handed.items() if _bare(key) not in said}
    if any(_is_right(key) for key in given):
        kept = {key: text for key, text in kept.items() if not _is_right(key) and key != EXPIRES_AT}
    return {**kept, **given}


def _bare(option: str) -> str:
    """Write an option in one way: it has several names, and a store takes one of them."""
    return _SERVICE.sub("", option.lower()).removesuffix("_url")


def _is_right(option: str) -> bool:
    return is_secret(option) or any(word in option.lower() for word in _RIGHTS)
