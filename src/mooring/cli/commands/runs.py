"""``mooring runs``: the runs of pipelines, and what they read and wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from mooring.cli.completion import complete_any
from mooring.cli.listing import as_time
from mooring.cli.newest import Newest, show_newest
from mooring.cli.options import command, group
from mooring.cli.session import Session

if TYPE_CHECKING:
    from mooring.pipelines import Lineage, RunRecord

__all__ = ["app", "expectation_rows", "output_rows", "record_of", "show_source"]

_COLUMNS = ("run", "pipeline", "state", "by", "started", "seconds", "read", "wrote")
_INPUT_COLUMNS = ("source", "kind", "name", "version")
_STEP_COLUMNS = ("step", "kind", "needs")
_CHECK_COLUMNS = ("step", "expectation", "rows", "passed", "failed", "dropped", "quarantined")
_OUTPUT_COLUMNS = ("table", "change", "from", "rows", "position", "published")
_LINEAGE_COLUMNS = ("direction", "run", "table")


class _Runs(TyperGroup):
    """Lists runs where no verb is given: ``mooring runs daily``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # Click's
        """Take what is no verb as arguments of ``list``."""
        has_verb = any(arg in self.commands for arg in args)
        is_plain = has_verb or args == ["--help"]
        return super().parse_args(ctx, args if is_plain else ["list", *args])


app = typer.Typer(cls=_Runs)


@app.callback()
@group
def runs() -> None:
    """Runs of pipelines: what they read, checked and wrote."""


@app.command("list")
@command
def list_command(
    session: Session,
    pipeline: Annotated[
        str | None, typer.Argument(metavar="PIPELINE", help="Only runs of this pipeline.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Only runs that read or wrote this table.",
            autocompletion=complete_any,
        ),
    ] = None,
    limit: Newest = None,
) -> None:
    """List runs, the newest first."""
    from mooring.pipelines import list_runs

    catalog = session.open_catalog()

    def read(wanted: int | None) -> list[dict[str, object]]:
        return [_row(one) for one in list_runs(catalog, pipeline, table=table, limit=wanted)]

    show_newest(session.output, _COLUMNS, read, limit=limit, what="runs")


@app.command("show")
@command
def show_command(
    session: Session,
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The run, as listed, or how its id begins.")
    ],
) -> None:
    """Show a run with its lineage: inputs and their versions, outputs and theirs."""
    from mooring.pipelines import require_run, trace

    catalog = session.open_catalog()
    record = require_run(catalog, run)
    lineage = trace(catalog, record)
    if not session.output.is_for_people:
        session.output.record({**record_of(record), **_lineage(lineage)})
        return
    _show(session, record, lineage)


def _show(session: Session, record: RunRecord, lineage: Lineage) -> None:
    output = session.output
    values = ", ".join(f"{name}={value}" for name, value in record.parameters.items())
    output.record(
        {
            "run": record.run,
            "pipeline": record.pipeline,
            "file": record.file,
            "state": record.state,
            "error": record.error,
            "parameters": values or None,
            "by": record.by,
            "started": as_time(record.started_ms),
            "ended": as_time(record.ended_ms),
            "tries": record.attempts,
            "transaction": record.txn_id,
        }
    )
    output.gap()
    inputs = [
        {"source": one.source, "kind": one.kind, "name": one.name, "version": one.shown}
        for one in record.inputs
    ]
    output.rows(_INPUT_COLUMNS, inputs)
    if record.steps:
        output.gap()
        steps = [
            {"step": one.name, "kind": one.kind, "needs": ", ".join(one.needs) or None}
            for one in record.steps
        ]
        output.rows(_STEP_COLUMNS, steps)
    if record.expectations:
        output.gap()
        output.rows(*expectation_rows(record))
    output.gap()
    output.rows(_OUTPUT_COLUMNS, output_rows(record))
    around = _around(lineage)
    if around:
        output.gap()
        output.rows(_LINEAGE_COLUMNS, around)


def _row(record: RunRecord) -> dict[str, object]:
    return {
        "run": record.run,
        "pipeline": record.pipeline,
        "state": record.state,
        "by": record.by,
        "started": as_time(record.started_ms),
        "seconds": round((record.ended_ms - record.started_ms) / 1000, 1),
        "read": ", ".join(f"{one.name} ({one.shown})" for one in record.inputs),
        "wrote": ", ".join(_wrote(record)) or None,
    }


def _wrote(record: RunRecord) -> list[str]:
    if not record.is_done:
        return []
    return [
        f"{one.table} ({one.change} {one.rows:,} rows at {one.position})"
        for one in record.outputs
        if one.position is not None
    ]


def expectation_rows(record: RunRecord) -> tuple[tuple[str, ...], list[dict[str, object]]]:
    """Return what was counted, as rows under their columns."""
    return _CHECK_COLUMNS, [
        {
            "step": one.step,
            "expectation": one.name,
            "rows": one.rows,
            "passed": one.passed,
            "failed": one.failed,
            "dropped": one.failed if one.on_failure == "drop" else 0,
            "quarantined": one.failed if one.on_failure == "quarantine" else 0,
        }
        for one in record.expectations
    ]


def output_rows(record: RunRecord) -> list[dict[str, object]]:
    """Return what was written, as rows."""
    return [
        {
            "table": one.table,
            "change": one.change,
            "from": show_source(one.source),
            "rows": one.rows,
            "position": one.position,
            "published": one.published,
        }
        for one in record.outputs
    ]


def show_source(source: str) -> str:
    """Name a source or step, or the rejected rows of one."""
    step, mark, _ = source.partition("!")
    return f"{step} (rejected)" if mark else step


def record_of(record: RunRecord) -> dict[str, object]:
    """Return a run as programs read it."""
    import msgspec

    found: dict[str, object] = {
        **msgspec.structs.asdict(record),
        "inputs": [msgspec.structs.asdict(one) for one in record.inputs],
        "steps": [
            {**msgspec.structs.asdict(one), "needs": list(one.needs)} for one in record.steps
        ],
        "expectations": expectation_rows(record)[1],
        "outputs": [msgspec.structs.asdict(one) for one in record.outputs],
        "started": as_time(record.started_ms),
        "ended": as_time(record.ended_ms),
    }
    return found


def _lineage(lineage: Lineage) -> dict[str, object]:
    return {
        "upstream": [{"run": run, "table": table} for run, table in lineage.upstream],
        "downstream": [{"run": run, "table": table} for run, table in lineage.downstream],
    }


def _around(lineage: Lineage) -> list[dict[str, object]]:
    return [
        {"direction": direction, "run": run, "table": table}
        for direction, found in (("upstream", lineage.upstream), ("downstream", lineage.downstream))
        for run, table in found
    ]
