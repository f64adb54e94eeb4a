"""Which tables were written last: where somebody who comes back wants to go on."""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.identifiers import ObjectId
    from mooring.server.ui.atlas.findings import Finding, Findings
    from mooring.server.ui.atlas.sight import Sight
    from mooring.server.ui.links import Links

__all__ = ["RecentTable", "recent_tables"]

_MOST = 5


class RecentTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that was written lately.

    Attributes:
        id: Which.
        href: Its page.
        rows: How many rows it has.
        size_bytes: What its data files take.
        written_at_ms: When it was written.
    """

    id: list[str]
    href: str
    rows: int | None
    size_bytes: int | None
    written_at_ms: int


def recent_tables(sight: Sight, findings: Findings, links: Links) -> list[RecentTable]:
    """Return the tables that were written last, of those that are known; the newest first.

    Args:
        sight: What may be seen.
        findings: What is known of tables.
        links: Where their pages are.
    """
    newest = nlargest(_MOST, _written(sight, findings), key=lambda one: one[0])
    return [
        RecentTable(
            id=list(table.names),
            href=links.table(table),
            rows=found.rows,
            size_bytes=found.size_bytes,
            written_at_ms=at_ms,
        )
        for at_ms, table, found in newest
    ]


def _written(sight: Sight, findings: Findings) -> Iterator[tuple[int, ObjectId, Finding]]:
    tables, is_whole = sight.picture.look.tables, sight.is_whole
    for table, found in findings.all():
        if found.written_at_ms is None or not (is_whole or sight.reads(table)):
            continue
        seen = tables.get(table)
        # What is known of another table of this name tells nothing of this one.
        if seen is not None and seen.location == found.seen.location:
            yield found.written_at_ms, table, found
