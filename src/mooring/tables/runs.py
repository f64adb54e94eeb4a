"""Runs that count once, however often they are repeated.

A run that has a name of its own, such as a batch of a stream, is committed with it: the name is
among the properties of the transaction. Before any commit the run's beginning is noted below
`_runs/<run>/` in the table's directory, with the newest version of that time, so its commit can
only be among the versions after. Whoever commits the run looks at each of these before it takes
the next number, and the put of that number decides: two who repeat one run at once cannot both
get in. When it is done, that is noted, too, and holds when the versions are cleaned away.

Whoever deletes versions calls `note_runs` first: of a run that was killed between its commit and
its note only a version tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import (
    InvalidTableStateError,
    TableBranchNotFoundError,
    TableVersionNotFoundError,
)
from mooring.identifiers import quote
from mooring.tables.handle import At
from mooring.tables.pending import check_run_id
from mooring.tables.transactions import read_transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mooring.tables.handle import TableHandle
    from mooring.tables.place import Place
    from mooring.tables.transactions import Transaction

__all__ = [
    "BATCH",
    "RUN",
    "RUNS_DIR",
    "Done",
    "RunAlreadyDone",
    "RunMark",
    "RunWatch",
    "Runs",
    "find_done",
    "list_done",
    "note_runs",
    "transaction_at",
]

RUNS_DIR = "_runs"
RUN, BATCH = "mooring.run", "mooring.batch"
_BEGUN, _DONE = ".begun", ".done"
_DIGITS = 20
# Spark repeats its last batch at most; one more is kept for people to see.
_KEPT = 2


@dataclass(frozen=True, slots=True)
class RunMark:
    """A name by which a run is known again.

    Attributes:
        run: The run, or the stream.
        batch: Which batch of the stream.
    """

    run: str
    batch: int = 0

    def __post_init__(self) -> None:
        """Refuse a name that cannot be one."""
        check_run_id(self.run)

    @property
    def properties(self) -> dict[str, str]:
        """What is kept with the commit."""
        return {RUN: self.run, BATCH: str(self.batch)}

    def is_in(self, properties: Mapping[str, str]) -> bool:
        """Whether a commit with these properties was made by this run."""
        return properties.get(RUN) == self.run and properties.get(BATCH, "0") == str(self.batch)

    def __str__(self) -> str:
        """Say it in a message."""
        return quote(self.run) if not self.batch else f"{quote(self.run)}, batch {self.batch}"


class Done(msgspec.Struct, frozen=True):
    """A run that is in a table.

    Attributes:
        version: The version that it made.
        rows: How many rows it wrote, where that is known.
    """

    version: int
    rows: int | None = None


class _Begun(msgspec.Struct, frozen=True, omit_defaults=True):
    """After which version of which branch a run's commit can be."""

    version: int
    branch: str | None = None


class RunAlreadyDone(Exception):  # noqa: N818  # an answer, not an error
    """The run is in the table already."""

    def __init__(self, done: Done) -> None:
        """Tell which version it made."""
        super().__init__(f"it made version {done.version}")
        self.done = done


class Runs:
    """The runs of a table that have a name."""

    def __init__(self, place: Place, mark: RunMark) -> None:
        """Look after one run.

        Args:
            place: The table's directory.
            mark: The run.
        """
        self._store = place.store
        self._directory = place.path(f"{RUNS_DIR}/{mark.run}")
        self.mark = mark

    def _path(self, suffix: str) -> str:
        return f"{self._directory}/{self.mark.batch:0{_DIGITS}d}{suffix}"

    def find(self) -> Done | None:
        """Tell whether the run is known to be done."""
        body = self._store.get(self._path(_DONE))
        return None if body is None else msgspec.json.decode(body, type=Done)

    def begin(self, newest: int, branch: str | None = None) -> int:
        """Note that the run begins; return after which version its commit can be.

        Args:
            newest: The newest version now.
            branch: Of which branch; main unless given.

        Raises:
            InvalidTableStateError: a later batch is done already.
        """
        self._require_last()
        self._store.put_new(self._path(_BEGUN), msgspec.json.encode(_Begun(newest, branch)))
        begun = self.begun()
        return newest if begun is None else begun

    def _require_last(self) -> None:
        """Refuse a batch of the past, of which nothing may be noted any more."""
        last = self.last_done()
        if last is None or last <= self.mark.batch:
            return
        msg = (
            f"{self.mark} comes after batch {last} of it is done: the stream runs twice, or its"
            " checkpoint was replaced; stop this one, or give it a name of its own"
        )
        raise InvalidTableStateError(msg)

    def last_done(self) -> int | None:
        """Tell the last batch that is noted as done."""
        names = self._store.list_dir(self._directory).files
        done = [int(name.removesuffix(_DONE)) for name in names if name.endswith(_DONE)]
        return max(done, default=None)

    def begun(self) -> int | None:
        """Tell after which version the run's commit can be; None where it never began."""
        body = self._store.get(self._path(_BEGUN))
        return None if body is None else msgspec.json.decode(body, type=_Begun).version

    def pass_over(self, version: int, branch: str | None = None) -> None:
        """Note that no version up to this one is the run's."""
        if version > (self.begun() or 0):
            self._store.put(self._path(_BEGUN), msgspec.json.encode(_Begun(version, branch)))

    def end(self, done: Done) -> None:
        """Note that the run is done, and forget batches long before it."""
        self._store.put(self._path(_DONE), msgspec.json.encode(done))
        oldest = self.mark.batch - _KEPT
        if oldest < 0:
            return
        names = self._store.list_dir(self._directory).files
        old = [name for name in names if int(name.partition(".")[0]) <= oldest]
        self._store.delete(f"{self._directory}/{name}" for name in old)

    def forget(self) -> None:
        """Delete the note of a beginning that came to nothing, with the table it was for."""
        self._store.delete([self._path(_BEGUN)])
        self._store.prune(self._directory.rpartition("/")[0])


