"""A metastore: one chain of commits over a store, and the transactions on it."""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import islice
from random import uniform
from time import sleep as pause
from typing import TYPE_CHECKING, TypeVar

from mooring.clock import RandomIds, SystemClock
from mooring.errors import ConcurrentModificationError, TransactionNotFoundError
from mooring.identifiers import quote
from mooring.metastore.chain import CommitChain
from mooring.metastore.committer import Committer
from mooring.metastore.dialect import DOCUMENT
from mooring.metastore.entry import Entry, decode_record
from mooring.metastore.layout import log_path, parse_stage
from mooring.metastore.sweep import find_leftovers, sweep
from mooring.metastore.transaction import Transaction
from mooring.metastore.vacuum import Stray, find_strays, vacuum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mooring.clock import Clock, IdSource
    from mooring.metastore.dialect import Dialect
    from mooring.metastore.entry import Record
    from mooring.metastore.model import DataFile
    from mooring.metastore.sweep import Leftover
    from mooring.store import Store

__all__ = ["Measure", "Metastore"]

T = TypeVar("T")
_ATTEMPTS = 100
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.25


@dataclass(frozen=True, slots=True)
class Measure:
    """How large a metastore is.

    Attributes:
        commits: Entries of the chain.
        checkpoint: The entry of the newest checkpoint.
        objects: How many objects there are or were.
    """

    commits: int
    checkpoint: int
    objects: int


