"""Objects under one root: the only way to the bytes of a catalog."""

from mooring.store.api import Capabilities, Listing, ObjectMeta, ObjectTag, Store, StoredObject
from mooring.store.opening import open_store
from mooring.store.probe import probe_store

__all__ = [
    "Capabilities",
    "Listing",
    "ObjectMeta",
    "ObjectTag",
    "Store",
    "StoredObject",
    "open_store",
    "probe_store",
]
