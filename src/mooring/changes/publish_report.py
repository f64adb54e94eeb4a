"""What a publication did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.changes.publish_indexes import IndexDone

__all__ = ["PublishReport"]


@dataclass(frozen=True)
class PublishReport:
    """What a publication did.

    Attributes:
        table: The change table.
        into: The Lance table.
        catalog: Its catalog, where that is another one.
        action: What was done: create, update, append, overwrite or nothing.
        why: Why all rows were written anew, where they were.
        position: The position that the Lance table holds now.
        previous: The one that it held before; None where it held none.
        version: The version that holds the data.
        rows: How many rows the version has.
        rows_written: How many of them were written now.
        rows_deleted: How many rows were taken away by their keys.
        buckets: How many buckets were looked at.
        buckets_in_all: How many there are.
        indexes: What became of the indexes.
        seconds: How long it took.
        is_new: Whether the version was made now.
    """

    table: str
    into: str
    catalog: str | None
    action: str
    why: str | None
    position: int
    previous: int | None
    version: int
    rows: int
    rows_written: int
    rows_deleted: int
    buckets: int
    buckets_in_all: int
    indexes: tuple[IndexDone, ...]
    seconds: float
    is_new: bool
