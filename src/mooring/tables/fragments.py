"""One commit of data files that many workers wrote.

Lance moves a commit that lost a race behind the winner, as far as it sees no conflict. Who must
know what came in between watches: before a number is taken, each version since the one that was
read is shown to every watch, and any of them can refuse.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments

from mooring.errors import (
    ConcurrentModificationError,
    MooringError,
    ServiceUnavailableError,
    UnknownOutcomeError,
)
from mooring.tables.handle import At
from mooring.tables.runs import Done, RunAlreadyDone, Runs, RunWatch, transaction_at
from mooring.tables.transaction_files import TRANSACTIONS_DIR
from mooring.tables.versions import BRANCHES_DIR, VERSIONS_DIR, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lance.schema import LanceSchema

    BaseOperation = lance.LanceOperation.BaseOperation

    from mooring.tables.handle import TableHandle
    from mooring.tables.place import Place
    from mooring.tables.runs import RunMark
    from mooring.tables.transactions import Transaction

# How Lance names a manifest that is not a version yet.
_STAGED = ".manifest-"

__all__ = [
    "FragmentMetadata",
    "Landed",
    "Watch",
    "append_operation",
    "commit",
    "data_files",
    "overwrite_operation",
    "pack",
    "restore_operation",
    "unpack",
    "whole_schema",
]


@dataclass(frozen=True, slots=True)
class Landed:
    """A commit as a run sees it.

    Attributes:
        version: The version that the run made.
        is_new: Whether it was made now; not where the run was in the table already.
    """

    version: int
    is_new: bool = True


class Watch(Protocol):
    """Wants to see every version that is made before a commit gets its number."""

    def see(self, version: int, transaction: Transaction | None) -> None:
        """Look at a version; whatever this raises ends the commit, and nothing is changed."""
        ...


class Claim(Protocol):
    """Makes sure, before a commit, that its data files stay."""

    def __call__(self, read_version: int, files: Iterable[str]) -> None:
        """Refuse where they may be gone.

        Args:
            read_version: The version that the commit is made from.
            files: Paths below the table's `data/` of what is to be committed.
        """
        ...


def commit(
    handle: TableHandle,
    operation: BaseOperation,
    read_version: int,
    *,
    branch: str | None = None,
    mark: RunMark | None = None,
    rows: int | None = None,
    watches: Sequence[Watch] = (),
    before: Callable[[int], None] | None = None,
    claim: Claim | None = None,
    properties: Mapping[str, str] | None = None,
) -> Landed:
    """Commit an operation through the table's catalog.

    Args:
        handle: The table.
        operation: What to commit.
        read_version: The version it was made from.
        branch: Where to; main unless given.
        mark: A name by which the run is known again: it counts once.
        rows: How many rows it writes, to be noted.
        watches: Who else looks at the versions since the one that was read.
        before: Called before each number is taken, after the watches; what it raises refuses it.
        claim: Called before, to make sure that the data files stay.
        properties: What else is kept with the commit.

    Returns:
        The version; of a run that is in the table already, the one of then.

    Raises:
        ConcurrentModificationError: a conflicting change came first.
        UnknownOutcomeError: the change is in the table, or may be: its files must stay. Whatever
            else is raised, it is not.
    """
    runs = None if mark is None else Runs(handle.place, mark)
    known = runs and runs.find()
    if known:
        return Landed(known.version, is_new=False)
    watched = [(watch, read_version) for watch in watches]
    if runs is not None and mark is not None:
        begun = min(read_version, runs.begin(read_version, branch))
        watched.append((RunWatch(handle, mark, rows), begun))
    shown = _Shown(handle, branch, watched, before)
    stamp = {**handle.stamp, **(mark.properties if mark else {}), **(properties or {})}
    transaction = lance.Transaction(
        read_version, operation, str(uuid.uuid4()), transaction_properties=stamp
    )
    try:
        if claim is not None:
            _claim(claim, read_version, operation, runs)
        with handle.changing(At(branch=branch), before=shown.up_to) as dataset:
            landed = Landed(lance.LanceDataset.commit(dataset, transaction).version)
    except RunAlreadyDone as exc:
        _sweep(handle.place, branch, transaction.uuid)
        landed = Landed(exc.done.version, is_new=False)
    except UnknownOutcomeError:
        raise  # the version may be there
    except Exception as exc:
        if _is_there(handle, branch, transaction.uuid, read_version):
            raise UnknownOutcomeError(f"the change is in {handle.what}, and yet: {exc}") from exc
        _sweep(handle.place, branch, transaction.uuid)
        raise
    if runs is not None:
        _note(runs, Done(landed.version, rows))
    return landed


def _claim(claim: Claim, read_version: int, operation: BaseOperation, runs: Runs | None) -> None:
    """Make sure that the data files stay.

    Raises:
        RunAlreadyDone: whoever did the run meanwhile gave this try at it up.
    """
    try:
        claim(read_version, data_files(_new_fragments(operation)))
    except ConcurrentModificationError:
        done = runs and runs.find()
        if not done:
            raise
        raise RunAlreadyDone(done) from None


def _note(runs: Runs, done: Done) -> None:
    """Note a run that is in a version: whatever becomes of the note, the version tells."""
    try:
        runs.end(done)
    except ServiceUnavailableError:
        return


class _Shown:
    """Shows versions to watches, each of those that a watch wants once."""

    def __init__(
        self,
        handle: TableHandle,
        branch: str | None,
        watched: Sequence[tuple[Watch, int]],
        before: Callable[[int], None] | None,
    ) -> None:
        self._handle = handle
        self._branch = branch
        self._watched = watched
        self._before = before
        self._seen = min((since for _, since in watched), default=None)

    def up_to(self, version: int) -> None:
        """Show what was made before a version."""
        if self._seen is not None:
            for made in range(self._seen + 1, version):
                self._show(made)
                self._seen = made
        if self._before is not None:
            self._before(version)

    def _show(self, made: int) -> None:
        transaction = transaction_at(self._handle, made, self._branch)
        for watch, since in self._watched:
            if made > since:
                watch.see(made, transaction)


def _new_fragments(operation: BaseOperation) -> list[FragmentMetadata]:
    """Return the fragments that an operation adds."""
    match operation:
        case lance.LanceOperation.Append() | lance.LanceOperation.Overwrite():
            return list(operation.fragments)
        case lance.LanceOperation.Update():
            return list(operation.new_fragments)
        case _:
            return []


def _is_there(handle: TableHandle, branch: str | None, nonce: str, read_version: int) -> bool:
    """Tell whether a commit has landed of which a failure was heard, in a dropped table, too."""
    try:
        newest = handle.ledger.newest(branch)
        for version in range(read_version + 1, (newest.version if newest else 0) + 1):
            made = transaction_at(handle, version, branch)
            if made is not None and made.uuid == nonce:
                return True
    except MooringError:
        pass  # the catalog does not answer for a table that is gone; its files do
    place = handle.place
    versions = place.path(f"{BRANCHES_DIR}/{branch}/{VERSIONS_DIR}" if branch else VERSIONS_DIR)
    later = [
        f"{versions}/{name}"
        for name in place.store.list_dir(versions).files
        if (parse_manifest(name) or 0) > read_version
    ]
    return any(nonce.encode() in body for body in place.read_all(later) if body)


def _sweep(place: Place, branch: str | None, nonce: str) -> None:
    """Delete what Lance keeps of a commit that was refused: its transaction, staged manifests."""
    above = f"{BRANCHES_DIR}/{branch}/" if branch else ""
    try:
        versions = place.path(f"{above}{VERSIONS_DIR}")
        staged = [name for name in place.store.list_dir(versions).files if _STAGED in name]
        lost = [
            f"{versions}/{name}"
            for name in staged
            if nonce.encode() in (place.store.get(f"{versions}/{name}") or b"")
        ]
        transactions = place.path(f"{above}{TRANSACTIONS_DIR}")
        names = place.store.list_dir(transactions).files
        lost += [f"{transactions}/{name}" for name in names if nonce in name]
        place.store.delete(lost)
    except ServiceUnavailableError:
        return  # Lance's own cleanup finds it; what refused the commit matters more


def append_operation(fragments: list[FragmentMetadata]) -> BaseOperation:
    """Make what Lance commits of rows that are added."""
    return lance.LanceOperation.Append(fragments)


def overwrite_operation(schema: pa.Schema, fragments: list[FragmentMetadata]) -> BaseOperation:
    """Make what Lance commits of rows that replace all others."""
    return lance.LanceOperation.Overwrite(whole_schema(schema), fragments)


def restore_operation(version: int) -> BaseOperation:
    """Make what Lance commits to bring an older version back."""
    return lance.LanceOperation.Restore(version)


def whole_schema(schema: pa.Schema, storage_version: str | None = None) -> LanceSchema:
    """Number the fields of a new table as whoever writes its data files does.

    Lance's own numbering of an Arrow schema leaves out what a blob consists of.
    """
    none = pa.RecordBatchReader.from_batches(schema, [])
    written = write_fragments(
        none,
        "memory://nothing",
        mode="create",
        data_storage_version=storage_version,
        return_transaction=True,
    )
    return cast("lance.LanceOperation.Overwrite", written.operation).new_schema


def data_files(fragments: Iterable[FragmentMetadata]) -> set[str]:
    """Name the files of fragments, below the table's `data/`."""
    return {str(file.path) for fragment in fragments for file in fragment.files}


def pack(fragments: Iterable[FragmentMetadata]) -> tuple[str, ...]:
    """Write fragments as text, which travels from workers to whoever commits."""
    return tuple(json.dumps(fragment.to_json()) for fragment in fragments)


def unpack(texts: Iterable[str]) -> list[FragmentMetadata]:
    """Read fragments that were packed."""
    return [FragmentMetadata.from_json(text) for text in texts]
