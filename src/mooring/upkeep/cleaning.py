"""Cleaning a table: versions that nobody needs, and what runs that were killed left behind.

Whether a run's files may go is decided by the run's own record, never by their age alone: an old
run that nobody ended is given up first, by the put that its commit would need, too. And no file
goes that a version names, whatever the record says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from mooring.clock import SystemClock
from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.tables.compaction import Cleaned, Cleaning, clean
from mooring.tables.data_files import named_files
from mooring.tables.pending import PendingRun, list_runs

if TYPE_CHECKING:
    from mooring.table import Table
    from mooring.tables.handle import TableHandle

__all__ = ["RUNS_AGE", "CleanedUp", "RunState", "SweptRun", "cleanup", "sweep_runs"]

RUNS_AGE = timedelta(days=1)


class RunState(StrEnum):
    """What became of a run.

    ``committed``: its rows are in a version. ``abandoned``: it was given up. ``undecided``: it may
    still be at work. ``stuck``: it was about to commit, and no version that is there has its files;
    perhaps it is about to, perhaps its versions are gone.
    """

    COMMITTED = "committed"
    ABANDONED = "abandoned"
    UNDECIDED = "undecided"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class SweptRun:
    """A run that left something in a table.

    Attributes:
        run: Its identifier.
        state: What became of it.
        goes: Whether what it left was deleted; of a dry run, whether it would be.
        begun_ms: When the oldest that it left was written.
        files: What goes, below the table's directory; where nothing does, what is left.
        bytes: What these take.
        branch: The branch it was for; None for main.
    """

    run: str
    state: RunState
    goes: bool
    begun_ms: int
    files: tuple[str, ...]
    bytes: int
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """What a cleanup did, or would do.

    Attributes:
        versions: What went with old versions; None where they were not asked for.
        runs: The runs that had left something.
        is_plan: Whether nothing was done.
    """

    versions: Cleaned | None
    runs: tuple[SweptRun, ...]
    is_plan: bool = False


def cleanup(
    table: Table,
    *,
    older_than: timedelta | None = None,
    keep: int | None = None,
    runs_older_than: timedelta = RUNS_AGE,
    run: str | None = None,
    force: bool = False,
    branch: str | None = None,
    dry_run: bool = False,
) -> CleanedUp:
    """Delete old versions of a table and what killed runs left in it.

    Args:
        table: The table.
        older_than: Delete versions that were made so long ago; none unless given.
        keep: Delete versions before the newest so many; none unless given.
        runs_older_than: Give up runs that nobody ended and that wrote nothing for so long.
        run: Only this run, however old it is.
        force: Take a run that is named from a table even where it is stuck.
        branch: The branch whose versions go; main unless given.
        dry_run: Only say what would go.

    Raises:
        InvalidInputError: an argument makes no sense, or there is no such run.
        ReadOnlyError: the catalog was opened read-only.
    """
    cleaning = Cleaning(older_than, keep)
    runs = sweep_runs(table, runs_older_than, dry_run=dry_run, run=run, force=force)
    versions = None
    if cleaning.is_wanted:
        versions = clean(table.handle, cleaning, branch=branch, dry_run=dry_run)
    return CleanedUp(versions, tuple(runs), dry_run)


def sweep_runs(
    table: Table,
    older_than: timedelta = RUNS_AGE,
    dry_run: bool = False,  # noqa: FBT001, FBT002  # the only thing left to say
    *,
    run: str | None = None,
    force: bool = False,
) -> list[SweptRun]:
    """Delete what runs left in a table that are over, and tell of those that are not.

    Args:
        table: The table.
        older_than: Give up runs that nobody ended and that wrote nothing for so long.
        dry_run: Only say what would go.
        run: Only this run, however old it is.
        force: Take it even where it is stuck.

    Raises:
        InvalidInputError: there is no such run.
        ReadOnlyError: the catalog was opened read-only.
    """
    if older_than < timedelta(0):
        msg = f"runs cannot be older than {older_than}"
        raise InvalidInputError(msg)
    handle = table.handle
    if not dry_run:
        handle.ledger.prepare()
    found = [
        (branch, one)
        for branch in _branches(handle)
        for one in list_runs(handle.place_of(branch))
        if run is None or one.run == run
    ]
    if run is not None and not found:
        msg = f"{handle.what} has no files of a run {quote(run)}"
        raise InvalidInputError(msg)
    sweep = _Sweep(handle, older_than, dry_run=dry_run, is_named=run is not None, force=force)
    return [sweep.end(one, branch) for branch, one in found]


def _branches(handle: TableHandle) -> list[str | None]:
    from mooring.tables.branches import Branches

    return [None, *Branches(handle).names()]


class _Sweep:
    """Ends runs, one after the other."""

    def __init__(
        self,
        handle: TableHandle,
        older_than: timedelta,
        *,
        dry_run: bool,
        is_named: bool,
        force: bool,
    ) -> None:
        self._place = handle.place
        self._since_ms = SystemClock().now_ms() - int(older_than.total_seconds() * 1000)
        self._dry_run = dry_run
        self._is_named = is_named
        self._force = force

    def end(self, run: PendingRun, branch: str | None) -> SweptRun:
        """End a run where that may be, and tell what goes."""
        begun = run.begun_ms
        state, kept = self._judge(run)
        goes = self._may_go(run, state)
        if goes and state is RunState.UNDECIDED and not self._dry_run:
            if not run.abandon():
                return self.end(run, branch)  # it was about to commit after all
            state, kept = self._judge(run)
        left = run.leftovers(kept)
        above = f"{self._place.directory}/"
        swept = SweptRun(
            run.run,
            state,
            goes,
            begun,
            tuple(meta.path.removeprefix(above) for meta in left),
            sum(meta.size_bytes for meta in left),
            branch,
        )
        if goes and not self._dry_run:
            run.settle(kept)
        return swept

    def _judge(self, run: PendingRun) -> tuple[RunState, set[str]]:
        """Tell what became of a run, and which of its files versions name."""
        outcome = run.outcome
        if outcome is None:
            return RunState.UNDECIDED, set()
        kept = named_files(self._place, run.files())
        if outcome == "abandon":
            return RunState.ABANDONED, kept
        return (RunState.COMMITTED if kept else RunState.STUCK), kept

    def _may_go(self, run: PendingRun, state: RunState) -> bool:
        match state:
            case RunState.COMMITTED | RunState.ABANDONED:
                return True
            case RunState.UNDECIDED:
                return self._is_named or self._is_old(run)
            case RunState.STUCK:
                is_asked = self._is_named and self._force
                return is_asked or (self._is_old(run) and not run.leftovers())

    def _is_old(self, run: PendingRun) -> bool:
        return run.alive_ms <= self._since_ms
