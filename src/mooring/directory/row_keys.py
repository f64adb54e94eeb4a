"""Identifiers of a manifest's rows: which names they are made of, and which new ones may come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.entries import TRASH
from mooring.directory.layout import check_table_name
from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import check_composed, check_name, quote

if TYPE_CHECKING:
    from mooring.identifiers import ObjectId

__all__ = ["key_of", "new_key"]


def key_of(object_id: ObjectId) -> str:
    """Return the identifier of an object's row.

    Raises:
        InvalidNameError: a name holds the delimiter, or is the trash's.
    """
    for name in object_id.names:
        check_name(name)
    key = object_id.format()
    if object_id.names[:1] == (TRASH,):
        msg = f"{quote(TRASH)} cannot be a name: dropped objects are kept under it"
        raise InvalidNameError(msg)
    return key


def new_key(object_id: ObjectId, what: str) -> str:
    """Return the identifier of a new object's row.

    Raises:
        InvalidInputError: it is the root's.
        InvalidNameError: it cannot be a new name.
    """
    if object_id.is_root:
        msg = f"a {what} needs a name"
        raise InvalidInputError(msg)
    check_composed(object_id.name)
    if what == "table" and object_id.level == 1:
        check_table_name(object_id.name)  # a directory may have to bear it
    return key_of(object_id)
