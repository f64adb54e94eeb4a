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
from typing import TYPE_CHECKING, Any

from mooring.errors import (
    InvalidInputError,
    MooringError,
    NamespaceAlreadyExistsError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.http.handed_options import prefer
from mooring.iceberg.credentials import storage_options
from mooring.iceberg.properties import (
    CREATED,
    CREATED_AT_MS,
    CREATED_BY,
    CREATED_ID,
    MANAGED_BY,
    OWN,
    ManagedBy,
    own_properties,
)
from mooring.iceberg.shown_schema import show_schema
from mooring.iceberg.snapshots import MAIN, Snapshot
from mooring.iceberg.table import lance_location
from mooring.iceberg.types import to_iceberg
from mooring.iceberg.version_commit import on_current
from mooring.identifiers import quote
from mooring.namespace.properties import check_properties
from mooring.tables.place import open_place
from mooring.tables.versions import VERSIONS_DIR, list_versions

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

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 60
# What stands in the names of directories that are never given out twice.
_UNIQUE = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")
# Where a server tells that its tables lie.
_BASES = ("default-base-location", "warehouse")


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
        self._root = None if root is None else root.rstrip("/")
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
            return self._declare(table, self._absolute(location), own_properties(by) | given)
        chosen = self._new_location(table)
        return self._declare_at(table, chosen, own_properties(by) | given)

    def _declare_at(
        self, table: ObjectId, chosen: str | None, properties: Mapping[str, str]
    ) -> IcebergTable:
        """Declare a table in a directory that was chosen for it, here or by the server."""
        if chosen is not None and self._root is not None:
            return self._declare(table, chosen, {**properties, CREATED: lance_location(chosen)})
        own = {} if chosen is None else {CREATED: lance_location(chosen)}
        made = self._request(table, to_iceberg(_no_columns()), chosen, {**properties, **own})
        if chosen is None or made.location != lance_location(chosen):
            self._require_empty(made)
            made = self._own(made)
        return made

    def _declare(
        self, table: ObjectId, location: str, properties: Mapping[str, str]
    ) -> IcebergTable:
        return self._create(table, _no_columns(), location, properties)

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
            client.update_table(table.parent.names, table.name, _same(made), [update])
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
        location = self._new_location(table)
        if self._root is None or location is None:
            made = self._declare_at(table, location, own_properties(by) | given)
            with self._undone(made):
                return self.complete(made, rows)
        place = open_place(location, self.options_for(location))
        tables = self._tables(place)
        staged = tables.stage(place.directory, rows)
        own = {**own_properties(by), CREATED: lance_location(location), **given}
        with _discarded(place, tables, staged):
            if by is ManagedBy.STORAGE:
                tables.commit(staged, 1)
            # The first version brings the schema, where the server is to decide about it.
            schema = _schema(staged) if by is ManagedBy.STORAGE else _no_columns()
            made = self._create(table, schema, location, own)
        if by is ManagedBy.STORAGE:
            self._show(made, 1)
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
            raise _exists(table)
        if not table.keeps_versions:
            with suppress(MooringError):
                show_schema(self._connection, table.id)
            self._show(table, 1)
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
        if found is None or found.keeps_versions:
            return found is None or found.version is not None
        return bool(found.records().newest_first(1))

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
        where = self._absolute(location)
        options = self.options_for(where)
        place = open_place(where, options)
        if not list_versions(place.store, place.directory):
            msg = f"there is no Lance table at '{where}' that could be registered"
            raise TableNotFoundError(msg)
        dataset = open_at(where, options)
        schema = to_iceberg(dataset.schema, field_ids(dataset))
        made = self._create(table, schema, where, {**own_properties(by), **given})
        if made.version is None:  # a server of Lance tables finds the newest itself
            self._show(made, dataset.version, is_needed=made.keeps_versions)
        return made

    def _absolute(self, location: str) -> str:
        where = lance_location(location)
        if "://" in where or where.startswith("/"):
            return where
        if self._root is None:
            msg = f"{quote(location)} is no location here: give an absolute path or a URI, or open"
            raise InvalidInputError(f"{msg} the catalog with the property 'root'")
        return f"{lance_location(self._root)}/{where}"

    # -- entries ---------------------------------------------------------------------------------

    def _create(
        self,
        table: ObjectId,
        schema: pa.Schema | Mapping[str, object],
        location: str | None,
        properties: Mapping[str, str],
    ) -> IcebergTable:
        """Have the server decide about a name.

        Raises:
            UnknownOutcomeError: it never said.
        """
        shape = dict(schema) if isinstance(schema, dict) else to_iceberg(schema)
        made = self._request(table, shape, location, properties)
        if location is None or made.location == lance_location(location):
            return made
        return self._move(made, location)

    def _request(
        self,
        table: ObjectId,
        schema: dict[str, Any],
        location: str | None,
        properties: Mapping[str, str],
    ) -> IcebergTable:
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
            raise _exists(made)  # some servers answer with what they have
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
            client.update_table(table.parent.names, table.name, _same(made), [update])
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

    def _show(self, table: IcebergTable, version: int, *, is_needed: bool = False) -> None:
        """Record a version as the table's snapshot.

        Of a table that its storage manages nobody respects it; an Iceberg engine would take a
        table without a snapshot for empty, and write into it.
        """
        known = list_versions(table.place.store, table.place.directory)
        path = known.get(version, "").rpartition("/")[2]
        at_ms = max(
            self._connection.clock.now_ms(), int(table.metadata.get("last-updated-ms") or 0)
        )
        shown = Snapshot(version, at_ms, f"{VERSIONS_DIR}/{path}" if path else None)
        schema_id = int(table.metadata.get("current-schema-id") or 0)
        updates: list[dict[str, Any]] = [
            {"action": "add-snapshot", "snapshot": shown.to_json(schema_id=schema_id)},
            {
                "action": "set-snapshot-ref",
                "ref-name": MAIN,
                "type": "branch",
                "snapshot-id": version,
            },
        ]
        requirements = [one for one in on_current(table) if is_needed or "ref" not in one]
        try:
            self._connection.client.update_table(
                table.id.parent.names, table.id.name, requirements, updates
            )
        except MooringError:
            if is_needed:
                raise

    # -- small things ----------------------------------------------------------------------------

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

    def _new_location(self, table: ObjectId) -> str | None:
        """Choose a directory that no table has had; None where only the server knows."""
        base = self.place_in(table.parent)
        if base is None:
            return None
        # The name is for people who look into the directory; what tells tables apart is random.
        readable = _UNSAFE.sub("_", "-".join(table.names))[:_LONGEST].strip("_") or "table"
        return f"{base}/{readable}-{self._connection.ids.new_id()[:16]}.lance"

    def place_in(self, namespace: ObjectId) -> str | None:
        """Tell below what new tables of a namespace lie; None where only the server knows."""
        return self._root or self._base_of(namespace)

    def _base_of(self, namespace: ObjectId) -> str | None:
        client = self._connection.client
        known = client.load_namespace(namespace.names).get("location")
        offered = [known, *(client.config.properties.get(key) for key in _BASES)]
        found = next((one for one in offered if one and (":/" in one or one[0] == "/")), None)
        return None if found is None else found.rstrip("/")

    def options_for(self, location: str) -> dict[str, str]:
        """Tell how a place is reached of which the server has no table yet."""
        handed = storage_options(location, self._connection.client.config.properties, ())
        return prefer(handed, self._connection.storage_options)


def _exists(table: IcebergTable) -> TableAlreadyExistsError:
    return TableAlreadyExistsError(f"there is a {table.what} already")


def _same(table: IcebergTable) -> list[dict[str, Any]]:
    """Return the requirement that a name still means this table."""
    return [] if table.uuid is None else [{"type": "assert-table-uuid", "uuid": table.uuid}]


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


def _uri(location: str) -> str:
    """Write a location for a server: Java reads a bare path as one of its default file system."""
    if "://" in location or not location.startswith("/"):
        return location
    from pathlib import PurePosixPath

    return PurePosixPath(location).as_uri()
