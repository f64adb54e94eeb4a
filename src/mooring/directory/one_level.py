"""What a plain directory has: tables of one level, each where its name says, and nothing else.

Spec: directory-namespace, "V1: Directory Listing".
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from mooring.directory.layout import check_table_name, table_dir
from mooring.errors import (
    InvalidInputError,
    NamespaceNotFoundError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import check_composed, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.identifiers import ObjectId
    from mooring.store import Store

__all__ = [
    "name_of",
    "new_name",
    "no_namespaces",
    "no_renames",
    "refuse_properties",
    "require_own_location",
    "require_root",
]


def name_of(table: ObjectId, store: Store) -> str:
    """Return the name of a table that may exist.

    Raises:
        TableNotFoundError: the identifier is not of one level.
        InvalidNameError: no table can have the name.
    """
    if table.level != 1:
        msg = (
            f"there is no table {quote(str(table))}: a plain directory is a 1-level namespace"
            f" and this identifier has {table.level}"
        )
        raise TableNotFoundError(msg)
    check_table_name(table.name)
    if not unicodedata.is_normalized("NFC", table.name):
        _require_composed_or_there(table.name, store)
    return table.name


def _require_composed_or_there(name: str, store: Store) -> None:
    """Refuse a decomposed name, unless another program made a table of it."""
    if not store.list_dir(table_dir(name)).exists:
        check_composed(name)


def new_name(table: ObjectId, store: Store) -> str:
    """Return the name of a table that is to be made.

    Raises:
        InvalidInputError: it is the root's.
        NamespaceNotFoundError: the identifier is not of one level.
        InvalidNameError: no table can have the name.
    """
    if table.is_root:
        msg = "a table needs a name"
        raise InvalidInputError(msg)
    require_root(table.parent)
    return name_of(table, store)


def require_root(namespace: ObjectId) -> None:
    """Refuse any namespace but the root.

    Raises:
        NamespaceNotFoundError: it is another.
    """
    if not namespace.is_root:
        msg = (
            f"there is no namespace {quote(str(namespace))}: a plain directory is a 1-level"
            " namespace, with tables only"
        )
        raise NamespaceNotFoundError(msg)


def no_namespaces(namespace: ObjectId) -> UnsupportedError:
    """Word that there can be no namespace."""
    msg = (
        f"there can be no namespace {quote(str(namespace))}: a plain directory is a 1-level"
        " namespace, with tables only; open the catalog with its manifest for namespaces"
    )
    return UnsupportedError(msg)


def no_renames(table: ObjectId, new: ObjectId) -> UnsupportedError:
    """Word that a table cannot get another name."""
    msg = (
        f"table {quote(table.name)} cannot become {quote(new.name)}: in a plain directory the"
        " name is the location, and no store moves a directory in one step"
    )
    return UnsupportedError(msg)


def require_own_location(name: str, location: str | None) -> None:
    """Refuse any location but the one that a table's name says.

    Raises:
        InvalidInputError: it is another.
    """
    own = table_dir(name)
    if location is not None and location != own:
        msg = (
            f"{quote(location)} cannot be the location of table {quote(name)}: in a plain"
            f" directory it lies in {quote(own)}, relative to the root"
        )
        raise InvalidInputError(msg)


def refuse_properties(properties: Mapping[str, str | None] | None) -> None:
    """Refuse to keep properties.

    Raises:
        UnsupportedError: there are some.
    """
    if properties:
        msg = (
            "a plain directory keeps no properties: leave them out, or open the catalog with its"
            " manifest"
        )
        raise UnsupportedError(msg)
