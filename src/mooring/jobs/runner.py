"""Who does the parts of a job: threads here, or a cluster in `mooring.spark`."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Runner", "Threads"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Runner(Protocol):
    """Does the parts of a job."""

    @property
    def workers(self) -> int:
        """How many parts are done at once."""
        ...

    def run(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        label: str = "",
        on_done: Callable[[Result], None] | None = None,
    ) -> list[Result]:
        """Do all parts; the results are in the order of the items.

        A part may be done more than once, where a worker was lost; only one result counts. The
        first part that fails ends the job.

        Args:
            work: What to do with an item. On a cluster it travels to other machines, with the
                item and the result, so they must pickle.
            items: The parts.
            label: What to show while it lasts.
            on_done: Hears each result as soon as it is here.
        """
        ...


class Threads:
    """Does the parts in threads of this process."""

    def __init__(self, workers: int | None = None) -> None:
        """Use so many threads; as many as there are processors unless given."""
        self._workers = workers or os.cpu_count() or 1

    @property
    def workers(self) -> int:
        """How many parts are done at once."""
        return self._workers

    def run(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        label: str = "",
        on_done: Callable[[Result], None] | None = None,
    ) -> list[Result]:
        """Do all parts."""
        del label
        with ThreadPoolExecutor(max(1, min(self._workers, len(items)))) as pool:
            futures = [pool.submit(work, item) for item in items]
            try:
                for future in as_completed(futures):
                    result = future.result()
                    if on_done is not None:
                        on_done(result)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
            return [future.result() for future in futures]
