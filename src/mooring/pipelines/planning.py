"""The plan of a run: what it reads at which versions, does and writes, and whether it is done."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.changes.objects import find_objects, require_objects
from mooring.errors import InvalidInputError, MooringError, TableNotFoundError
from mooring.identifiers import quote
from mooring.metastore.lance_table import check_new_name, locator_of
from mooring.metastore.trash import require_namespace
from mooring.pipelines.expectations import quarantine_outputs
from mooring.pipelines.graph import in_order, needed_by
from mooring.pipelines.history import Remembered, find_record, read_remembered
from mooring.pipelines.identity import fingerprint, work_digest
from mooring.pipelines.inputs import ChangesInput, find_input, read_again
from mooring.pipelines.notes import Notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.catalog import Catalog
    from mooring.metastore.transaction import Transaction
    from mooring.pipelines.definition import Output, Pipeline, Step
    from mooring.pipelines.history import RunRecord
    from mooring.pipelines.inputs import Input

__all__ = ["PlannedOutput", "RunPlan", "plan_run"]

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,119}")
_SHOWN_DIGITS = 12
_LEVELS = 2


@dataclass(frozen=True)
class PlannedOutput:
    """An output, and what is there of it.

    Attributes:
        output: The output.
        is_there: Whether the table is there; else the run makes it.
        is_quarantine: Whether it gets rejected rows.
        is_written: Whether an earlier try of the run has written its files.
    """

    output: Output
    is_there: bool
    is_quarantine: bool
    is_written: bool = False

    def show(self) -> str:
        """Tell what the run does to the table."""
        makes = "" if self.is_there else "make it, "
        kept = ", written by an earlier try" if self.is_written else ""
        return f"{makes}{self.output.change}{kept}"


@dataclass(frozen=True)
class RunPlan:
    """A run before it begins.

    Attributes:
        pipeline: The pipeline.
        run: The run's id.
        fingerprint: What makes it the same as another.
        work: What makes the rows that it computes the same as another's.
        inputs: What it reads, by source.
        steps: All steps, in order.
        outputs: What it writes.
        remembered: Up to where changes were read before.
        known: The record of a run of this id: one that is done, or failed.
    """

    pipeline: Pipeline
    run: str
    fingerprint: str
    work: str
    inputs: Mapping[str, Input]
    steps: Sequence[Step]
    outputs: Sequence[PlannedOutput]
    remembered: Mapping[str, Remembered]
    known: RunRecord | None

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to do."""
        return self.known is not None and self.known.is_done

    @property
    def is_other(self) -> bool:
        """Whether the run of this id that is done had another definition, or other inputs."""
        return self.known is not None and self.known.fingerprint != self.fingerprint

    def used(self) -> set[str]:
        """Return the sources and steps that matter: for outputs, or because they are checked."""
        steps = self.pipeline.steps
        wanted = [one.output.source for one in self.outputs if not one.is_quarantine]
        return needed_by([*wanted, *(one.name for one in self.steps if one.expectations)], steps)


def plan_run(
    catalog: Catalog, pipeline: Pipeline, *, run: str | None = None, again: bool = False
) -> RunPlan:
    """Plan a run of a pipeline; nothing is written.

    Args:
        catalog: A metastore.
        pipeline: The pipeline.
        run: The run's id; told by definition, parameters and inputs unless given.
        again: Whether to do anew what is done.

    Raises:
        InvalidInputError: something makes no sense.
        NotFoundError: a source or a table is not there.
        UnsupportedError: the catalog is no metastore.
    """
    if run is not None and again:
        raise InvalidInputError(
            "--run-id names the run, and --again finds a new name: leave one out"
        )
    if run is not None and not _RUN_ID.fullmatch(run):
        raise InvalidInputError(f"{quote(run)} cannot name a run: use letters, digits, - _ . and :")
    view = catalog.metastore.begin()
    remembered = read_remembered(view, pipeline.name)
    inputs = {
        name: find_input(catalog, source, remembered) for name, source in pipeline.sources.items()
    }
    mark = fingerprint(pipeline, inputs.values())
    own = f"{pipeline.name}-{mark[:_SHOWN_DIGITS]}"
    chosen = run or (_next_id(view, pipeline.name, own) if again else own)
    if again:
        inputs = _as_before(catalog, inputs, find_record(view, pipeline.name, own))
    work = work_digest(mark, inputs.values())
    written = Notes(catalog, pipeline.name, chosen, work)
    steps = in_order(pipeline.steps)
    outputs = [
        *(_plan_output(catalog, view, one, is_quarantine=False) for one in pipeline.outputs),
        *(
            _plan_output(catalog, view, one, is_quarantine=True)
            for one in quarantine_outputs(steps)
        ),
    ]
    there = written.read(one.output for one in outputs)
    return RunPlan(
        pipeline,
        chosen,
        mark,
        work,
        inputs,
        steps,
        [replace(one, is_written=one.output.label in there) for one in outputs],
        remembered,
        find_record(view, pipeline.name, chosen),
    )


def _next_id(view: Transaction, pipeline: str, own: str) -> str:
    """Return the first id of a run that is not done; one that failed goes on."""
    number, found = 1, find_record(view, pipeline, own)
    while found is not None and found.is_done:
        number += 1
        found = find_record(view, pipeline, f"{own}-{number}")
    return own if number == 1 else f"{own}-{number}"


def _as_before(
    catalog: Catalog, inputs: Mapping[str, Input], done: RunRecord | None
) -> dict[str, Input]:
    """Read the changes again that the run read the first time."""
    begins = {one.source: one.version.get("after", 0) for one in done.inputs} if done else {}
    return {
        name: read_again(catalog, one, int(begins[name]))
        if isinstance(one, ChangesInput) and name in begins
        else one
        for name, one in inputs.items()
    }


def _plan_output(
    catalog: Catalog, view: Transaction, output: Output, *, is_quarantine: bool
) -> PlannedOutput:
    try:
        is_there = _look_at(catalog, view, output)
    except MooringError as exc:
        raise type(exc)(f"{output.place}: {exc}") from exc
    return PlannedOutput(output, is_there, is_quarantine)


def _look_at(catalog: Catalog, view: Transaction, output: Output) -> bool:
    """Tell whether a table is there, and refuse what it can never take."""
    table = catalog.identifier(output.table)
    by_key = output.change in {"upsert", "delete"}
    found = find_objects(view, table)
    if found is not None:
        if by_key and not found.definition.is_keyed:
            msg = f"{found.what} has no merge keys: it takes append and replace"
            raise InvalidInputError(msg)
        return True
    check_new_name(table)
    if table.level != _LEVELS:
        msg = f"{quote(output.table)} is no table of a namespace: write namespace$table"
        raise InvalidInputError(msg)
    require_namespace(view, table.parent)
    if view.find(locator_of(table)) is not None:
        require_objects(view, table)  # a Lance table is told as what it is
    if output.create is None:
        msg = f"there is no table {quote(output.table)}: say with 'create' how it is made"
        raise TableNotFoundError(msg)
    if by_key and not output.create.keys:
        msg = f"rows {output.change} {quote(output.table)} by keys: name them with 'create'"
        raise InvalidInputError(msg)
    return False
