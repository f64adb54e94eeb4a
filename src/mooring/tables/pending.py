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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import msgspec
from lance.fragment import FragmentMetadata, write_fragments
from lance.progress import FragmentWriteProgress

from mooring.clock import SystemClock
from mooring.errors import ConcurrentModificationError, InvalidInputError
from mooring.identifiers import quote
from mooring.store.numbered import create_once
from mooring.tables.place import open_place
from mooring.tables.versions import (
    BRANCHES_DIR,
    VERSIONS_DIR,
    newest_version,
    parse_manifest,
)
from mooring.tables.watched_rows import WatchedRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from lance import LanceDataset, LanceOperation
    from lance.schema import LanceSchema

    Overwrite = LanceOperation.Overwrite

    from mooring.store import ObjectMeta
    from mooring.tables.place import Place

__all__ = [
    "PENDING_DIR",
    "Draft",
    "PendingRun",
    "Swept",
    "draft_for",
    "field_ids",
    "list_runs",
    "named_files",
    "new_run_id",
]

PENDING_DIR = "_pending"
_DATA_DIR = "data"
_MANIFESTS_DIR = "_manifests"  # where a metastore keeps what makes its versions
_DECISION = "decision"
_NOTE = ".json"
_ROWS_A_FILE = 1024 * 1024
_ID_LENGTH = 100
_AT_ONCE = 64


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


class _Note(msgspec.Struct, frozen=True):
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
class Draft:
    """What a worker must know to write data files for a run; it travels to other machines.

    Attributes:
        location: The table's directory, as Lance names it.
        options: Storage options of Lance.
        run: The run.
        fields: The identifiers of the table's fields, in the order of its schema, nested ones
            after those they lie in; none for a table that is new.
        storage_version: The version of the file format, Lance's own choice unless given.
        has_versions: Whether the directory has versions by which Lance finds a table.
    """

    location: str
    options: Mapping[str, str] = field(repr=False)  # it holds secrets
    run: str
    fields: tuple[int, ...] = ()
    storage_version: str | None = None
    has_versions: bool = False

    def write(
        self, rows: pa.RecordBatchReader, *, rows_a_file: int | None = None
    ) -> list[FragmentMetadata]:
        """Write rows as fragments that belong to no version yet; a failure leaves nothing.

        The rows have the table's columns, in the table's order.

        Raises:
            InvalidInputError: the rows could not be read to their end.
        """
        attempt = _Attempt(self, open_place(self.location, self.options))
        source = WatchedRows(rows)
        try:
            fragments = attempt.write(source.reader, rows_a_file or _ROWS_A_FILE)
            attempt.require_noted()
        except BaseException as exc:
            attempt.undo()
            if source.failure is not None:
                raise source.failure from exc
            raise
        return [self._renumber(fragment, attempt.fields) for fragment in fragments]

    def _renumber(self, fragment: FragmentMetadata, written: Sequence[int]) -> FragmentMetadata:
        """Give the fields as they were written the table's own identifiers."""
        own = dict(zip(written, self.fields or range(len(written)), strict=True))
        document = fragment.to_json()
        for file in document["files"]:
            file["fields"] = [own[field] for field in file["fields"]]
        return FragmentMetadata.from_json(msgspec.json.encode(document).decode())


