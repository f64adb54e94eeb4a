"""Commits of table versions that hold only while a chain stands.

A creation or a restore is a Lance commit of exactly one version number. It lists the versions,
then looks whether its own decision still ends the chain, then commits the next number. Whoever
takes the table over puts a decision first and lists versions later still, so of two that overlap
one finds its number taken.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mooring.directory.decisions import State
from mooring.directory.layout import table_dir
from mooring.errors import (
    ConcurrentModificationError,
    ServiceUnavailableError,
    UnknownOutcomeError,
)
from mooring.identifiers import quote
from mooring.tables.versions import newest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from mooring.directory.chain import Chain, Chains
    from mooring.store import Store
    from mooring.tables.api import StagedTable, TableFiles

__all__ = ["VersionCommits"]

_ROUNDS = 16


class VersionCommits:
    """Stages and commits versions of tables under their chains."""

    def __init__(self, store: Store, chains: Chains, tables: Callable[[], TableFiles]) -> None:
        """Work on a store.

        Args:
            store: The catalog's store.
            chains: Its chains of decisions.
            tables: Opens what writes tables; called only when one is written.
        """
        self._store = store
        self._chains = chains
        self._tables = tables

    def newest(self, name: str) -> int:
        """Return a table's newest version, 0 where it has none."""
        return newest_version(self._store, table_dir(name))

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
        taken = self.newest(chain.name) > 0
        with self._blaming(chain, "create"):
            taken = taken or not self._tables().commit(staged, 1)
        if taken:
            self.discard(staged)
            return False
        # A table that was not hidden since was not purged, so version 1 is the newest. Else it
        # may be a number that a whole life of the table, gone by meanwhile, has set free.
        since = self._chains.history(chain.name)[chain.seq :]
        if any(link.state is not State.LIVE for link in since):
            msg = f"table {quote(chain.name)} was dropped while it was being created"
            raise ConcurrentModificationError(msg)
        return True

    def commit_next(self, staged: StagedTable, end: Chain, action: str) -> int:
        """Commit the version after the newest, as long as ``end`` ends the chain.

        Raises:
            ConcurrentModificationError: it does not; the stage is discarded.
        """
        try:
            return self._commit(end, action, lambda version: self._tables().commit(staged, version))
        except ConcurrentModificationError:
            self.discard(staged)
            raise

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
    def _blaming(self, chain: Chain, action: str) -> Iterator[None]:
        """Blame a failure of Lance on whoever changed the table meanwhile, if anybody did.

        A purge takes away the files that Lance is about to write or rename.
        """
        try:
            yield
        except UnknownOutcomeError:
            raise
        except ServiceUnavailableError:
            self.require_end(chain, action)
            raise
