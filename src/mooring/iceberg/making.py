"""Ways in which a Lance table gets into an Iceberg catalog.

The server's answer to the request that creates an entry decides who has the name. Where new tables
lie is known, a table that its storage manages is written before that, in a directory that nobody
else knows: it appears with its rows. Else the entry comes first, as a table that is only declared,
and its first version is decided as every other.

Spec: iceberg-namespace, "Table Definition".
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from mooring.errors import (
    InvalidInputError,
    MooringError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.iceberg.new_entries import NewEntries, already_there
from mooring.iceberg.places import Places
from mooring.iceberg.properties import CREATED, MANAGED_BY, OWN, ManagedBy, own_properties
from mooring.iceberg.shown_schema import show_schema
from mooring.iceberg.shown_version import show_version
from mooring.iceberg.table import lance_location
from mooring.iceberg.types import to_iceberg
from mooring.identifiers import quote
from mooring.namespace.properties import check_properties
from mooring.tables.place import open_place
from mooring.tables.versions import list_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from mooring.iceberg.connection import Connection
    from mooring.iceberg.table import IcebergTable
    from mooring.identifiers import ObjectId
    from mooring.tables.api import StagedTable
    from mooring.tables.data import LanceTables
    from mooring.tables.handle import TableHandle
    from mooring.tables.place import Place

__all__ = ["Making"]

# What stands in the names of directories that are never given out twice.
_UNIQUE = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")


class Making:
    """Makes the entries of Lance tables."""

    def __init__(
        self,
        connection: Connection,
        locate: Callable[[IcebergTable], TableHandle],
        forget: Callable[[IcebergTable], object],
        retract: Callable[[IcebergTable], None],
        *,
        root: str | None,
        by: ManagedBy,
    ) -> None:
        """Work for a catalog.

        Args:
            connection: The server.
            locate: Finds a table for what is done with its content.
            forget: Lets a table's entry go, and keeps its bytes.
            retract: Takes back a table that was declared, unless it has rows by now.
            root: Where new tables lie; where the server says unless given.
            by: Who decides about the versions of new tables.
        """
        self._connection = connection
        self._locate = locate
        self._forget = forget
        self._retract = retract
        self._entries = NewEntries(connection, forget)
        self.places = Places(connection, root)
        self._by = by

    # -- without data ----------------------------------------------------------------------------

    def declare(
        self, table: ObjectId, location: str | None, properties: Mapping[str, str]
    ) -> IcebergTable:
        """Reserve a name, and a directory without data.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            TableAlreadyExistsError: the name is taken.
        """
        by, given = self._properties(table, properties)
        if location is not None:
            return self._declare(table, self.places.absolute(location), own_properties(by) | given)
        chosen = self.places.choose(table)
        return self._declare_at(table, chosen, own_properties(by) | given)

    def _declare_at(
        self, table: ObjectId, chosen: str | None, properties: Mapping[str, str]
    ) -> IcebergTable:
        """Declare a table in a directory that was chosen for it, here or by the server."""
        if chosen is not None and self.places.root is not None:
            return self._declare(table, chosen, {**properties, CREATED: lance_location(chosen)})
        own = {} if chosen is None else {CREATED: lance_location(chosen)}
        shape = to_iceberg(_no_columns())
        made = self._entries.request(table, shape, chosen, {**properties, **own})
        if chosen is None or made.location != lance_location(chosen):
            self._require_empty(made)
            made = self._own(made)
        return made

    def _declare(
        self, table: ObjectId, location: str, properties: Mapping[str, str]
    ) -> IcebergTable:
        return self._entries.create(table, _no_columns(), location, properties)

    def _require_empty(self, made: IcebergTable) -> None:
        """Refuse a directory that the server gave out twice: an older table may lie in it."""
        if not list_versions(made.place.store, made.place.directory):
            return
        # Its entry must go so that no file goes with it.
        self._forget(made)
        msg = (
            f"the Iceberg catalog would put {made.what} where another table lies,"
            f" '{made.location}': say where new tables lie with the property 'root'"
        )
        raise UnsupportedError(msg)

    def _own(self, made: IcebergTable) -> IcebergTable:
        """Note that a directory of the server's choice is the table's own, and no other's ever.

        A server that names directories for tables alone may give one out again.
        """
        if not _UNIQUE.search(made.location.rpartition("/")[2]):
            return made
        update = {"action": "set-properties", "updates": {CREATED: made.location}}
        client, table = self._connection.client, made.id
        with suppress(MooringError):
            client.update_table(table.parent.names, table.name, made.same, [update])
            return self._connection.find(table)
        return made

    # -- with data -------------------------------------------------------------------------------

    def create(
        self, table: ObjectId, rows: pa.RecordBatchReader, properties: Mapping[str, str]
    ) -> IcebergTable:
        """Make a table with its first rows.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            TableAlreadyExistsError: the name is taken.
        """
        by, given = self._properties(table, properties)
        location = self.places.choose(table)
        if self.places.root is None or location is None:
            made = self._declare_at(table, location, own_properties(by) | given)
            with self._undone(made):
                return self.complete(made, rows)
        place = open_place(location, self.places.options_for(location))
        tables = self._tables(place)
        staged = tables.stage(place.directory, rows)
        own = {**own_properties(by), CREATED: lance_location(location), **given}
        with _discarded(place, tables, staged):
            if by is ManagedBy.STORAGE:
                tables.commit(staged, 1)
            # The first version brings the schema, where the server is to decide about it.
            schema = _schema(staged) if by is ManagedBy.STORAGE else _no_columns()
            made = self._entries.create(table, schema, location, own)
        if by is ManagedBy.STORAGE:
            show_version(self._connection, made, 1)
            return made
        with self._undone(made):
            return self._commit(made, tables, staged)

    def complete(self, table: IcebergTable, rows: pa.RecordBatchReader) -> IcebergTable:
        """Give a table that is only declared its first rows.

        Raises:
            TableAlreadyExistsError: somebody else did.
        """
        tables = self._tables(table.place)
        staged = tables.stage(table.place.directory, rows)
        return self._commit(table, tables, staged)

    def _commit(
        self, table: IcebergTable, tables: LanceTables, staged: StagedTable
    ) -> IcebergTable:
        from mooring.tables.first_version import commit_first  # imports lance

        try:
            if table.keeps_versions:
                landed = commit_first(self._locate(table), staged)
            else:
                landed = tables.commit(staged, 1)
        except UnknownOutcomeError:
            raise
        except MooringError:
            tables.discard(staged)
            raise
        if not landed:
            tables.discard(staged)
            raise already_there(table)
        if not table.keeps_versions:
            with suppress(MooringError):
                show_schema(self._connection, table.id)
            show_version(self._connection, table, 1)
        return table

    def _tables(self, place: Place) -> LanceTables:
        from mooring.tables.data import LanceTables  # imports lance

        connection = self._connection
        return LanceTables(place.store, author=connection.author, clock=connection.clock)

    @contextmanager
    def _undone(self, made: IcebergTable) -> Iterator[None]:
        """Take an entry back whose first rows certainly did not come."""
        try:
            yield
        except (UnknownOutcomeError, TableAlreadyExistsError):
            raise
        except (MooringError, KeyboardInterrupt):
            with suppress(MooringError):
                known = self._connection.look(made.id)
                is_same = known is not None and known.location == made.location
                if is_same and not self._has_data(made):
                    self._retract(made)
            raise

    def _has_data(self, table: IcebergTable) -> bool:
        found = self._connection.look(table.id)
        return found is None or found.has_data()

    # -- with data that lies there already -------------------------------------------------------

    def register(
        self, table: ObjectId, location: str, properties: Mapping[str, str]
    ) -> IcebergTable:
        """Give a name to a table that lies in storage.

        Raises:
            TableNotFoundError: there is no table at the location.
            TableAlreadyExistsError: the name is taken.
        """
        from mooring.tables.field_ids import field_ids
        from mooring.tables.opening import open_at  # imports lance

        by, given = self._properties(table, properties)
        where = self.places.absolute(location)
        options = self.places.options_for(where)
        place = open_place(where, options)
        if not list_versions(place.store, place.directory):
            msg = f"there is no Lance table at '{where}' that could be registered"
            raise TableNotFoundError(msg)
        dataset = open_at(where, options)
        schema = to_iceberg(dataset.schema, field_ids(dataset))
        made = self._entries.create(table, schema, where, {**own_properties(by), **given})
        if made.version is None:  # a server of Lance tables finds the newest itself
            show_version(self._connection, made, dataset.version, is_needed=made.keeps_versions)
        return made

    def _properties(
        self, table: ObjectId, properties: Mapping[str, str]
    ) -> tuple[ManagedBy, dict[str, str]]:
        """Return who is to manage a new table, and what else is kept with it.

        Raises:
            InvalidInputError: a property cannot be set.
        """
        given = {key: value for key, value in properties.items() if key.lower() != MANAGED_BY}
        chosen = next(
            (value for key, value in properties.items() if key.lower() == MANAGED_BY), None
        )
        check_properties(given)
        if chosen is not None and str(chosen).lower() not in set(ManagedBy):
            msg = f"property '{MANAGED_BY}' of a new table is 'storage' or 'impl', not"
            raise InvalidInputError(f"{msg} {quote(str(chosen))}")
        for key in given:
            if key.lower() in OWN:
                msg = f"property {quote(key)} of table {quote(str(table))} is set by the catalog:"
                raise InvalidInputError(f"{msg} leave it out")
        return self._by if chosen is None else ManagedBy(str(chosen).lower()), given


def _no_columns() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([])


def _schema(staged: StagedTable) -> pa.Schema:
    """Return the Arrow schema of rows that were written."""
    return staged.schema.to_pyarrow()  # type: ignore[attr-defined]  # Lance's own


@contextmanager
def _discarded(place: Place, tables: LanceTables, staged: StagedTable) -> Iterator[None]:
    """Leave no files of a table that certainly got no name."""
    try:
        yield
    except UnknownOutcomeError:
        raise
    except (MooringError, KeyboardInterrupt):
        tables.discard(staged)
        with suppress(ServiceUnavailableError):
            place.store.delete_prefix(place.directory)
            place.store.prune(place.directory)
        raise
