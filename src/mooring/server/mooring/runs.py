"""The runs of pipelines that a metastore keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import convert

from mooring.catalog import Catalog
from mooring.server.mooring import shapes
from mooring.server.mooring.calls import MOST

if TYPE_CHECKING:
    from mooring.pipelines import RunRecord
    from mooring.pipelines.expectations import Checked
    from mooring.server.mooring.calls import Call

__all__ = ["describe_run", "list_runs"]

_USUAL = 100
_SAME = (
    "run",
    "pipeline",
    "state",
    "fingerprint",
    "parameters",
    "by",
    "attempts",
    "error",
    "file",
    "txn_id",
)


def list_runs(call: Call) -> shapes.Runs:
    """List runs, the newest first."""
    from mooring import pipelines

    limit = call.number("limit", least=1, most=MOST) or _USUAL
    found = pipelines.list_runs(
        _catalog(call),
        call.query.get("pipeline"),
        table=call.query.get("table"),
        limit=limit,
    )
    return shapes.Runs([shapes.Run(**_fields(one)) for one in found])


def describe_run(call: Call) -> shapes.RunWithLineage:
    """Show a run with the runs around it."""
    from mooring import pipelines

    catalog = _catalog(call)
    record = pipelines.require_run(catalog, call.path["run"])
    lineage = pipelines.trace(catalog, record)
    return shapes.RunWithLineage(
        **_fields(record),
        upstream=[shapes.RunPlace(run, table) for run, table in lineage.upstream],
        downstream=[shapes.RunPlace(run, table) for run, table in lineage.downstream],
    )


def _catalog(call: Call) -> Catalog:
    return Catalog(call.metastore, f"catalog '{call.served.name}'")


def _fields(record: RunRecord) -> dict[str, Any]:
    """Return what is told of a run; what its shape lacks is for the catalog alone."""
    return {
        **{key: getattr(record, key) for key in _SAME},
        "started_at_ms": record.started_ms,
        "ended_at_ms": record.ended_ms,
        "inputs": convert(record.inputs, list[shapes.RunInput], from_attributes=True),
        "steps": convert(record.steps, list[shapes.RunStep], from_attributes=True),
        "expectations": [_expectation(one) for one in record.expectations],
        "outputs": convert(record.outputs, list[shapes.RunOutput], from_attributes=True),
    }


def _expectation(found: Checked) -> shapes.Expectation:
    return shapes.Expectation(
        step=found.step,
        expectation=found.name,
        on_failure=found.on_failure,
        rows=found.rows,
        passed=found.passed,
        failed=found.failed,
        example=found.example,
    )
