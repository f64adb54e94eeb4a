"""Renames of root tables that were cut off, or are under way: ended, or called back.

Whoever is about to change a root table ends what a rename left behind at its very end. One that
lacks its last step can be finished only by renaming again; here it can be undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.decisions import UNDO_RENAME, State
from mooring.directory.entries import intent_of

if TYPE_CHECKING:
    from mooring.directory.compat_owners import Owners
    from mooring.directory.listing_backend import ListingBackend
    from mooring.directory.renaming import Renaming
    from mooring.directory.view import TableView
    from mooring.identifiers import ObjectId
    from mooring.namespace.home import Home

__all__ = ["OpenRenames"]


class OpenRenames:
    """Ends renames of root tables, or takes them back."""

    def __init__(
        self, home: Home, owners: Owners, listed: ListingBackend, renaming: Renaming
    ) -> None:
        """Work on a catalog.

        Args:
            home: Where it is.
            owners: By what its tables live.
            listed: Its root tables that lie in `<name>.lance`.
            renaming: Moves them to other names.
        """
        self._home = home
        self._owners = owners
        self._listed = listed
        self._renaming = renaming

    def end(self, view: TableView) -> bool:
        """Before a change: end a rename that was cut off at its very end, if there is one."""
        if view.state is not State.RENAMING or self._home.read_only:
            return False
        return self._renaming.end(view, self._home.settings.default_ttl_ms)

    def end_all(self) -> None:
        """Bring the old directories of renames that were cut off at their end into the trash."""
        for name, hint in self._listed.scan().other.items():
            if hint.state is State.RENAMING:
                self.end(self._listed.view(name))

    def undo(self, view: TableView) -> None:
        """Undo a rename that lacks its last step, and open the table for writers again."""
        self._renaming.call_off(view)
        chain = self._listed.chains.read(view.name)
        if chain.state in {None, State.LIVE}:
            self._listed.commits.require_open(chain)

    def call_back(self, table: ObjectId) -> bool:
        """Whether an undrop brought a table back by undoing a rename of it."""
        view = self._listed.view(table.name)
        is_announced = (
            view.state is State.LIVE and intent_of(self._owners.row_of(table)) is not None
        )
        if view.state is not State.RENAMING and not is_announced:
            return False
        self._home.prepare()
        self._renaming.call_off(view)
        after = self._listed.view(table.name)
        if after.state is not State.LIVE:
            return False
        # A rename that came to its end may have been followed by an undrop: somebody else's.
        decision = after.chain.decision
        is_unmoved = after.chain.seq == view.chain.seq
        return is_unmoved or (decision is not None and decision.action == UNDO_RENAME)
