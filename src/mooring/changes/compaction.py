"""Compaction: what changes come to is written down, beside writers and readers.

Workers rewrite the buckets that changed. Each partition is committed by a transaction of its own as
soon as its buckets are done: whoever interferes with one, or kills the work, costs that one alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from mooring.changes.compaction_plan import plan_compaction, policy_of
from mooring.changes.rewriting import RewriteTask, Rewritten, divide_work, rewrite
from mooring.changes.rounds import COMPACTION, Round, commit_round
from mooring.clock import RandomIds
from mooring.errors import MooringError, UnknownOutcomeError
from mooring.jobs.address import CatalogAddress
from mooring.jobs.runner import Threads
from mooring.metastore.layout import data_dir

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.changes.compaction_plan import CompactionPlan, PartitionPlan
    from mooring.changes.compaction_policy import CompactionPolicy
    from mooring.changes.table import ChangeTable
    from mooring.jobs.runner import Runner

__all__ = ["CompactionReport", "compact", "plan_compaction", "policy_of"]

# How often to look again where others were first.
_ATTEMPTS = 3


@dataclass(frozen=True)
class CompactionReport:
    """What a compaction did.

    Attributes:
        rounds: The rounds that it committed.
        beaten: How many it threw away, for somebody else was first.
    """

    rounds: tuple[Round, ...] = ()
    beaten: int = 0


def compact(
    table: ChangeTable,
    policy: CompactionPolicy | None = None,
    *,
    runner: Runner | None = None,
    on_done: Callable[[Round], None] | None = None,
) -> CompactionReport:
    """Compact the partitions of a table for which it is due.

    Writers go on meanwhile: what they commit is in the next round. Readers of older positions go on
    as well. Where another compactor or a tidy was first, the files are deleted, and it is looked
    again whether something is due.

    Args:
        table: The table.
        policy: When and how; that of the table unless given.
        runner: Rewrites buckets; threads of this process unless given.
        on_done: Hears each round once it is committed.

    Raises:
        TableNotFoundError: there is no such table, or it was dropped meanwhile.
        UnreadableError: a file is gone or damaged.
        UnknownOutcomeError: the store never said whether a round was committed.
    """
    chosen = policy or policy_of(table)
    done: list[Round] = []
    beaten = 0
    for _ in range(_ATTEMPTS):
        plan = plan_compaction(table, chosen)
        ours = {(one.values, one.through) for one in done}
        due = [one for one in plan.due if (one.values, one.through) not in ours]
        if not due:
            break
        work = _Work(table, plan, due, runner=runner or Threads(), on_done=on_done)
        work.run()
        done += work.rounds
        beaten += work.beaten
        if not work.beaten:
            break
    return CompactionReport(tuple(done), beaten)


class _Work:
    """One attempt at all partitions that are due."""

    def __init__(
        self,
        table: ChangeTable,
        plan: CompactionPlan,
        due: list[PartitionPlan],
        *,
        runner: Runner,
        on_done: Callable[[Round], None] | None,
    ) -> None:
        self._catalog = table.catalog
        self._plan = plan
        self._due = {one.id: one for one in due}
        self._runner = runner
        self._on_done = on_done
        # Each partition has an id of its own: what one of them lost can be deleted at once.
        self._tokens = {one.id: RandomIds().new_id() for one in due}
        self._written: dict[str, list[Rewritten]] = defaultdict(list)
        self._left: Counter[str] = Counter()
        self._began = monotonic()
        self._open = set(self._due)
        self.rounds: list[Round] = []
        self.beaten = 0

    def run(self) -> None:
        """Rewrite and commit; what is not committed in the end is deleted."""
        tasks = [task for one in self._due.values() for task in self._tasks(one)]
        self._left.update(task.partition for task in tasks)
        try:
            for one in self._due.values():
                if not self._left[one.id]:
                    self._commit(one)
            if tasks:
                label = f"compacting {self._plan.moment.table.id}"
                self._runner.run(rewrite, tasks, label=label, on_done=self._take)
        finally:
            for partition in sorted(self._open):
                self._forget(partition)

    def _tasks(self, one: PartitionPlan) -> list[RewriteTask]:
        address = CatalogAddress.of(self._catalog)
        policy = self._plan.policy
        return [
            RewriteTask(
                address,
                self._tokens[one.id],
                one.id,
                self._plan.moment.table.definition,
                one.level,
                part,
                policy.target_bytes,
                policy.target_rows,
            )
            for part in divide_work(one.rewritten, self._runner.workers)
        ]

    def _take(self, written: Rewritten) -> None:
        partition = written.partition
        self._written[partition].append(written)
        if len(self._written[partition]) == self._left[partition]:
            self._commit(self._due[partition])

    def _commit(self, plan: PartitionPlan) -> None:
        written = self._written[plan.id]
        files = [file for one in written for file in one.files]
        made = Round(
            plan.values,
            0,
            COMPACTION,
            plan.level,
            after=plan.base.through if plan.base else 0,
            through=plan.through,
            deltas=plan.deltas,
            rewritten=plan.rewritten_buckets,
            kept=plan.kept_buckets,
            rows_in=sum(one.rows_in for one in written),
            rows_out=sum(one.rows_out for one in written),
            bytes_in=plan.read_bytes,
            bytes_out=sum(file.size_bytes or 0 for file in files),
            seconds=monotonic() - self._began,
        )
        table = self._plan.moment.table
        # Until the commit has said that it did not happen the files may be named: an interrupt says
        # nothing.
        self._open.discard(plan.id)
        try:
            delta = commit_round(
                self._catalog,
                table,
                plan,
                files=[*plan.kept, *files],
                properties=made.properties(table.definition),
                token=self._tokens[plan.id],
            )
        except UnknownOutcomeError:
            raise
        except MooringError:
            self._open.add(plan.id)
            raise
        if delta is None:
            self._open.add(plan.id)
            self.beaten += 1
            return
        number = delta.stream_position or 0
        self._tell(replace(made, round=number, by=delta.manifest.author, at_ms=delta.at_ms))

    def _tell(self, made: Round) -> None:
        self.rounds.append(made)
        if self._on_done is not None:
            self._on_done(made)

    def _forget(self, partition: str) -> None:
        """Delete what no round names; a vacuum finds what cannot be deleted."""
        with suppress(MooringError):
            self._catalog.metastore.store.delete_prefix(data_dir(self._tokens[partition]))
