"""The verb ``mooring run``: a run of a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mooring.cli.options import DryRun, command
from mooring.cli.session import Session, parse_pairs
from mooring.cli.spark import Conf, Master, choose_runner

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.pipelines import RunPlan, RunReport
    from mooring.pipelines.inputs import Input

__all__ = ["run_command"]

_PLAN_COLUMNS = ("part", "name", "what", "version", "size")
_OUTPUT_COLUMNS = ("table", "change", "from", "rows", "position", "published")


@command
def run_command(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The pipeline, a YAML file.")],
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter; may be repeated."),
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id",
            metavar="ID",
            help="A name for the run, which counts once; told by its inputs unless given.",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Do anew what is done: a run of its own.")
    ] = False,
    dry_run: DryRun = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Run a pipeline: all of its outputs become visible at once, or none.

    A run that is done changes nothing when it is repeated. One that failed goes on: outputs that
    were written are not computed again.
    """
    from mooring.pipelines import load_pipeline, plan_run

    pipeline = load_pipeline(file, parse_pairs(param or (), "parameter"))
    session = session.at(pipeline.catalog)
    catalog = session.open_catalog()
    plan = plan_run(catalog, pipeline, run=run_id, again=again)
    if dry_run:
        _show_plan(session, plan)
        return
    _tell(session, _run(session, catalog, plan, master, conf))


def _run(
    session: Session, catalog: Catalog, plan: RunPlan, master: str | None, conf: list[str] | None
) -> RunReport:
    from mooring.cli.progress import show_progress
    from mooring.pipelines import run_pipeline

    with (
        choose_runner(session, spark=True, master=master, conf=conf, fits=False) as runner,
        show_progress(session.output) as meter,
    ):

        def start() -> Any:  # noqa: ANN401  # an engine
            from mooring.spark.pipeline_steps import SparkSteps
            from mooring.spark.runner import SparkRunner

            assert isinstance(runner, SparkRunner)  # noqa: S101  # it was asked for
            return SparkSteps(runner.session, catalog, plan)

        return run_pipeline(
            catalog, plan, start, on_progress=lambda what: meter(plan.pipeline.name, what)
        )


# -- the plan --------------------------------------------------------------------------------------


def _show_plan(session: Session, plan: RunPlan) -> None:
    head: dict[str, object] = {
        "pipeline": plan.pipeline.name,
        "run": plan.run,
        "state": _state(plan),
        "parameters": {k: str(v) for k, v in plan.pipeline.parameters.items()},
    }
    rows = _plan_rows(plan)
    if not session.output.is_for_people:
        session.output.record({**head, "plan": rows})
        return
    shown = ", ".join(f"{key}={value}" for key, value in plan.pipeline.parameters.items())
    session.output.record({**head, "parameters": shown or None})
    session.output.gap()
    session.output.rows(_PLAN_COLUMNS, rows)


def _state(plan: RunPlan) -> str:
    if plan.is_done:
        other = ", with another definition or other inputs" if plan.is_other else ""
        return f"done{other}: running it changes nothing"
    return "to be done" if plan.known is None else "failed: running it goes on"


def _plan_rows(plan: RunPlan) -> list[dict[str, object]]:
    from mooring.cli.commands.runs import show_source

    used = plan.used()
    rows = [_input_row(name, one, is_used=name in used) for name, one in plan.inputs.items()]
    for step in plan.steps:
        needs = ", ".join(step.needs) or "nothing"
        what = f"from {needs}" if step.name in used else f"from {needs}; no output needs it"
        rows.append(_row("step", step.name, what))
        for one in step.expectations:
            action = f"{one.on_failure} into {one.table}" if one.table else str(one.on_failure)
            rows.append(_row("expectation", f"{step.name}.{one.name}", f"{one.check}; {action}"))
    for planned in plan.outputs:
        output = planned.output
        what = f"{planned.show()}, from {show_source(output.source)}"
        if output.publish is not None:
            what += f"; publish as {output.publish.into}"
        rows.append(_row("output", output.table, what))
    return rows


def _input_row(name: str, one: Input, *, is_used: bool) -> dict[str, object]:
    from mooring.cli.progress import format_size
    from mooring.pipelines.inputs import FilesInput

    size = format_size(one.size_bytes) if isinstance(one, FilesInput) else f"{one.row_count:,} rows"
    shown = _near(one.source.paths) if isinstance(one, FilesInput) else one.name
    what = shown if is_used else f"{shown}; no output needs it"
    return _row("source", name, what, one.show(), size)


def _near(paths: tuple[str, ...]) -> str:
    """Show paths as seen from here, as far as they are below."""
    here = Path.cwd()
    return ", ".join(
        str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
        for path in paths
    )


def _row(
    part: str, name: str, what: str, version: str | None = None, size: str | None = None
) -> dict[str, object]:
    return {"part": part, "name": name, "what": what, "version": version, "size": size}


# -- the result ------------------------------------------------------------------------------------


def _tell(session: Session, report: RunReport) -> None:
    from mooring.cli.commands.runs import expectation_rows, output_rows, record_of

    record = report.record
    if not session.output.is_for_people:
        session.output.record({**record_of(record), "is_new": report.is_new})
        return
    if not report.is_new:
        session.output.message(
            f"run '{record.run}' is done already: nothing changed; --again makes a new run"
        )
        return
    seconds = (record.ended_ms - record.started_ms) / 1000
    session.output.record(
        {
            "run": record.run,
            "state": record.state,
            "seconds": f"{seconds:.1f}",
            "transaction": record.txn_id,
        }
    )
    if record.expectations:
        session.output.gap()
        columns, rows = expectation_rows(record)
        session.output.rows(columns, rows)
    session.output.gap()
    session.output.rows(_OUTPUT_COLUMNS, output_rows(record))