class Metastore:
    """Objects of a catalog, read and changed in transactions."""

    def __init__(
        self,
        store: Store,
        *,
        author: str,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        dialect: Dialect = DOCUMENT,
        beside_others: bool = False,
    ) -> None:
        """Open a metastore; nothing is read or written yet.

        Args:
            store: Where it lies.
            author: In whose name to commit.
            clock: Stamps commits.
            ids: Makes ids and nonces.
            dialect: How its objects lie in it.
            beside_others: Whether to write while others do who commit by rules of their own.
        """
        self.store = store
        self.author = author
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self.dialect = dialect
        self.chain = CommitChain(store, dialect=dialect, beside_others=beside_others)
        self._committer = Committer(self.chain, self._ids)

    def in_name_of(self, author: str) -> Metastore:
        """Return the same metastore for somebody else; what both commit at once shares a put."""
        other = copy(self)
        other.author = author
        return other

    def begin(self, *, message: str | None = None, at: int | None = None) -> Transaction:
        """Begin a transaction on the newest state, or to read that of an older entry.

        Raises:
            InvalidInputError: there is no such entry.
        """
        return Transaction(
            self.store,
            self.chain,
            author=self.author,
            clock=self._clock,
            ids=self._ids,
            committer=self._committer,
            dialect=self.dialect,
            state=self.chain.snapshot() if at is None else self.chain.at(at),
            message=message,
            is_read_only=at is not None,
        )

    def measure(self) -> Measure:
        """Tell how long the history is, and how much an opening reads of it."""
        newest = self.chain.snapshot()
        return Measure(newest.seq, self.chain.checkpointed, len(newest.timeline))

    def transactions(
        self, limit: int | None = None, *, before: int | None = None
    ) -> Iterator[tuple[int, Record]]:
        """Go through the committed transactions, the newest first, with their entries.

        Args:
            limit: At most so many.
            before: Only those of entries before this one.
        """
        newest = self.chain.refresh()
        found = (
            (seq, record)
            for seq, entry in self.chain.backwards(min(newest, (before or newest + 1) - 1))
            for record in reversed(entry.records)
        )
        return islice(found, limit)

    def find_transaction(self, txn_id: str) -> tuple[int, Record]:
        """Return a committed transaction and the entry that holds it.

        Raises:
            TransactionNotFoundError: no committed transaction has this id.
        """
        newest = self.chain.snapshot()
        known = newest.timeline.committed_at(txn_id)
        for seq, entry in self.chain.backwards(known or newest.timeline.begins_at):
            for record in entry.records:
                if record.txn_id == txn_id:
                    return seq, record
        msg = f"no transaction {quote(txn_id)} is committed"
        raise TransactionNotFoundError(msg)

    def find_record(self, txn_id: str) -> Record | None:
        """Return a committed transaction by its log, or by the chain; None where there is none."""
        body = self.store.get(log_path(txn_id))
        if body is not None:
            return decode_record(body, log_path(txn_id))
        try:
            return self.find_transaction(txn_id)[1]
        except TransactionNotFoundError:
            return None

    def state_at(self, *, txn_id: str | None = None, time_ms: int | None = None) -> int:
        """Return the entry of a transaction, or the last that was stamped until a time.

        Stamps are of the clocks of those who committed; an entry whose clock was ahead is passed
        over, and no state is ever anything but that of one entry.

        Raises:
            TransactionNotFoundError: no committed transaction has this id.
        """
        if txn_id is not None:
            return self.find_transaction(txn_id)[0]
        if time_ms is None:
            return self.chain.refresh()
        return next((seq for seq, one in self.transactions() if one.end_ms <= time_ms), 0)

    def adopt_commits(self, *, everywhere: bool = False) -> int:
        """Take what others committed by rules of their own into the chain; return how many.

        Args:
            everywhere: Look from the beginning on, for commits by clocks that are far behind. That
                reads the whole chain.

        Raises:
            UnknownOutcomeError: the store never said whether the last of them was taken in.
        """
        if everywhere:
            self.chain.look_everywhere()
        return self.chain.adopt()

    @contextmanager
    def transaction(self, *, message: str | None = None) -> Iterator[Transaction]:
        """Commit what is done in a block, all of it; nothing where it raises.

        Raises:
            ConcurrentModificationError: somebody else's commit changed what was read or written.
        """
        transaction = self.begin(message=message)
        yield transaction
        transaction.commit()

    def sweep(self, *, older_than_ms: int, dry_run: bool = False) -> list[Leftover]:
        """Remove what transactions left that never committed, and tell what it was.

        Args:
            older_than_ms: Leave alone who wrote something since.
            dry_run: Only tell.
        """
        before = self._clock.now_ms() - older_than_ms
        found = find_leftovers(self.store, self.chain, before)
        return found if dry_run or not found else sweep(self.store, self.chain, found, self._ids)

    def vacuum(self, *, older_than_ms: int, dry_run: bool = False) -> list[Stray]:
        """Remove data that no object names, and tell what it was.

        States older than this lose the data that only they name.

        Args:
            older_than_ms: Leave alone what was added to since, or was named by any state since.
            dry_run: Only tell.
        """
        before = self._clock.now_ms() - older_than_ms
        found = find_strays(self.store, self.chain, before)
        return found if dry_run or not found else vacuum(self.store, self.chain, found, self._ids)

    def delete_unnamed(self, files: Iterable[DataFile]) -> list[Stray]:
        """Delete those of some data files that no object names; return what was deleted.

        Raises:
            UnknownOutcomeError: the store never said whether they are given up; nothing is deleted.
        """
        staged = {file.path: (parse_stage(file.path), file.size_bytes or 0) for file in files}
        strays = [Stray(path, stage[1], size, 0) for path, (stage, size) in staged.items() if stage]
        return vacuum(self.store, self.chain, strays, self._ids) if strays else []

    def give_up(self, tokens: Iterable[str]) -> None:
        """Let no transaction commit any more that depends on one of these.

        Raises:
            UnknownOutcomeError: the store never said whether they are given up.
        """
        wanted = set(tokens)
        while True:
            newest = self.chain.settle()
            fresh = tuple(sorted(one for one in wanted if not self.chain.timeline.is_aborted(one)))
            if not fresh:
                return
            if self.chain.append(newest + 1, Entry(nonce=self._ids.new_id(), aborted=fresh)):
                return

    def run(self, work: Callable[[Transaction], T], *, message: str | None = None) -> T:
        """Do work in a transaction, again on the new state where somebody else was first.

        Raises:
            ConcurrentModificationError: others were first all the time.
        """
        for attempt in range(_ATTEMPTS):
            transaction = self.begin(message=message)
            result = work(transaction)
            try:
                transaction.commit()
            except ConcurrentModificationError:
                if attempt == _ATTEMPTS - 1:
                    raise
                longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt)
                pause(uniform(0, longest))  # noqa: S311  # only to come at different times
            else:
                return result
        raise AssertionError
