"""The life of a table in a directory: create, drop, undrop, re-create, purge, deregister.

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

Each arrow is one create-only put on the table's chain. docs/explanation/lifecycle.md gives the
reason of every rule; tests/races walks through their interleavings.

Spec: soft-delete, whole.
"""

from __future__ import annotations

import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mooring.directory.decisions import State
from mooring.directory.layout import (
    nested_marker_path,
    reserved_marker_path,
    table_dir,
)
from mooring.directory.markers import Reservation, settle_markers
from mooring.directory.view import other_spelling, view_table
from mooring.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    ProtectedError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from mooring.hints import suggest
from mooring.identifiers import check_composed, quote
from mooring.store.numbered import create_once
from mooring.tables.versions import newest_version, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from mooring.clock import Clock, IdSource
    from mooring.directory.chain import Chain, Chains
    from mooring.directory.view import TableView
    from mooring.store import ObjectMeta, Store
    from mooring.tables.api import StagedTable, TableFiles

    Progress = Callable[[int, int], None]

__all__ = ["Lifecycle"]

_COMMIT_ROUNDS = 16


class Lifecycle:
    """Moves tables from state to state."""

    def __init__(
        self,
        store: Store,
        chains: Chains,
        *,
        clock: Clock,
        ids: IdSource,
        author: str,
        tables: Callable[[], TableFiles],
    ) -> None:
        """Work on a store.

        Args:
            store: The catalog's store.
            chains: Its chains of decisions.
            clock: Stamps drops.
            ids: Makes nonces.
            author: In whose name tables are declared.
            tables: Opens what writes tables; called only when one is written.
        """
        self._store = store
        self._chains = chains
        self._clock = clock
        self._ids = ids
        self._author = author
        self._tables = tables

    def view(self, name: str) -> TableView:
        """Read what a table is."""
        return view_table(self._store, self._chains, name)

    # -- hide and bring back ---------------------------------------------------------------

    def drop(self, name: str, ttl_ms: int | None) -> None:
        """Hide a live table, reversibly.

        Raises:
            TableNotFoundError: no live table has this name.
            ProtectedError: the table is protected.
            ConcurrentModificationError: somebody else's change came first.
        """
        view = self._require_droppable(name, "dropped")
        now_ms = self._clock.now_ms()
        self._become(view, State.DELETED, action="drop", deleted_at_ms=now_ms, ttl_ms=ttl_ms)

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
        if view.state is State.DEREGISTERED or self._is_deregistered_elsewhere(view):
            self._become(view, State.LIVE, action="register", consumed=view.marks)
            return
        view.require_live(self._clock)

    def undrop(self, name: str) -> None:
        """Make a dropped table live again.

        Raises:
            TableNotFoundError: nothing dropped has this name.
            ConcurrentModificationError: a purge, a re-creation or another undrop came first.
        """
        view = self.view(name)
        match view.state:
            case State.DELETED:
                self._become(view, State.LIVE, action="undrop", consumed=view.marks)
            case State.REVIVING | State.UNDROPPING:
                self._undo_revival(view)
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
        view = self.view(name)
        view.require_live(self._clock)
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

    def _require_droppable(self, name: str, fate: str) -> TableView:
        view = self.view(name)
        view.require_live(self._clock)
        if view.is_protected:
            msg = (
                f"table {quote(name)} is protected, so it cannot be {fate}:"
                f' lift it first with "{suggest("table unprotect", name)}"'
            )
            raise ProtectedError(msg)
        return view

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
            consumed=consumed,
        )
        settle_markers(self._store, self._chains, chain)

    # -- create ----------------------------------------------------------------------------

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
        if view.chain.seq or view.markers:
            msg = (
                f"{quote(name)} was the name of a table before and its version numbers go on:"
                " create it with data instead of declaring it, or undrop it"
            )
            raise InvalidTableStateError(msg)
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
        staged = self._stage(view, rows)
        is_new = view.chain.seq == 0 and not view.markers
        if view.state is not State.LIVE and not is_new:
            return self._commit_over(staged, view)
        if not self._commit_first(staged, view):
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
        view = self.view(name)
        if view.state is not State.LIVE or not self.is_written(name):
            return self._create_or_lose(name, rows)
        staged = self._stage(view, rows)
        version = self._commit_next(staged, view.chain, "overwrite")
        self._require_end(view.chain, "overwrite")
        return version

    def _stage(self, view: TableView, rows: pa.RecordBatchReader) -> StagedTable:
        with self._blaming(view.chain, "create"):
            return self._tables().stage(table_dir(view.name), rows)

    def _create_or_lose(self, name: str, rows: pa.RecordBatchReader) -> int:
        """Create a table that an overwrite did not find; to be overtaken is to lose the race."""
        view = self._require_free(name)
        if view.state is State.DEREGISTERED:
            self._require_creatable(view)
        try:
            return self.create(name, rows)
        except TableAlreadyExistsError as exc:
            raise ConcurrentModificationError(str(exc)) from exc

    def is_written(self, name: str) -> bool:
        """Whether a table has a version; one that is only declared has none."""
        return newest_version(self._store, table_dir(name)) > 0

    def _require_free(self, name: str) -> TableView:
        """Refuse a new name that another table's would be confused with."""
        check_composed(name)
        other = self._confusable(name)
        if other is not None:
            msg = f"{quote(name)} differs only by spelling from the table {other!a}"
            raise TableAlreadyExistsError(msg)
        return self.view(name)

    def _confusable(self, name: str) -> str | None:
        decomposed = unicodedata.normalize("NFD", name)
        if decomposed != name and self._store.list_dir(table_dir(decomposed)).exists:
            return decomposed
        if self._store.capabilities.case_sensitive:
            return None
        return other_spelling(self._store, name, self._store.list_dir(table_dir(name)))

    def _require_creatable(self, view: TableView) -> None:
        shown = quote(view.name)
        match view.state:
            case State.LIVE if self.is_written(view.name):
                msg = f"table {shown} exists already"
                raise TableAlreadyExistsError(msg)
            case State.DEREGISTERED:
                msg = (
                    f"the directory of {shown} holds a deregistered table: register it again"
                    " or choose another name"
                )
                raise TableAlreadyExistsError(msg)
            case State.PURGING | State.UNDROPPING:
                msg = f"table {shown} is being changed: another {view.state} is under way"
                raise ConcurrentModificationError(msg)
            case State.PURGED if self._has_late_files(view):
                msg = (
                    f"somebody wrote into the directory of {shown} after it was purged:"
                    " purge it again, then create it"
                )
                raise ConcurrentModificationError(msg)
            case _:
                return

    def _commit_first(self, staged: StagedTable, view: TableView) -> bool:
        """Commit version 1 of a table that has none: the manifest's put is the decision."""
        taken = newest_version(self._store, staged.table_dir) > 0
        with self._blaming(view.chain, "create"):
            taken = taken or not self._tables().commit(staged, 1)
        if taken:
            self._tables().discard(staged)
            return False
        # A table that was not hidden since was not purged, so version 1 is the newest. Else it
        # may be a number that a whole life of the table, gone by meanwhile, has set free.
        since = self._chains.history(view.name)[view.chain.seq :]
        if any(link.state is not State.LIVE for link in since):
            msg = f"table {quote(view.name)} was dropped while it was being created"
            raise ConcurrentModificationError(msg)
        return True

    def _commit_over(self, staged: StagedTable, view: TableView) -> int:
        """Commit the version after the newest of an earlier table of this name."""
        try:
            entry = self._announce_creation(view)
        except ConcurrentModificationError:
            self._tables().discard(staged)
            raise
        version = self._commit_next(staged, entry, "create")
        live = self._chains.advance(
            entry,
            State.LIVE,
            action="create",
            version=version,
            consumed=view.marks,
        )
        settle_markers(self._store, self._chains, live)
        return version

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
            version=self._version_to_undrop(view),
        )

    def _version_to_undrop(self, view: TableView) -> int:
        decision = view.chain.decision
        if view.state is not State.DELETED and decision and decision.version is not None:
            return decision.version
        return newest_version(self._store, table_dir(view.name))

    def _commit_next(self, staged: StagedTable, end: Chain, action: str) -> int:
        """Commit exactly the version after the newest, as long as ``end`` ends the chain.

        Versions first, then the chain: whoever takes the table over afterwards lists versions
        later still, so one of the two commits finds its number taken.
        """
        try:
            return self._commit_strictly(
                end, action, lambda version: self._tables().commit(staged, version)
            )
        except ConcurrentModificationError:
            self._tables().discard(staged)
            raise

    def _commit_strictly(self, end: Chain, action: str, commit: Callable[[int], bool]) -> int:
        directory = table_dir(end.name)
        for _ in range(_COMMIT_ROUNDS):
            version = newest_version(self._store, directory) + 1
            self._require_end(end, action)
            with self._blaming(end, action):
                if commit(version):
                    return version
        msg = f"other writers kept committing to {quote(end.name)} during this {action}"
        raise ConcurrentModificationError(msg)

    @contextmanager
    def _blaming(self, chain: Chain, action: str) -> Iterator[None]:
        """Blame a failure of Lance on whoever changed the table meanwhile, if anybody did.

        A purge takes away the files that Lance is about to write or rename.
        """
        try:
            yield
        except UnknownOutcomeError:
            raise
        except ServiceUnavailableError:
            self._require_end(chain, action)
            raise

    def _require_end(self, chain: Chain, action: str) -> None:
        if self._chains.read(chain.name).nonce != chain.nonce:
            msg = f"table {quote(chain.name)} was changed by somebody else during this {action}"
            raise ConcurrentModificationError(msg)

    # -- undrop of an unfinished re-creation -------------------------------------------------

    def _undo_revival(self, view: TableView) -> None:
        """Bring the dropped version back over a re-creation that never finished.

        The restore is committed even where nothing seems to have changed: a creator that is
        about to commit finds its number taken.
        """
        version = self._version_to_undrop(view)
        if not version:
            msg = f"table {quote(view.name)} had no data when it was dropped: create it instead"
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
        directory = table_dir(view.name)
        self._commit_strictly(
            entry, "undrop", lambda new: self._tables().restore(directory, version, new)
        )
        live = self._chains.advance(entry, State.LIVE, action="undrop", consumed=view.marks)
        settle_markers(self._store, self._chains, live)

    # -- purge -----------------------------------------------------------------------------

    def purge(self, name: str, progress: Progress | None = None) -> None:
        """Delete the bytes of a dropped table.

        Args:
            name: The table.
            progress: Told the files and bytes deleted so far.

        Raises:
            TableNotFoundError: nothing dropped has this name.
            ConcurrentModificationError: an undrop or a re-creation came first.
        """
        view = self.view(name)
        chain = self._announce_purge(view)
        kept = self._delete_files(chain, progress)
        if kept is None:
            return  # a helper finished it
        try:
            chain = self._chains.advance(chain, State.PURGED, action="purge", version=kept)
        except ConcurrentModificationError:
            return  # only a helper can have put the next decision: it is purged
        settle_markers(self._store, self._chains, chain)

    def _announce_purge(self, view: TableView) -> Chain:
        match view.state:
            case State.PURGING:
                return view.chain
            case State.DELETED | State.REVIVING | State.UNDROPPING | State.CREATING:
                return self._chains.advance(view.chain, State.PURGING, action="purge")
            case State.PURGED if self._has_late_files(view):
                return self._chains.advance(view.chain, State.PURGING, action="purge")
            case State.LIVE:
                msg = f"table {quote(view.name)} is live: only a dropped table can be purged"
                raise TableNotFoundError(msg)
            case _:
                msg = f"nothing dropped is named {quote(view.name)}"
                raise TableNotFoundError(msg)

    def _has_late_files(self, view: TableView) -> bool:
        decision = view.chain.decision
        kept = (decision.version if decision else None) or 0
        return newest_version(self._store, table_dir(view.name)) > kept

    def _delete_files(self, chain: Chain, progress: Progress | None) -> int | None:
        """Delete everything but the newest manifest, until a listing shows nothing more.

        The files are listed before the chain is read: what is listed while `purging` still ends
        the chain was there before any later table, and no later table uses a name again, since
        the manifest that stays keeps its version numbers going.

        Returns:
            The version whose manifest stays, or None where the chain has moved on.
        """
        files_done = bytes_done = 0
        while True:
            found = self._store.list_prefix(table_dir(chain.name))
            if self._chains.read(chain.name).nonce != chain.nonce:
                return None
            kept, doomed = _split_for_purge(chain.name, found)
            if not doomed:
                return kept
            self._store.delete(meta.path for meta in doomed)
            files_done += len(doomed)
            bytes_done += sum(meta.size_bytes for meta in doomed)
            if progress:
                progress(files_done, bytes_done)


def _split_for_purge(name: str, found: list[ObjectMeta]) -> tuple[int, list[ObjectMeta]]:
    """Tell the version whose manifest stays and the files that go."""
    prefix = f"{table_dir(name)}/_versions/"
    versions = {
        version: meta.path
        for meta in found
        if meta.path.startswith(prefix)
        and (version := parse_manifest(meta.path.removeprefix(prefix))) is not None
    }
    newest = max(versions, default=0)
    stays = {nested_marker_path(name), versions.get(newest)}
    return newest, [meta for meta in found if meta.path not in stays]