class RunWatch:
    """Looks whether a run's own commit is among the versions that were made meanwhile."""

    def __init__(self, handle: TableHandle, mark: RunMark, rows: int | None = None) -> None:
        """Look for a run."""
        self._what = handle.what
        self._mark = mark
        self._rows = rows
        self._runs = Runs(handle.place, mark)

    def see(self, version: int, transaction: Transaction | None) -> None:
        """Look at a version.

        Raises:
            RunAlreadyDone: it is the run's own.
            InvalidTableStateError: nobody can tell any more.
        """
        if transaction is None:
            self._ask_notes(version)
            return
        if self._mark.is_in(transaction.properties):
            raise RunAlreadyDone(Done(version, self._rows))

    def _ask_notes(self, version: int) -> None:
        """Of a version that is gone the notes tell, as whoever deleted it looked at it before."""
        done = self._runs.find()
        if done is not None:
            raise RunAlreadyDone(done)
        begun = self._runs.begun()
        if begun is None or begun < version:
            msg = (
                f"nobody can tell whether run {self._mark} is in {self._what}: version {version},"
                " made after it began, does not say by whom; look, and use another run id"
            )
            raise InvalidTableStateError(msg)


def find_done(handle: TableHandle, mark: RunMark, branch: str | None = None) -> Done | None:
    """Tell whether a run is in a table, from its note or from the versions since it began.

    Raises:
        InvalidTableStateError: nobody can tell any more.
    """
    runs = Runs(handle.place, mark)
    known = runs.find()
    begun = None if known else runs.begun()
    if begun is None:
        return known
    newest = handle.ledger.newest(branch)
    if newest is None:
        return None
    return _search(handle, runs, range(begun + 1, newest.version + 1), branch)


def _search(
    handle: TableHandle, runs: Runs, versions: Iterable[int], branch: str | None
) -> Done | None:
    """Look for a run's commit in versions, and note where it is."""
    watch = RunWatch(handle, runs.mark)
    try:
        for version in versions:
            watch.see(version, transaction_at(handle, version, branch))
    except RunAlreadyDone as exc:
        runs.end(exc.done)
        return exc.done
    return None


def note_runs(handle: TableHandle) -> None:
    """Before versions are deleted: note of each run that is not known to be done what they tell.

    A run whose commit is there is noted as done. One that is not there is looked for only in later
    versions from now on.
    """
    place = handle.place
    paths = [meta.path for meta in place.store.list_prefix(place.path(RUNS_DIR))]
    done = {path.removesuffix(_DONE) for path in paths}
    for path in paths:
        if path.endswith(_BEGUN) and path.removesuffix(_BEGUN) not in done:
            _note_run(handle, path)


def _note_run(handle: TableHandle, path: str) -> None:
    body = handle.place.store.get(path)
    if body is None:
        return
    begun = msgspec.json.decode(body, type=_Begun)
    directory, _, name = path.removesuffix(_BEGUN).rpartition("/")
    runs = Runs(handle.place, RunMark(directory.rpartition("/")[2], int(name)))
    try:
        newest = handle.ledger.newest(begun.branch)
        if newest is None or newest.version <= begun.version:
            return
        since = range(begun.version + 1, newest.version + 1)
        if _search(handle, runs, since, begun.branch) is None:
            runs.pass_over(newest.version, begun.branch)
    except (InvalidTableStateError, TableBranchNotFoundError):
        return  # what is lost already stays lost; whoever repeats the run is told


def list_done(place: Place) -> list[tuple[RunMark, Done]]:
    """List the runs that are noted as done in a table."""
    suffix = _DONE
    found = []
    for meta in place.store.list_prefix(place.path(RUNS_DIR)):
        directory, _, name = meta.path.rpartition("/")
        body = place.store.get(meta.path) if name.endswith(suffix) else None
        if body is not None:
            mark = RunMark(directory.rpartition("/")[2], int(name.removesuffix(suffix)))
            found.append((mark, msgspec.json.decode(body, type=Done)))
    return sorted(found, key=lambda pair: (pair[0].run, pair[0].batch))


def transaction_at(handle: TableHandle, version: int, branch: str | None) -> Transaction | None:
    """Read what made a version; None where the version or its transaction is gone."""
    try:
        dataset = handle.open(At(version, branch=branch))
    except TableVersionNotFoundError:
        return None
    return read_transaction(handle, dataset, version, branch)
