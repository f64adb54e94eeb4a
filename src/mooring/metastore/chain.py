"""The chain of commits: numbered, create-only objects, of which each decides one commit.

Spec: deltacat-storage-model, "Transaction Log Directory"; the chain itself is ours.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.errors import (
    InvalidInputError,
    ProtectedError,
    ServiceUnavailableError,
    UnreadableError,
)
from mooring.metastore.checkpoint import find_checkpoint, load_checkpoint, save_checkpoint
from mooring.metastore.dialect import DOCUMENT, View
from mooring.metastore.entry import Entry, decode_entry, encode_entry
from mooring.metastore.layout import commit_path
from mooring.metastore.model import decode_object
from mooring.metastore.timeline import Timeline
from mooring.store.numbered import create_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mooring.metastore.dialect import Dialect, Others
    from mooring.metastore.entry import Record
    from mooring.metastore.model import MetaObject
    from mooring.metastore.timeline import Ids, Parts
    from mooring.store import Store

__all__ = ["CommitChain", "Snapshot"]

# A checkpoint pays when this many entries follow the last, and a share of all objects.
_FEWEST = 64
_SHARE = 32
# So many of the newest entries are kept, for the transactions that are yet to be checked against
# them; what is older is read again.
_KEPT = 1024
# A service is asked for some entries at once, by who has read as many as these one by one.
_ONE_BY_ONE = 8
_AT_ONCE = 16
_LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state.

    Attributes:
        timeline: What it is read from; it stays as it is for states that it has.
        seq: The entry whose state it is.
    """

    timeline: Timeline
    seq: int


