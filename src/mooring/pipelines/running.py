"""A run of a pipeline: computed, written and committed; one that failed goes on where it was."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.changes.definition import Definition
from mooring.changes.objects import find_objects
from mooring.changes.parts import Draft, check_columns, require_distinct
from mooring.clock import RandomIds, SystemClock
from mooring.errors import MooringError, UnknownOutcomeError
from mooring.identifiers import quote
from mooring.jobs.address import CatalogAddress
from mooring.metastore import DeltaType
from mooring.metastore.layout import data_dir
from mooring.pipelines.committing import AlreadyDone, FilesGivenUp, commit_run, record_failure
from mooring.pipelines.definition import SqlStep
from mooring.pipelines.expectations import judge
from mooring.pipelines.graph import needed_by
from mooring.pipelines.history import (
    DONE,
    FAILED,
    InputRecord,
    OutputRecord,
    RunRecord,
    StepRecord,
)
from mooring.pipelines.inputs import ChangesInput, FilesInput, MergedInput
from mooring.pipelines.notes import Finished, Notes
from mooring.pipelines.publishing import publish_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.catalog import Catalog
    from mooring.changes.parts import PartWritten
    from mooring.pipelines.definition import Output, Step
    from mooring.pipelines.engine import Engine
    from mooring.pipelines.expectations import Checked
    from mooring.pipelines.inputs import Input
    from mooring.pipelines.planning import RunPlan

__all__ = ["RunReport", "run_pipeline"]

_ATTEMPTS = 3
_LONGEST_ERROR = 2000


@dataclass(frozen=True)
class RunReport:
    """What became of a run.

    Attributes:
        record: The run.
        is_new: Whether it was done now.
    """

    record: RunRecord
    is_new: bool


def run_pipeline(
    catalog: Catalog,
    plan: RunPlan,
    engine: Callable[[], Engine],
    *,
    on_progress: Callable[[str], None] | None = None,
) -> RunReport:
    """Do a run, unless it is done: all outputs become visible at once, or none.

    Args:
        catalog: The catalog that it was planned for.
        plan: The plan.
        engine: Gives who computes; asked for only where something has to be.
        on_progress: Hears what is being done.

    Raises:
        InvalidInputError: rows are not as expected, or do not fit.
        MooringError: a step or a write failed; nothing is visible.
        UnknownOutcomeError: the store never said whether it is done.
    """
    if plan.is_done and plan.known is not None:
        return RunReport(_published(catalog, plan, plan.known, on_progress), is_new=False)
    work = _Work(catalog, plan, engine, on_progress or _ignore)
    try:
        record = work.do()
    except AlreadyDone as exc:
        work.forget(exc.record)
        return RunReport(_published(catalog, plan, exc.record, on_progress), is_new=False)
    except UnknownOutcomeError:
        raise  # it may be done, and then its record is there
    except BaseException as exc:
        with suppress(MooringError):  # what went wrong matters more
            record_failure(catalog, work.record(FAILED, _say(exc)))
        raise
    finally:
        work.close()
    return RunReport(_published(catalog, plan, record, on_progress), is_new=True)


def _published(
    catalog: Catalog,
    plan: RunPlan,
    record: RunRecord,
    on_progress: Callable[[str], None] | None,
) -> RunRecord:
    """Publish what a run wrote, as far as that is not done: it is visible already."""
    return publish_outputs(catalog, plan.pipeline.outputs, record, on_progress or _ignore)


def _say(exc: BaseException) -> str:
    text = str(exc) if isinstance(exc, MooringError) else f"{type(exc).__name__}: {exc}"
    return text[:_LONGEST_ERROR]


def _ignore(what: str) -> None:
    del what


@dataclass
class _Work:
    """A run that is under way."""

    catalog: Catalog
    plan: RunPlan
    give_engine: Callable[[], Engine]
    tell: Callable[[str], None]
    finished: dict[str, Finished] = field(default_factory=dict)
    checked: dict[tuple[str, str], Checked] = field(default_factory=dict)
    own_tokens: set[str] = field(default_factory=set)
    started_ms: int = field(default_factory=lambda: SystemClock().now_ms())
    _engine: Engine | None = None

    def __post_init__(self) -> None:
        plan = self.plan
        self.notes = Notes(self.catalog, plan.pipeline.name, plan.run, plan.work)

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self.tell("starting Spark")
            self._engine = self.give_engine()
        return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def do(self) -> RunRecord:
        """Compute what is not written yet, and commit all of it."""
        self.finished = self.notes.read(one.output for one in self.plan.outputs)
        for _ in range(_ATTEMPTS):
            self._compute()
            self._require_same_files()
            self.tell("committing")
            try:
                done = commit_run(self.catalog, self.plan, self.finished, self.record(DONE))
            except FilesGivenUp as exc:
                for label in exc.labels:
                    del self.finished[label]
                continue
            with suppress(MooringError):
                self.notes.delete()
            return done
        msg = "a vacuum takes the files of the run as soon as they are written: give it more grace"
        raise MooringError(msg)

    def forget(self, done: RunRecord) -> None:
        """Delete what was written here for nothing: somebody else did the same run."""
        used = {one.token for one in done.outputs}
        for token in self.own_tokens - used:
            with suppress(MooringError):
                self.catalog.metastore.store.delete_prefix(data_dir(token))

    # -- computing -------------------------------------------------------------------------------

    def _compute(self) -> None:
        for kept in self.finished.values():
            self.checked |= {(one.step, one.name): one for one in kept.checked}
        pending = [one.output for one in self.plan.outputs if one.output.label not in self.finished]
        for step in self._to_check(pending):
            self._check(step)
        for output in pending:
            self._write(output)

    def _to_check(self, pending: Sequence[Output]) -> list[Step]:
        """Return the steps whose rows are looked at: for outputs to come, or never looked at."""
        steps = self.plan.pipeline.steps
        needed = needed_by([_step_of(one.source) for one in pending], steps)
        return [
            step
            for step in self.plan.steps
            if step.expectations
            and (
                step.name in needed
                or any((step.name, one.name) not in self.checked for one in step.expectations)
            )
        ]

    def _check(self, step: Step) -> None:
        self.tell(f"checking step {step.name}")
        counted = self.engine.check(step)
        self.checked |= {(one.step, one.name): one for one in counted}
        judge(step, counted)

    def _write(self, output: Output) -> None:
        self.tell(f"writing {output.table}")
        try:
            finished = self._write_rows(output)
        except MooringError as exc:
            if str(exc).startswith(str(self.plan.pipeline.path)):
                raise
            raise type(exc)(f"{output.place}: output {quote(output.table)}: {exc}") from exc
        self.finished[output.label] = finished
        self.notes.write(finished)

    def _write_rows(self, output: Output) -> Finished:
        draft, table_id = self._draft(output)
        self.own_tokens.add(draft.token)
        written_by = draft.strict() if output.change == "replace" else draft
        parts = self.engine.write(output.source, written_by)
        require_distinct(parts, draft.what, draft.table.keys)
        return self._finish(output, draft, table_id, parts)

    def _finish(
        self, output: Output, draft: Draft, table_id: str | None, parts: Sequence[PartWritten]
    ) -> Finished:
        before = needed_by([_step_of(output.source)], self.plan.pipeline.steps)
        return Finished(
            output.label,
            draft.token,
            table_id,
            draft.table,
            tuple(file for part in parts for file in part.files),
            sum(part.rows for part in parts),
            tuple(one for one in self.checked.values() if one.step in before),
        )

    def _draft(self, output: Output) -> tuple[Draft, str | None]:
        """Say how an output is written, and the id of its table where that is there."""
        table = self.catalog.identifier(output.table)
        found = find_objects(self.catalog.metastore.begin(), table)
        schema = self.engine.schema(output.source)
        if found is not None:
            definition, table_id = found.definition, found.lasting_id
        else:
            definition, table_id = self._define(output, schema), None
        what = f"change table {quote(str(table))}"
        type_ = _type(output.change, definition)
        if output.change == "replace":
            check_columns(schema, definition, DeltaType.APPEND, what)
        address = CatalogAddress.of(self.catalog)
        return Draft(address, RandomIds().new_id(), what, definition, type_), table_id

    def _define(self, output: Output, schema: object) -> Definition:
        """Define the table that an output makes; another output may make it, too."""
        for one in self.finished.values():
            if one.table_id is None and one.label in self._labels(output.table):
                return one.definition
        create = output.create
        return Definition.make(
            schema,
            keys=create.keys if create else (),
            order=create.order if create else None,
            partition_by=create.partition_by if create else (),
            sort_by=create.sort_by if create else (),
            buckets=create.buckets if create else None,
        )

    def _labels(self, table: str) -> set[str]:
        return {one.output.label for one in self.plan.outputs if one.output.table == table}

    def _require_same_files(self) -> None:
        for one in self.plan.inputs.values():
            if isinstance(one, FilesInput):
                one.require_same()

    # -- the record ------------------------------------------------------------------------------

    def record(self, state: str, error: str | None = None) -> RunRecord:
        """Describe the run."""
        plan = self.plan
        return RunRecord(
            run=plan.run,
            pipeline=plan.pipeline.name,
            state=state,
            fingerprint=plan.fingerprint,
            parameters={name: str(value) for name, value in plan.pipeline.parameters.items()},
            by=self.catalog.metastore.author,
            started_ms=self.started_ms,
            ended_ms=SystemClock().now_ms(),
            error=error,
            inputs=tuple(_input_record(one) for one in plan.inputs.values()),
            steps=tuple(_step_record(one) for one in plan.steps),
            expectations=tuple(replace(one, example=None) for one in self.checked.values()),
            outputs=tuple(_output_record(one.output) for one in plan.outputs),
            file=str(plan.pipeline.path),
        )


def _step_of(source: str) -> str:
    """Return the step whose rejected rows are meant, or the source or step itself."""
    return source.partition("!")[0]


def _type(change: str, table: Definition) -> DeltaType:
    if change == "replace":
        return DeltaType.UPSERT if table.is_keyed else DeltaType.APPEND
    return DeltaType(change)


def _input_record(one: Input) -> InputRecord:
    kinds = {FilesInput: "files", MergedInput: "change table", ChangesInput: "changes"}
    return InputRecord(
        source=one.source.name,
        kind=kinds.get(type(one), "table"),
        name=one.name,
        shown=one.show(),
        version=dict(one.version),
    )


def _step_record(step: Step) -> StepRecord:
    kind = "sql" if isinstance(step, SqlStep) else str(step.function)
    return StepRecord(name=step.name, kind=kind, needs=step.needs)


def _output_record(output: Output) -> OutputRecord:
    return OutputRecord(table=output.table, change=output.change, source=output.source)
