"""What every part of a metastore's backend stands on: objects, transactions, live tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from mooring.errors import NotLanceTableError, TableNotFoundError
from mooring.hints import suggest
from mooring.identifiers import ObjectId, quote
from mooring.metastore.lance_table import (
    HISTORY,
    check_names,
    find_any,
    find_table,
    locator_of,
)
from mooring.metastore.lance_versions import LanceVersions
from mooring.metastore.locator import ROOT as TOP
from mooring.metastore.metastore import Metastore
from mooring.metastore.recognition import Layout, settle_layout
from mooring.metastore.trash import Trash, why_not_live
from mooring.namespace.api import TableInfo
from mooring.namespace.home import AtHome
from mooring.namespace.locations import is_outside
from mooring.tables.place import Place, open_place

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from mooring.metastore.lance_table import LanceTable
    from mooring.metastore.model import Namespace
    from mooring.metastore.transaction import Found, Transaction
    from mooring.namespace.home import Home

__all__ = ["Ground", "live_namespaces"]

T = TypeVar("T")


class Ground(AtHome):
    """A metastore at a place, and the tables in it."""

    def __init__(self, home: Home, metastore: Metastore | None = None) -> None:
        """Open a catalog; nothing is written, and a missing root is an empty one.

        Args:
            home: Where the catalog is.
            metastore: Its objects, where they are opened already.
        """
        super().__init__(home)
        self.metastore = metastore or Metastore(
            home.store, author=home.author, clock=home.clock, ids=home.ids
        )
        self._is_settled = False
        # Also for who changes objects without this backend.
        self.metastore.chain.before_writing = self._prepare_objects
        self._trash = Trash(home, self.metastore)
        self._versions = LanceVersions(home, self.metastore, self._place)

    def in_name_of(self, author: str) -> Self:
        """Return the same catalog for somebody else; what both commit at once shares a put."""
        return type(self)(self.home.in_name_of(author), self.metastore.in_name_of(author))

    @property
    def levels(self) -> int | None:
        """Every table lies in a namespace."""
        return 2

    @property
    def managed_versioning(self) -> bool:
        """Versions are records of the catalog: whoever writes commits through it."""
        return True

    @property
    def keeps_versions(self) -> bool:
        """The newest version is what the catalog says, and not what a directory shows."""
        return True

    def require_writable(self) -> None:
        """Refuse where no change may be made."""
        self._prepare()

    def _prepare(self, *, creates: bool = False) -> None:
        """Before a change: prove the store, and give a new catalog its settings and layout."""
        self.home.prepare(creates=creates)
        if creates and not self._is_settled:
            settle_layout(self.store, Layout(self.metastore.dialect.name))
            self._is_settled = True

    def _prepare_objects(self) -> None:
        self._prepare(creates=self.metastore.chain.timeline.seq == 0)

    def _run(self, work: Callable[[Transaction], T], message: str, *, creates: bool = False) -> T:
        self._prepare(creates=creates)
        return self.metastore.run(work, message=message)

    def _find(self, txn: Transaction, table: ObjectId) -> LanceTable | None:
        check_names(table)
        return find_table(txn, locator_of(table)) if table.level == self.levels else None

    def _require(self, txn: Transaction, table: ObjectId) -> LanceTable:
        found = self._find(txn, table)
        if found is None:
            raise self._why_not_live(table)
        return found

    def _find_any(self, txn: Transaction, table: ObjectId) -> LanceTable | None:
        check_names(table)
        return find_any(txn, locator_of(table)) if table.level == self.levels else None

    def _require_any(self, txn: Transaction, table: ObjectId) -> LanceTable:
        """Return a live table, of Lance or of changes."""
        found = self._find_any(txn, table)
        if found is None:
            raise self._why_not_live(table)
        return found

    def _info(
        self,
        table: LanceTable,
        *,
        is_only_declared: bool | None = None,
        version: int | None = None,
    ) -> TableInfo:
        return TableInfo(
            id=table.id,
            location=self._versions.location_of(table.location),
            storage_options=self.store.options,
            properties=dict(table.value.properties),
            is_only_declared=is_only_declared,
            version=version,
        )

    def _place(self, location: str) -> Place:
        if is_outside(location):
            return open_place(location, self.store.options)
        return Place(self.store, location)

    def _why_not_live(self, table: ObjectId) -> TableNotFoundError:
        """Word what happened to a table that is not live."""
        view = self.metastore.begin()
        # A Lance table that is there now came a moment ago: who asked was too early.
        if self._find(view, table) is None and self._find_any(view, table) is not None:
            name = str(table)
            return NotLanceTableError(
                f"table {quote(name)} is a table of changes, and none of Lance: read it with"
                f' "{suggest("changes read", name)}", change it with'
                f' "{suggest("changes write", name)}"'
            )
        return why_not_live(view, table)


def live_namespaces(view: Transaction) -> list[Found]:
    """Return the namespaces that are not in the trash, sorted by name, without our own."""
    return [
        found
        for found in view.children(TOP)
        if cast("Namespace", found.value).dropped is None and found.locator.parts != (HISTORY,)
    ]
