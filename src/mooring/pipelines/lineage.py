"""Lineage: what a run read and wrote, and the runs before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.pipelines.history import list_runs

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.pipelines.history import RunRecord

__all__ = ["Lineage", "trace"]


@dataclass(frozen=True)
class Lineage:
    """The runs around a run.

    Attributes:
        upstream: Runs that wrote what it read: the run, and the table between them.
        downstream: Runs that read what it wrote.
    """

    upstream: tuple[tuple[str, str], ...]
    downstream: tuple[tuple[str, str], ...]


def trace(catalog: Catalog, record: RunRecord) -> Lineage:
    """Find the runs around a run: those whose change is in what another one read."""
    others = [one for one in list_runs(catalog) if one.is_done and one.run != record.run]
    above = [(one.run, table) for one in others for table in _between(one, record)]
    below = [(one.run, table) for one in others for table in _between(record, one)]
    return Lineage(tuple(sorted(above)), tuple(sorted(below)))


def _between(writer: RunRecord, reader: RunRecord) -> list[str]:
    """Return the tables that one run wrote and another read with what was written."""
    found = set()
    for output in writer.outputs:
        for one in reader.inputs:
            if one.version.get("table_id") != output.table_id or output.position is None:
                continue
            first = int(one.version.get("after", 0))
            if first < output.position <= int(one.version.get("position", 0)):
                found.add(output.table)
    return sorted(found)
