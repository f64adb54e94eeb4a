"""Checkpoints: the state at one entry of the chain, so that nobody has to read what was before.

A checkpoint follows from the chain alone; whoever writes it writes the same. Opening a metastore
costs the newest one and the entries after it, however long the history is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from mooring.metastore.entry import Change
from mooring.metastore.layout import CHECKPOINTS_DIR, checkpoint_path, parse_checkpoint

if TYPE_CHECKING:
    from mooring.store import Store

__all__ = ["Checkpoint", "NameState", "find_checkpoint", "load_checkpoint", "save_checkpoint"]


class NameState(msgspec.Struct, frozen=True, array_like=True):
    """A name, and the child that it means; a mapping whose name means nothing keeps its number."""

    parent: tuple[str, ...]
    parts: tuple[str, ...]
    ids: tuple[str, ...]
    is_alias: bool = False


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a metastore at an entry.

    Attributes:
        seq: The entry.
        changes: The last change of every object, of deleted ones for their revisions.
        names: What names mean.
        mappings: The newest number of the mapping files of a parent's digest.
        aborted: Transactions that a sweep has given up.
        recent: Committed transactions before which nobody has to look for commits of others.
    """

    seq: int
    changes: tuple[Change, ...] = ()
    names: tuple[NameState, ...] = ()
    mappings: tuple[tuple[tuple[str, ...], str, int], ...] = ()
    aborted: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Checkpoint)


def find_checkpoint(store: Store) -> int:
    """Return up to which entry the newest checkpoint goes; 0 without one."""
    names = (meta.path.rpartition("/")[2] for meta in store.iter_dir(CHECKPOINTS_DIR))
    return next((seq for name in names if (seq := parse_checkpoint(name)) is not None), 0)


def load_checkpoint(store: Store, until: int | None = None) -> Checkpoint | None:
    """Read the newest checkpoint, or the newest up to an entry; None without one.

    One that is damaged, as a power cut may leave it, is passed over: the chain has it all.
    """
    for meta in store.iter_dir(CHECKPOINTS_DIR):
        seq = parse_checkpoint(meta.path.rpartition("/")[2])
        if seq is None or (until is not None and seq > until):
            continue
        body = store.get(meta.path)
        with suppress(msgspec.DecodeError):
            if body is not None:  # else somebody cleans up
                return _decoder.decode(body)
    return None


def save_checkpoint(store: Store, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; where somebody has done so already it is the same."""
    store.put(checkpoint_path(checkpoint.seq), _encoder.encode(checkpoint), derived=True)
