"""Whose a name is: whether a table lives by its `<name>.lance` directory or by its row.

A root name is its directory's, unless the manifest has given it to a table elsewhere or to a
namespace; every other name is its row's. Nothing is changed here.

Spec: directory-namespace, "Compatibility Mode".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.decisions import State
from mooring.directory.entries import is_namespace, is_table
from mooring.directory.layout import is_table_name, table_dir
from mooring.directory.root_rows import is_named
from mooring.directory.row_keys import key_of
from mooring.errors import (
    ConcurrentModificationError,
    InvalidNameError,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
)
from mooring.identifiers import DELIMITER, quote
from mooring.namespace.locations import check_location
from mooring.namespace.states import NotFound, SoftDeleted

if TYPE_CHECKING:
    from mooring.directory.listing_backend import ListingBackend
    from mooring.directory.manifest_backend import ManifestBackend
    from mooring.identifiers import ObjectId
    from mooring.namespace.states import TableStatus
    from mooring.tables.manifest import ManifestRow

__all__ = ["Owners", "can_be_listed", "given_away", "require_free", "row_key"]


def row_key(table: ObjectId) -> str | None:
    """Return the identifier of a table's row; None for a name that no row can have."""
    return None if table.level == 1 and DELIMITER in table.name else table.format()


def can_be_listed(table: ObjectId) -> bool:
    """Whether there can be a directory for a table's name."""
    return table.level == 1 and is_table_name(table.name)


def require_free(table: ObjectId, row: ManifestRow | None) -> None:
    """Refuse a new root name that has a row which is not its directory's, or can have none.

    Raises:
        InvalidNameError: it would read as a table in a namespace.
        NamespaceAlreadyExistsError: a namespace has it.
        TableAlreadyExistsError: a table elsewhere has it.
    """
    key = row_key(table)
    if key is None:
        msg = (
            f"{quote(table.name)} cannot be a new name: it holds the delimiter '{DELIMITER}',"
            " so it would read as a table in a namespace"
        )
        raise InvalidNameError(msg)
    if is_namespace(row):
        msg = f"{quote(key)} is the name of a namespace already"
        raise NamespaceAlreadyExistsError(msg)
    if row is not None and is_named(row):
        msg = f"table {quote(key)} exists already"
        raise TableAlreadyExistsError(msg)


def given_away(name: str) -> ConcurrentModificationError:
    """Word why a root table cannot be changed whose name has become another's."""
    msg = f"the name {quote(name)} was given to another table meanwhile"
    return ConcurrentModificationError(msg)


class Owners:
    """Tells by what tables live."""

    def __init__(self, listed: ListingBackend, named: ManifestBackend, *, listing: bool) -> None:
        """Look at a catalog.

        Args:
            listed: Its root tables that lie in `<name>.lance`.
            named: Its rows.
            listing: Whether root tables are found by their directories, too.
        """
        self._listed = listed
        self._named = named
        self._listing = listing

    def find(self, table: ObjectId) -> ManifestRow | None:
        """Return the row of a name, be it a namespace's, as the newest manifest has it."""
        return None if row_key(table) is None else self._named.manifest.find(key_of(table))

    def row_of(self, table: ObjectId) -> ManifestRow | None:
        """Return the row of a table, as the newest manifest has it."""
        row = self.find(table)
        return row if is_table(row) else None

    def is_listed(self, table: ObjectId, row: ManifestRow | None) -> bool:
        """Whether a table lives, would live or did live by its `<name>.lance` directory.

        Args:
            table: The table.
            row: What has its name in the manifest.
        """
        if not can_be_listed(table):
            return False
        if row is not None:
            return is_namespace(row) or not is_named(row)
        if self._listing or row_key(table) is None:
            return self._listing
        # Without listings a directory counts only for what was decided about it.
        return self._listed.view(table.name).state not in {None, State.LIVE}

    def is_own(self, table: ObjectId, location: str | None) -> bool:
        """Whether a location, however it is written, is where a root table's name says."""
        if not can_be_listed(table):
            return False
        if not location:
            return location is None
        home = self._named.home
        allowed = home.settings.allowed_locations
        return check_location(location, home.store.location(""), allowed) == table_dir(table.name)

    def is_bare(self, table: ObjectId) -> bool:
        """Whether a root table is a row without any directory: only declared."""
        return self._listed.view(table.name).state is None

    def was_listed(self, table: ObjectId) -> bool:
        """Whether the newest drop of a name is one of a `<name>.lance` directory."""
        if not can_be_listed(table):
            return False
        listed = self.listed_status(table)
        named = NotFound() if row_key(table) is None else self._named.trash_status(table)
        if not isinstance(named, SoftDeleted):
            return True
        return isinstance(listed, SoftDeleted) and listed.deleted_at_ms >= named.deleted_at_ms

    def listed_status(self, table: ObjectId) -> TableStatus:
        """Tell what a table is by its directory alone."""
        return self._listed.table_status(table) if can_be_listed(table) else NotFound()