class _Attempt:
    """One worker's try at a part of a run."""

    def __init__(self, draft: Draft, place: Place) -> None:
        self._draft = draft
        self._place = place
        self._name = uuid.uuid4().hex
        self._home = f"{PENDING_DIR}/{draft.run}/{self._name}"
        self._files: list[str] = []
        self.fields: tuple[int, ...] = ()

    @property
    def _is_on_disk(self) -> bool:
        return "://" not in self._place.store.location("")

    def write(self, rows: pa.RecordBatchReader, rows_a_file: int) -> list[FragmentMetadata]:
        if not self._is_on_disk:
            mode = "overwrite" if self._draft.has_versions else "create"
            return self._write(
                rows, self._draft.location, mode=mode, rows_a_file=rows_a_file, notes=_Notes(self)
            )
        private = self._place.store.location(self._place.path(self._home))
        fragments = self._write(rows, private, mode="create", rows_a_file=rows_a_file)
        self._move_in()
        return fragments

    def _write(
        self,
        rows: pa.RecordBatchReader,
        location: str,
        *,
        mode: str,
        rows_a_file: int,
        notes: _Notes | None = None,
    ) -> list[FragmentMetadata]:
        written = write_fragments(
            rows,
            location,
            mode=mode,
            max_rows_per_file=rows_a_file,
            data_storage_version=self._draft.storage_version,
            storage_options=dict(self._draft.options) or None,
            progress=notes,
            return_transaction=True,
        )
        operation = cast("Overwrite", written.operation)
        for fragment in operation.fragments:
            self.note(fragment)  # the last one is not told of
        self.fields = _walk(cast("LanceSchema", operation.new_schema))
        return list(operation.fragments)

    def note(self, fragment: FragmentMetadata) -> None:
        """Keep the names of a fragment's files where a cleanup finds them."""
        paths = [str(file.path) for file in fragment.files]
        names = [path for path in paths if path not in self._files]
        if names:
            self._keep([*self._files, *names])

    def _keep(self, files: list[str]) -> None:
        self._files = files
        if not self._is_on_disk:
            path = self._place.path(self._home + _NOTE)
            self._place.store.put(path, msgspec.json.encode(_Note(files)))

    def _move_in(self) -> None:
        """Link what was written into the table's data, after its names are noted."""
        store = self._place.store
        above = self._place.path(f"{self._home}/{_DATA_DIR}/")
        found = [meta.path for meta in store.list_prefix(above.rstrip("/"))]
        self._files = [path.removeprefix(above) for path in found]
        store.put(self._place.path(self._home + _NOTE), msgspec.json.encode(_Note(self._files)))
        for path, name in zip(found, self._files, strict=True):
            store.copy(path, self._place.path(f"{_DATA_DIR}/{name}"))
        store.delete_prefix(self._place.path(self._home))

    def require_noted(self) -> None:
        """After everything is written: refuse where a cleanup has taken the note away meanwhile.

        Raises:
            ConcurrentModificationError: one has given the run up.
        """
        if self._files and self._place.store.head(self._place.path(self._home + _NOTE)) is None:
            raise _given_up(self._draft.run)

    def undo(self) -> None:
        _delete_files(self._place, self._files)
        self._place.store.delete_prefix(self._place.path(self._home))
        self._place.store.delete([self._place.path(self._home + _NOTE)])
        _prune(self._place, self._draft.run)


class _Notes(FragmentWriteProgress):
    """Hears of each file that is finished."""

    def __init__(self, attempt: _Attempt) -> None:
        self._attempt = attempt

    def begin(self, fragment: FragmentMetadata, **_: Any) -> None:  # noqa: ANN401  # Lance's own
        """Nothing has a name yet."""

    def complete(self, fragment: FragmentMetadata, **_: Any) -> None:  # noqa: ANN401  # Lance's own
        """Note the file's name."""
        self._attempt.note(fragment)


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
        raise _given_up(self.run)

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
        path = f"{self._directory}/{uuid.uuid4().hex}{_NOTE}"
        self.place.store.put(path, msgspec.json.encode(_Note(sorted(str(name) for name in files))))

    def files(self) -> set[str]:
        """Name the data files that attempts noted, below the table's `data/`."""
        notes = [
            meta.path
            for meta in self.place.store.list_prefix(self._directory)
            if meta.path.count("/") == self._directory.count("/") + 1 and meta.path.endswith(_NOTE)
        ]
        found: set[str] = set()
        for body in self.place.read_all(notes):
            if body is not None:
                found |= set(msgspec.json.decode(body, type=_Note).files)
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
        sizes += _delete_files(self.place, {*self._lost(kept), *lost})
        found = [meta.path for meta in store.list_prefix(self._directory)]
        store.delete(path for path in found if path != self._decision_path)
        store.delete_prefix(self._directory)  # the decision last: see claim
        _prune(self.place, self.run)
        return Swept(len(sizes), sum(sizes))

    def leftovers(self, kept: Iterable[str] = ()) -> list[ObjectMeta]:
        """List the files that ``settle`` would delete, its notes left out."""
        return [*_find_files(self.place, self._lost(kept)), *self._private()]

    def _lost(self, kept: Iterable[str]) -> list[str]:
        stems = _stems(kept)
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


