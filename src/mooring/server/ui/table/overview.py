"""What a table is: its figures, its schema, its properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.config import mask_uris
from mooring.namespace.properties import PROTECTED
from mooring.server.ui.table.change_table import ChangesFigures, show_changes
from mooring.server.ui.table.remembering import remember, seen_before
from mooring.server.ui.table.schema import Column, columns_of
from mooring.server.ui.table.subject import (
    CHANGES,
    DECLARED,
    Lack,
    Subject,
    TableView,
    find_subject,
)
from mooring.server.ui.versions.operations import mark_of
from mooring.tables.api import BY
from mooring.tables.publications import PublishMark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.namespace.api import TableInfo
    from mooring.server.ui.visit import Visit
    from mooring.tables.portrait import Portrait

__all__ = ["OverviewView", "show_overview"]

_DESCRIPTION, _OWNER = "description", "owner"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a version.

    Attributes:
        rows: How many rows there are to read.
        size_bytes: What its data files take.
        columns: How many columns it has, those in others left out.
        fragments: How many fragments.
        indexes: How many indexes.
        versions: How many versions there are of its branch.
        written_at_ms: When it was made.
        written_by: Who made it, where that was kept.
        operation: What made it, in Lance's word.
        deed: The same for people.
        oldest_at_ms: When the oldest version that is there was made.
        is_oldest_first: Whether that is version 1, so that the table was made then.
        file_format: The version of the data files' format.
    """

    rows: int
    size_bytes: int
    columns: int
    fragments: int
    indexes: int
    versions: int
    written_at_ms: int | None
    written_by: str | None
    operation: str
    deed: str
    oldest_at_ms: int | None
    is_oldest_first: bool
    file_format: str


class OverviewView(TableView, frozen=True, kw_only=True):
    """What a table is.

    Attributes:
        figures: Its numbers, where it has data.
        changes: Those of a table of changes.
        is_protected: Whether drops are refused.
        is_managed: Whether whoever opens it commits through its catalog.
        published_position: Which position of a change table this version holds, if so.
        columns: The schema.
        metadata: That of the schema.
        description: What it is about, where somebody wrote that.
        owner: Whose it is, where somebody wrote that.
        properties: What else the catalog keeps with it.
        location: Where it lies; empty for those who may not know.
    """

    figures: Figures | None = None
    changes: ChangesFigures | None = None
    is_protected: bool = False
    is_managed: bool = False
    published_position: int | None = None
    columns: list[Column] = msgspec.field(default_factory=list)
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    description: str = ""
    owner: str = ""
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    location: str = ""


def show_overview(visit: Visit) -> OverviewView:
    """Show what a table is.

    Raises:
        TableNotFoundError: there is no live table of this name.
    """
    seen = seen_before(visit)
    found = find_subject(visit)
    if isinstance(found, Subject):
        remember(found, seen)
        return _lance(found)
    if found.kind == CHANGES:
        return _changes(visit, found)
    if found.kind == DECLARED:
        return _declared(visit, found)
    return OverviewView(id=list(visit.table.names), lack=found)


def _lance(subject: Subject) -> OverviewView:
    portrait, info, visit = subject.portrait, subject.table.info, subject.visit
    made = portrait.made
    mark = PublishMark.read(made.properties) if made else None
    view = OverviewView(
        cli=_command(visit, "table", "describe"),
        id=list(info.id.names),
        shown=subject.shown("overview"),
        figures=_figures(portrait),
        is_managed=info.is_managed(visit.backend),
        published_position=mark.position if mark else None,
        columns=columns_of(portrait.fields, portrait.indexes),
        metadata=dict(sorted(portrait.metadata.items())),
        location=_location(visit, info),
    )
    return _with(view, info.properties)


def _changes(visit: Visit, lack: Lack) -> OverviewView:
    changes = show_changes(visit)
    view = OverviewView(
        cli=_command(visit, "changes", "show"),
        id=list(visit.table.names),
        lack=lack,
        changes=changes.figures,
        columns=changes.columns,
    )
    return _with(view, changes.properties)


def _declared(visit: Visit, lack: Lack) -> OverviewView:
    info = visit.open_table().info
    view = OverviewView(
        cli=_command(visit, "table", "describe"),
        id=list(info.id.names),
        lack=lack,
        location=_location(visit, info),
    )
    return _with(view, info.properties)


def _location(visit: Visit, info: TableInfo) -> str:
    return mask_uris(info.location) if visit.may_know_uri else ""


def _with(view: OverviewView, properties: Mapping[str, str]) -> OverviewView:
    """Add properties, and tell those apart that have a place of their own."""
    apart = {_DESCRIPTION, _OWNER, PROTECTED}
    return msgspec.structs.replace(
        view,
        is_protected=properties.get(PROTECTED) == "true",
        description=properties.get(_DESCRIPTION, ""),
        owner=properties.get(_OWNER, ""),
        properties={
            key: mask_uris(value) for key, value in sorted(properties.items()) if key not in apart
        },
    )


def _figures(portrait: Portrait) -> Figures:
    made, oldest = portrait.made, portrait.records[-1] if portrait.records else None
    return Figures(
        rows=portrait.shape.rows,
        size_bytes=portrait.shape.size_bytes,
        columns=sum(field.depth == 0 for field in portrait.fields),
        fragments=len(portrait.shape.pieces),
        indexes=len(portrait.indexes),
        versions=len(portrait.records),
        written_at_ms=portrait.at_ms,
        written_by=made.properties.get(BY) if made else None,
        operation=made.operation if made else "",
        deed=mark_of(made.operation, portrait.version).word if made else "",
        oldest_at_ms=oldest.at_ms if oldest else None,
        is_oldest_first=oldest is not None and oldest.version == 1,
        file_format=portrait.file_format,
    )


def _command(visit: Visit, *words: str) -> str:
    return visit.cli(*words, names=[str(visit.table)])
