"""The parts of a job as tasks of Spark.

Only pickled items and results cross between Java and Python; what a part is about is read and
written by the worker itself. The same code serves a session of either kind, classic or Connect.
"""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mooring.errors import MooringError
from mooring.spark.failures import telling_failures
from mooring.spark.workers import check_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["SparkRunner", "StageMeter"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_POLL_S = 0.3
_CONNECT_WORKERS = 8


class StageMeter(Protocol):
    """Hears how many tasks of a job are done."""

    def __call__(self, label: str, done: int, total: int, /) -> None:
        """Show it."""
        ...


@dataclass(frozen=True)
class _Failed:
    """A failure that trying again cannot change: it travels back as an answer."""

    error: MooringError


class SparkRunner:
    """Does the parts of a job as tasks of Spark, one task for each."""

    def __init__(
        self,
        session: SparkSession | Callable[[], SparkSession],
        meter: StageMeter | None = None,
    ) -> None:
        """Use a session.

        Args:
            session: The session, or what gives it when it is first needed.
            meter: Hears how far a job has come.
        """
        self._given = session
        self._meter = meter
        self._are_checked = False

    @property
    def session(self) -> SparkSession:
        """The session; the first to ask may have to wait until it is started."""
        return self._given() if callable(self._given) else self._given

    @property
    def workers(self) -> int:
        """How many parts are done at once, as far as this side knows."""
        context = getattr(self.session, "_sc", None)  # a session of Spark Connect has none
        return int(context.defaultParallelism) if context is not None else _CONNECT_WORKERS

    def run(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        label: str = "",
        on_done: Callable[[Result], None] | None = None,
    ) -> list[Result]:
        """Do all parts."""
        if not items:
            return []
        self._check_workers()
        rows = [(number, pickle.dumps(item)) for number, item in enumerate(items)]
        parts = self.session.createDataFrame(rows, "number int, item binary")
        tasks = parts.repartitionById(len(rows), parts.number).mapInArrow(
            _Task(work), "number int, result binary"
        )
        found: dict[int, Any] = {}
        with telling_failures():
            collected = self._collect(tasks, label, len(rows))
        for row in collected:
            result = pickle.loads(row["result"])  # noqa: S301  # our own worker's
            if isinstance(result, _Failed):
                raise result.error
            found[row["number"]] = result
            if on_done is not None:
                on_done(result)
        return [found[number] for number in range(len(items))]

    def _check_workers(self) -> None:
        """Look once whether the workers have what the parts need."""
        if not self._are_checked:
            check_workers(self.session)
            self._are_checked = True

    def _collect(self, tasks: Any, label: str, total: int) -> list[Any]:  # noqa: ANN401  # a data frame
        if self._meter is None:
            return list(tasks.collect())
        with _Watching(self.session, self._meter, label=label, total=total):
            return list(tasks.collect())


class _Task:
    """The work as Spark calls it: batches of items in, batches of results out."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for number, item in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                result = pickle.dumps(self._do(pickle.loads(item)))  # noqa: S301  # our own driver's
                yield pa.RecordBatch.from_arrays(
                    [pa.array([number], pa.int32()), pa.array([result], pa.binary())],
                    names=["number", "result"],
                )

    def _do(self, item: object) -> object:
        try:
            return self._work(item)
        except MooringError as exc:
            return _Failed(exc)


class _Watching:
    """Polls how many tasks of this thread's jobs are done."""

    def __init__(self, session: SparkSession, meter: StageMeter, *, label: str, total: int) -> None:
        self._session = session
        self._meter = meter
        self._label = label
        self._total = total
        self._done = 0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        self._meter(self._label, 0, self._total)
        context = getattr(self._session, "_sc", None)
        if context is None:
            self._session.registerProgressHandler(self._hear)
            return
        self._thread = threading.Thread(
            target=self._poll, args=(context.statusTracker(),), daemon=True
        )
        self._thread.start()

    def _poll(self, tracker: Any) -> None:  # noqa: ANN401  # of py4j
        while not self._stopped.wait(_POLL_S):
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            there = [info for info in infos if info is not None]
            self._tell(
                [(info.numTasks, info.numCompletedTasks) for info in there],
                sum(info.numActiveTasks for info in there),
            )

    def _hear(self, stages: Iterable[Any], inflight_tasks: int, **_: object) -> None:
        """Hear of it from a server of Spark Connect."""
        found = [(stage.num_tasks, stage.num_completed_tasks) for stage in stages or ()]
        self._tell(found, inflight_tasks)

    def _tell(self, stages: Iterable[tuple[int, int]], active: int) -> None:
        """Show the stage that has our tasks; the end of it is told when all is over."""
        ours = [done for total, done in stages if total == self._total]
        self._done = max([self._done, *ours])  # a stage that is over is not among them
        waits = "" if self._done or active else " (waiting for workers)"
        self._meter(self._label + waits, min(self._done, self._total - 1), self._total)

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        else:
            self._session.removeProgressHandler(self._hear)
        if failure is None:
            self._meter(self._label, self._total, self._total)
