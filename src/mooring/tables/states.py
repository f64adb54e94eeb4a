"""Which state of a table somebody means who wrote it down: a version, a tag, a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError, TableTagNotFoundError
from mooring.identifiers import quote
from mooring.tables.branches import Branches
from mooring.tables.handle import At
from mooring.tables.reference_names import MAIN
from mooring.tables.tags import Tags

if TYPE_CHECKING:
    from mooring.tables.handle import TableHandle

__all__ = ["parse_state"]

_MOST_DIGITS = 18  # long numbers take long to read


def parse_state(handle: TableHandle, text: str) -> At:
    """Read a state: ``3``, a tag, a branch, or ``branch:3``.

    Raises:
        InvalidInputError: it is none of these.
        TableTagNotFoundError: neither a tag nor a branch has this name.
    """
    if _is_number(text):
        return At(int(text))
    branch, colon, version = text.rpartition(":")
    if colon:
        if not _is_number(version) or not branch:
            msg = f"{quote(text)} is no state of a table: a version of a branch is BRANCH:VERSION"
            raise InvalidInputError(msg)
        return At(int(version), branch=branch)
    if text in Tags(handle).names():
        return At(tag=text)
    if text == MAIN or text in Branches(handle).names():
        return At(branch=text)
    msg = f"{handle.what} has no tag or branch {quote(text)}"
    raise TableTagNotFoundError(msg)


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS
