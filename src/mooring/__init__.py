"""Mooring ties names to tables that live in object storage."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring import errors
    from mooring.catalog import Catalog
    from mooring.namespace.states import Exists, NotFound, SoftDeleted
    from mooring.namespaces import (
        DirectoryNamespace,
        IcebergNamespace,
        MetastoreNamespace,
        RemoteNamespace,
    )
    from mooring.opening import connect
    from mooring.table import Table

__all__ = [
    "Catalog",
    "DirectoryNamespace",
    "Exists",
    "IcebergNamespace",
    "MetastoreNamespace",
    "NotFound",
    "RemoteNamespace",
    "SoftDeleted",
    "Table",
    "__version__",
    "connect",
    "errors",
]

__version__ = "0.1.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())

_HOMES = {
    "Catalog": "mooring.catalog",
    "DirectoryNamespace": "mooring.namespaces",
    "Exists": "mooring.namespace.states",
    "IcebergNamespace": "mooring.namespaces",
    "MetastoreNamespace": "mooring.namespaces",
    "NotFound": "mooring.namespace.states",
    "RemoteNamespace": "mooring.namespaces",
    "SoftDeleted": "mooring.namespace.states",
    "Table": "mooring.table",
    "connect": "mooring.opening",
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for: a bare import stays fast."""
    from importlib import import_module

    if name == "errors":
        return import_module("mooring.errors")
    if name not in _HOMES:
        msg = f"module 'mooring' has no attribute '{name}'"
        raise AttributeError(msg)
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
