"""Sweeping: finds and removes what transactions left that never committed.

Their files hold their ids. No clock decides that a transaction is dead: it is given up by an entry
of the chain, after which it can commit no more, and only then its files go. Age only picks whom.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.metastore.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.clock import IdSource
    from mooring.metastore.chain import CommitChain
    from mooring.store import Store

__all__ = ["Leftover", "find_leftovers", "sweep"]


@dataclass(frozen=True, slots=True)
class Leftover:
    """What one transaction left that did not commit.

    Attributes:
        txn_id: The transaction.
        paths: Its files.
        size_bytes: How large they are.
        newest_ms: When it wrote the last.
    """

    txn_id: str
    paths: tuple[str, ...]
    size_bytes: int
    newest_ms: int


def find_leftovers(store: Store, chain: CommitChain, written_before_ms: int) -> list[Leftover]:
    """List what transactions left that are not committed and wrote nothing for a while."""
    files: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    logged = set()
    for meta in store.list_prefix(""):
        logged.add(chain.dialect.logged_by(meta.path))
        txn_id = chain.dialect.writer_of(meta.path)
        if txn_id is not None:
            files[txn_id].append((meta.path, meta.size_bytes, meta.modified_ms))
    # After the files: whoever commits meanwhile is found.
    chain.refresh()
    leftovers = []
    for txn_id in sorted(files.keys() - logged):
        own = files[txn_id]
        newest_ms = max(modified for _, _, modified in own)
        if newest_ms < written_before_ms and not _is_wanted(chain, txn_id):
            paths = tuple(path for path, _, _ in own)
            leftovers.append(Leftover(txn_id, paths, sum(size for _, size, _ in own), newest_ms))
    committed = chain.committed(one.txn_id for one in leftovers)
    return [one for one in leftovers if one.txn_id not in committed]


def sweep(
    store: Store, chain: CommitChain, leftovers: Sequence[Leftover], ids: IdSource
) -> list[Leftover]:
    """Give transactions up, then delete what they left; return those that did not commit after all.

    Args:
        store: The metastore's store.
        chain: Its commits.
        leftovers: Of transactions that were not committed when these were found.
        ids: Makes nonces.

    Raises:
        UnknownOutcomeError: the store never said whether they are given up: nothing was deleted.
    """
    while True:
        newest = chain.settle()
        doomed = [one for one in leftovers if not _is_wanted(chain, one.txn_id)]
        fresh = tuple(one.txn_id for one in doomed if not chain.timeline.is_aborted(one.txn_id))
        if not fresh or chain.append(newest + 1, Entry(nonce=ids.new_id(), aborted=fresh)):
            break
    for one in doomed:
        store.delete(one.paths)
    return doomed


def _is_wanted(chain: CommitChain, txn_id: str) -> bool:
    # Held first: whoever commits by other rules than the chain's lets go only afterwards.
    return chain.is_held(txn_id) or chain.is_committed(txn_id)
