"""Prove that a store refuses a second creation of one key.

Some S3 gateways accept ``If-None-Match: *`` and ignore it. On such a store no put decides
anything and two writers would overwrite each other in silence, so it is refused.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from mooring.errors import StoreUnsafeError
from mooring.store.numbered import create_once
from mooring.store.passing import PROBE_PREFIX

if TYPE_CHECKING:
    from mooring.store.api import Store

__all__ = ["probe_store"]


def probe_store(store: Store) -> None:
    """Create one fresh key twice and refuse a store that lets both succeed.

    Raises:
        StoreUnsafeError: the second creation succeeded, or the first did not.
    """
    path = PROBE_PREFIX + secrets.token_hex(8)
    try:
        first = create_once(store, path, b"first")
        second = store.put_new(path, b"second")
    finally:
        store.delete([path])
    if second or not first:
        msg = (
            f"the store at '{store.location('')}' accepts a second creation of one key"
            " (it ignores If-None-Match): writers would overwrite each other unseen."
            " Use a store with conditional writes, or open the catalog read-only"
        )
        raise StoreUnsafeError(msg)
