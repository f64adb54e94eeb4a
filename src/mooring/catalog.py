"""A catalog as people use it from Python: names in, tables out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.clock import parse_ttl
from mooring.errors import InvalidInputError
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.states import Exists

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from lance import LanceDataset

    from mooring.namespace.api import Backend, Change, PurgeProgress, PurgeReport, TableInfo
    from mooring.namespace.states import DroppedTable, TableStatus

__all__ = ["Catalog", "Table"]

Name = str | list[str] | tuple[str, ...] | ObjectId


class Catalog:
    """Names of tables, and what can be done with them.

    A table is named by a string, or by a list of names where it lies in a namespace. In a plain
    directory the string is the name, whatever it holds; elsewhere `$` separates levels.
    """

    def __init__(self, backend: Backend, uri: str) -> None:
        """Wrap a backend; ``mooring.connect`` does."""
        self.backend = backend
        self.uri = uri

    def __repr__(self) -> str:
        """Show where the catalog is."""
        return f"Catalog('{self.uri}')"

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the live tables of the root."""
        return iter(self.list_tables())

    def __contains__(self, name: object) -> bool:
        """Whether a live table has this name."""
        return isinstance(name, str | list | tuple | ObjectId) and self.table_exists(name)

    def identifier(self, name: Name) -> ObjectId:
        """Read a name as an identifier.

        Raises:
            InvalidNameError: it cannot be one.
        """
        if isinstance(name, ObjectId):
            return name
        if isinstance(name, str):
            one_level = self.backend.levels == 1
            return ObjectId.of([name]) if one_level else ObjectId.parse(name)
        if not isinstance(name, list | tuple):
            msg = f"a name is a string or a list of strings, not {type(name).__name__}"
            raise InvalidInputError(msg)
        return ObjectId.of(name)

    # -- reading -----------------------------------------------------------------------------

    def list_tables(self, namespace: Name = ROOT, *, include_declared: bool = True) -> list[str]:
        """Name the live tables directly in a namespace, sorted."""
        parent = ROOT if namespace == "" else self.identifier(namespace)
        return self.backend.list_tables(parent, include_declared=include_declared)

    def table_exists(self, name: Name) -> bool:
        """Whether a live table has this name."""
        return isinstance(self.table_status(name), Exists)

    def table_status(self, name: Name) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        return self.backend.table_status(self.identifier(name))

    def describe_table(self, name: Name) -> TableInfo:
        """Locate a live table.

        Raises:
            TableNotFoundError: no live table has this name.
        """
        return self.backend.describe_table(self.identifier(name), check_declared=True)

    def table(self, name: Name) -> Table:
        """Return a live table, to read it.

        Raises:
            TableNotFoundError: no live table has this name.
        """
        return Table(self, self.backend.describe_table(self.identifier(name)))

    def history(self, name: Name) -> list[Change]:
        """Tell what happened to a table in the catalog, oldest first."""
        return self.backend.table_history(self.identifier(name))

    # -- making tables -------------------------------------------------------------------------

    def create_table(
        self,
        name: Name,
        data: object,
        *,
        schema: pa.Schema | None = None,
        mode: str = "create",
    ) -> Table:
        """Create a table.

        Args:
            name: Its name.
            data: An Arrow table, batch or reader, a data frame, or an iterable of batches or
                dictionaries.
            schema: The schema for rows that bring none.
            mode: ``create`` fails where the table exists, ``exist_ok`` leaves it as it is,
                ``overwrite`` makes the data its next version.

        Raises:
            TableAlreadyExistsError: the table exists, and the mode is ``create``.
            InvalidNameError: the name cannot be one.
            ConcurrentModificationError: somebody else's change came first.
        """
        from mooring.tables.rows import to_reader  # imports pyarrow

        table = self.identifier(name)
        rows = to_reader(data, schema)
        return Table(self, self.backend.create_table(table, rows, CreateMode.parse(mode)))

    def declare_table(self, name: Name) -> TableInfo:
        """Reserve a name without data.

        Raises:
            TableAlreadyExistsError: the name is taken.
            InvalidTableStateError: an earlier table of this name is in the way.
        """
        return self.backend.declare_table(self.identifier(name))

    def register_table(self, name: Name, location: str | None = None) -> TableInfo:
        """Give a name to a table that lies in the catalog's storage.

        Args:
            name: The name.
            location: Relative to the catalog's root; where the layout has it unless given.

        Raises:
            TableNotFoundError: nothing is there to register.
            TableAlreadyExistsError: the name is taken.
            InvalidInputError: the location is not one this catalog accepts.
        """
        return self.backend.register_table(self.identifier(name), location)

    def deregister_table(self, name: Name) -> TableInfo:
        """Forget a table's name and keep its bytes.

        Raises:
            TableNotFoundError: no live table has this name.
            ProtectedError: the table is protected.
            ConcurrentModificationError: somebody else's change came first.
        """
        return self.backend.deregister_table(self.identifier(name))

    def rename_table(self, name: Name, new_name: Name) -> TableInfo:
        """Give a table another name.

        Raises:
            UnsupportedError: this kind of catalog cannot.
        """
        return self.backend.rename_table(self.identifier(name), self.identifier(new_name))

    # -- the lifecycle -------------------------------------------------------------------------

    def drop_table(self, name: Name, *, ttl: str | None = None) -> TableInfo:
        """Hide a table; it can be brought back until somebody purges it.

        Args:
            name: The table.
            ttl: How long it should stay in the trash: ``7d``, ``12h``, ``30m`` or ``never``;
                the catalog's default unless given.

        Raises:
            TableNotFoundError: no live table has this name.
            ProtectedError: the table is protected.
            ConcurrentModificationError: somebody else's change came first.
        """
        wanted = None if ttl is None else Ttl(parse_ttl(ttl))
        return self.backend.drop_table(self.identifier(name), wanted)

    def undrop_table(self, name: Name, new_name: Name | None = None) -> TableInfo:
        """Bring a dropped table back, if wanted under another name.

        Raises:
            TableNotFoundError: nothing dropped has this name.
            ConcurrentModificationError: somebody else's change came first.
            UnsupportedError: this kind of catalog cannot change the name.
        """
        new = None if new_name is None else self.identifier(new_name)
        return self.backend.undrop_table(self.identifier(name), new)

    def protect_table(self, name: Name, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again.

        Raises:
            TableNotFoundError: no live table has this name.
            ConcurrentModificationError: somebody else's change came first.
        """
        self.backend.protect_table(self.identifier(name), protected=protected)

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash."""
        return self.backend.list_purgable_tables(deleted_before_ms)

    def purge_table(self, name: Name, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of a dropped table, expired or not. There is no way back.

        Raises:
            TableNotFoundError: nothing dropped has this name.
            ConcurrentModificationError: somebody else's change came first.
        """
        self.backend.purge_table(self.identifier(name), progress)

    def purge_tables(
        self, names: Sequence[Name] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these dropped tables, or all whose time in the trash is over."""
        tables = None if names is None else [self.identifier(name) for name in names]
        return self.backend.purge_tables(tables, progress)


class Table:
    """A located table, to read it."""

    def __init__(self, catalog: Catalog, info: TableInfo) -> None:
        """Hold a location; nothing is opened yet."""
        self._catalog = catalog
        self.info = info

    def __repr__(self) -> str:
        """Show the name."""
        return f"Table('{self.info.id}')"

    @property
    def name(self) -> str:
        """The table's own name."""
        return self.info.id.name

    @property
    def location(self) -> str:
        """Where the table is."""
        return self.info.location

    def to_lance(self, version: int | str | None = None) -> LanceDataset:
        """Open the table with Lance, at a version or tag if given.

        Raises:
            TableVersionNotFoundError: there is no such version or tag.
        """
        from mooring.tables.opening import open_at  # imports lance

        return open_at(self.info.location, self.info.storage_options, version)

    def to_arrow(self, **scan: Any) -> pa.Table:  # noqa: ANN401  # Lance's own arguments
        """Read the table, or what `columns`, `filter`, `limit` and the like select of it."""
        return self.to_lance().to_table(**scan)

    def count(self, where: str | None = None) -> int:
        """Count the rows, or those that a filter selects."""
        return int(self.to_lance().count_rows(filter=where))

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return self.to_lance().schema

    @property
    def version(self) -> int:
        """The newest version."""
        return int(self.to_lance().version)

    def history(self) -> list[Change]:
        """Tell what happened to the table in the catalog, oldest first."""
        return self._catalog.history(self.info.id)
