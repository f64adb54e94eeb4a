"""Data files on their way into a table, written by many workers, and what a lost worker left.

A run is one change of one table whose data files several workers write. Nobody sees them before
the one commit that ends the run. Each attempt of a worker notes its files below `_pending/<run>/`
in the table's directory, so whoever ends the run finds those that did not get into it:

- On disk an attempt writes into a directory of its own there, notes the names, and only then links
  the files into `data/`. Whenever it is killed, everything it left can be told from the files of
  other writers.
- An object is there whole or not at all, so on an object store an attempt writes into `data/` and
  notes each file as it is finished. One that dies between the two leaves a file nobody knows;
  such files go by age, as Lance's own do.

Whether a run may still commit is decided by one create-only put, of `_pending/<run>/decision`: the
run's own before its commit, or that of a cleanup which gives the run up. The clock only proposes
what a cleanup asks for; it never decides.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mooring.clock import SystemClock
from mooring.errors import ConcurrentModificationError, InvalidInputError
from mooring.identifiers import quote
from mooring.store.numbered import create_once
from mooring.tables.data_files import delete_files, find_files, named_files, stems_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.store import ObjectMeta
    from mooring.tables.place import Place

__all__ = [
    "NOTE",
    "PENDING_DIR",
    "Note",
    "PendingRun",
    "Swept",
    "check_run_id",
    "given_up",
    "list_runs",
    "new_run_id",
    "prune_run",
]

PENDING_DIR = "_pending"
NOTE = ".json"
_DECISION = "decision"
_ID_LENGTH = 100


def new_run_id() -> str:
    """Make an identifier that no other run has."""
    return uuid.uuid4().hex


def check_run_id(run: str) -> None:
    """Refuse what cannot name a run.

    Raises:
        InvalidInputError: it is empty, too long, or holds more than letters, digits and `.-_`.
    """
    plain = run.replace("-", "").replace("_", "").replace(".", "")
    if not (plain.isascii() and plain.isalnum() and len(run) <= _ID_LENGTH):
        msg = f"{quote(run)} cannot name a run: use letters, digits and .-_, at most {_ID_LENGTH}"
        raise InvalidInputError(msg)


class Note(msgspec.Struct, frozen=True):
    """What an attempt has written: paths below the table's `data/`."""

    files: list[str]


class _Decision(msgspec.Struct, frozen=True):
    """How a run was ended, ``commit`` or ``abandon``, and when.

    A commit can only be among the versions after the one that was read.
    """

    outcome: str
    at_ms: int
    nonce: str
    read_version: int = 0


