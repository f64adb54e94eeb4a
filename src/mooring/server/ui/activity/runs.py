"""The runs of pipelines: all of them, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.config import mask_uris
from mooring.server.ui.activity.lineage import only_metastores, tone_of
from mooring.server.ui.activity.signs import Place, Signs
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.pipelines import RunRecord
    from mooring.server.ui.visit import Visit

__all__ = ["RunsView", "ShownRun", "show_run", "show_runs", "took"]

_A_PAGE = 50
_MINUTE_S = 60
_HOUR_S = 3600
STATES = ("done", "failed")


class ShownRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run.

    Attributes:
        run: Its id.
        href: Its page.
        pipeline: The pipeline.
        pipeline_href: Its runs.
        state: How it ended.
        tone: How that looks.
        started_at_ms: When it began.
        took_ms: How long it took.
        took: The same, in words.
        share: Of the longest of the page, between 0 and 1.
        by: Who ran it.
        attempts: How many times it was tried.
        rows: How many rows it wrote.
        inputs: What it read.
        outputs: What it wrote.
        error: Why it failed.
    """

    run: str
    href: str
    pipeline: str
    pipeline_href: str
    state: str
    tone: str
    started_at_ms: int
    took_ms: int
    took: str
    share: float = 1.0
    by: str
    attempts: int
    rows: int
    inputs: list[Place]
    outputs: list[Place]
    error: str


class RunsView(View, frozen=True, kw_only=True):
    """Runs of pipelines.

    Attributes:
        obstacle: Why there are none.
        runs: A page of them.
        total: How many there are that were asked for.
        has_any: Whether there are any at all.
        first: The number of the first that is shown.
        pipelines: Those that ever ran.
        states: How runs end.
        pipeline: The pipeline that was asked for.
        table: The table that was asked for.
        state: The state that was asked for.
        newer: Where those before these are.
        older: Where those after these are.
        lineage: Where it is drawn what comes from what.
    """

    obstacle: str = ""
    runs: list[ShownRun] = msgspec.field(default_factory=list)
    total: int = 0
    has_any: bool = False
    first: int = 1
    pipelines: list[str] = msgspec.field(default_factory=list)
    states: list[str] = msgspec.field(default_factory=lambda: list(STATES))
    pipeline: str = ""
    table: str = ""
    state: str = ""
    newer: str = ""
    older: str = ""
    lineage: str = ""


def show_runs(visit: Visit) -> RunsView:
    """Show the runs of pipelines.

    Raises:
        InvalidInputError: what was asked for makes no sense.
    """
    obstacle = only_metastores(visit)
    if obstacle:
        return RunsView(obstacle=obstacle)
    from mooring.pipelines import list_runs

    asked = {key: visit.query.get(key, "").strip() for key in ("pipeline", "table", "state")}
    everything = list_runs(visit.catalog)
    wanted = [one for one in everything if _is_wanted(one, asked)]
    page = visit.number("page", least=1) or 1
    shown = wanted[(page - 1) * _A_PAGE : page * _A_PAGE]
    signs = Signs(visit)
    given = {key: value or None for key, value in asked.items()}

    def at(number: int) -> str:
        return visit.links.to("runs", **given, page=number if number > 1 else None)

    return RunsView(
        cli=_cli(visit, asked),
        runs=_with_shares([show_run(visit, signs, one) for one in shown]),
        total=len(wanted),
        has_any=bool(everything),
        first=(page - 1) * _A_PAGE + 1,
        pipelines=sorted({one.pipeline for one in everything}),
        pipeline=asked["pipeline"],
        table=asked["table"],
        state=asked["state"],
        newer=at(page - 1) if page > 1 else "",
        older=at(page + 1) if page * _A_PAGE < len(wanted) else "",
        lineage=visit.links.to("lineage", table=given["table"]),
    )


def _cli(visit: Visit, asked: dict[str, str]) -> str:
    table = [f"--table={asked['table']}"] if asked["table"] else []
    return visit.cli("runs", *table, names=[asked["pipeline"]] if asked["pipeline"] else [])


def _is_wanted(record: RunRecord, asked: dict[str, str]) -> bool:
    return (
        asked["pipeline"] in {"", record.pipeline}
        and asked["state"] in {"", record.state}
        and (not asked["table"] or asked["table"] in record.read_tables() | record.written_tables())
    )


def _with_shares(runs: Sequence[ShownRun]) -> list[ShownRun]:
    longest = max((one.took_ms for one in runs), default=0) or 1
    return [msgspec.structs.replace(one, share=one.took_ms / longest) for one in runs]


def show_run(visit: Visit, signs: Signs, record: RunRecord) -> ShownRun:
    """Show a run in short.

    Args:
        visit: The request.
        signs: Where tables are.
        record: The run.
    """
    took_ms = max(record.ended_ms - record.started_ms, 0)
    return ShownRun(
        run=record.run,
        href=visit.links.run(record.run),
        pipeline=record.pipeline,
        pipeline_href=visit.links.to("runs", pipeline=record.pipeline),
        state=record.state,
        tone=tone_of(record),
        started_at_ms=record.started_ms,
        took_ms=took_ms,
        took=took(took_ms),
        by=record.by,
        attempts=record.attempts,
        rows=sum(one.rows for one in record.outputs) if record.is_done else 0,
        inputs=[signs.place(one.kind, one.name, one.shown) for one in record.inputs],
        outputs=[
            signs.place("change table", one.table, f"{one.change} {one.rows:,}")
            for one in record.outputs
        ],
        error=mask_uris(record.error or ""),
    )


def took(length_ms: int) -> str:
    """Say how long something took, to what matters: ``0.4 s``, ``3 min 20 s``."""
    seconds = length_ms / 1000
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < _HOUR_S:
        return f"{int(seconds // _MINUTE_S)} min {int(seconds % _MINUTE_S)} s"
    return f"{int(seconds // _HOUR_S)} h {int(seconds % _HOUR_S // _MINUTE_S)} min"
