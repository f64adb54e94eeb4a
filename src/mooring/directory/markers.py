"""Markers inside and beside a table's directory: those of other programs, and ours for them.

Readers of the V1 rules hide a table whose directory holds `.lance-deregistered`. Whenever the
chain hides a table, that marker is written too, with the number of the decision, and it no
longer counts once the chain has moved on. Markers that other programs wrote are honoured until
a decision names them as consumed.

Spec: directory-namespace, "Marker Files"; soft-delete, "Backward compatibility".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from mooring.directory.decisions import State
from mooring.directory.layout import (
    DEREGISTERED,
    foreign_marker_path,
    nested_marker_path,
)

if TYPE_CHECKING:
    from mooring.directory.chain import Chain, Chains
    from mooring.store import Listing, Store

__all__ = ["ForeignMarker", "find_foreign_markers", "settle_markers"]

_SETTLING_ROUNDS = 8

Body = TypeVar("Body", bound=msgspec.Struct)


class _OwnBody(msgspec.Struct, frozen=True):
    """The body of a nested marker written for a decision."""

    mooring_seq: int


class _ForeignBody(msgspec.Struct, frozen=True):
    """The body of a drop marker of another program, as far as it is known."""

    deleted_at_ms: int | None = None
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ForeignMarker:
    """A marker that another program wrote.

    A nested one says "deregistered, data kept": it never expires.
    """

    path: str
    mark: str
    deleted_at_ms: int
    ttl_ms: int | None


def find_foreign_markers(
    store: Store, name: str, listing: Listing, last_seq: int
) -> tuple[ForeignMarker, ...]:
    """Find the markers of other programs on a table.

    Args:
        store: The catalog's store.
        name: The table.
        listing: The table's directory.
        last_seq: The newest decision; a nested marker of ours beyond it has lost its chain and
            counts as foreign.
    """
    found = [_read_root_marker(store, name)]
    if DEREGISTERED in listing.files:
        found.append(_read_nested_marker(store, name, last_seq))
    return tuple(marker for marker in found if marker)


def _read_root_marker(store: Store, name: str) -> ForeignMarker | None:
    path = foreign_marker_path(name)
    meta = store.head(path)
    if meta is None:
        return None
    said = _decode(store.get(path) or b"", _ForeignBody) or _ForeignBody()
    deleted_at_ms = meta.modified_ms if said.deleted_at_ms is None else said.deleted_at_ms
    return ForeignMarker(path, meta.mark, deleted_at_ms, said.ttl_ms)


def _read_nested_marker(store: Store, name: str, last_seq: int) -> ForeignMarker | None:
    path = nested_marker_path(name)
    body = store.get(path)
    own = _decode(body or b"", _OwnBody)
    if body is None or (own and own.mooring_seq <= last_seq):
        return None
    meta = store.head(path)
    return ForeignMarker(path, meta.mark, meta.modified_ms, None) if meta else None


def settle_markers(store: Store, chains: Chains, chain: Chain) -> None:
    """Bring the markers for other programs in line with the chain.

    They are derived, so nothing of ours depends on them. Another settling may run at the same
    time and there is no conditional delete: whoever writes or deletes looks at the chain again
    afterwards and mends what an earlier one, woken late, may have undone.
    """
    for _ in range(_SETTLING_ROUNDS):
        _apply(store, chain)
        again = chains.read(chain.name)
        if again.seq == chain.seq:
            return
        chain = again


def _apply(store: Store, chain: Chain) -> None:
    decision = chain.decision
    if decision is None:
        return
    nested, root = nested_marker_path(chain.name), foreign_marker_path(chain.name)
    if decision.state is not State.LIVE:
        store.put(nested, msgspec.json.encode(_OwnBody(chain.seq)))
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
