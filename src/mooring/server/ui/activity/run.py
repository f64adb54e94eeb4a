"""One run of a pipeline: what it read, checked and wrote, and the runs around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.config import mask_uris
from mooring.errors import UnsupportedError
from mooring.server.ui.activity.drawing import Drawing, Step, draw, steps_of
from mooring.server.ui.activity.graph import Graph, Node
from mooring.server.ui.activity.lineage import Places, only_metastores, tone_of
from mooring.server.ui.activity.runs import ShownRun, show_run
from mooring.server.ui.activity.signs import Place, Signs
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.pipelines import RunRecord
    from mooring.pipelines.expectations import Checked
    from mooring.server.ui.visit import Visit

__all__ = ["RunView", "show_details"]

_MOST_AROUND = 50


class RunInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a run read."""

    source: str
    kind: str
    place: Place


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step; how many rows it had is known where something was expected of them."""

    name: str
    kind: str
    needs: list[str]
    rows: int | None


class ShownExpectation(msgspec.Struct, frozen=True, kw_only=True):
    """What was expected of rows, and what was found."""

    step: str
    name: str
    on_failure: str
    rows: int
    passed: int
    failed: int
    share: float
    tone: str
    example: str


class RunOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a run wrote."""

    place: Place
    change: str
    source: str
    rows: int
    position: int | None
    is_created: bool
    was_kept: bool
    published: Place | None


class RunNear(msgspec.Struct, frozen=True, kw_only=True):
    """A run before or after another, and the table between them."""

    run: str
    href: str
    table: Place


class RunView(View, frozen=True, kw_only=True):
    """A run.

    Attributes:
        run: It in short.
        ended_at_ms: When it was over.
        file: The pipeline's file.
        parameters: Their values.
        fingerprint: What makes it the same as another.
        txn_id: Its transaction.
        txn_href: The page of that.
        inputs: What it read.
        steps: What it did.
        expectations: What was counted.
        outputs: What it wrote.
        upstream: Runs that wrote what it read.
        downstream: Runs that read what it wrote.
        note: What of these was left out.
        drawing: All that as a graph.
        told: The same in words.
        back: Where all runs are.
    """

    run: ShownRun
    ended_at_ms: int
    file: str
    parameters: dict[str, str]
    fingerprint: str
    txn_id: str
    txn_href: str
    inputs: list[RunInput]
    steps: list[RunStep]
    expectations: list[ShownExpectation]
    outputs: list[RunOutput]
    upstream: list[RunNear]
    downstream: list[RunNear]
    note: str
    drawing: Drawing | None
    told: list[Step]
    back: str


def show_details(visit: Visit) -> RunView:
    """Show a run.

    Raises:
        NotFoundError: there is none.
        UnsupportedError: the catalog is no metastore.
    """
    obstacle = only_metastores(visit)
    if obstacle:
        raise UnsupportedError(obstacle)
    from mooring.pipelines import require_run, trace

    record = require_run(visit.catalog, visit.path["run"])
    lineage = trace(visit.catalog, record)
    signs = Signs(visit)
    graph = _graph_of(signs, record)
    around = max(len(lineage.upstream), len(lineage.downstream))
    return RunView(
        cli=visit.cli("runs", "show", names=[record.run]),
        run=show_run(visit, signs, record),
        ended_at_ms=record.ended_ms,
        file=mask_uris(record.file or ""),
        parameters=dict(record.parameters),
        fingerprint=record.fingerprint,
        txn_id=record.txn_id or "",
        txn_href=visit.links.transaction(record.txn_id) if record.txn_id else "",
        inputs=[
            RunInput(
                source=one.source,
                kind=one.kind,
                place=signs.place(one.kind, one.name, one.shown),
            )
            for one in record.inputs
        ],
        steps=_steps(record),
        expectations=[_expectation(one) for one in record.expectations],
        outputs=_outputs(signs, record),
        upstream=_near(visit, signs, lineage.upstream[:_MOST_AROUND]),
        downstream=_near(visit, signs, lineage.downstream[:_MOST_AROUND]),
        note=f"The first {_MOST_AROUND} of each are shown." if around > _MOST_AROUND else "",
        drawing=draw(graph) if graph.edges else None,
        told=steps_of(graph),
        back=visit.links.to("runs"),
    )


def _steps(record: RunRecord) -> list[RunStep]:
    rows = {one.step: one.rows for one in record.expectations}
    return [
        RunStep(name=one.name, kind=one.kind, needs=list(one.needs), rows=rows.get(one.name))
        for one in record.steps
    ]


def _expectation(found: Checked) -> ShownExpectation:
    is_fine = not found.failed
    return ShownExpectation(
        step=found.step,
        name=found.name,
        on_failure=found.on_failure,
        rows=found.rows,
        passed=found.passed,
        failed=found.failed,
        share=found.passed / found.rows if found.rows else 1.0,
        tone="good" if is_fine else "bad" if found.on_failure == "fail" else "warn",
        example=found.example or "",
    )


def _outputs(signs: Signs, record: RunRecord) -> list[RunOutput]:
    shown = []
    for one in record.outputs:
        published = None
        if one.published:
            name, _, version = one.published.partition(" ")
            published = signs.place("table", name, version)
        shown.append(
            RunOutput(
                place=signs.place("change table", one.table, ""),
                change=one.change,
                source=_say_source(one.source),
                rows=one.rows,
                position=one.position,
                is_created=one.is_created,
                was_kept=one.was_kept,
                published=published,
            )
        )
    return shown


def _near(visit: Visit, signs: Signs, found: Iterable[tuple[str, str]]) -> list[RunNear]:
    return [
        RunNear(run=run, href=visit.links.run(run), table=signs.place("change table", table, ""))
        for run, table in found
    ]


def _graph_of(signs: Signs, record: RunRecord) -> Graph:
    graph, tone = Graph(), tone_of(record)
    places = Places(signs, graph)
    made: dict[str, str] = {}
    for one in record.inputs:
        made[one.source] = places.input(record.pipeline, one)
    for step in record.steps:
        made[step.name] = graph.add(Node(f"step:{step.name}", "step", step.name, step.kind))
        for need in step.needs:
            if need in made:
                graph.join(made[need], made[step.name], "", tone)
    for output in record.outputs:
        table = places.table(output.table)
        source = made.get(_step_of(output.source))
        label = f"{output.rows:,} rows" if record.is_done else "nothing"
        if source is not None:
            graph.join(source, table, label, tone)
        if output.published:
            name, _, version = output.published.partition(" ")
            graph.join(table, places.table(name, "table"), version, tone)
    return graph


def _step_of(source: str) -> str:
    """Return the source or step that rows are from; rejected rows are marked behind its name."""
    return source.partition("!")[0]


def _say_source(source: str) -> str:
    step, mark, _ = source.partition("!")
    return f"{step} (rejected)" if mark else step