def draft_for(
    location: str, options: Mapping[str, str], run: str, dataset: LanceDataset | None = None
) -> Draft:
    """Describe to workers how to write for a table: one that is open, or a new one.

    Args:
        location: The table's directory, as Lance names it.
        options: Storage options of Lance.
        run: The run.
        dataset: The table, to append to it; none where the data replaces what is there.
    """
    place = open_place(location, options)
    return Draft(
        location,
        dict(options),
        run,
        () if dataset is None else field_ids(dataset),
        None if dataset is None else str(dataset.data_storage_version),
        bool(newest_version(place.store, place.directory)),
    )


def field_ids(dataset: LanceDataset) -> tuple[int, ...]:
    """Return the identifiers of a table's fields, each before those that lie in it."""
    return _walk(dataset.lance_schema)


def _walk(schema: LanceSchema) -> tuple[int, ...]:
    def walk(fields: Iterable[Any]) -> Iterable[int]:
        for one in fields:
            yield one.id()
            yield from walk(one.children())

    return tuple(walk(schema.fields()))


def list_runs(place: Place) -> list[PendingRun]:
    """Find the runs of a table that have not been ended."""
    above = place.path(PENDING_DIR)
    # By files: some stores go on to show a directory whose last object is gone.
    found = {
        meta.path.removeprefix(f"{above}/").partition("/")[0]
        for meta in place.store.list_prefix(above)
    }
    return [PendingRun(place, run) for run in sorted(found)]


def named_files(
    place: Place, names: Iterable[str], *, after: int = 0, staged: bool = True
) -> set[str]:
    """Return those of some data files that a version names, of main or of a branch.

    Args:
        place: The table's directory.
        names: Paths below its `data/`.
        after: Look at versions of main after this one.
        staged: Look also at what may still become a version.
    """
    wanted = {name: name.partition("/")[0].encode() for name in names}
    manifests = _manifests(place, after, staged=staged) if wanted else []
    found: set[str] = set()
    for start in range(0, len(manifests), _AT_ONCE):
        bodies = [body for body in place.read_all(manifests[start : start + _AT_ONCE]) if body]
        found |= {name for name, text in wanted.items() if any(text in body for body in bodies)}
    return found


def _manifests(place: Place, after: int, *, staged: bool) -> list[str]:
    """List whatever may name data files: versions, and if wanted what is about to be one."""
    store, own = place.store, place.path(VERSIONS_DIR)
    names = [meta.path.rpartition("/")[2] for meta in store.list_prefix(own)]
    found = [f"{own}/{name}" for name in names if (parse_manifest(name) or 0) > after]
    if staged:
        found += [f"{own}/{name}" for name in names if parse_manifest(name) is None]
        found += [meta.path for meta in store.list_prefix(place.path(_MANIFESTS_DIR))]
    branches = [meta.path for meta in store.list_prefix(place.path(BRANCHES_DIR))]
    homes = (f"/{VERSIONS_DIR}/", f"/{_MANIFESTS_DIR}/")
    return found + [path for path in branches if any(home in path for home in homes)]


def _prune(place: Place, run: str) -> None:
    """Remove the empty directories of a run, but none in which another one is about to write."""
    above = place.path(PENDING_DIR)
    place.store.prune(f"{above}/{run}")
    if not place.store.list_dir(above).directories:
        place.store.prune(above)


def _given_up(run: str) -> ConcurrentModificationError:
    msg = f"run {quote(run)} was given up by a cleanup: run it again"
    return ConcurrentModificationError(msg)


def _stems(kept: Iterable[str]) -> set[str]:
    """Return the names that belong to kept files: their own, and that of what lies beside."""
    return {name for path in kept for name in (path, path.removesuffix(".lance"))}


def _delete_files(place: Place, names: Iterable[str]) -> list[int]:
    """Delete data files and what Lance put beside each; return their sizes."""
    names = list(names)
    there = _find_files(place, names)
    place.store.delete(meta.path for meta in there)
    for name in names:
        if name.endswith(".lance"):
            place.store.prune(place.path(f"{_DATA_DIR}/{name}").removesuffix(".lance"))
    return [meta.size_bytes for meta in there]


def _find_files(place: Place, names: Iterable[str]) -> list[ObjectMeta]:
    """Find data files and what Lance put beside each."""
    store = place.store
    there: list[ObjectMeta] = []
    for name in names:
        path = place.path(f"{_DATA_DIR}/{name}")
        found = [store.head(path), *store.list_prefix(path.removesuffix(".lance"))]
        there += [meta for meta in found if meta is not None]
    return there
