"""Markers inside and beside a table's directory: those of other programs, and ours for them.

Readers of the V1 rules hide a table whose directory holds `.lance-deregistered`. Whenever the
chain hides a table, that marker is written too, with the number of the decision, and it no
longer counts once the chain has moved on. Markers that other programs wrote are honoured until
a decision names them as consumed.

Spec: directory-namespace, "Marker Files"; soft-delete, "Backward compatibility".
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from mooring.directory.decisions import State, clamp_ms
from mooring.directory.layout import (
    DEREGISTERED,
    foreign_marker_path,
    nested_marker_path,
)
from mooring.errors import ServiceUnavailableError

if TYPE_CHECKING:
    from mooring.directory.chain import Chain, Chains
    from mooring.store import Listing, Store

__all__ = ["Marker", "Reservation", "read_markers", "settle_markers"]

_SETTLING_ROUNDS = 8
_log = logging.getLogger(__name__)

Body = TypeVar("Body", bound=msgspec.Struct)


class _OwnBody(msgspec.Struct, frozen=True):
    """The body of a nested marker written for a decision."""

    mooring_seq: int


class _ForeignBody(msgspec.Struct, frozen=True):
    """The body of a drop marker of another program, as far as it is known."""

    deleted_at_ms: int | None = None
    ttl_ms: int | None = None


class Reservation(msgspec.Struct, frozen=True):
    """The body of the marker of a declared table; other programs only look whether it is there."""

    nonce: str
    by: str
    at_ms: int

    def encode(self) -> bytes:
        """Write the body."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, body: bytes | None) -> Reservation | None:
        """Read the body; None for another program's."""
        return _decode(body or b"", cls)


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker as it was found.

    A nested one of another program says "deregistered, data kept": it never expires.

    Attributes:
        path: Where it is.
        mark: Tells this very writing of it from any other.
        deleted_at_ms: When the table was dropped.
        ttl_ms: How long it should stay in the trash; None is for ever.
        own_seq: The decision it was derived from, where it is one of ours.
    """

    path: str
    mark: str
    deleted_at_ms: int
    ttl_ms: int | None
    own_seq: int | None = None

    def is_foreign(self, last_seq: int) -> bool:
        """Whether another program wrote it.

        One of ours from beyond the newest decision has lost its chain and counts as foreign.
        """
        return self.own_seq is None or self.own_seq > last_seq


def read_markers(store: Store, name: str, listing: Listing) -> tuple[Marker, ...]:
    """Read the markers on a table, whose directory was listed already."""
    found = [_read_root_marker(store, name)]
    if DEREGISTERED in listing.files:
        found.append(_read_nested_marker(store, name))
    return tuple(marker for marker in found if marker)


def _read_root_marker(store: Store, name: str) -> Marker | None:
    path = foreign_marker_path(name)
    found = store.read(path)
    if found is None:
        return None
    said = _decode(found.body, _ForeignBody) or _ForeignBody()
    deleted_at_ms = found.meta.modified_ms if said.deleted_at_ms is None else said.deleted_at_ms
    ttl_ms = None if said.ttl_ms is None else clamp_ms(said.ttl_ms)
    return Marker(path, found.meta.mark, clamp_ms(deleted_at_ms), ttl_ms)


def _read_nested_marker(store: Store, name: str) -> Marker | None:
    path = nested_marker_path(name)
    found = store.read(path)
    if found is None:
        return None
    own = _decode(found.body, _OwnBody)
    seq = own.mooring_seq if own else None
    return Marker(path, found.meta.mark, found.meta.modified_ms, None, seq)


def settle_markers(store: Store, chains: Chains, chain: Chain) -> None:
    """Bring the markers for other programs in line with the chain.

    They are derived, so nothing of ours depends on them, and what was decided stands without
    them. Another settling may run at the same time and there is no conditional delete: whoever
    writes or deletes looks at the chain again afterwards and mends what an earlier one, woken
    late, may have undone.
    """
    try:
        for _ in range(_SETTLING_ROUNDS):
            _apply(store, chain)
            again = chains.read(chain.name, since=chain)
            if again.seq == chain.seq:
                return
            chain = again
    except ServiceUnavailableError as exc:
        _log.warning("markers of table %s are not up to date: %s", chain.name, exc)


def _apply(store: Store, chain: Chain) -> None:
    decision = chain.decision
    if decision is None:
        return
    nested, root = nested_marker_path(chain.name), foreign_marker_path(chain.name)
    if decision.state is not State.LIVE:
        store.put(nested, msgspec.json.encode(_OwnBody(chain.seq)), derived=True)
        if decision.state is State.PURGED:
            store.delete([root])
        return
    consumed = set(decision.consumed)
    body = store.get(nested)
    if body is not None and (_decode(body, _OwnBody) or _is_consumed(store, nested, consumed)):
        store.delete([nested])
    if consumed and _is_consumed(store, root, consumed):
        store.delete([root])


def _is_consumed(store: Store, path: str, consumed: set[str]) -> bool:
    meta = store.head(path)
    return meta is not None and meta.mark in consumed


def _decode(body: bytes, kind: type[Body]) -> Body | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError:
        return None
