"""Steps of a pipeline on Spark: SQL and functions over data frames, checks, and writing.

Files are read by workers, as an ingestion reads them; tables by the data source. What is checked
or used more than once is computed once and kept until the run is over.
"""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mooring.errors import InvalidInputError, MooringError
from mooring.identifiers import quote
from mooring.ingest.fitting import fit
from mooring.pipelines.definition import OnFailure, SqlStep
from mooring.pipelines.expectations import (
    REASON,
    RUN,
    Checked,
    quarantine_name,
    quarantines,
)
from mooring.pipelines.graph import needed_by
from mooring.pipelines.inputs import ChangesInput, FilesInput, MergedInput, TableInput
from mooring.spark.changes_rows import write_frame
from mooring.spark.conversion import Conversion
from mooring.spark.failures import telling_failures
from mooring.spark.runner import SparkRunner
from mooring.spark.tables import read_table
from mooring.spark.types import canonical, from_spark, to_spark
from mooring.spark.workers import check_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from mooring.catalog import Catalog
    from mooring.changes.parts import Draft, PartWritten
    from mooring.ingest.reading import Chunk
    from mooring.ingest.sources import TextOptions
    from mooring.pipelines.definition import Expectation, PythonStep, Step
    from mooring.pipelines.inputs import Input
    from mooring.pipelines.planning import RunPlan

__all__ = ["SparkSteps"]

_CHECKS = "_mooring_checks"
_LONGEST_EXAMPLE = 300


