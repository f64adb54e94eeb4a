"""Making tables: declared, created, created again over a dropped or purged one, overwritten."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from mooring.directory.commits import replaced
from mooring.directory.decisions import State
from mooring.directory.layout import TABLE_SUFFIX, reserved_marker_path, table_dir
from mooring.directory.markers import Reservation, settle_markers
from mooring.directory.view import has_late_files, other_spelling, version_to_undrop, view_table
from mooring.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    TableAlreadyExistsError,
)
from mooring.identifiers import check_composed, quote
from mooring.store.numbered import create_once

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from mooring.clock import Clock, IdSource
    from mooring.directory.chain import Chain, Chains
    from mooring.directory.commits import VersionCommits
    from mooring.directory.view import TableView
    from mooring.store import Store
    from mooring.tables.api import StagedTable

__all__ = ["Creation"]


class Creation:
    """Makes tables."""

    def __init__(
        self,
        store: Store,
        chains: Chains,
        commits: VersionCommits,
        *,
        clock: Clock,
        ids: IdSource,
        author: str,
        fence: Callable[[str], None] | None = None,
    ) -> None:
        """Work on a store.

        Args:
            store: The catalog's store.
            chains: Its chains of decisions.
            commits: Commits versions under them.
            clock: Stamps declarations.
            ids: Makes nonces.
            author: In whose name tables are declared.
            fence: Makes sure, once a creation over a dropped table is announced, that nobody
                else uses its files.
        """
        self._fence = fence
        self._store = store
        self._chains = chains
        self._commits = commits
        self._clock = clock
        self._ids = ids
        self._author = author

    def declare(self, name: str) -> None:
        """Reserve a name without data.

        Raises:
            TableAlreadyExistsError: the name is taken.
            InvalidTableStateError: an earlier table of this name left versions behind, on which
                a writer of a first version would fail.
            ConcurrentModificationError: somebody else's change came first.
        """
        view = self._require_free(name)
        if view.state is State.LIVE:
            msg = f"table {quote(name)} exists already"
            raise TableAlreadyExistsError(msg)
        # Where the directory is gone, whatever was decided, no versions are left in the way.
        if view.state is not None or view.markers:
            msg = (
                f"{quote(name)} was the name of a table before and its version numbers go on:"
                " create it with data instead of declaring it, or undrop it"
            )
            raise InvalidTableStateError(msg)
        if view.chain.state is not None:
            # Another program has deleted what was decided about: another table begins.
            self._chains.advance(
                view.chain, State.LIVE, action="declare", protected=False, sealed=False
            )
        # The nonce makes it unlike anybody else's: two who declare at once must not both win.
        body = Reservation(self._ids.new_id(), self._author, self._clock.now_ms()).encode()
        if not create_once(self._store, reserved_marker_path(name), body):
            msg = f"table {quote(name)} was declared by somebody else at the same time"
            raise TableAlreadyExistsError(msg)

    def create(self, name: str, rows: pa.RecordBatchReader) -> int:
        """Create a table with data, also over a dropped or purged one.

        Returns:
            The version that holds the data.

        Raises:
            TableAlreadyExistsError: the name is taken by a live or deregistered table.
            ConcurrentModificationError: somebody else's change came first.
        """
        view = self._require_free(name)
        self._require_creatable(view)
        is_new = view.chain.seq == 0 and not view.markers
        is_over = view.state is not State.LIVE and not is_new
        if is_over:
            view = self._commits.reopen(view)
        staged = self._commits.stage(view.chain, rows)
        if is_over:
            return self._commit_over(staged, view)
        if not self._commits.commit_first(staged, view.chain):
            msg = f"table {quote(name)} was created by somebody else at the same time"
            raise TableAlreadyExistsError(msg)
        return 1

    def overwrite(self, name: str, rows: pa.RecordBatchReader) -> int:
        """Replace the content of a live table by a new version, or create it.

        Returns:
            The version that holds the data.

        Raises:
            ConcurrentModificationError: somebody else's change came first.
        """
        view = view_table(self._store, self._chains, name)
        if view.state is not State.LIVE or not self._commits.is_written(name):
            return self._create_or_lose(name, rows)
        self._commits.require_open(view.chain)
        staged = self._commits.stage(view.chain, rows)
        version = self._commits.commit_next(staged, view.chain, "overwrite")
        self._commits.require_live_since(view.chain, version)
        return version

    def _create_or_lose(self, name: str, rows: pa.RecordBatchReader) -> int:
        """Create a table that an overwrite did not find; to be overtaken is to lose the race."""
        view = self._require_free(name)
        if view.state is State.DEREGISTERED:
            self._require_creatable(view)
        try:
            return self.create(name, rows)
        except TableAlreadyExistsError as exc:
            raise ConcurrentModificationError(str(exc)) from exc

    def _require_free(self, name: str) -> TableView:
        """Refuse a new name that another table's would be confused with."""
        check_composed(name)
        other = self._confusable(name)
        if other is not None:
            msg = f"{quote(name)} differs only by spelling from the table {other!a}"
            raise TableAlreadyExistsError(msg)
        view = view_table(self._store, self._chains, name)
        if not view.has_directory and self._store.head(table_dir(name)) is not None:
            msg = f"a file is in the way of table {quote(name)}: '{table_dir(name)}'"
            raise TableAlreadyExistsError(msg)
        return view

    def _confusable(self, name: str) -> str | None:
        """Find a table that differs by Unicode form only, or by case on a disk that ignores it."""
        if not name.isascii():
            wanted = table_dir(name)
            for found in self._store.list_dir("").directories:
                if found != wanted and unicodedata.normalize("NFC", found) == wanted:
                    return found.removesuffix(TABLE_SUFFIX)
        if self._store.capabilities.case_sensitive:
            return None
        return other_spelling(self._store, name, self._store.list_dir(table_dir(name)))

    def _require_creatable(self, view: TableView) -> None:
        shown = quote(view.name)
        match view.state:
            case State.LIVE if self._commits.is_written(view.name):
                msg = f"table {shown} exists already"
                raise TableAlreadyExistsError(msg)
            case State.DEREGISTERED:
                msg = (
                    f"the directory of {shown} holds a deregistered table: register it again"
                    " or choose another name"
                )
                raise TableAlreadyExistsError(msg)
            case State.PURGING | State.UNDROPPING | State.RENAMING:
                msg = f"table {shown} is being changed: another {view.state} is under way"
                raise ConcurrentModificationError(msg)
            case State.DELETED | State.PURGED if self._commits.is_replaced(view):
                raise InvalidTableStateError(replaced(view.name, view.state))
            case State.PURGED if has_late_files(view, self._commits.newest(view.name)):
                msg = (
                    f"somebody wrote into the directory of {shown} after it was purged:"
                    " purge it again, then create it"
                )
                raise ConcurrentModificationError(msg)
            case _:
                return

    def _commit_over(self, staged: StagedTable, view: TableView) -> int:
        """Commit the version after the newest of an earlier table of this name."""
        try:
            entry = self._announce_creation(view)
        except ConcurrentModificationError:
            self._commits.discard(staged)
            raise
        if entry.state is State.REVIVING and self._fence is not None:
            self._keep_out(staged, view, entry, self._fence)
        version = self._commits.commit_next(staged, entry, "create")
        live = self._chains.advance(
            entry,
            State.LIVE,
            action="create",
            version=version,
            sealed=False,
            consumed=view.marks,
        )
        settle_markers(self._store, self._chains, live)
        return version

    def _keep_out(
        self, staged: StagedTable, view: TableView, entry: Chain, fence: Callable[[str], None]
    ) -> None:
        """Put a dropped table back where another name uses its files."""
        try:
            fence(view.name)
        except InvalidTableStateError:
            self._commits.discard(staged)
            deleted_at_ms, ttl_ms = view.deletion
            self._chains.advance(
                entry, State.DELETED, action="create", deleted_at_ms=deleted_at_ms, ttl_ms=ttl_ms
            )
            raise

    def _announce_creation(self, view: TableView) -> Chain:
        if view.state is None or not view.state.in_trash:
            kept = view.chain.decision.version if view.chain.decision else None
            return self._chains.advance(view.chain, State.CREATING, action="create", version=kept)
        deleted_at_ms, ttl_ms = view.deletion
        return self._chains.advance(
            view.chain,
            State.REVIVING,
            action="create",
            deleted_at_ms=deleted_at_ms,
            ttl_ms=ttl_ms,
            version=version_to_undrop(view, self._commits.newest(view.name)),
        )
