"""Properties of tables: what Iceberg clients see, and what the catalog keeps.

A catalog keeps names that begin with `mooring.` for itself. Mooring's own client of Iceberg
catalogs keeps notes under such names, too, with whatever server it has: here they are kept under
another, so that they never become settings of the catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.iceberg.properties import NOWHERE, OWN, ManagedBy, own_properties
from mooring.namespace.properties import PROTECTED, RETENTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.namespace.api import Backend, TableInfo

__all__ = ["is_kept_from_clients", "keeps_notes", "notes_of", "shown", "to_catalog"]

_OURS, _NOTES = "mooring.", "iceberg-client."


def shown(info: TableInfo, backend: Backend) -> dict[str, str]:
    """Return a table's properties as Iceberg clients see them."""
    by = ManagedBy.IMPL if info.is_managed(backend) else ManagedBy.STORAGE
    return {
        **{_to_client(key): value for key, value in info.properties.items()},
        **own_properties(by),
        "write.metadata.path": f"{NOWHERE}/write_it_with_lance",
    }


def is_kept_from_clients(key: str) -> bool:
    """Whether a property says what a table is, or is a setting of the catalog.

    One of these a writer may change: whether the table is protected from being dropped.
    """
    return key.lower() in OWN or key == RETENTION or key.startswith(_NOTES)


def notes_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what a client notes for itself, of the properties that it sent."""
    return {
        key: value
        for key, value in properties.items()
        if key.startswith(_OURS) and key not in {PROTECTED, RETENTION}
    }


def keeps_notes(backend: Backend) -> bool:
    """Whether there is anywhere to keep them: a plain directory has no properties."""
    return backend.levels != 1


def to_catalog(key: str) -> str:
    """Return the name under which the catalog keeps a property."""
    is_note = key.startswith(_OURS) and key != PROTECTED
    return f"{_NOTES}{key.removeprefix(_OURS)}" if is_note else key


def _to_client(key: str) -> str:
    return f"{_OURS}{key.removeprefix(_NOTES)}" if key.startswith(_NOTES) else key
