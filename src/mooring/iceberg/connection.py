"""What every part of an Iceberg catalog's backend stands on: a server, and how tables are found."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from mooring.clock import RandomIds
from mooring.errors import (
    InvalidInputError,
    InvalidNameError,
    NotFoundError,
    TableNotFoundError,
)
from mooring.iceberg.table import read_table
from mooring.identifiers import DELIMITER, is_name, quote
from mooring.namespace.opened import Opened

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from mooring.clock import Clock, IdSource
    from mooring.iceberg.client import LoadedTable, RestClient
    from mooring.iceberg.table import IcebergTable
    from mooring.identifiers import ObjectId
    from mooring.tables.field_ids import FieldIds

__all__ = ["TRASH", "Connection"]

# The namespace that dropped tables are moved into. Some servers take only such letters.
TRASH = "mooring_trash"
_WITHIN_A_NAMESPACE = 2


class Connection(Opened):
    """An Iceberg catalog that is spoken to, in somebody's name."""

    def __init__(
        self,
        client: RestClient,
        *,
        author: str,
        read_only: bool = False,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        """Speak to a server; nothing is asked yet.

        Args:
            client: The server.
            author: In whose name changes are recorded.
            read_only: Refuse every change.
            storage_options: How tables are reached; they count more than what the server tells.
            clock: Stamps changes.
            ids: Makes names that nobody else makes.
        """
        super().__init__(author=author, read_only=read_only, clock=clock)
        self.client = client
        self.storage_options = dict(storage_options or {})
        self.ids = ids or RandomIds()
        # Whether the server leaves files alone when an entry goes; None until it is tried.
        self.keeps_bytes: bool | None = None

    # -- names -----------------------------------------------------------------------------------

    def check_namespace(self, namespace: ObjectId) -> None:
        """Refuse what the server would read as other levels, or what is the catalog's own.

        Raises:
            InvalidNameError: it cannot be a namespace here.
        """
        separator = unquote(self.client.config.separator)
        for name in namespace.names:
            if separator in name:
                msg = f"{quote(name)} cannot be the name of a namespace here: it holds"
                raise InvalidNameError(
                    f"{msg} {quote(separator)}, by which this server separates levels"
                )
        if namespace.names[:1] == (TRASH,):
            msg = f"{quote(TRASH)} cannot be a name: dropped tables are kept under it"
            raise InvalidNameError(msg)

    def can_hold(self, name: str) -> bool:
        """Whether a namespace that the server lists can be addressed by its name."""
        return is_name(name) and unquote(self.client.config.separator) not in name

    def check_table(self, table: ObjectId) -> None:
        """Refuse what cannot name a table here.

        Raises:
            InvalidInputError: it names no namespace.
            InvalidNameError: a name cannot be one.
        """
        if table.is_root:
            msg = "a table needs a name"
            raise InvalidInputError(msg)
        if table.level < _WITHIN_A_NAMESPACE:
            msg = (
                f"{quote(str(table))} cannot be a table: tables of an Iceberg catalog lie in a"
                " namespace; name both, as in 'namespace$table'"
            )
            raise InvalidInputError(msg)
        self.check_namespace(table.parent)

    def check_new(self, name: str) -> None:
        """Refuse what cannot be the name of a new object.

        Raises:
            InvalidNameError: it holds the delimiter.
        """
        if DELIMITER in name:
            msg = f"{quote(name)} cannot be a new name: it holds the delimiter '{DELIMITER}',"
            raise InvalidNameError(f"{msg} which separates levels")

    # -- tables ----------------------------------------------------------------------------------

    def find(self, table: ObjectId, *, refs_only: bool = False) -> IcebergTable:
        """Find a live Lance table.

        Args:
            table: The identifier.
            refs_only: Whether the newest version is all that is asked about.

        Raises:
            TableNotFoundError: no live table has this identifier.
            NotLanceTableError: it is a table of Iceberg's.
        """
        found = self.look(table, refs_only=refs_only)
        if found is None:
            msg = f"there is no table {quote(str(table))}"
            raise TableNotFoundError(msg)
        return found

    def look(self, table: ObjectId, *, refs_only: bool = False) -> IcebergTable | None:
        """Look for a live Lance table; None where there is none.

        Raises:
            NotLanceTableError: it is a table of Iceberg's.
        """
        if table.level < _WITHIN_A_NAMESPACE:
            return None
        self.check_table(table)
        try:
            loaded = self.client.load_table(table.parent.names, table.name, refs_only=refs_only)
        except NotFoundError:
            return None
        return self.read(table, loaded)

    def read(self, table: ObjectId, loaded: LoadedTable) -> IcebergTable:
        """Read what the server answered about a table, live or in the trash.

        Raises:
            NotLanceTableError: it is a table of Iceberg's.
        """
        return read_table(table, loaded, self.storage_options)

    def schema_of(self, table: IcebergTable) -> tuple[pa.Schema, FieldIds]:
        """Return the schema of a table's newest version, with the ids of its fields."""
        from mooring.tables.field_ids import field_ids
        from mooring.tables.opening import open_at  # imports lance

        dataset = open_at(table.location, table.options)
        return dataset.schema, field_ids(dataset)
