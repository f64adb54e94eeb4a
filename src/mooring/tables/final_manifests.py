"""The names by which readers of a directory find versions, where a catalog decides about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.store.numbered import create_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.store import Store

__all__ = ["put_final"]


def put_final(
    store: Store, final: str, body: bytes, still: Callable[[], bool] = lambda: True
) -> None:
    """Put a manifest under its final name, which only the catalog gives out.

    Args:
        store: Where the table is.
        final: The name.
        body: The manifest.
        still: Whether it is still that version's; asked where something else has the name.
    """
    if create_once(store, final, body) or not still():
        return
    # Somebody wrote past the catalog, which has decided otherwise: what that was is kept.
    other = store.get(final)
    if other is not None and other != body:
        store.put(f"{final}-past-the-catalog", other)
    store.put(final, body)
