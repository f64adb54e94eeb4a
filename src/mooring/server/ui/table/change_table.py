"""A table of changes in a metastore: what it is, how far it has come, where it is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mooring.changes.partition_figures import PartitionFigures, partition_figures
from mooring.config import mask_uris
from mooring.server.ui.table.schema import Column
from mooring.server.ui.type_words import is_vector, say_type

if TYPE_CHECKING:
    from mooring.changes.definition import Definition
    from mooring.changes.plan import Moment
    from mooring.changes.publication import Publication
    from mooring.server.ui.visit import Visit

__all__ = ["ChangesFigures", "ShownChanges", "show_changes"]

_MOST_PARTITIONS = 200


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A Lance table that is made of a table of changes.

    Attributes:
        id: Its identifier.
        href: Its page; empty where it lies in another catalog, or may not be looked at.
        is_elsewhere: Whether it lies in another catalog.
    """

    id: list[str]
    href: str
    is_elsewhere: bool


class ChangesFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a table of changes is.

    Attributes:
        position: The newest position.
        horizon: The oldest position that can be read.
        keys: By what rows are the same.
        order: Whose greater value wins; empty where the later change does.
        partition_by: How rows are parted.
        sort: How rows of a file are sorted; empty where they are not.
        buckets: Into how many parts a partition is divided.
        deltas: How many deltas there are.
        bases: How many rounds of compaction, of all partitions.
        rows: How many rows are read before they are merged.
        size_bytes: What their files take.
        partitions: The first of the partitions.
        partitions_in_all: How many there are.
        publications: The Lance tables that are made of it, as far as they may be known.
    """

    position: int
    horizon: int
    keys: list[str]
    order: str
    partition_by: list[str]
    sort: str
    buckets: int
    deltas: int
    bases: int
    rows: int
    size_bytes: int
    partitions: list[PartitionFigures]
    partitions_in_all: int
    publications: list[Published]


@dataclass(frozen=True, slots=True)
class ShownChanges:
    """A table of changes as its page shows it."""

    figures: ChangesFigures
    columns: list[Column]
    properties: dict[str, str]


def show_changes(visit: Visit) -> ShownChanges:
    """Look at a table of changes.

    Raises:
        TableNotFoundError: there is none.
    """
    from mooring.changes.publication import PROPERTY, saved_publications
    from mooring.changes.table import ChangeTable
    from mooring.metastore.lance_table import find_any, locator_of

    table = ChangeTable(visit.catalog, visit.table)
    moment = table.at()
    found = find_any(table.catalog.metastore.begin(), locator_of(table.id))
    properties = dict(found.value.properties) if found else {}
    published = [_published(visit, one) for one in saved_publications(table)]
    return ShownChanges(
        _figures(moment, [one for one in published if one is not None]),
        _columns(moment.table.definition),
        {key: value for key, value in properties.items() if key != PROPERTY},
    )


def _published(visit: Visit, one: Publication) -> Published | None:
    """Tell of a publication; None where whoever looks may not know of it."""
    if one.catalog is not None:
        if not visit.may_know_uri:
            return None
        name = [mask_uris(one.catalog), *one.into]
        return Published(id=name, href="", is_elsewhere=True)
    if visit.identity.role_in(visit.served.name, one.target) is None:
        return None
    return Published(id=list(one.into), href=visit.links.table(one.target), is_elsewhere=False)


def _figures(moment: Moment, published: list[Published]) -> ChangesFigures:
    from mooring.changes.transforms import show_field

    definition = moment.table.definition
    logs = list(moment.partitions.values())
    partitions = partition_figures(moment)
    told = definition.describe()
    return ChangesFigures(
        position=moment.position,
        horizon=moment.table.horizon,
        keys=list(definition.keys),
        order=definition.order or "",
        partition_by=list(map(show_field, definition.partitions)),
        sort=told["sort"] if definition.sort else "",
        buckets=definition.buckets,
        deltas=sum(len(log.deltas_between(0, moment.position)) for log in logs),
        bases=sum(len(log.bases) for log in logs),
        rows=sum(one.rows for one in partitions),
        size_bytes=sum(one.bytes for one in partitions),
        partitions=partitions[:_MOST_PARTITIONS],
        partitions_in_all=len(partitions),
        publications=published,
    )


def _columns(definition: Definition) -> list[Column]:
    from mooring.changes.definition import default_of, field_id

    return [
        Column(
            name=one.name,
            path=one.name,
            type=say_type(one.type),
            arrow_type=str(one.type),
            is_vector=is_vector(one.type),
            nullable=one.nullable,
            id=field_id(one) or None,
            is_key=one.name in definition.keys,
            default=str(default.as_py()) if (default := default_of(one)).is_valid else None,
        )
        for one in definition.schema
    ]
