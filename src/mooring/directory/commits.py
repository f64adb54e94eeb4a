"""Commits of table versions that hold only while a chain stands.

A creation or a restore is a Lance commit of exactly one version number. It lists the versions,
then looks whether its own decision still ends the chain, then commits the next number. Whoever
takes the table over puts a decision first and lists versions later still, so of two that overlap
one finds its number taken.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mooring.directory.decisions import UNDO_RENAME, State
from mooring.directory.layout import table_dir
from mooring.errors import (
    ConcurrentModificationError,
    ServiceUnavailableError,
    UnknownOutcomeError,
)
from mooring.hints import suggest
from mooring.identifiers import quote
from mooring.tables.seal import lift_seal, read_seal
from mooring.tables.versions import list_versions, newest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from mooring.directory.chain import Chain, Chains
    from mooring.directory.decisions import Decision
    from mooring.directory.view import TableView
    from mooring.store import Store
    from mooring.tables.api import StagedTable, TableFiles

__all__ = ["VersionCommits", "being_renamed", "replaced"]

_ROUNDS = 16


def replaced(name: str, state: State) -> str:
    """Word what to do about a table that another program has replaced."""
    verb = "table undrop" if state is State.DELETED else "table register"
    return (
        f"another program has put a table of its own into the directory of {quote(name)}:"
        f' take it into the catalog with "{suggest(verb, name)}"'
    )


def being_renamed(name: str) -> ConcurrentModificationError:
    """Word why a table cannot be changed while a rename of it is under way."""
    msg = (
        f"table {quote(name)} is being renamed: if that was cut off, rename it again to finish it,"
        f' or undo it with "{suggest("table undrop", name)}"'
    )
    return ConcurrentModificationError(msg)


class VersionCommits:
    """Stages and commits versions of tables under their chains."""

    def __init__(
        self,
        store: Store,
        chains: Chains,
        tables: Callable[[], TableFiles],
        is_held: Callable[[str, str], bool] | None = None,
    ) -> None:
        """Work on a store.

        Args:
            store: The catalog's store.
            chains: Its chains of decisions.
            tables: Opens what writes tables; called only when one is written.
            is_held: Whether the rename of a table that has this nonce is still under way; None
                where there is no manifest, and so no rename.
        """
        self._is_held = is_held
        self._store = store
        self._chains = chains
        self._tables = tables

    def newest(self, name: str) -> int:
        """Return a table's newest version, 0 where it has none."""
        return newest_version(self._store, table_dir(name))

    def is_written(self, name: str) -> bool:
        """Whether a table has a version; one that is only declared has none."""
        return self.newest(name) > 0

    def has(self, name: str, version: int) -> bool:
        """Whether a table still has a version."""
        return version in list_versions(self._store, table_dir(name))

    def digest(self, name: str, version: int) -> str | None:
        """Return the digest of a version's manifest; None where there is none."""
        path = list_versions(self._store, table_dir(name)).get(version)
        body = self._store.get(path) if path else None
        return None if body is None else hashlib.sha256(body).hexdigest()

    def is_replaced(self, view: TableView) -> bool:
        """Whether another program has put a table of its own where a dropped or purged one was.

        It deleted the directory, which no marker kept it from, and wrote a new one: its data is
        nobody's to purge. Versions that were added to the old table do not count.

        Raises:
            ConcurrentModificationError: the table was changed since it was looked at.
        """
        decision = view.chain.decision
        if decision is None or not decision.manifest or decision.version is None:
            return False
        found = self.digest(view.name, decision.version)
        # Where the manifest is gone and newer ones are there, the old table was added to.
        if found == decision.manifest or (found is None and not self._restarted(view, decision)):
            return False
        # Unless somebody has purged or created the table since it was looked at.
        self.require_end(view.chain, "look")
        return True

    def _restarted(self, view: TableView, decision: Decision) -> bool:
        return 0 < self.newest(view.name) < (decision.version or 0)

    def reopen(self, view: TableView) -> TableView:
        """Make the directory of a hidden table writable again, if a rename has closed it.

        What lies there tells: a rename that was cut off or lost has closed it without a decision.
        A decision hides the table first, so that no rename which is under way can go on.

        Returns:
            The table, with the decision that hides it now.

        Raises:
            ConcurrentModificationError: somebody else's decision follows.
        """
        if not self._may_be_sealed(view.chain):
            return view
        if read_seal(self._store, table_dir(view.name)).nonce is None:
            return view
        if view.chain.state in {None, State.LIVE, State.RENAMING}:
            view = self._hide(view)
        self.unseal(view.chain)
        return view

    def _may_be_sealed(self, chain: Chain) -> bool:
        """Whether a look is worth it: without a manifest nobody renames, save for what is told."""
        return self._is_held is not None or chain.is_sealed

    def _hide(self, view: TableView) -> TableView:
        """Decide that a table is dropped which a marker or a rename hides."""
        decision = view.chain.decision
        deleted_at_ms, ttl_ms = view.deletion
        if decision is not None and decision.state is State.RENAMING:
            deleted_at_ms = decision.at_ms
        chain = self._chains.advance(
            view.chain,
            State.DELETED,
            action=UNDO_RENAME,
            deleted_at_ms=deleted_at_ms,
            ttl_ms=ttl_ms,
            consumed=view.marks,
        )
        return replace(view, chain=chain)

    def require_open(self, chain: Chain) -> None:
        """Before a live table is written to: open it again where a rename left it closed.

        Raises:
            ConcurrentModificationError: a rename that is under way has closed it, or somebody
                else's decision follows.
        """
        if self._is_held is None:
            return
        seal = read_seal(self._store, table_dir(chain.name))
        if seal.nonce is None:
            return
        # The seal first, then who holds it: an intent that is gone does not come back.
        if self._is_held(chain.name, seal.nonce):
            raise being_renamed(chain.name)
        self.unseal(chain, seal.nonce)

    def unseal(self, chain: Chain, nonce: str | None = None) -> None:
        """Lift the seal of a rename that nobody can finish, as long as ``chain`` is the end.

        Raises:
            ConcurrentModificationError: it is not.
        """
        directory = table_dir(chain.name)
        lift_seal(self._store, directory, lambda: self.require_end(chain, "look"), nonce)

    def stage(self, chain: Chain, rows: pa.RecordBatchReader) -> StagedTable:
        """Write data files of a table; nothing is visible yet."""
        with self._blaming(chain, "write"):
            return self._tables().stage(table_dir(chain.name), rows)

    def discard(self, staged: StagedTable) -> None:
        """Delete the files of a stage that was never committed."""
        self._tables().discard(staged)

    def commit_first(self, staged: StagedTable, chain: Chain) -> bool:
        """Commit version 1 of a table that has none: the manifest's put is the decision.

        Returns:
            False, with the stage discarded, where somebody else's came first.

        Raises:
            ConcurrentModificationError: the table was hidden meanwhile.
        """
        with self._discarding(staged):
            taken = self.newest(chain.name) > 0 or not self._commit_one(staged, chain)
        if taken:
            self.discard(staged)
            self._require_not_hidden(chain)
            return False
        # A table that was not hidden since was not purged, so version 1 is the newest. Else it
        # may be a number that a whole life of the table, gone by meanwhile, has set free.
        self.require_live_since(chain, 1)
        return True

    def _require_not_hidden(self, chain: Chain) -> None:
        """Refuse to call a table existing whose number was taken by a later, unfinished one."""
        if any(
            link.state is not State.LIVE for link in self._chains.history(chain.name, chain.seq)
        ):
            msg = f"table {quote(chain.name)} was changed by somebody else during this create"
            raise ConcurrentModificationError(msg)

    def require_live_since(self, chain: Chain, version: int) -> None:
        """After a commit, refuse to call it a success if the table was hidden meanwhile.

        Raises:
            ConcurrentModificationError: it was.
            UnknownOutcomeError: the store did not tell.
        """
        try:
            since = self._chains.history(chain.name, after=chain.seq)
        except ServiceUnavailableError as exc:
            msg = f"table {quote(chain.name)} was written as version {version}, unconfirmed: {exc}"
            raise UnknownOutcomeError(msg) from exc
        if any(link.state is not State.LIVE for link in since):
            msg = (
                f"table {quote(chain.name)} was written as version {version}, but dropped or"
                " created again by somebody else meanwhile: look what it holds"
            )
            raise ConcurrentModificationError(msg)

    def commit_next(self, staged: StagedTable, end: Chain, action: str) -> int:
        """Commit the version after the newest, as long as ``end`` ends the chain.

        Raises:
            ConcurrentModificationError: it does not; the stage is discarded.
        """
        with self._discarding(staged):
            return self._commit(end, action, lambda version: self._tables().commit(staged, version))

    def restore(self, version: int, end: Chain, action: str) -> int:
        """Commit an older version's content as the next, as long as ``end`` ends the chain.

        Raises:
            ConcurrentModificationError: it does not.
        """
        directory = table_dir(end.name)
        return self._commit(
            end, action, lambda new: self._tables().restore(directory, version, new)
        )

    def require_end(self, chain: Chain, action: str) -> None:
        """Refuse to go on where somebody else's decision follows.

        Raises:
            ConcurrentModificationError: one does.
        """
        if self._chains.read(chain.name, since=chain).seq != chain.seq:
            msg = f"table {quote(chain.name)} was changed by somebody else during this {action}"
            raise ConcurrentModificationError(msg)

    def _commit_one(self, staged: StagedTable, chain: Chain) -> bool:
        try:
            with self._blaming(chain, "create"):
                return self._tables().commit(staged, 1)
        except UnknownOutcomeError:
            raise
        except ServiceUnavailableError:
            # A creator that failed has pruned the directory under this one, which also failed.
            if self.newest(chain.name):
                return False
            raise

    def _commit(self, end: Chain, action: str, commit: Callable[[int], bool]) -> int:
        for _ in range(_ROUNDS):
            version = self.newest(end.name) + 1
            self.require_end(end, action)
            with self._blaming(end, action):
                if commit(version):
                    return version
        msg = f"other writers kept committing to {quote(end.name)} during this {action}"
        raise ConcurrentModificationError(msg)

    @contextmanager
    def _discarding(self, staged: StagedTable) -> Iterator[None]:
        """Leave nothing of a commit that certainly did not happen."""
        try:
            yield
        except UnknownOutcomeError:
            raise
        except (ConcurrentModificationError, ServiceUnavailableError):
            self.discard(staged)
            raise

    @contextmanager
    def _blaming(self, chain: Chain, action: str) -> Iterator[None]:
        """Blame a failure of Lance on whoever changed the table meanwhile, if anybody did.

        A purge takes away the files that Lance is about to write or rename.
        """
        try:
            yield
        except UnknownOutcomeError:
            raise
        except ServiceUnavailableError as exc:
            self.require_end(chain, action)
            if read_seal(self._store, table_dir(chain.name)).nonce is not None:
                raise being_renamed(chain.name) from exc
            raise
