"""Names and files that a directory and a row may both claim, and who gives way.

A root name can be its `<name>.lance` directory's or that of a row elsewhere, and the files of that
directory can have other names beside. Whoever is about to give a name, or to delete files, asks
here; the answers hold because they are asked for while a change of the manifest is planned, or
after a version of it that everybody has to read.

Spec: directory-namespace, "Compatibility Mode".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.commits import being_renamed
from mooring.directory.compat_owners import given_away
from mooring.directory.decisions import State
from mooring.directory.entries import intent_of, read_dropped
from mooring.directory.layout import TABLE_SUFFIX, is_table_name, table_dir
from mooring.directory.root_rows import is_named
from mooring.errors import InvalidTableStateError, TableAlreadyExistsError
from mooring.identifiers import DELIMITER, quote
from mooring.namespace.locations import overlaps
from mooring.tables.manifest import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.directory.draft import Draft
    from mooring.directory.manifest import Manifest
    from mooring.directory.view import TableView

__all__ = ["Claims"]


class Claims:
    """Tells what directories and rows claim."""

    def __init__(self, manifest: Manifest, view: Callable[[str], TableView]) -> None:
        """Look at a catalog.

        Args:
            manifest: Its manifest.
            view: Looks at one root table closely.
        """
        self._manifest = manifest
        self._view = view

    # -- names ---------------------------------------------------------------------------------

    def check_name(self, draft: Draft, key: str, kind: str) -> None:
        """While a change is planned: refuse a root name that a directory has, or cannot have.

        Raises:
            TableAlreadyExistsError: a live table lies in the directory of the name.
            InvalidTableStateError: a dropped one does.
        """
        del draft
        if DELIMITER in key:
            return
        state = self._view(key).state if is_table_name(key) else None
        if state in {State.LIVE, State.RENAMING}:
            msg = f"table {quote(key)} exists already, in {quote(table_dir(key))}"
            raise TableAlreadyExistsError(msg)
        if kind == TABLE and state not in {None, State.PURGED, State.DEREGISTERED}:
            msg = f"{quote(key)} is the name of a dropped table: purge it, or choose another name"
            raise InvalidTableStateError(msg)

    def check_move(self, draft: Draft, name: str, new: str) -> None:
        """While a root table is renamed: refuse, too, where its name is another's by now.

        What is renamed is the row and the directory of one name: were the row that of a table
        elsewhere, nothing would lead to that table any more.

        Raises:
            ConcurrentModificationError: a table elsewhere got the name.
        """
        self.check_name(draft, new, TABLE)
        row = draft.get(name)
        if row is not None and is_named(row):
            raise given_away(name)

    def is_held(self, name: str, nonce: str) -> bool:
        """Whether the rename of a root table that has this nonce can still be finished."""
        intent = intent_of(self._manifest.find(name))
        return intent is not None and intent.nonce == nonce

    # -- files ---------------------------------------------------------------------------------

    def require_stays(self, location: str) -> None:
        """While a registration is planned: refuse the directory of a table that is not live.

        Raises:
            ConcurrentModificationError: it is being renamed.
            InvalidTableStateError: it was dropped.
        """
        state = self._state_at(location)
        if state is State.RENAMING:
            raise being_renamed(location.removesuffix(TABLE_SUFFIX))
        if state not in {None, State.LIVE, State.DEREGISTERED}:
            msg = f"the table at {quote(location)} was dropped: undrop it first, or purge it"
            raise InvalidTableStateError(msg)

    def is_directory_of_table(self, location: str) -> bool:
        """Whether a location is a root table's directory, which lives and goes with its chain."""
        return self._state_at(location) not in {None, State.PURGED}

    def _state_at(self, location: str) -> State | None:
        if "/" in location or not location.endswith(TABLE_SUFFIX):
            return None
        return self._view(location.removesuffix(TABLE_SUFFIX)).state

    def fence(self, name: str) -> None:
        """Make sure that no other name uses the files of a root table that is to be purged.

        Whoever registers such a name looks at the table after the manifest's version: with a
        new version in between it sees the purge that was announced.

        Raises:
            InvalidTableStateError: another name does.
        """
        if not self._manifest.exists:
            return
        self._manifest.fence()
        other = self._other_name(name)
        if other is not None:
            msg = (
                f"the files of table {quote(name)} are also those of {quote(other)}:"
                " drop and purge that one first, or deregister it"
            )
            raise InvalidTableStateError(msg)

    def _other_name(self, name: str) -> str | None:
        """Find another name, live or dropped, of the files of a root table."""
        location = table_dir(name)
        with self._manifest.reading() as draft:
            for row in draft.rows():
                if row.object_id == name or not row.location:
                    continue
                dropped = read_dropped(row)
                if dropped and dropped.record.purging:
                    continue
                if overlaps(location, row.location):
                    return dropped.object_id if dropped else row.object_id
        return None
