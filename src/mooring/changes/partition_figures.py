"""What a partition of a change table holds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.changes.transforms import show_values

if TYPE_CHECKING:
    from mooring.changes.log import PartitionLog
    from mooring.changes.plan import Moment

__all__ = ["PartitionFigures", "partition_figures"]


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """A partition at a moment.

    Attributes:
        partition: Its values, as people write them.
        files: How many files are read for it.
        bytes: What they take.
        rows: How many rows they have, changes counted one by one.
        base: Up to which position a compaction has merged it; None where none has.
        pending: How many deltas came after that.
    """

    partition: str
    files: int
    bytes: int
    rows: int
    base: int | None
    pending: int


def partition_figures(moment: Moment) -> list[PartitionFigures]:
    """Return the partitions of a change table, sorted by their values."""
    found = (_figures(log, moment) for log in moment.partitions.values())
    return sorted(found, key=lambda one: one.partition)


def _figures(log: PartitionLog, moment: Moment) -> PartitionFigures:
    base = log.base_at(moment.position, moment.table.definition)
    layers = log.layers(moment.position, moment.table.definition).values()
    pieces = [piece for own in layers for part in own for piece in part]
    files = {piece.file.path: piece.file.size_bytes or 0 for piece in pieces}
    return PartitionFigures(
        partition=str(show_values(log.values)),
        files=len(files),
        bytes=sum(files.values()),
        rows=sum(piece.segment.rows for piece in pieces),
        base=base.through if base else None,
        pending=len(log.deltas_between(base.through if base else 0, moment.position)),
    )
