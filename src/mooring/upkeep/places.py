"""Where tables lie, as the store, as Lance and as a report names it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from mooring.tables.files import Site
from mooring.tables.place import Place, open_place
from mooring.upkeep.stored import stored_backend

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.store import Store

__all__ = ["shown_path", "site_of"]


def site_of(catalog: Catalog, location: str) -> Site:
    """Find a table's directory: in the catalog's own store where it lies below the root."""
    store = stored_backend(catalog).store
    inside = _inside(store, location)
    if inside is None:
        return Site(open_place(location, store.options), location, store.options)
    return Site(Place(store, inside), location, store.options)


def shown_path(catalog: Catalog, site: Site, path: str) -> str:
    """Return a path in a table's directory as a report shows it: below the root if it is."""
    inside = _inside(stored_backend(catalog).store, site.location)
    above = site.location if inside is None else inside
    return f"{above}/{path}" if path else above


def _inside(store: Store, location: str) -> str | None:
    """Return a location relative to the store's root; None where it lies elsewhere."""
    root = store.location("").rstrip("/") + "/"
    if not location.startswith(root):
        return None
    inside = location[len(root) :].strip("/")
    return unquote(inside) if "://" in root else inside
