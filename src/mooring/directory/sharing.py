"""One manifest for all clients of a process that open the same catalog, each in its own name.

They share one copy in memory, and their changes share commits.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from mooring.directory.manifest import Manifest
from mooring.directory.manifest_opening import open_shared

if TYPE_CHECKING:
    from mooring.directory.shared_manifest import SharedManifest
    from mooring.namespace.home import Home

__all__ = ["share_manifest"]

_lock = threading.Lock()
_manifests: WeakValueDictionary[object, SharedManifest] = WeakValueDictionary()


def share_manifest(home: Home) -> Manifest:
    """Return the manifest of a place in the home's name; below, it is the same for all."""
    options = frozenset(home.store.options.items())
    # Not across a fork: a lock that another thread held there is never released here.
    key = (os.getpid(), home.store.location(""), options)
    with _lock:
        found = _manifests.get(key)
        if found is None:
            found = _manifests[key] = open_shared(home)
    return Manifest(found, home.author)
