"""Runs of pipelines without steps, in this process: real files, real commits, and no Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import mooring
from mooring.changes import ChangeTable
from mooring.clock import RandomIds
from mooring.errors import TableNotFoundError
from mooring.ingest.fitting import fit
from mooring.jobs.runner import Threads
from mooring.pipelines import load_pipeline, plan_run, run_pipeline
from mooring.pipelines.inputs import ChangesInput

if TYPE_CHECKING:
    from mooring.catalog import Catalog

__all__ = ["DirectEngine", "do", "rows_of"]


class DirectEngine:
    """Reads files and changes, and writes them as they are."""

    def __init__(self, catalog: Catalog, plan, before_write=lambda name: None) -> None:
        self._catalog = catalog
        self._plan = plan
        self._before_write = before_write
        self.written: list[str] = []

    def check(self, step):
        raise AssertionError(f"{step.name}: steps need Spark")

    def _rows(self, name: str) -> pa.Table:
        one = self._plan.inputs[name]
        if isinstance(one, ChangesInput):
            table = ChangeTable(self._catalog, one.table)
            before = set(map(str, table.to_arrow(position=one.after).to_pylist()))
            found = table.to_arrow(position=one.position).to_pylist()
            fresh = [row for row in found if str(row) not in before]
            return pa.Table.from_pylist(fresh, schema=table.schema)
        plan = one.rows().plan(Threads(1), ())
        natural = plan.natural()
        options = one.rows().options
        chunks = [chunk for part in plan.parts for chunk in part.read(options, natural, None)]
        return pa.Table.from_batches([fit(chunk.rows, natural).rows for chunk in chunks], natural)

    def schema(self, name: str) -> pa.Schema:
        return self._rows(name).schema

    def write(self, name, draft):
        self._before_write(name)
        self.written.append(name)
        return [draft.write(self._rows(name).to_batches(), RandomIds().new_id())]

    def close(self) -> None:
        pass


def do(catalog, path="pipeline.yaml", *, given=None, before_write=lambda name: None, **options):
    """Run a pipeline; return the report and what was written by this try."""
    plan = plan_run(catalog, load_pipeline(path, given or {}), **options)
    engine = DirectEngine(catalog, plan, before_write)
    return run_pipeline(catalog, plan, lambda: engine), engine.written


def rows_of(catalog, name):
    """Return the rows of a change table, sorted; None where there is no such table."""
    opened = mooring.connect(catalog.uri)
    try:
        rows = ChangeTable(opened, name).to_arrow().to_pylist()
    except TableNotFoundError:
        return None
    return sorted(tuple(row.values()) for row in rows)
