"""Who dropped a table, where the listing of the trash does not tell: its newest decision does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from mooring.directory.chain import Chains
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.layout import is_table_name
from mooring.directory.listing_backend import ListingBackend
from mooring.errors import MooringError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.feed.look import SeenDrop
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Backend

__all__ = ["MOST_LOOKS", "name_droppers"]

# So many are looked at for one page, some at once.
MOST_LOOKS = 50
_AT_ONCE = 8
_DROP = "drop"


def name_droppers(backend: Backend, drops: Sequence[SeenDrop]) -> Mapping[ObjectId, str]:
    """Tell who dropped some tables; of the first few, where that is known.

    Args:
        backend: The catalog.
        drops: The newest drops of tables that nobody is known of.
    """
    wanted = drops[:MOST_LOOKS]
    if not wanted:
        return {}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = threads.map(partial(_look, backend), wanted)
        return {drop.id: by for drop, by in zip(wanted, found, strict=True) if by}


def _look(backend: Backend, drop: SeenDrop) -> str | None:
    try:
        if isinstance(backend, ListingBackend | CompatBackend):
            return _by_chain(backend, drop)
        told = backend.table_history(drop.id)
    except MooringError:
        return None  # it is gone meanwhile, or cannot be read: then it is unknown
    drops = [one.by for one in told if one.action == _DROP and one.at_ms == drop.deleted_at_ms]
    return drops[-1] if drops else None


def _by_chain(backend: ListingBackend | CompatBackend, drop: SeenDrop) -> str | None:
    """Read what was decided last about a table of the root, which is little beside its history."""
    if drop.id.level != 1 or not is_table_name(drop.id.name):
        return None
    home = backend.home
    chain = Chains(home.store, home.clock, home.ids, home.author).read(drop.id.name)
    decision = chain.decision
    return decision.by if decision is not None and decision.action == _DROP else None
