"""How far publications have come, and which versions of Lance tables hold which positions.

The versions say it themselves; nothing else keeps account of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.changes.plan import find_moment
from mooring.changes.publication import saved_publications
from mooring.changes.publish_plan import source_of
from mooring.errors import TableNotFoundError
from mooring.tables.publications import find_standing, list_published

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.changes.publication import Publication
    from mooring.changes.table import ChangeTable
    from mooring.tables.handle import TableHandle

__all__ = [
    "PublicationStatus",
    "Published",
    "find_published",
    "publication_status",
    "publications",
]


@dataclass(frozen=True)
class Published:
    """A version of a Lance table that holds a position.

    Attributes:
        into: The Lance table.
        position: The position.
        version: The version.
        at_ms: When it was made.
        by: Who made it.
    """

    into: str
    position: int
    version: int
    at_ms: int | None
    by: str | None


@dataclass(frozen=True)
class PublicationStatus:
    """How far a publication has come.

    Attributes:
        table: The change table.
        into: The Lance table.
        catalog: Its catalog, where that is another one.
        newest: The change table's newest position.
        position: The published one; None where none is.
        version: The version that holds it.
        at_ms: When it was made.
        by: Who made it.
        state: ``current``, ``behind``, ``missing``, or ``changed`` by somebody else.
    """

    table: str
    into: str
    catalog: str | None
    newest: int
    position: int | None
    version: int | None
    at_ms: int | None
    by: str | None
    state: str


def publications(table: ChangeTable) -> list[Published]:
    """List the versions of Lance tables that hold a position of a table, the newest first.

    Versions that were cleaned away are not among them.
    """
    source = source_of(find_moment(table.catalog, table.id))
    found: list[Published] = []
    for one in saved_publications(table):
        handle = find_published(one.open_catalog(table.catalog), one)
        found += [
            Published(str(one.target), made.mark.position, made.version, made.at_ms, made.by)
            for made in (list_published(handle) if handle else [])
            if made.mark.source == source
        ]
    return found


def publication_status(table: ChangeTable) -> list[PublicationStatus]:
    """Tell how far each publication of a table has come."""
    moment = find_moment(table.catalog, table.id)
    return [_status(table, one, moment.position) for one in saved_publications(table)]


def _status(table: ChangeTable, one: Publication, newest: int) -> PublicationStatus:
    handle = find_published(one.open_catalog(table.catalog), one)
    standing = None if handle is None else find_standing(handle)
    made = None if standing is None else standing.published
    if standing is None or made is None:
        state = "missing" if standing is None else "changed"
        return PublicationStatus(
            str(table.id), str(one.target), one.catalog, newest, None, None, None, None, state
        )
    state = "current" if made.mark.position >= newest else "behind"
    return PublicationStatus(
        str(table.id),
        str(one.target),
        one.catalog,
        newest,
        made.mark.position,
        made.version,
        made.at_ms,
        made.by,
        state if standing.foreign is None else "changed",
    )


def find_published(catalog: Catalog, publication: Publication) -> TableHandle | None:
    """Find the Lance table of a publication; None where there is none."""
    try:
        return catalog.table(publication.target).handle
    except TableNotFoundError:
        return None
