"""A purge of several tables, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import MooringError
from mooring.namespace.api import PurgeReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mooring.identifiers import ObjectId

__all__ = ["purge_each"]


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
