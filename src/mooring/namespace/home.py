"""What every catalog in storage stands on: a store, settings, a clock, an author.

Nothing is written by opening one. Before the first change the store is proved, and a new catalog
gets its settings.
"""

from __future__ import annotations

import threading
from copy import copy
from typing import TYPE_CHECKING

import msgspec

from mooring.clock import RandomIds
from mooring.errors import ConcurrentModificationError, InvalidInputError
from mooring.namespace.locations import check_allowed
from mooring.namespace.opened import Opened
from mooring.namespace.settings import DIRECTORY, METASTORE, load_settings, save_settings
from mooring.store.passing import is_passing
from mooring.store.probe import probe_store

if TYPE_CHECKING:
    from mooring.clock import Clock, IdSource
    from mooring.namespace.api import Ttl
    from mooring.namespace.settings import Settings
    from mooring.store import Store
    from mooring.tables.api import TableFiles

__all__ = ["AtHome", "Home"]


class Home(Opened):
    """A place where tables are, and in whose name it is changed."""

    def __init__(  # all but the store by name
        self,
        store: Store,
        *,
        author: str,
        read_only: bool = False,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        tables: TableFiles | None = None,
        settings: Settings | None = None,
        managed_versioning: bool = False,
        kind: str = DIRECTORY,
    ) -> None:
        """Open a place; nothing is written, and a missing root is an empty catalog.

        Args:
            store: Where the catalog is.
            author: In whose name changes are recorded.
            read_only: Refuse every change, and ask for no permission to write.
            clock: Stamps changes.
            ids: Makes nonces.
            tables: Writes tables; Lance does unless told otherwise.
            settings: Settings that are known already: nothing is read, probed or set up.
            managed_versioning: Tell whoever opens a table to commit through the catalog.
            kind: What the catalog is.

        Raises:
            InvalidInputError: a catalog of another kind is there.
            CatalogFormatError: the catalog is newer than this release.
        """
        super().__init__(author=author, read_only=read_only, clock=clock)
        self.store = store
        self.ids = ids or RandomIds()
        self.settings = settings or load_settings(store)
        if self.settings.revision and self.settings.kind != kind:
            raise _other_kind(store, self.settings.kind)
        self._kind = kind
        self._managed_versioning = managed_versioning
        # Versions that this process asked for and never heard of: location, branch, number.
        self.unsettled: set[tuple[str, str | None, int]] = set()
        self._tables = tables
        self._ready = settings is not None
        self._opening = threading.Lock()

    def in_name_of(self, author: str) -> Home:
        """Return the same place for somebody else."""
        other = copy(self)
        other.author = author
        # What writes tables does it in a name.
        other._tables = None  # noqa: SLF001  # of the same class
        return other

    @property
    def managed_versioning(self) -> bool:
        """Whether whoever opens a table is told to commit through the catalog."""
        return self._managed_versioning or self.settings.managed_versioning

    def open_tables(self) -> TableFiles:
        """Return what writes tables."""
        if self._tables is None:
            # lance costs 0.6 s to import, which listing and dropping need not pay.
            from mooring.tables.data import LanceTables

            self._tables = LanceTables(self.store, author=self.author, clock=self.clock)
        return self._tables

    def prepare(self, *, creates: bool = False) -> None:
        """Before the first change: prove the store, and give a new catalog its settings.

        What does not create anything leaves a root that is not there alone, for it will fail.

        Raises:
            ReadOnlyError: the catalog was opened read-only.
            StoreUnsafeError: the store accepts two creations of one key.
        """
        self.require_writable()
        with self._opening:
            if self._ready or (not creates and not self.store.list_dir("").exists):
                return
            probe_store(self.store)
            if self.settings.revision == 0:
                self._settle_in()
            self._ready = True

    def reload_settings(self) -> Settings:
        """Read the settings anew, as far as they changed."""
        self.settings = load_settings(self.store, self.settings)
        return self.settings

    def change_settings(
        self,
        *,
        adopted: bool | None = None,
        default_ttl: Ttl | None = None,
        allowed_locations: tuple[str, ...] | None = None,
        managed_versioning: bool | None = None,
    ) -> Settings:
        """Save settings, as far as they change.

        Raises:
            ConcurrentModificationError: somebody else saved settings first.
        """
        check_allowed(allowed_locations or ())
        wanted = msgspec.structs.replace(
            self.settings,
            adopted=self.settings.adopted if adopted is None else adopted,
            default_ttl_ms=default_ttl.ms if default_ttl else self.settings.default_ttl_ms,
            allowed_locations=(
                self.settings.allowed_locations if allowed_locations is None else allowed_locations
            ),
            kind=self._kind,
            managed_versioning=(
                self.settings.managed_versioning
                if managed_versioning is None
                else managed_versioning
            ),
        )
        if wanted != self.settings or self.settings.revision == 0:
            stamped = msgspec.structs.replace(
                wanted, nonce=self.ids.new_id(), by=self.author, at_ms=self.clock.now_ms()
            )
            self.settings = save_settings(self.store, stamped)
        return self.settings

    def _settle_in(self) -> None:
        """Note the format, and call an empty root ours: no marker of others is in it."""
        root = self.store.list_dir("")
        # What others leave while they open the same new catalog does not count.
        is_empty = not root.directories and all(is_passing(name) for name in root.files)
        try:
            self.change_settings(adopted=is_empty)
        except ConcurrentModificationError:
            self.settings = load_settings(self.store)


def _other_kind(store: Store, kind: str) -> InvalidInputError:
    where = store.location("")
    scheme = "metastore+" if kind == METASTORE else ""
    return InvalidInputError(f"'{where}' is a {kind}: open it as '{scheme}{where}'")


class AtHome:
    """What every catalog in storage tells about its place."""

    def __init__(self, home: Home) -> None:
        """Live at a place."""
        self.home = home

    @property
    def author(self) -> str:
        """In whose name changes are recorded."""
        return self.home.author

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        return self.home.read_only

    @property
    def store(self) -> Store:
        """Where the catalog is."""
        return self.home.store

    @property
    def settings(self) -> Settings:
        """The catalog's settings, as they were read last."""
        return self.home.settings
