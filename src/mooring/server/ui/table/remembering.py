"""What a page found out about a table, kept for lists and for the search: nobody looks twice."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.errors import MooringError
from mooring.server.ui.atlas.findings import Finding
from mooring.server.ui.atlas.surveyor import paths_of

if TYPE_CHECKING:
    from mooring.feed.look import SeenTable
    from mooring.server.ui.table.subject import Subject
    from mooring.server.ui.visit import Visit

__all__ = ["remember", "seen_before"]


def seen_before(visit: Visit) -> SeenTable | None:
    """Return how the catalog shows a table, to be asked for before it is opened.

    What is found out then is no older than this: where the table changes meanwhile, the catalog
    shows it otherwise, and what was found out does not count.
    """
    with suppress(MooringError):  # not every catalog can be looked at as a whole
        return visit.atlas.picture().look.tables.get(visit.table)
    return None


def remember(subject: Subject, seen: SeenTable | None) -> None:
    """Keep what was found out about the newest version of main.

    Others are shown it, too: what a table knows from another, which they may not see, is not kept.
    """
    portrait, visit = subject.portrait, subject.visit
    if seen is None or portrait.at.branch or portrait.version != portrait.newest:
        return
    if not portrait.has_own_files:
        return
    known = visit.atlas.findings.get(visit.table)
    if known is not None and known.version == portrait.version and known.seen == seen:
        return
    top = pa.schema([(field.name, field.type) for field in portrait.fields if not field.depth])
    visit.atlas.findings.add(
        visit.table,
        Finding(
            found_at_ms=visit.now_ms,
            seen=seen,
            columns="\n".join(paths_of(top)),
            width=len(top),
            rows=portrait.shape.rows,
            version=portrait.version,
            size_bytes=portrait.shape.size_bytes,
            written_at_ms=portrait.at_ms,
            properties=dict(subject.table.info.properties) if seen.properties is None else None,
        ),
    )