class CommitChain:
    """The commits of a metastore, and the state that follows from them."""

    def __init__(
        self,
        store: Store,
        until: int | None = None,
        dialect: Dialect = DOCUMENT,
        *,
        beside_others: bool = False,
    ) -> None:
        """Read a chain, or its beginning up to an entry; nothing is read yet.

        Args:
            store: Where it lies.
            until: The last entry to read.
            dialect: The layout beside it.
            beside_others: Whether to commit while others commit to the layout by other rules.
        """
        self._store = store
        self._beside_others = beside_others
        self._others = dialect.others(store) if until is None else None
        # Commits of others that no entry holds yet, by the numbers that they would have.
        self._visiting: dict[int, Entry] = {}
        self._certain = 0
        self._uncertain = 0
        self.dialect = dialect
        self._until = until
        self._is_remote = "://" in store.location("")
        self._reading = threading.Lock()
        self._entries: dict[int, Entry] = {}
        self._is_open = False
        self._checkpoint = 0
        self.timeline = Timeline()
        # Whoever opens a place for writing refuses here, or sets it up.
        self.before_writing: Callable[[], None] = lambda: None

    def refresh(self) -> int:
        """Read what was committed since, and return the number of the newest entry."""
        return self.snapshot().seq

    def snapshot(self) -> Snapshot:
        """Read what was committed since, and return the newest state."""
        with self._reading:
            if not self._is_open:
                self._open()
            self._catch_up()
            self._see_others()
            self._renew_if_long()
            return Snapshot(self.timeline, self.timeline.seq)

    def at(self, seq: int) -> Snapshot:
        """Return the state of an entry, however old.

        Raises:
            InvalidInputError: there is no such entry.
        """
        newest = self.snapshot()
        if not 0 <= seq <= newest.seq:
            msg = f"there is no state {seq}: the newest is {newest.seq}"
            raise InvalidInputError(msg)
        if seq >= newest.timeline.begins_at:
            return Snapshot(newest.timeline, seq)
        # Before what is kept here: read from an older checkpoint.
        return CommitChain(self._store, until=seq, dialect=self.dialect).snapshot()

    def _catch_up(self) -> None:
        """Read on; where many entries follow and a service has them, some at once."""
        read = 0
        while self._read_on(_AT_ONCE if read >= _ONE_BY_ONE and self._is_remote else 1):
            read += 1

    def _read_on(self, count: int) -> bool:
        """Take in the next entries, up to so many; tell whether there may be more."""
        first = self._stored + 1
        last = first + count - 1 if self._until is None else min(first + count - 1, self._until)
        following = self._fetch_all(range(first, last + 1))
        for seq, entry in zip(range(first, last + 1), following, strict=True):
            if entry is None:
                return False  # what was read behind it came later
            if seq != self._stored + 1:
                return True  # begun anew
            self._accept(seq, entry)
        return bool(following)

    @property
    def _stored(self) -> int:
        """The newest entry that is read from the chain."""
        return self.timeline.seq - len(self._visiting)

    def _open(self) -> None:
        found = load_checkpoint(self._store, self._until)
        if found is not None:
            self.timeline = Timeline.begin_at(found)
            self._checkpoint = found.seq
            if self._others is not None:
                self._others.begin_at(found.recent)
        self._is_open = True

    # -- commits of others -----------------------------------------------------------------------

    def settle(self) -> int:
        """Refresh so that nothing lies outside of the chain; return the newest entry.

        Raises:
            ProtectedError: others commit here, and nobody said that this may be done beside them.
        """
        while True:
            newest = self.snapshot().seq
            if self._others is None:
                return newest
            if not self._beside_others:
                self._refuse_others(self._others)
            with self._reading:
                if not self._visiting:
                    return self.timeline.seq
            self.adopt()

    def prepare(self) -> None:
        """Find out whether a commit may be tried, before anything is written for it.

        Raises:
            ProtectedError: others commit here, and nobody said that this may be done beside them.
        """
        self.before_writing()
        if self._others is not None and not self._beside_others:
            self.settle()

    def adopt(self) -> int:
        """Take commits of others into the chain, one entry each; return how many."""
        count = 0
        while True:
            self.snapshot()
            with self._reading:
                pending = list(self._visiting.items())
            if not pending:
                return count
            for seq, entry in pending:
                if not self.append(seq, entry):
                    break
                count += 1

    def look_everywhere(self) -> None:
        """Look for commits of others from the beginning on, by all entries of the chain.

        Who commits by a clock that is behind may have come in where nobody looks any more.
        """
        others = self.dialect.others(self._store)
        if others is None:
            return
        for _, entry in self.backwards(self.snapshot().seq):
            others.note(record.txn_id for record in entry.records)
        with self._reading:
            self._others = others

    def _see_others(self) -> None:
        """Show commits of others after the newest entry; the store stays as it is."""
        if self._others is None or not self._others.look():
            return
        # Whoever commits to the chain has an entry there before a log.
        self._catch_up()
        for record in self._others.commits(self.timeline):
            # Whoever takes it into the chain puts the same entry.
            entry = Entry(nonce=record.txn_id, records=(record,))
            seq = self.timeline.seq + 1
            self._visiting[seq] = entry
            self._take(seq, entry)

    def _accept(self, seq: int, entry: Entry) -> None:
        """Take in an entry of the chain, which may be a commit of others that is known."""
        expected = self._visiting.get(seq)
        if self._others is not None:
            self._others.note(record.txn_id for record in entry.records)
        if expected is None:
            self._take(seq, entry)
        elif expected.records == entry.records and not entry.aborted:
            self._entries[seq] = self._visiting.pop(seq)
        else:
            self._reopen()

    def _reopen(self) -> None:
        """Begin anew: the chain has other entries than the commits of others that were shown."""
        self._certain = min(self._certain, self._stored) if self._uncertain else self._stored
        self._uncertain = max(self._uncertain, self.timeline.seq)
        self._visiting.clear()
        self._entries.clear()
        self._others = self.dialect.others(self._store)
        self.timeline = Timeline()
        self._open()

    def _refuse_others(self, others: Others) -> None:
        with self._reading:
            pending = len(self._visiting)
        running = [] if pending else others.running()
        if not pending and not running:
            return
        what = (
            f"{pending} commits of {others.name} are not adopted: adopt them first"
            if pending
            else f"{others.name} has transactions running ({', '.join(running[:3])}): wait for them"
        )
        msg = (
            f"{what}, or open with beside_others=True to write beside {others.name}, "
            f"whose own writers take no notice of a commit that comes at the same time"
        )
        raise ProtectedError(msg)

    # -- checkpoints -----------------------------------------------------------------------------

    @property
    def checkpointed(self) -> int:
        """The entry up to which a checkpoint is known."""
        return self._checkpoint

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
            if self._visiting:
                return  # the state is not only that of the chain
            state = self.timeline.checkpoint()
            if self._others is not None:
                state = replace(state, recent=self._others.recent())
            first = self._checkpoint + 1
            entries = list(enumerate(self.between(self._checkpoint, state.seq), first))
        self._complete_logs(
            (seq, record)
            for seq, entry in entries
            for record in entry.records
            if not record.adopted
        )
        save_checkpoint(self._store, state)
        self._checkpoint = max(self._checkpoint, state.seq)

    def _complete_logs(self, records: Iterable[tuple[int, Record]]) -> None:
        """Write the logs of transactions whose processes died before they did."""
        bodies = dict(self.dialect.log(record, self._view(seq)) for seq, record in records)
        missing = bodies.keys() - self._store.existing(list(bodies))
        for path in sorted(missing):
            self._store.put(path, bodies[path], derived=True)

    def _view(self, seq: int) -> View:
        timeline = self.timeline
        known = max(seq, timeline.begins_at)

        def name_of(ids: Ids) -> Parts:
            return timeline.name(ids, known) or (ids[-1],)

        def value_of(ids: Ids) -> MetaObject | None:
            change = timeline.find(ids, known)
            return None if change is None else decode_object(change.body or b"", "/".join(ids))

        return View(name_of, value_of)

    def append(self, seq: int, entry: Entry) -> bool:
        """Commit an entry as exactly this number; False where another is there.

        Raises:
            UnknownOutcomeError: the store never said.
        """
        self.before_writing()
        if not create_once(self._store, commit_path(seq), encode_entry(entry)):
            return False
        with self._reading:
            if self._stored == seq - 1:
                self._accept(seq, entry)
        return True

    def is_committed(self, txn_id: str) -> bool:
        """In the chain, as far as it is read; what is older has its log."""
        if self.timeline.committed_at(txn_id) is not None:
            return True
        return self.dialect.is_logged(txn_id, self._store)

    def committed(self, txn_ids: Iterable[str]) -> set[str]:
        """Return those of some transactions that the chain holds, and read all of it for them.

        A log that is not there proves nothing: a power cut may have taken it.
        """
        wanted = set(txn_ids)
        found = {one for one in wanted if self.timeline.committed_at(one) is not None}
        older = self.backwards(self._checkpoint)
        while found != wanted and (following := next(older, None)) is not None:
            found |= wanted & {record.txn_id for record in following[1].records}
        return found

    def is_held(self, txn_id: str) -> bool:
        """Whether somebody works on a transaction whom an entry of the chain does not stop."""
        return self.dialect.is_held(txn_id, self._store)

    def entry(self, seq: int) -> Entry | None:
        """Return one entry, however old; None where there is none."""
        return self._known(seq) or self._fetch(seq)

    def between(self, after: int, until: int) -> list[Entry]:
        """Return the entries after one, up to another.

        Raises:
            UnreadableError: one of them is gone.
        """
        if self._certain < after <= self._uncertain:
            after = self._certain  # the numbers meant other commits then
        return self._read(range(after + 1, until + 1))

    def backwards(self, newest: int) -> Iterator[tuple[int, Entry]]:
        """Go through the entries from one back to the first.

        Raises:
            UnreadableError: one of them is gone.
        """
        size = 1
        while newest > 0:
            seqs = range(newest, max(newest - size, 0), -1)
            yield from zip(seqs, self._read(seqs), strict=True)
            newest -= size
            size = min(2 * size, _LARGEST_BATCH)

    def _read(self, seqs: Sequence[int]) -> list[Entry]:
        """Return entries, those that are not kept by several requests at once."""
        found = {seq: entry for seq in seqs if (entry := self._known(seq)) is not None}
        absent = [seq for seq in seqs if seq not in found]
        for seq, entry in zip(absent, self._fetch_all(absent), strict=True):
            if entry is None:
                msg = f"'{commit_path(seq)}' is gone: restore it from a copy"
                raise UnreadableError(msg)
            found[seq] = entry
        return [found[seq] for seq in seqs]

    def _known(self, seq: int) -> Entry | None:
        # Those of others are in no object of the chain.
        return self._entries.get(seq) or self._visiting.get(seq)

    def _fetch_all(self, seqs: Sequence[int]) -> list[Entry | None]:
        """Read entries; a service is asked for several at once."""
        if len(seqs) <= 1 or not self._is_remote:
            return [self._fetch(seq) for seq in seqs]
        with ThreadPoolExecutor(min(_AT_ONCE, len(seqs))) as readers:
            return list(readers.map(self._fetch, seqs))

    def _fetch(self, seq: int) -> Entry | None:
        path = commit_path(seq)
        body = self._store.get(path)
        return None if body is None else decode_entry(body, path)

    def _take(self, seq: int, entry: Entry) -> None:
        # Before the state moves on: whoever sees the number finds the entry.
        self._entries[seq] = entry
        self._entries.pop(seq - _KEPT, None)
        self.timeline.apply(seq, entry)

    def _renew_if_long(self) -> None:
        """Forget older states; transactions that read them keep the timeline that has them."""
        known = self.timeline.seq - self.timeline.begins_at
        if self._visiting or known < max(_KEPT, len(self.timeline) // _SHARE):
            return
        # Up to a checkpoint there are logs that tell who committed; later ones may be to come.
        with suppress(ServiceUnavailableError):
            self._checkpoint = max(self._checkpoint, find_checkpoint(self._store))
        self.timeline = self.timeline.renewed(remembers=self._checkpoint)
