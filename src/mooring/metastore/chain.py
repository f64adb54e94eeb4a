"""The chain of commits: numbered, create-only objects, of which each decides one commit.

Spec: deltacat-storage-model, "Transaction Log Directory"; the chain itself is ours.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mooring.metastore.checkpoint import load_checkpoint, save_checkpoint
from mooring.metastore.dialect import DOCUMENT
from mooring.metastore.entry import decode_entry, encode_entry
from mooring.metastore.layout import commit_path
from mooring.metastore.timeline import Timeline
from mooring.store.numbered import create_once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.metastore.dialect import Dialect
    from mooring.metastore.entry import Entry, Record
    from mooring.store import Store

__all__ = ["CommitChain"]

# A checkpoint pays when this many entries follow the last, and a share of all objects.
_FEWEST = 64
_SHARE = 8


class CommitChain:
    """The commits of a metastore, and the state that follows from them."""

    def __init__(self, store: Store, until: int | None = None, dialect: Dialect = DOCUMENT) -> None:
        """Read a chain, or its beginning up to an entry; nothing is read yet."""
        self._store = store
        self.dialect = dialect
        self._until = until
        self._reading = threading.Lock()
        self._entries: dict[int, Entry] = {}
        self._is_open = False
        self._checkpoint = 0
        self.timeline = Timeline()

    def refresh(self) -> int:
        """Read what was committed since, and return the number of the newest entry."""
        with self._reading:
            if not self._is_open:
                self._open()
            while True:
                seq = self.timeline.seq + 1
                if self._until is not None and seq > self._until:
                    return self.timeline.seq
                body = self._store.get(commit_path(seq))
                if body is None:
                    return self.timeline.seq
                self._take(seq, decode_entry(body, commit_path(seq)))

    def _open(self) -> None:
        found = load_checkpoint(self._store, self._until)
        if found is not None:
            self.timeline = Timeline.begin_at(found)
            self._checkpoint = found.seq
        self._is_open = True

    def checkpoint_if_due(self) -> bool:
        """Write a checkpoint where opening has become dear; tell whether it was."""
        tail = self.timeline.seq - self._checkpoint
        if tail < max(_FEWEST, len(self.timeline) // _SHARE):
            return False
        self.checkpoint()
        return True

    def checkpoint(self) -> None:
        """Write a checkpoint of the newest state, and the logs of what it covers before."""
        with self._reading:
            state = self.timeline.checkpoint()
            entries = self.between(self._checkpoint, state.seq)
        self._complete_logs(record for entry in entries for record in entry.records)
        save_checkpoint(self._store, state)
        self._checkpoint = max(self._checkpoint, state.seq)

    def _complete_logs(self, records: Iterable[Record]) -> None:
        """Write the logs of transactions whose processes died before they did."""
        bodies = dict(self.dialect.log(record) for record in records)
        missing = bodies.keys() - self._store.existing(list(bodies))
        for path in sorted(missing):
            self._store.put(path, bodies[path], derived=True)

    def append(self, seq: int, entry: Entry) -> bool:
        """Commit an entry as exactly this number; False where another is there.

        Raises:
            UnknownOutcomeError: the store never said.
        """
        if not create_once(self._store, commit_path(seq), encode_entry(entry)):
            return False
        with self._reading:
            if self.timeline.seq == seq - 1:
                self._take(seq, entry)
        return True

    def is_committed(self, txn_id: str) -> bool:
        """In the chain, as far as it is read; what is older has its log."""
        if self.timeline.committed_at(txn_id) is not None:
            return True
        return self.dialect.is_logged(txn_id, lambda path: self._store.head(path) is not None)

    def entry(self, seq: int) -> Entry | None:
        """Return one entry, however old; None where there is none."""
        known = self._entries.get(seq)
        if known is not None:
            return known
        body = self._store.get(commit_path(seq))
        return None if body is None else decode_entry(body, commit_path(seq))

    def between(self, after: int, until: int) -> list[Entry]:
        """Return the entries after one, up to another."""
        return [self._entries[seq] for seq in range(after + 1, until + 1)]

    def _take(self, seq: int, entry: Entry) -> None:
        # Before the state moves on: whoever sees the number finds the entry.
        self._entries[seq] = entry
        self.timeline.apply(seq, entry)
