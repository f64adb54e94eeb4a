"""The manifest of a place, opened for one client or for any number of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.manifest import MANIFEST_DIR, Manifest
from mooring.directory.shared_manifest import SharedManifest
from mooring.store.turns import take_turn

if TYPE_CHECKING:
    from mooring.namespace.home import Home
    from mooring.tables.manifest import ManifestTable

__all__ = ["open_manifest", "open_shared"]


def open_manifest(home: Home) -> Manifest:
    """Open the manifest of a place, for one client."""
    return Manifest(open_shared(home), home.author)


def open_shared(home: Home) -> SharedManifest:
    """Open the manifest of a place, for any number of clients."""

    def open_table() -> ManifestTable:
        from mooring.tables.lance_manifest import LanceManifest  # imports lance

        return LanceManifest(home.store, MANIFEST_DIR)

    where = home.store.location("")
    return SharedManifest(home.store, open_table, turn=lambda: take_turn(where))
