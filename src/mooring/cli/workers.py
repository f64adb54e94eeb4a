"""Who does a long job on one table: this process, with a moving bar, or Spark, with its own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.cli.progress import show_progress
from mooring.cli.spark import choose_runner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.cli.session import Session
    from mooring.jobs.runner import Runner
    from mooring.table import Table

__all__ = ["SparkOptions", "workers"]

# What one machine still rewrites in well under an hour.
_LARGE_BYTES = 100 * 10**9


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """What a command was told about Spark."""

    use: bool | None
    master: str | None
    conf: list[str] | None

    @property
    def is_silent(self) -> bool:
        """Whether nothing was said."""
        return self.use is None and self.master is None and not self.conf


@contextmanager
def workers(
    session: Session, table: Table, spark: SparkOptions, subject: str, branch: str | None = None
) -> Iterator[Runner]:
    """Give who does the parts of a job on a table, and show that it lasts.

    Args:
        session: The command's.
        table: The table; a large one is for Spark, where that is installed and not refused.
        spark: What was said about Spark.
        subject: What is done.
        branch: The branch; main unless given.
    """
    from mooring.jobs.runner import Threads

    fits = not spark.is_silent or table.stats(branch=branch).file_bytes <= _LARGE_BYTES
    with choose_runner(
        session, spark=spark.use, master=spark.master, conf=spark.conf, fits=fits
    ) as runner:
        if not isinstance(runner, Threads):
            yield runner
            return
        with show_progress(session.output) as meter:
            meter(subject, "")
            yield runner
