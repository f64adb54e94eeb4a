"""How the entry of a table gets into an Iceberg catalog: the server decides about the name.

Spec: iceberg-namespace, "Table Definition".
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from mooring.errors import (
    InvalidInputError,
    MooringError,
    NamespaceAlreadyExistsError,
    NotFoundError,
    PermissionDeniedError,
    TableAlreadyExistsError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.iceberg.properties import (
    CREATED_AT_MS,
    CREATED_BY,
    CREATED_ID,
    MANAGED_BY,
    ManagedBy,
)
from mooring.iceberg.table import lance_location
from mooring.iceberg.types import to_iceberg
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from mooring.iceberg.connection import Connection
    from mooring.iceberg.table import IcebergTable
    from mooring.identifiers import ObjectId

__all__ = ["NewEntries", "already_there"]


class NewEntries:
    """Asks a server for entries of tables."""

    def __init__(self, connection: Connection, forget: Callable[[IcebergTable], object]) -> None:
        """Work for a catalog.

        Args:
            connection: The server.
            forget: Lets a table's entry go, and keeps its bytes.
        """
        self._connection = connection
        self._forget = forget

    def create(
        self,
        table: ObjectId,
        schema: pa.Schema | Mapping[str, object],
        location: str | None,
        properties: Mapping[str, str],
    ) -> IcebergTable:
        """Have the server decide about a name, at a location where one is given.

        Raises:
            UnsupportedError: the server insists on another location.
            UnknownOutcomeError: it never said.
        """
        shape = dict(schema) if isinstance(schema, dict) else to_iceberg(schema)
        made = self.request(table, shape, location, properties)
        if location is None or made.location == lance_location(location):
            return made
        return self._move(made, location)

    def request(
        self,
        table: ObjectId,
        schema: dict[str, Any],
        location: str | None,
        properties: Mapping[str, str],
    ) -> IcebergTable:
        """Ask for an entry, and take the location that the server gives it.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NamespaceAlreadyExistsError: a namespace has it.
            UnsupportedError: the server does not manage versions, and was to.
            UnknownOutcomeError: it never said.
        """
        connection = self._connection
        self._require_free(table)
        own = {
            CREATED_BY: connection.author,
            CREATED_AT_MS: str(connection.clock.now_ms()),
            CREATED_ID: connection.ids.new_id(),
        }
        where = None if location is None else _uri(location)
        made = self._send(table, schema, where, {**properties, **own})
        if made.properties.get(CREATED_ID) != own[CREATED_ID]:
            raise already_there(made)  # some servers answer with what they have
        if properties.get(MANAGED_BY) == ManagedBy.IMPL.value and not made.keeps_versions:
            # What was registered keeps its bytes.
            with suppress(MooringError):
                self._forget(made)
            msg = (
                f"this Iceberg catalog leaves the versions of {made.what} to its storage, though"
                f" '{MANAGED_BY}=impl' was asked for: leave that out"
            )
            raise UnsupportedError(msg)
        return made

    def _send(
        self,
        table: ObjectId,
        schema: dict[str, Any],
        location: str | None,
        properties: Mapping[str, str],
    ) -> IcebergTable:
        """Ask for an entry; after an answer that never came, look.

        Asked for once more, it could be had twice: somebody may have dropped or renamed it since,
        and both would lie in one directory.
        """
        connection = self._connection
        try:
            loaded = connection.client.create_table(
                table.parent.names,
                table.name,
                schema=schema,
                location=location,
                properties=properties,
            )
        except (UnknownOutcomeError, TableAlreadyExistsError) as exc:
            # What stands between may have sent it twice, and answered what came of the second.
            with suppress(MooringError):
                found = connection.look(table)
                if found and found.properties.get(CREATED_ID) == properties[CREATED_ID]:
                    return found
            if isinstance(exc, TableAlreadyExistsError):
                raise
            msg = f"the Iceberg catalog never said whether table {quote(str(table))} was made:"
            raise UnknownOutcomeError(f"{msg} look before trying again") from exc
        return connection.read(table, loaded)

    def _move(self, made: IcebergTable, location: str) -> IcebergTable:
        """Ask once more for a location that the server passed over when it made the entry.

        Raises:
            UnsupportedError: it insists on another.
        """
        client, table = self._connection.client, made.id
        update = {"action": "set-location", "location": _uri(location)}
        try:
            client.update_table(table.parent.names, table.name, made.same, [update])
            moved = self._connection.find(table)
            if moved.location == lance_location(location):
                return moved
        except (InvalidInputError, UnsupportedError, PermissionDeniedError):
            pass
        # Where the server chose to put it another table may lie.
        with suppress(MooringError):
            self._forget(made)
        msg = (
            f"the Iceberg catalog puts {made.what} at '{made.location}', and not where it was asked"
            f" to, '{location}': leave out the property 'root' to let it choose"
        )
        raise UnsupportedError(msg)

    def _require_free(self, table: ObjectId) -> None:
        """Refuse the name of a namespace: what shares a parent has names of its own."""
        try:
            self._connection.client.load_namespace(table.names)
        except (NotFoundError, InvalidInputError, UnsupportedError):
            return
        msg = f"there is a namespace {quote(str(table))} already"
        raise NamespaceAlreadyExistsError(msg)


def already_there(table: IcebergTable) -> TableAlreadyExistsError:
    """Word that a name is taken."""
    return TableAlreadyExistsError(f"there is a {table.what} already")


def _uri(location: str) -> str:
    """Write a location for a server: Java reads a bare path as one of its default file system."""
    if "://" in location or not location.startswith("/"):
        return location
    return PurePosixPath(location).as_uri()
