"""Every table of a catalog with its state, in the words of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.clock import format_time
from mooring.errors import UnsupportedError

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.directory.backend import DirectoryBackend

__all__ = [
    "DEREGISTERED",
    "DROPPED",
    "LIVE",
    "PURGED",
    "UNFINISHED",
    "ListedTable",
    "as_time",
    "directory_of",
    "list_everything",
    "state_word",
]

LIVE, DROPPED, DEREGISTERED, PURGED = "live", "dropped", "deregistered", "purged"
# Verbs that somebody is at, or that a crash cut off.
UNFINISHED = ("creating", "reviving", "undropping", "purging")
_STORED = {"deleted": DROPPED}


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table as a listing shows it."""

    name: str
    state: str
    deleted_at_ms: int | None = None
    expires_at_ms: int | None = None

    def row(self) -> dict[str, object]:
        """Return it as output."""
        return {
            "name": self.name,
            "state": self.state,
            "deleted_at": as_time(self.deleted_at_ms),
            "expires_at": as_time(self.expires_at_ms),
        }


def list_everything(catalog: Catalog) -> list[ListedTable]:
    """List live, dropped, deregistered and purged names, sorted, from one listing.

    Raises:
        UnsupportedError: this kind of catalog cannot tell.
    """
    scan = directory_of(catalog).scan()
    tables = [ListedTable(name, LIVE) for name in scan.live]
    for name, hint in scan.other.items():
        expiry = None
        if hint.deleted_at_ms is not None and hint.ttl_ms is not None:
            expiry = hint.deleted_at_ms + hint.ttl_ms
        tables.append(ListedTable(name, state_word(hint.state), hint.deleted_at_ms, expiry))
    return sorted(tables, key=lambda table: table.name)


def directory_of(catalog: Catalog) -> DirectoryBackend:
    """Return the directory behind a catalog.

    Raises:
        UnsupportedError: the catalog is of another kind.
    """
    from mooring.directory.backend import DirectoryBackend

    if not isinstance(catalog.backend, DirectoryBackend):
        msg = f"'{catalog.uri}' is not a directory of tables, and only those can do this"
        raise UnsupportedError(msg)
    return catalog.backend


def state_word(state: str) -> str:
    """Return the word for a stored state: a table is dropped, whatever its file says."""
    return _STORED.get(str(state), str(state))


def as_time(at_ms: int | None) -> str | None:
    """Write a time, if there is one."""
    return None if at_ms is None else format_time(at_ms)
