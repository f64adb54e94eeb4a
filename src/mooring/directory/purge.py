"""Purging: the bytes of a dropped table go, its newest manifest stays.

The manifest that stays keeps the version numbers going: a table that is created again goes on at
the next one, so no name of a data file or manifest is used twice and a purger that slept can
hurt neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.commits import replaced
from mooring.directory.decisions import State
from mooring.directory.layout import nested_marker_path, table_dir
from mooring.directory.markers import settle_markers
from mooring.directory.view import has_late_files, view_table
from mooring.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    TableNotFoundError,
)
from mooring.identifiers import quote
from mooring.tables.versions import VERSIONS_DIR, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.directory.chain import Chain, Chains
    from mooring.directory.commits import VersionCommits
    from mooring.directory.view import TableView
    from mooring.store import ObjectMeta, Store

    Progress = Callable[[int, int], None]

__all__ = ["Purge"]


class Purge:
    """Deletes the bytes of dropped tables."""

    def __init__(
        self,
        store: Store,
        chains: Chains,
        commits: VersionCommits,
        fence: Callable[[str], None] | None = None,
    ) -> None:
        """Work on a store, its chains of decisions and the versions under them.

        Args:
            store: The catalog's store.
            chains: Its chains of decisions.
            commits: The versions under them.
            fence: Makes sure, once a purge is announced, that nobody else uses the files.
        """
        self._store = store
        self._chains = chains
        self._commits = commits
        self._fence = fence

    def run(
        self, name: str, progress: Progress | None = None, *, over_at_ms: int | None = None
    ) -> None:
        """Delete the bytes of a dropped table.

        Args:
            name: The table.
            progress: Told the files and bytes deleted so far.
            over_at_ms: Only where its time in the trash is over by then; always unless given.

        Raises:
            TableNotFoundError: nothing dropped has this name.
            InvalidTableStateError: another program has replaced the table, or another name
                uses its files.
            ConcurrentModificationError: an undrop or a re-creation came first, or a later drop.
        """
        view = view_table(self._store, self._chains, name)
        if over_at_ms is not None:
            _require_over(view, over_at_ms)
        chain = self._announce_purge(view)
        if view.unconsumed:
            # Hidden by another program's marker alone: hide it from readers of the V1 rules, too.
            settle_markers(self._store, self._chains, chain)
        if self._fence is not None:
            self._keep_out(view, chain, self._fence)
        kept = self._delete_files(chain, progress)
        if kept is None:
            return  # a helper finished it
        try:
            chain = self._chains.advance(
                chain,
                State.PURGED,
                action="purge",
                version=kept,
                manifest=self._commits.digest(name, kept),
                protected=False,
            )
        except ConcurrentModificationError:
            return  # only a helper can have put the next decision: it is purged
        settle_markers(self._store, self._chains, chain)

    def _keep_out(self, view: TableView, chain: Chain, fence: Callable[[str], None]) -> None:
        """Put an announced purge back where another name uses the files."""
        try:
            fence(view.name)
        except InvalidTableStateError:
            deleted_at_ms, ttl_ms = view.deletion
            self._chains.advance(
                chain, State.DELETED, action="purge", deleted_at_ms=deleted_at_ms, ttl_ms=ttl_ms
            )
            raise

    def _announce_purge(self, view: TableView) -> Chain:
        match view.state:
            case State.PURGING:
                return view.chain
            case State.DELETED | State.PURGED if self._commits.is_replaced(view):
                raise InvalidTableStateError(replaced(view.name, view.state))
            case State.DELETED | State.REVIVING | State.UNDROPPING | State.CREATING:
                return self._chains.advance(view.chain, State.PURGING, action="purge")
            case State.PURGED if has_late_files(view, self._commits.newest(view.name)):
                return self._chains.advance(view.chain, State.PURGING, action="purge")
            case State.LIVE:
                msg = f"table {quote(view.name)} is live: only a dropped table can be purged"
                raise TableNotFoundError(msg)
            case _:
                msg = f"nothing dropped is named {quote(view.name)}"
                raise TableNotFoundError(msg)

    def _delete_files(self, chain: Chain, progress: Progress | None) -> int | None:
        """Delete everything but the newest manifest, until a listing shows nothing more.

        The files are listed before the chain is read: what is listed while `purging` still ends
        the chain was there before any later table, and no later table uses a name again, since
        the manifest that stays keeps its version numbers going.

        Returns:
            The version whose manifest stays, or None where the chain has moved on.
        """
        files_done = bytes_done = 0
        deleted: set[str] = set()
        while True:
            found = self._store.list_prefix(table_dir(chain.name))
            if self._chains.read(chain.name, since=chain).seq != chain.seq:
                return None
            kept, doomed = _split_for_purge(chain.name, found)
            # What stays listed after its deletion is no file, but a folder that a tool made.
            if deleted.issuperset(meta.path for meta in doomed):
                return kept
            self._store.delete(meta.path for meta in doomed)
            deleted.update(meta.path for meta in doomed)
            files_done += len(doomed)
            bytes_done += sum(meta.size_bytes for meta in doomed)
            if progress:
                progress(files_done, bytes_done)


def _require_over(view: TableView, now_ms: int) -> None:
    """Keep a table that came back and was dropped anew since somebody saw its time to be over."""
    if view.state not in {State.DELETED, State.REVIVING, State.UNDROPPING}:
        return
    deleted_at_ms, ttl_ms = view.deletion
    if ttl_ms is None or deleted_at_ms + ttl_ms > now_ms:
        msg = f"{quote(view.name)} was dropped anew meanwhile: its time in the trash is not over"
        raise ConcurrentModificationError(msg)


def _split_for_purge(name: str, found: list[ObjectMeta]) -> tuple[int, list[ObjectMeta]]:
    """Tell the version whose manifest stays and the files that go."""
    prefix = f"{table_dir(name)}/{VERSIONS_DIR}/"
    versions = {
        version: meta.path
        for meta in found
        if meta.path.startswith(prefix)
        and (version := parse_manifest(meta.path.removeprefix(prefix))) is not None
    }
    newest = max(versions, default=0)
    stays = {nested_marker_path(name), versions.get(newest)}
    return newest, [meta for meta in found if meta.path not in stays]
