"""The life of a table in a directory: what hides it and what brings it back.

| from              | drop    | undrop                  | create                  | purge     |
|-------------------|---------|-------------------------|-------------------------|-----------|
| live              | deleted | not found               | exists                  | not found |
| deleted           | -       | live                    | reviving, commit, live  | purging   |
| reviving          | -       | undropping, restore,    | reviving, commit, live  | purging   |
| undropping        | -       | live                    | conflict                | purging   |
| creating, purged  | -       | not found               | creating, commit, live  | purging * |
| purging           | -       | not found               | conflict                | help      |
| deregistered      | -       | not found (register it) | exists                  | not found |

    * a purged table only when somebody wrote into its directory afterwards

Each arrow is one create-only put on the table's chain. `creation` makes tables, `purge` deletes
them. docs/explanation/lifecycle.md gives the reason of every rule; tests/races walks through
their interleavings.

Spec: soft-delete, whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.commits import being_renamed
from mooring.directory.decisions import State
from mooring.directory.layout import nested_marker_path
from mooring.directory.markers import settle_markers
from mooring.directory.view import version_to_undrop, view_table
from mooring.errors import ProtectedError, TableAlreadyExistsError, TableNotFoundError
from mooring.hints import suggest
from mooring.identifiers import quote

if TYPE_CHECKING:
    from mooring.clock import Clock
    from mooring.directory.chain import Chains
    from mooring.directory.commits import VersionCommits
    from mooring.directory.view import TableView
    from mooring.store import Store

__all__ = ["Lifecycle"]


class Lifecycle:
    """Hides tables and brings them back."""

    def __init__(self, store: Store, chains: Chains, commits: VersionCommits, clock: Clock) -> None:
        """Work on a store.

        Args:
            store: The catalog's store.
            chains: Its chains of decisions.
            commits: Commits versions under them.
            clock: Stamps drops.
        """
        self._store = store
        self._chains = chains
        self._commits = commits
        self._clock = clock

    def view(self, name: str) -> TableView:
        """Read what a table is."""
        return view_table(self._store, self._chains, name)

    def drop(self, name: str, ttl_ms: int | None) -> None:
        """Hide a live table, reversibly.

        Raises:
            TableNotFoundError: no live table has this name.
            ProtectedError: the table is protected.
            ConcurrentModificationError: somebody else's change came first.
        """
        view = self._require_droppable(name, "dropped")
        newest = self._commits.newest(name)
        chain = self._chains.advance(
            view.chain,
            State.DELETED,
            action="drop",
            deleted_at_ms=self._clock.now_ms(),
            ttl_ms=ttl_ms,
            version=newest,
            manifest=self._commits.digest(name, newest),
        )
        settle_markers(self._store, self._chains, chain)

    def deregister(self, name: str) -> None:
        """Forget a live table's name and keep its bytes.

        Raises:
            TableNotFoundError: no live table has this name.
            ProtectedError: the table is protected.
            ConcurrentModificationError: somebody else's change came first.
        """
        view = self._require_droppable(name, "deregistered")
        self._become(view, State.DEREGISTERED, action="deregister")

    def register(self, name: str) -> None:
        """Bring a deregistered table back.

        Raises:
            TableAlreadyExistsError: the table is live.
            TableNotFoundError: nothing deregistered has this name.
            ConcurrentModificationError: somebody else's change came first.
        """
        view = self.view(name)
        if view.state is State.LIVE:
            msg = f"table {quote(name)} is registered already"
            raise TableAlreadyExistsError(msg)
        comes_back = view.state is State.DEREGISTERED or self._is_deregistered_elsewhere(view)
        if comes_back or (view.state is State.PURGED and self._commits.is_replaced(view)):
            self.bring_back(view)
            return
        view.require_live(self._clock)

    def bring_back(self, view: TableView) -> None:
        """Make a table live that was hidden when it was looked at, and not changed since.

        Raises:
            ConcurrentModificationError: it was.
        """
        self._require_directory(view)
        view = self._commits.reopen(view)
        self._become(view, State.LIVE, action="register", consumed=view.marks)

    def undrop(self, name: str) -> None:
        """Make a dropped table live again.

        Raises:
            TableNotFoundError: nothing dropped has this name.
            ConcurrentModificationError: a purge, a re-creation or another undrop came first.
        """
        view = self.view(name)
        match view.state:
            case State.DELETED | State.RENAMING:
                self._require_directory(view)
                view = self._commits.reopen(view)
                self._become(view, State.LIVE, action="undrop", consumed=view.marks)
            case State.REVIVING | State.UNDROPPING:
                self._undo_revival(self._commits.reopen(view))
            case State.LIVE:
                msg = f"table {quote(name)} is live: there is nothing to undrop"
                raise TableNotFoundError(msg)
            case _:
                msg = f"nothing dropped is named {quote(name)}"
                raise TableNotFoundError(msg)

    def protect(self, name: str, *, protected: bool) -> None:
        """Make drops of a live table refuse, or allow them again.

        Raises:
            TableNotFoundError: no live table has this name.
            ConcurrentModificationError: somebody else's change came first.
        """
        view = self._require_live(name)
        if view.is_protected == protected:
            return
        action = "protect" if protected else "unprotect"
        self._chains.advance(
            view.chain, State.LIVE, action=action, protected=protected, consumed=view.marks
        )

    def adopt(self, name: str) -> None:
        """Lift the markers that another program left on a table into a decision of ours."""
        view = self.view(name)
        if view.state is not State.DELETED or not view.unconsumed:
            return
        deleted_at_ms, ttl_ms = view.deletion
        self._become(
            view,
            State.DELETED,
            action="adopt",
            deleted_at_ms=deleted_at_ms,
            ttl_ms=ttl_ms,
            consumed=view.marks,
        )

    def _require_live(self, name: str) -> TableView:
        view = self.view(name)
        if view.state is State.RENAMING:
            raise being_renamed(name)
        view.require_live(self._clock)
        return view

    def _require_droppable(self, name: str, fate: str) -> TableView:
        view = self._require_live(name)
        if view.is_protected:
            msg = (
                f"table {quote(name)} is protected, so it cannot be {fate}:"
                f' lift it first with "{suggest("table unprotect", name)}"'
            )
            raise ProtectedError(msg)
        return view

    def _require_directory(self, view: TableView) -> None:
        if not view.has_directory:
            msg = (
                f"the files of table {quote(view.name)} are gone: another program has deleted its"
                " directory, so nothing can be brought back"
            )
            raise TableNotFoundError(msg)

    def _is_deregistered_elsewhere(self, view: TableView) -> bool:
        nested = nested_marker_path(view.name)
        adopted = bool(view.chain.decision and view.chain.decision.action == "adopt")
        return view.state is State.DELETED and (
            adopted or any(marker.path == nested for marker in view.unconsumed)
        )

    def _become(  # the fields of a decision, by name
        self,
        view: TableView,
        state: State,
        *,
        action: str,
        deleted_at_ms: int | None = None,
        ttl_ms: int | None = None,
        consumed: tuple[str, ...] = (),
    ) -> None:
        chain = self._chains.advance(
            view.chain,
            state,
            action=action,
            deleted_at_ms=deleted_at_ms,
            ttl_ms=ttl_ms,
            sealed=False,
            consumed=consumed,
        )
        settle_markers(self._store, self._chains, chain)

    def _undo_revival(self, view: TableView) -> None:
        """Bring the dropped version back over a re-creation that never finished.

        The restore is committed even where nothing seems to have changed: a creator that is
        about to commit finds its number taken.
        """
        version = version_to_undrop(view, self._commits.newest(view.name))
        if not version:
            msg = f"table {quote(view.name)} had no data when it was dropped: create it instead"
            raise TableNotFoundError(msg)
        if not self._commits.has(view.name, version):
            msg = (
                f"version {version} of table {quote(view.name)}, which was dropped, has been"
                " cleaned up: create the table again, or purge it"
            )
            raise TableNotFoundError(msg)
        deleted_at_ms, ttl_ms = view.deletion
        entry = self._chains.advance(
            view.chain,
            State.UNDROPPING,
            action="undrop",
            deleted_at_ms=deleted_at_ms,
            ttl_ms=ttl_ms,
            version=version,
        )
        self._commits.restore(version, entry, "undrop")
        live = self._chains.advance(
            entry, State.LIVE, action="undrop", sealed=False, consumed=view.marks
        )
        settle_markers(self._store, self._chains, live)
