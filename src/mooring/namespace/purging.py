"""Purges: of several tables one after another, what is due, and why there is nothing to purge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import ConcurrentModificationError, MooringError, TableNotFoundError
from mooring.identifiers import quote
from mooring.namespace.api import PurgeReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mooring.identifiers import ObjectId

__all__ = ["came_back", "is_over", "nothing_to_purge", "purge_each"]


def purge_each(tables: Iterable[ObjectId], purge: Callable[[ObjectId], object]) -> PurgeReport:
    """Purge tables; one that cannot be purged does not keep the others from it.

    Args:
        tables: Which.
        purge: Purges one.
    """
    report = PurgeReport([], {})
    for table in tables:
        try:
            purge(table)
        except MooringError as exc:
            report.failed[table] = exc
        else:
            report.purged.append(table)
    return report


def is_over(expires_at_ms: int | None, now_ms: int, *, purging: bool) -> bool:
    """Whether time in the trash is over; a purge that was cut off is always to be finished."""
    return purging or (expires_at_ms is not None and expires_at_ms <= now_ms)


def nothing_to_purge(table: ObjectId, *, is_live: bool) -> TableNotFoundError:
    """Word that no drop of a table is in the trash."""
    shown = quote(str(table))
    if is_live:
        return TableNotFoundError(f"table {shown} is live: only a dropped table can be purged")
    return TableNotFoundError(f"nothing dropped is named {shown}")


def came_back(table: ObjectId) -> ConcurrentModificationError:
    """Word that somebody undropped what was to be purged."""
    msg = f"table {quote(str(table))} came back before it could be purged"
    return ConcurrentModificationError(msg)