class SparkSteps:
    """Computes the rows of one run."""

    def __init__(self, session: SparkSession, catalog: Catalog, plan: RunPlan) -> None:
        """Begin with nothing computed.

        Args:
            session: The session; views of a run are in one of its own beside it.
            catalog: The catalog.
            plan: The run.

        Raises:
            UnsupportedError: workers lack what they need.
        """
        check_workers(session)
        with telling_failures():
            self._session = _beside(session)
        self._catalog = catalog
        self._plan = plan
        self._frames: dict[str, DataFrame] = {}
        self._kept: list[DataFrame] = []
        self._checked: dict[str, list[Checked]] = {}
        self._uses = _count_uses(plan)

    # -- what a run asks for ---------------------------------------------------------------------

    def check(self, step: Step) -> list[Checked]:
        """Count what is as expected in a step, once, and set apart what is not.

        Raises:
            InvalidInputError: a condition cannot be read.
            MooringError: the step failed.
        """
        if step.name not in self._checked:
            self._checked[step.name] = self._check(step)
        return self._checked[step.name]

    def _check(self, step: Step) -> list[Checked]:
        from pyspark.sql import functions as sql

        frame = self._frame(step.name)
        if REASON in frame.columns or RUN in frame.columns:
            msg = f"{step.place}: columns {REASON} and {RUN} are for rejected rows: rename yours"
            raise InvalidInputError(msg)
        checked = self._keep(self._with_checks(frame, step.expectations))
        wrong = [_is_wrong(number) for number in range(len(step.expectations))]
        with _telling(step):
            counts = checked.agg(
                sql.count("*"), *(sql.sum(one.cast("long")) for one in wrong)
            ).collect()[0]
        found = [
            self._count(step, one, checked.where(wrong[number]), counts[0], counts[number + 1])
            for number, one in enumerate(step.expectations)
        ]
        self._set_apart(step, checked)
        return found

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a source or step, or of the rejected rows of a step."""
        return from_spark(self._frame(name).schema, {})

    def write(self, name: str, draft: Draft) -> Sequence[PartWritten]:
        """Have workers write the rows of a source or step."""
        return write_frame(draft, self._frame(name))

    def close(self) -> None:
        """Forget what was computed; a Java that is gone has nothing to forget."""
        with suppress(Exception):
            for frame in self._kept:
                frame.unpersist()
            for name in self._frames:
                if name.isidentifier():
                    self._session.catalog.dropTempView(name)
        self._kept, self._frames, self._checked = [], {}, {}

    # -- data frames -----------------------------------------------------------------------------

    def _frame(self, name: str) -> DataFrame:
        if name not in self._frames:
            self._give(name, self._make(name))
        return self._frames[name]

    def _give(self, name: str, frame: DataFrame) -> None:
        """Let steps have a data frame, in SQL by its name."""
        self._frames[name] = frame
        if name.isidentifier():
            frame.createOrReplaceTempView(name)

    def _make(self, name: str) -> DataFrame:
        step = self._plan.pipeline.steps.get(name)
        if step is None:
            if name not in self._plan.inputs:  # rejected rows, which a check sets apart
                self.check(self._plan.pipeline.steps[name.partition("!")[0]])
                return self._frames[name]
            return self._read(self._plan.inputs[name])
        for need in step.needs:
            self._frame(need)
        with _telling(step):
            frame = self._query(step) if isinstance(step, SqlStep) else self._call(step)
        return self._keep(frame) if self._uses[name] > 1 and not step.expectations else frame

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def _query(self, step: SqlStep) -> DataFrame:
        return self._session.sql(step.sql, args=dict(self._plan.pipeline.parameters))

    def _call(self, step: PythonStep) -> DataFrame:
        function = step.source.load(step.function)
        if step.function.is_in_file:
            _send_whole(function)
        values = self._plan.pipeline.parameters
        given: dict[str, Any] = {"spark": self._session, "parameters": dict(values), **values}
        arguments = {
            one: self._frames[one] if one in step.needs else given[one]
            for one in step.source.arguments
        }
        found = function(**arguments)
        if not hasattr(found, "mapInArrow"):
            kind = type(found).__name__
            raise InvalidInputError(f"{step.function} returns a data frame of Spark, not {kind}")
        return found  # type: ignore[no-any-return]  # it is one

    # -- sources ---------------------------------------------------------------------------------

    def _read(self, one: Input) -> DataFrame:
        match one:
            case FilesInput():
                return self._read_files(one)
            case TableInput():
                return self._table(one.table, version=one.number)
            case MergedInput():
                return self._table(one.table, position=one.position)
            case ChangesInput():
                span = {"fromPosition": one.after + 1, "toPosition": one.position}
                return self._table(one.table, changes=True, **span)

    def _table(self, name: str, **options: object) -> DataFrame:
        return read_table(self._session, self._catalog, name, **options)

    def _read_files(self, one: FilesInput) -> DataFrame:
        plan = one.rows().plan(SparkRunner(self._session), ())
        natural = plan.natural()
        schema = to_spark(natural)
        task = _ReadFiles(one.rows().options, natural, pa.schema(
            [pa.field(field.name, canonical(field.dataType, field.name)) for field in schema.fields]
        ))  # fmt: skip
        items = [(number, pickle.dumps(part)) for number, part in enumerate(plan.parts)]
        parts = self._session.createDataFrame(items, "number int, item binary")
        return parts.repartitionById(len(items), parts.number).mapInArrow(task, schema)

    # -- expectations ----------------------------------------------------------------------------

    def _with_checks(self, frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
        from pyspark.sql import functions as sql

        for one in expectations:
            try:
                with telling_failures():
                    frame.select(sql.expr(one.check).cast("boolean"))
            except MooringError as exc:
                msg = f"{one.place}: the check of expectation {quote(one.name)}: {exc}"
                raise InvalidInputError(msg) from exc
        holds = [
            sql.coalesce(sql.expr(one.check).cast("boolean"), sql.lit(False))  # noqa: FBT003  # null
            for one in expectations
        ]
        return frame.withColumn(_CHECKS, sql.array(*holds))

    def _count(  # noqa: PLR0917  # what is told of an expectation
        self, step: Step, one: Expectation, wrong: DataFrame, rows: int, failed: int | None
    ) -> Checked:
        example = None
        if failed and failed / rows > one.max_fraction:
            found = wrong.drop(_CHECKS).limit(1).toArrow().to_pylist()
            example = _show(found[0])[:_LONGEST_EXAMPLE] if found else None
        return Checked(
            step=step.name,
            name=one.name,
            on_failure=one.on_failure.value,
            rows=rows,
            failed=failed or 0,
            example=example,
        )

    def _set_apart(self, step: Step, checked: DataFrame) -> None:
        """Go on without the rows that are dropped, and keep those that are rejected apart."""
        from pyspark.sql import functions as sql

        rejects = quarantines(step)
        for table, numbers in rejects.items():
            rejected = checked.where(_any([_is_wrong(number) for number in numbers]))
            reasons = [
                sql.when(_is_wrong(number), sql.lit(one.name))
                for number, one in enumerate(step.expectations)
            ]
            self._frames[quarantine_name(step.name, table)] = (
                rejected.withColumn(REASON, sql.concat_ws("; ", *reasons))
                .withColumn(RUN, sql.lit(self._plan.run))
                .drop(_CHECKS)
            )
        leaves = [
            _is_wrong(number)
            for number, one in enumerate(step.expectations)
            if one.on_failure is not OnFailure.FAIL
        ]
        stays = checked.where(~_any(leaves)) if leaves else checked
        self._give(step.name, stays.drop(_CHECKS))


def _beside(session: SparkSession) -> SparkSession:
    """Return a session with views of its own; one of Spark Connect is cloned."""
    is_classic = getattr(session, "_sc", None) is not None
    return session.newSession() if is_classic else session.cloneSession()  # type: ignore[attr-defined]


def _is_wrong(number: int) -> Column:
    from pyspark.sql import functions as sql

    return ~sql.col(_CHECKS)[number]


def _show(row: dict[str, object]) -> str:
    return ", ".join(f"{k}={'null' if v is None else v}" for k, v in row.items())


def _any(conditions: Sequence[Column]) -> Column:
    found = conditions[0]
    for one in conditions[1:]:
        found = found | one
    return found


def _count_uses(plan: RunPlan) -> Counter[str]:
    """Count who reads a step: other steps that matter, and outputs."""
    steps = plan.pipeline.steps
    used = needed_by([*(one.output.source for one in plan.outputs)], steps)
    found = Counter(one.output.source for one in plan.outputs)
    for name in used & steps.keys():
        found.update(steps[name].needs)
    return found


@contextmanager
def _telling(step: Step) -> Iterator[None]:
    """Tell a failure of a step with its name and place.

    Raises:
        MooringError: it failed; the cause is that of the function, or Spark's.
    """
    where = f"{step.place}: step {quote(step.name)} failed"
    try:
        with telling_failures():
            yield
    except MooringError as exc:
        raise type(exc)(f"{where}: {exc}") from exc
    except Exception as exc:  # whatever a user's function raises
        raise MooringError(f"{where}: {type(exc).__name__}: {exc}") from exc


def _send_whole(function: Any) -> None:  # noqa: ANN401  # of a user
    """Have functions of a file travel as what they do: workers do not have the file."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class _ReadFiles:
    """Reads parts of files, in a worker."""

    options: TextOptions
    natural: pa.Schema
    wanted: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        convert: Conversion | None = None
        for batch in batches:
            for item in batch["item"].to_pylist():
                part = pickle.loads(item)  # noqa: S301  # our own driver's
                for chunk in part.read(self.options, self.natural, None):
                    rows = self._fit(chunk)
                    convert = convert or Conversion(
                        rows.schema, self.wanted, "the files", is_exact=False
                    )
                    yield convert(rows)

    def _fit(self, chunk: Chunk) -> pa.RecordBatch:
        """Give rows their types.

        Raises:
            InvalidInputError: a record cannot be read, or does not fit.
        """
        if chunk.rejects:
            raise InvalidInputError(f"a record cannot be read: {chunk.rejects[0]}")
        fitted = fit(chunk.rows, self.natural)
        if fitted.wrong:
            index, why = min(fitted.wrong.items())
            raise InvalidInputError(f"{quote(chunk.file)}, record {chunk.number(index)}: {why}")
        return fitted.rows
