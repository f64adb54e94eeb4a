"""A catalog as people use it from Python: names in, tables out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from mooring.clock import parse_ttl
from mooring.config import mask_uris
from mooring.errors import (
    InvalidInputError,
    InvalidNameError,
    NamespaceNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.states import Exists
from mooring.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from mooring.metastore.metastore import Metastore
    from mooring.metastore.transaction import Transaction
    from mooring.namespace.api import Backend, Change, PurgeProgress, PurgeReport, TableInfo
    from mooring.namespace.states import DroppedTable, TableStatus

__all__ = ["Catalog"]

T = TypeVar("T")
Name = str | list[str] | tuple[str, ...] | ObjectId


class Catalog:
    """Names of tables, and what can be done with them.

    A table is named by a string, or by a list of names where it lies in a namespace. In a plain
    directory the string is the name, whatever it holds; elsewhere `$` separates levels.
    """

    def __init__(
        self, backend: Backend, uri: str, options: Mapping[str, Any] | None = None
    ) -> None:
        """Wrap a backend; ``mooring.connect`` does.

        Args:
            backend: The catalog.
            uri: Where it is.
            options: What else it was opened with, to be opened again elsewhere.
        """
        self.backend = backend
        self.uri = uri
        self.options = dict(options or {})

    def __repr__(self) -> str:
        """Show where the catalog is."""
        return f"Catalog('{mask_uris(self.uri)}')"

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

    def _table(self, name: Name) -> ObjectId:
        table = self.identifier(name)
        if table.is_root:
            msg = "a table needs a name"
            raise InvalidNameError(msg)
        return table

    def _namespace(self, name: Name) -> ObjectId:
        return ROOT if name == "" else self.identifier(name)

    # -- namespaces ----------------------------------------------------------------------------

    def list_namespaces(self, parent: Name = ROOT) -> list[str]:
        """Name the namespaces directly in one, sorted."""
        return self.backend.list_namespaces(self._namespace(parent))

    def namespace_exists(self, name: Name) -> bool:
        """Whether a namespace has this name."""
        try:
            self.describe_namespace(name)
        except NamespaceNotFoundError:
            return False
        return True

    def describe_namespace(self, name: Name = ROOT) -> dict[str, str]:
        """Return a namespace's properties.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        return dict(self.backend.describe_namespace(self._namespace(name)))

    def create_namespace(
        self,
        name: Name,
        properties: Mapping[str, str] | None = None,
        *,
        mode: str = "create",
    ) -> dict[str, str]:
        """Make a namespace and return its properties.

        Args:
            name: Its name; the namespace around it must be there.
            properties: A description, an owner, labels; ``mooring.retention`` is how long what
                is dropped in it stays in the trash, ``mooring.protected`` makes drops refuse.
            mode: ``create`` fails where it exists, ``exist_ok`` leaves it as it is,
                ``overwrite`` replaces its properties.

        Raises:
            NamespaceAlreadyExistsError: it exists, and the mode is ``create``.
            NamespaceNotFoundError: the namespace around it is not there.
            TableAlreadyExistsError: a table has the name.
            UnsupportedError: this kind of catalog has no namespaces.
        """
        parsed = CreateMode.parse(mode)
        return dict(self.backend.create_namespace(self.identifier(name), properties or {}, parsed))

    def update_namespace(self, name: Name, updates: Mapping[str, str | None]) -> dict[str, str]:
        """Change properties of a namespace, None removes one; return all.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        return dict(self.backend.update_namespace(self._namespace(name), updates))

    def drop_namespace(
        self, name: Name, *, cascade: bool = False, ttl: str | None = None
    ) -> dict[str, str]:
        """Hide a namespace; it can be brought back whole.

        Args:
            name: The namespace.
            cascade: Drop all that is in it along; otherwise it must be empty.
            ttl: How long it should stay in the trash.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            NamespaceNotEmptyError: something is in it.
            ProtectedError: it, or something in it, is protected.
        """
        wanted = None if ttl is None else Ttl(parse_ttl(ttl))
        return dict(self.backend.drop_namespace(self.identifier(name), cascade=cascade, ttl=wanted))

    def undrop_namespace(self, name: Name) -> int:
        """Bring a dropped namespace back with all that was dropped with it; tell how many.

        Raises:
            NamespaceNotFoundError: no dropped namespace has this name.
            ConflictError: a name is taken meanwhile.
        """
        return self.backend.undrop_namespace(self.identifier(name))

    # -- transactions ------------------------------------------------------------------------

    @property
    def metastore(self) -> Metastore:
        """The objects of a metastore: their history, transactions and upkeep.

        Raises:
            UnsupportedError: the catalog is of another kind.
        """
        from mooring.metastore.backend import MetastoreBackend

        if not isinstance(self.backend, MetastoreBackend):
            msg = (
                f"'{self.uri}' has no transactions over several objects and no change tables: only"
                " a metastore has, which is made and opened with 'metastore+' before its path or"
                " URI"
            )
            raise UnsupportedError(msg)
        return self.backend.metastore

    @contextmanager
    def transaction(self, *, message: str | None = None) -> Iterator[Transaction]:
        """Commit what is done in a block, all of it; nothing where it raises.

        Raises:
            ConcurrentModificationError: somebody else's commit changed what was read or written:
                do it again, or let ``run`` do that.
            UnsupportedError: the catalog is no metastore.
        """
        metastore = self.metastore
        self.backend.require_writable()
        with metastore.transaction(message=message) as transaction:
            yield transaction

    def run(self, work: Callable[[Transaction], T], *, message: str | None = None) -> T:
        """Do work in a transaction, again on the new state where somebody else was first.

        Args:
            work: Reads and changes objects; it may be called several times.
            message: What it is for.

        Raises:
            ConcurrentModificationError: others were first all the time.
            UnsupportedError: the catalog is no metastore.
        """
        metastore = self.metastore
        self.backend.require_writable()
        return metastore.run(work, message=message)

    def as_of(self, *, txn_id: str | None = None, time_ms: int | None = None) -> Transaction:
        """Return the state after a transaction, or at a time, to read.

        Raises:
            TransactionNotFoundError: no committed transaction has this id.
            UnsupportedError: the catalog is no metastore.
        """
        metastore = self.metastore
        return metastore.begin(at=metastore.state_at(txn_id=txn_id, time_ms=time_ms))

    # -- reading -----------------------------------------------------------------------------

    def list_all_tables(self) -> list[ObjectId]:
        """Return the identifiers of the live tables of all namespaces, sorted."""
        return self.backend.list_all_tables()

    def list_tables(self, namespace: Name = ROOT, *, include_declared: bool = True) -> list[str]:
        """Name the live tables directly in a namespace, sorted."""
        parent = self._namespace(namespace)
        return self.backend.list_tables(parent, include_declared=include_declared)

    def table_exists(self, name: Name) -> bool:
        """Whether a live table has this name."""
        return isinstance(self.table_status(name), Exists)

    def table_status(self, name: Name) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        return self.backend.table_status(self._table(name))

    def describe_table(self, name: Name) -> TableInfo:
        """Locate a live table.

        Raises:
            TableNotFoundError: no live table has this name.
        """
        return self.backend.describe_table(self._table(name), check_declared=True)

    def table(self, name: Name) -> Table:
        """Return a live table, to read and change it.

        Raises:
            TableNotFoundError: no live table has this name.
        """
        return Table(self.backend, self.backend.describe_table(self._table(name)))

    def history(self, name: Name) -> list[Change]:
        """Tell what happened to a table in the catalog, oldest first."""
        return self.backend.table_history(self._table(name))

    # -- making tables -------------------------------------------------------------------------

    def create_table(
        self,
        name: Name,
        data: object,
        *,
        schema: pa.Schema | None = None,
        mode: str = "create",
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Create a table.

        Args:
            name: Its name.
            data: An Arrow table, batch or reader, a data frame, or an iterable of batches or
                dictionaries.
            schema: The schema for rows that bring none.
            mode: ``create`` fails where the table exists, ``exist_ok`` leaves it as it is,
                ``overwrite`` makes the data its next version.
            properties: A description, an owner, labels, where the catalog keeps a manifest.

        Raises:
            TableAlreadyExistsError: the table exists, and the mode is ``create``.
            InvalidNameError: the name cannot be one.
            ConcurrentModificationError: somebody else's change came first.
        """
        from mooring.tables.rows import to_reader  # imports pyarrow

        table = self._table(name)
        rows = to_reader(data, schema)
        info = self.backend.create_table(table, rows, CreateMode.parse(mode), properties)
        return Table(self.backend, info)

    def declare_table(
        self, name: Name, *, properties: Mapping[str, str] | None = None
    ) -> TableInfo:
        """Reserve a name without data.

        Raises:
            TableAlreadyExistsError: the name is taken.
            InvalidTableStateError: an earlier table of this name is in the way.
        """
        return self.backend.declare_table(self._table(name), None, properties)

    def register_table(
        self,
        name: Name,
        location: str | None = None,
        *,
        mode: str = "create",
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Give a name to a table that lies in the catalog's storage.

        Args:
            name: The name.
            location: Relative to the catalog's root; where the layout has it unless given.
            mode: ``create`` fails where the name is taken, ``overwrite`` drops what has it.
            properties: A description, an owner, labels, where the catalog keeps a manifest.

        Raises:
            TableNotFoundError: nothing is there to register.
            TableAlreadyExistsError: the name is taken.
            InvalidInputError: the location is not one this catalog accepts.
        """
        allowed = (CreateMode.CREATE, CreateMode.OVERWRITE)
        parsed = CreateMode.parse(mode, allowed)
        return self.backend.register_table(self._table(name), location, parsed, properties)

    def deregister_table(self, name: Name) -> TableInfo:
        """Forget a table's name and keep its bytes.

        Raises:
            TableNotFoundError: no live table has this name.
            ProtectedError: the table is protected.
            ConcurrentModificationError: somebody else's change came first.
        """
        return self.backend.deregister_table(self._table(name))

    def rename_table(self, name: Name, new_name: Name) -> TableInfo:
        """Give a table another name.

        Raises:
            UnsupportedError: this kind of catalog cannot.
        """
        return self.backend.rename_table(self._table(name), self._table(new_name))

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
        return self.backend.drop_table(self._table(name), wanted)

    def undrop_table(self, name: Name, new_name: Name | None = None) -> TableInfo:
        """Bring a dropped table back, if wanted under another name.

        Raises:
            TableNotFoundError: nothing dropped has this name.
            ConcurrentModificationError: somebody else's change came first.
            UnsupportedError: this kind of catalog cannot change the name.
        """
        new = None if new_name is None else self._table(new_name)
        return self.backend.undrop_table(self._table(name), new)

    def update_table(self, name: Name, updates: Mapping[str, str | None]) -> dict[str, str]:
        """Change properties of a table, None removes one; return all.

        Raises:
            TableNotFoundError: no live table has this name.
            UnsupportedError: this kind of catalog keeps no properties.
        """
        return dict(self.backend.update_table(self._table(name), updates))

    def protect_table(self, name: Name, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again.

        Raises:
            TableNotFoundError: no live table has this name.
            ConcurrentModificationError: somebody else's change came first.
        """
        self.backend.protect_table(self._table(name), protected=protected)

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash."""
        return self.backend.list_purgable_tables(deleted_before_ms)

    def purge_table(self, name: Name, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of a dropped table, expired or not. There is no way back.

        Raises:
            TableNotFoundError: nothing dropped has this name.
            ConcurrentModificationError: somebody else's change came first.
        """
        self.backend.purge_table(self._table(name), progress)

    def purge_tables(
        self, names: Sequence[Name] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these dropped tables, or all whose time in the trash is over."""
        tables = None if names is None else [self._table(name) for name in names]
        return self.backend.purge_tables(tables, progress)
