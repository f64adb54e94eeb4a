"""Root names in the manifest: taken by tables that come to live in `<name>.lance`, and let go.

The directory decides about a table's life, the manifest about its name. So whoever makes a table
asks for the name afterwards and gives way where another has it; whoever hides one brings the row in
line; and a row that leaves its name leaves the directory of that name, too.

Spec: directory-namespace, "Compatibility Mode".
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.directory.compat_owners import can_be_listed, given_away, row_key
from mooring.directory.entries import is_table, read_dropped
from mooring.directory.layout import table_dir
from mooring.directory.locations import new_location
from mooring.directory.root_rows import is_named
from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.directory.draft import Draft
    from mooring.directory.listing_backend import ListingBackend
    from mooring.directory.manifest import Manifest
    from mooring.directory.root_rows import RootRows
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.namespace.home import Home
    from mooring.tables.manifest import ManifestRow

__all__ = ["RootNames"]


class RootNames:
    """Takes names for root tables, and lets them go."""

    def __init__(
        self, home: Home, manifest: Manifest, listed: ListingBackend, rows: RootRows
    ) -> None:
        """Work on a catalog.

        Args:
            home: Where it is.
            manifest: Its manifest.
            listed: Its root tables that lie in `<name>.lance`.
            rows: Their rows.
        """
        self._home = home
        self._manifest = manifest
        self._listed = listed
        self._rows = rows

    def take(
        self,
        table: ObjectId,
        properties: Mapping[str, str] | None,
        *,
        inherit: bool = False,
        fresh: bool = False,
    ) -> None:
        """Give a table that just became live its row, or give way.

        Args:
            table: The table.
            properties: Those it gets.
            inherit: Whether it gets those back that it had before.
            fresh: Whether it is a new table, so that a row of an older one says nothing.

        Raises:
            ConcurrentModificationError: another table got the name meanwhile; this one is in
                the trash.
            UnknownOutcomeError: whether one did cannot be seen.
        """
        try:
            self._rows.settle(
                table.name, properties or {}, inherit=inherit, fresh=fresh, is_decisive=True
            )
        except ConflictError as exc:
            with suppress(TableNotFoundError, ConcurrentModificationError):
                self._listed.drop_table(table)
            raise given_away(table.name) from exc

    def settle(self, name: str) -> None:
        """Let a row follow what was decided about its directory.

        Whose the name is was not asked: where another came to it meanwhile, that is not to be
        told by somebody whose own decision stands.
        """
        with suppress(TableAlreadyExistsError, NamespaceAlreadyExistsError):
            self._rows.settle(name)

    def bare_row(self, table: ObjectId) -> ManifestRow | None:
        """Return the row of a root table that may have nothing else: no directory."""
        key = row_key(table)
        row = self._manifest.find(key) if key is not None and can_be_listed(table) else None
        return row if _is_own(row) else None

    def let_go(self, name: str) -> None:
        """Before a row leaves its name: give one that has no directory a place elsewhere.

        Under another name, or in the trash, it must not claim the directory of its old name: the
        next table of that name lies there.
        """

        def move(draft: Draft) -> None:
            row = draft.get(name)
            if row is not None and _is_own(row) and self._listed.view(name).state is None:
                draft.put(replace(row, location=new_location(name, self._home.ids)))

        self._home.prepare()
        self._manifest.change(move)

    def reclaim(self, name: str, gone: TableInfo, action: str) -> None:
        """After a row has left its name: refuse if it was a directory's, and put it back.

        Somebody made the directory after it was looked for, so the row was not to be decided
        about, and nothing else may claim the directory.

        Args:
            name: The name it had.
            gone: What it was, and is now called.
            action: What was done to it.

        Raises:
            ConcurrentModificationError: it was.
        """
        own = table_dir(name)
        if gone.location != self._home.store.location(own) or self._listed.view(name).state is None:
            return

        def forget(draft: Draft) -> None:
            claims = [row for row in draft.dropped_as(name) if not _is_parked(row)]
            renamed = draft.get(gone.id.format())
            for row in [*claims, *([renamed] if renamed and gone.id.names != (name,) else [])]:
                if row.location == own:
                    draft.remove(row.object_id)

        self._manifest.change(forget)
        self.settle(name)
        msg = f"table {quote(name)} was made by somebody else during this {action}"
        raise ConcurrentModificationError(msg)


def _is_parked(row: ManifestRow) -> bool:
    dropped = read_dropped(row)
    return dropped is not None and dropped.record.parked


def _is_own(row: ManifestRow | None) -> bool:
    """Whether a row is that of a table in the directory of its name."""
    return row is not None and is_table(row) and not is_named(row)
