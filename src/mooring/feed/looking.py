"""How to look at each kind of catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.listing_backend import ListingBackend
from mooring.feed.directories import ListedDirectory, NamedDirectory
from mooring.feed.walking import Described, Walked

if TYPE_CHECKING:
    from mooring.feed.look import Looker
    from mooring.namespace.api import Backend

__all__ = ["looker_of"]

_METASTORE = "mooring.metastore."
_REMOTE = "mooring.remote."


def looker_of(backend: Backend) -> Looker:
    """Return what looks at a catalog.

    Raises:
        MooringError: a server does not say what it is.
    """
    if isinstance(backend, ListingBackend):
        return ListedDirectory(backend)
    if isinstance(backend, CompatBackend):
        return NamedDirectory(backend)
    module = type(backend).__module__
    if module.startswith(_METASTORE):  # nobody imports it for a directory
        from mooring.feed.objects import Objects
        from mooring.metastore.backend import MetastoreBackend

        if isinstance(backend, MetastoreBackend):
            return Objects(backend)
    # Mooring's servers tell all tables by one request; others, as Iceberg's, would by one for each.
    if module.startswith(_REMOTE) and getattr(backend, "facts", None) is not None:
        return Described(backend)
    return Walked(backend)
