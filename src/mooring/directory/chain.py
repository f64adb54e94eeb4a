"""The chain of decisions about one table: reading its end, adding to it, telling its story.

A transition is the create-only put of the next number. All who want to change the table meet on
that one key, whatever they want it to become.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.directory.decisions import Decision, State, decode_decision, encode_decision
from mooring.directory.layout import decision_path, hint_path
from mooring.errors import ConcurrentModificationError, ServiceUnavailableError
from mooring.identifiers import quote
from mooring.store.numbered import create_once, find_newest

if TYPE_CHECKING:
    from mooring.clock import Clock, IdSource
    from mooring.store import Store

__all__ = ["Chain", "Chains"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chain:
    """The end of a chain as it was read; number 0 is a table without any decision."""

    name: str
    seq: int = 0
    decision: Decision | None = None

    @property
    def state(self) -> State | None:
        """The state decided last; None where nothing was ever decided."""
        return self.decision.state if self.decision else None

    @property
    def nonce(self) -> str:
        """The last decision's nonce; empty without one."""
        return self.decision.nonce if self.decision else ""

    @property
    def is_protected(self) -> bool:
        """Whether drops are refused."""
        return bool(self.decision and self.decision.protected)

    @property
    def is_sealed(self) -> bool:
        """Whether the table's directory may be closed to all writers."""
        return bool(self.decision and self.decision.sealed)


class Chains:
    """Reads and extends the chains of one catalog."""

    def __init__(self, store: Store, clock: Clock, ids: IdSource, author: str) -> None:
        """Work on a store in somebody's name."""
        self._store = store
        self._clock = clock
        self._ids = ids
        self._author = author

    def read(self, name: str, since: Chain | None = None) -> Chain:
        """Read the end of a table's chain, from where it was read before if that is known."""
        known = since or Chain(name)
        seq, body = find_newest(self._store, lambda seq: decision_path(name, seq), known.seq)
        if body is None:
            return known
        return Chain(name, seq, decode_decision(decision_path(name, seq), body))

    def history(self, name: str, after: int = 0) -> list[Chain]:
        """Read a table's chain after a number, oldest first."""
        links: list[Chain] = []
        while True:
            seq = after + len(links) + 1
            path = decision_path(name, seq)
            body = self._store.get(path)
            if body is None:
                return links
            links.append(Chain(name, seq, decode_decision(path, body)))

    def advance(  # the fields of a decision, all but two by name
        self,
        chain: Chain,
        state: State,
        *,
        action: str,
        deleted_at_ms: int | None = None,
        ttl_ms: int | None = None,
        version: int | None = None,
        manifest: str | None = None,
        protected: bool | None = None,
        sealed: bool | None = None,
        intent: str | None = None,
        consumed: tuple[str, ...] = (),
    ) -> Chain:
        """Put the next decision; protection and seal stay as they are unless told otherwise.

        Raises:
            ConcurrentModificationError: somebody else's decision came first.
            UnknownOutcomeError: the store never said whether this one did.
        """
        decision = Decision(
            state=state,
            nonce=self._ids.new_id(),
            prev=chain.nonce,
            action=action,
            by=self._author,
            at_ms=self._clock.now_ms(),
            deleted_at_ms=deleted_at_ms,
            ttl_ms=ttl_ms,
            version=version,
            manifest=manifest,
            protected=chain.is_protected if protected is None else protected,
            sealed=chain.is_sealed if sealed is None else sealed,
            intent=intent,
            consumed=consumed,
        )
        seq = chain.seq + 1
        path = decision_path(chain.name, seq)
        if not create_once(self._store, path, encode_decision(decision)):
            msg = f"table {quote(chain.name)} was changed by somebody else during this {action}"
            raise ConcurrentModificationError(msg)
        self._leave_hint(chain.name, seq, decision)
        return Chain(chain.name, seq, decision)

    def _leave_hint(self, name: str, seq: int, decision: Decision) -> None:
        """Write the derived hint; the decision stands without it, listings just read one more."""
        try:
            self._store.put(hint_path(name, seq, decision.hint.format()), b"", derived=True)
        except ServiceUnavailableError as exc:
            _log.warning("no hint for %s: %s", decision_path(name, seq), exc)
