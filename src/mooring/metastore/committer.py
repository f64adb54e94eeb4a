"""Commits of one process: whoever waits together shares a put.

One of the waiting threads leads: it takes all requests there are, holds each against the entries
that came after the state it read and against those accepted before it, and puts the accepted ones
as one entry. The order in it is the order of the commits.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.errors import (
    ConcurrentModificationError,
    ServiceUnavailableError,
    UnknownOutcomeError,
)
from mooring.identifiers import quote
from mooring.metastore.entry import Entry
from mooring.store.line import Line, Waiter

if TYPE_CHECKING:
    from mooring.clock import IdSource
    from mooring.errors import MooringError
    from mooring.metastore.chain import CommitChain
    from mooring.metastore.entry import Record

__all__ = ["Committer", "Request", "given_up"]


@dataclass(eq=False)
class Request(Waiter):
    """A transaction that wants to be committed.

    Attributes:
        record: What it did.
        reads: Keys of what it read.
        checked: The entry up to which nothing interferes.
        tokens: What it builds on beside the objects, and a vacuum may give up.
        seq: The entry it was committed by.
        error: Why it was not.
    """

    record: Record
    reads: frozenset[str]
    checked: int
    tokens: frozenset[str] = frozenset()
    seq: int | None = None
    error: MooringError | None = None

    def __post_init__(self) -> None:
        """Come."""
        super().__init__()

    def fail(self, error: MooringError) -> None:
        """Note that the put failed, unless this was refused, or committed, before."""
        if self.seq is None:
            self.error = self.error or error

    def interferes(self, other: Record) -> bool:
        """Whether an earlier commit changed what this one read or writes."""
        keys = self.reads | self.record.writes
        return bool(other.writes & keys or other.touches & self.reads)

    def refusal_by(self, entry: Entry) -> ConcurrentModificationError | None:
        """Say why an entry that came first is in the way; None where it is not."""
        if self.record.txn_id in entry.aborted:
            msg = "a sweep has given the transaction up, for it took too long: begin it again"
            return ConcurrentModificationError(msg)
        # What was given up before the transaction began was refused when it said so.
        for token in self.tokens.intersection(entry.aborted):
            return given_up(token)
        clash = next((other for other in entry.records if self.interferes(other)), None)
        return None if clash is None else _lost(clash)


class Committer:
    """Commits the transactions of one process."""

    def __init__(self, chain: CommitChain, ids: IdSource) -> None:
        """Commit to a chain."""
        self._chain = chain
        self._ids = ids
        self._line: Line[Request] = Line()

    def commit(self, request: Request) -> int:
        """Commit a transaction, with whoever else waits, and return the entry that holds it.

        Raises:
            ConcurrentModificationError: somebody else's commit interferes.
            UnknownOutcomeError: the store never said whether it happened.
        """
        with self._line.joined(request) as is_first:
            if is_first:
                with self._line.served() as batch:
                    self._put(batch)
        if request.error is not None:
            raise request.error
        if request.seq is None:
            raise AssertionError(request)
        return request.seq

    def _put(self, batch: list[Request]) -> None:
        while batch:
            newest = self._chain.settle()
            batch = [request for request in batch if self._is_apart(request, newest)]
            batch = _without_clashes(batch)
            if not batch:
                return
            records = tuple(request.record for request in batch)
            if self._append(newest + 1, Entry(nonce=self._ids.new_id(), records=records)):
                for request in batch:
                    request.seq = newest + 1
                return

    def _append(self, seq: int, entry: Entry) -> bool:
        try:
            return self._chain.append(seq, entry)
        except UnknownOutcomeError:
            # Before any other verdict: it may be there.
            if not self._is_there(seq, entry):
                raise
            return True

    def _is_there(self, seq: int, entry: Entry) -> bool:
        """Look for an entry; a store that fails has not said anything new."""
        with suppress(ServiceUnavailableError):
            found = self._chain.entry(seq)
            return found is not None and found.nonce == entry.nonce
        return False

    def _is_apart(self, request: Request, newest: int) -> bool:
        """Hold a request against the entries that came since it was checked last."""
        for entry in self._chain.between(request.checked, newest):
            request.error = request.refusal_by(entry)
            if request.error is not None:
                return False
        request.checked = newest
        return True


def _without_clashes(batch: list[Request]) -> list[Request]:
    """Keep those that none before them in the batch interferes with."""
    accepted: list[Request] = []
    for request in batch:
        clash = next((one for one in accepted if request.interferes(one.record)), None)
        if clash is None:
            accepted.append(request)
        else:
            request.error = _lost(clash.record)
    return accepted


def given_up(token: str) -> ConcurrentModificationError:
    """Say that what a transaction builds on is on its way out."""
    msg = f"a vacuum has given {quote(token)} up: write the data again under another id"
    return ConcurrentModificationError(msg)


def _lost(other: Record) -> ConcurrentModificationError:
    msg = f"{other.by}'s commit changed what this transaction builds on: begin it again"
    return ConcurrentModificationError(msg)