@dataclass(frozen=True, slots=True)
class Swept:
    """What ending a run deleted.

    Attributes:
        files: How many files of lost attempts.
        bytes: What they took.
    """

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class PendingRun:
    """A run as its driver, or a cleanup, sees it."""

    place: Place
    run: str

    @property
    def _directory(self) -> str:
        return self.place.path(f"{PENDING_DIR}/{self.run}")

    @property
    def _decision_path(self) -> str:
        return f"{self._directory}/{_DECISION}"

    @property
    def outcome(self) -> str | None:
        """How the run was ended: ``commit`` or ``abandon``; None while it may still write."""
        decision = self._read_decision()
        return None if decision is None else decision.outcome

    def _read_decision(self) -> _Decision | None:
        body = self.place.store.get(self._decision_path)
        return None if body is None else msgspec.json.decode(body, type=_Decision)

    @property
    def begun_ms(self) -> int:
        """When the oldest that is left of it was written, by the store's clock."""
        found = self.place.store.list_prefix(self._directory)
        return min((meta.modified_ms for meta in found), default=0)

    def claim(self, read_version: int = 0, files: Iterable[str] = ()) -> None:
        """Before the commit: make sure that no cleanup has given the run up.

        A cleanup deletes its decision last, so one that gave the run up is there, or has deleted
        the notes of its files.

        Args:
            read_version: The version that the commit is made from.
            files: Paths below `data/` of what is to be committed.

        Raises:
            ConcurrentModificationError: one has; its files may be gone.
        """
        if self._decide("commit", read_version) == "commit":
            if set(files) <= self.files():
                return
            self.place.store.delete([self._decision_path])
        raise given_up(self.run)

    def abandon(self) -> bool:
        """Decide that the run must not commit; False where it was about to, or did."""
        return self._decide("abandon") == "abandon"

    def _decide(self, outcome: str, read_version: int = 0) -> str | None:
        wanted = _Decision(outcome, SystemClock().now_ms(), uuid.uuid4().hex, read_version)
        if create_once(self.place.store, self._decision_path, msgspec.json.encode(wanted)):
            return outcome
        return self.outcome

    @property
    def alive_ms(self) -> int:
        """When the newest that is left of it was written, by the store's clock."""
        found = self.place.store.list_prefix(self._directory)
        return max((meta.modified_ms for meta in found), default=0)

    def note(self, files: Iterable[str]) -> None:
        """Note data files that a worker wrote otherwise than with a draft.

        Args:
            files: Paths below the table's `data/`.
        """
        path = f"{self._directory}/{uuid.uuid4().hex}{NOTE}"
        self.place.store.put(path, msgspec.json.encode(Note(sorted(str(name) for name in files))))

    def files(self) -> set[str]:
        """Name the data files that attempts noted, below the table's `data/`."""
        notes = [
            meta.path
            for meta in self.place.store.list_prefix(self._directory)
            if meta.path.count("/") == self._directory.count("/") + 1 and meta.path.endswith(NOTE)
        ]
        found: set[str] = set()
        for body in self.place.read_all(notes):
            if body is not None:
                found |= set(msgspec.json.decode(body, type=Note).files)
        return found

    def settle(self, kept: Iterable[str] = (), lost: Iterable[str] = ()) -> Swept:
        """Delete what no version has of the run's files, then all notes of it.

        A run that was about to commit, of which nobody says what became, stays as it is where a
        version names its files: the commit may have landed although its writer heard of a failure.

        Args:
            kept: Paths below `data/` of what was committed.
            lost: Those of what was not, and of which a note may be gone.
        """
        store = self.place.store
        kept = set(kept)
        if not kept and self.is_in_a_version():
            return Swept()
        private = self._private()
        sizes = [meta.size_bytes for meta in private]
        sizes += delete_files(self.place, {*self._lost(kept), *lost})
        found = [meta.path for meta in store.list_prefix(self._directory)]
        store.delete(path for path in found if path != self._decision_path)
        store.delete_prefix(self._directory)  # the decision last: see claim
        prune_run(self.place, self.run)
        return Swept(len(sizes), sum(sizes))

    def leftovers(self, kept: Iterable[str] = ()) -> list[ObjectMeta]:
        """List the files that ``settle`` would delete, its notes left out."""
        return [*find_files(self.place, self._lost(kept)), *self._private()]

    def _lost(self, kept: Iterable[str]) -> list[str]:
        stems = stems_of(kept)
        return [name for name in sorted(self.files()) if name.partition("/")[0] not in stems]

    def _private(self) -> list[ObjectMeta]:
        """List what attempts wrote into directories of their own."""
        found = self.place.store.list_prefix(self._directory)
        return [meta for meta in found if meta.path.count("/") > self._directory.count("/") + 1]

    def is_in_a_version(self, *, surely: bool = False) -> bool:
        """Whether a version that was made since the run was to commit names one of its files.

        Args:
            surely: Leave out what may still become a version.
        """
        decision = self._read_decision()
        if decision is None or decision.outcome != "commit":
            return False
        return bool(
            named_files(self.place, self.files(), after=decision.read_version, staged=not surely)
        )


def list_runs(place: Place) -> list[PendingRun]:
    """Find the runs of a table that have not been ended."""
    above = place.path(PENDING_DIR)
    # By files: some stores go on to show a directory whose last object is gone.
    found = {
        meta.path.removeprefix(f"{above}/").partition("/")[0]
        for meta in place.store.list_prefix(above)
    }
    return [PendingRun(place, run) for run in sorted(found)]


def prune_run(place: Place, run: str) -> None:
    """Remove the empty directories of a run, but none in which another one is about to write."""
    above = place.path(PENDING_DIR)
    place.store.prune(f"{above}/{run}")
    if not place.store.list_dir(above).directories:
        place.store.prune(above)


def given_up(run: str) -> ConcurrentModificationError:
    """Say that a cleanup came first."""
    msg = f"run {quote(run)} was given up by a cleanup: run it again"
    return ConcurrentModificationError(msg)
