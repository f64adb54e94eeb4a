"""Which rows each version of a table added: what a stream that follows the table reads.

A version that only appends has fragments that the version before it had not, and all of those it
had. Compaction puts the same rows into other fragments; building an index, adding or dropping a
column and setting a property touch no row. Whatever else takes fragments away or changes which of
their rows are deleted is a change of rows, of which a stream of added rows cannot tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.errors import InvalidTableStateError, TableVersionNotFoundError
from mooring.tables.handle import At
from mooring.tables.transactions import read_transaction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance import LanceDataset
    from lance.fragment import FragmentMetadata

    from mooring.tables.handle import TableHandle

__all__ = ["Addition", "appended_files", "list_additions"]

_APPEND = "Append"
# Rows stay as they are, wherever they lie.
_QUIET = frozenset(
    {"Rewrite", "CreateIndex", "Merge", "Project", "ReserveFragments", "UpdateConfig"}
)
# Fragments that look new may have been there before.
_RESTORE = "Restore"


@dataclass(frozen=True, slots=True)
class Addition:
    """Rows that a version added.

    Attributes:
        version: The version, by which they are read.
        fragments: The fragments they lie in.
        rows: How many are in each of them, deleted ones included.
    """

    version: int
    fragments: tuple[int, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, version: int, fragments: Iterable[FragmentMetadata]) -> Addition:
        """Return the rows of fragments."""
        found = list(fragments)
        return cls(
            version,
            tuple(fragment.id for fragment in found),
            tuple(fragment.physical_rows for fragment in found),
        )


def list_additions(
    handle: TableHandle, after: int, up_to: int, *, skip_changes: bool = False
) -> list[Addition]:
    """List the rows that versions added, version by version.

    Args:
        handle: The table.
        after: The last version that is known; 0 for none, then it is all rows of the last one.
        up_to: The last version to look at.
        skip_changes: Pass over versions that change or delete rows, with what they add.

    Raises:
        InvalidTableStateError: a version changes or deletes rows, or the table is another one.
        TableVersionNotFoundError: versions were deleted.
    """
    if up_to < after:
        msg = (
            f"{handle.what} is at version {up_to}, and version {after} of it was read before: it"
            " is another table now; begin anew with another checkpoint"
        )
        raise InvalidTableStateError(msg)
    if not up_to:
        return []
    if not after:
        snapshot = _Version.open(handle, up_to, up_to)
        return [Addition.of(up_to, snapshot.fragments)] if snapshot.fragments else []
    found = []
    before: list[FragmentMetadata] | None = None
    for number in range(after + 1, up_to + 1):
        version = _Version.open(handle, number, up_to)
        added = version.added(before, skip_changes=skip_changes)
        if added:
            found.append(Addition.of(number, added))
        before = version.fragments
    return found


def appended_files(handle: TableHandle, version: int) -> set[str]:
    """Name the data files that a version appended; none where it is gone, or did something else."""
    try:
        return _named(handle.open(At(version)))
    except TableVersionNotFoundError:
        return set()


def _named(dataset: LanceDataset) -> set[str]:
    """Name the files in a transaction of fragments that were appended."""
    transaction = dataset.read_transaction(dataset.version)
    fragments = getattr(transaction and transaction.operation, "fragments", None) or []
    return {str(file.path) for fragment in fragments for file in fragment.files}


class _Version:
    """One version, compared with the one before it."""

    def __init__(self, handle: TableHandle, dataset: LanceDataset) -> None:
        self._handle = handle
        self._dataset = dataset
        self.number = int(dataset.version)
        self.fragments = [fragment.metadata for fragment in dataset.get_fragments()]

    @classmethod
    def open(cls, handle: TableHandle, number: int, last: int) -> _Version:
        """Open a version.

        Raises:
            TableVersionNotFoundError: it is gone; those after it that are gone, too, are named.
        """
        try:
            return cls(handle, handle.open(At(number)))
        except TableVersionNotFoundError as exc:
            raise TableVersionNotFoundError(_gone(handle, number, last)) from exc

    def added(
        self, before: list[FragmentMetadata] | None, *, skip_changes: bool
    ) -> list[FragmentMetadata]:
        """Find the fragments whose rows are new.

        Args:
            before: Those of the version before, where they are known.
            skip_changes: Find none where rows were changed.

        Raises:
            InvalidTableStateError: rows were changed.
        """
        transaction = read_transaction(self._handle, self._dataset, self.number, None)
        operation = transaction.operation if transaction else None
        if operation in _QUIET:
            return []
        if operation == _APPEND:
            return self._appended()
        before = self._before() if before is None else before
        known = {fragment.id: fragment for fragment in before}
        if operation != _RESTORE and self._keeps(known):
            return [fragment for fragment in self.fragments if fragment.id not in known]
        if skip_changes:
            return []
        msg = (
            f"version {self.number} of {self._handle.what} changed or deleted rows"
            f" ({operation or 'by whom is not known'}), which a stream of added rows cannot tell:"
            " set skipChangeCommits to true to pass over such versions, or begin anew with another"
            " checkpoint"
        )
        raise InvalidTableStateError(msg)

    def _appended(self) -> list[FragmentMetadata]:
        """The transaction names the files; whether the version before is there does not matter."""
        files = _named(self._dataset)
        return [one for one in self.fragments if any(file.path in files for file in one.files)]

    def _before(self) -> list[FragmentMetadata]:
        if self.number == 1:
            return []
        return _Version.open(self._handle, self.number - 1, self.number - 1).fragments

    def _keeps(self, known: dict[int, FragmentMetadata]) -> bool:
        """Whether all that was there is there, with the same rows and values."""
        own = {fragment.id: fragment for fragment in self.fragments}
        return all(
            number in own and own[number].to_json() == fragment.to_json()
            for number, fragment in known.items()
        )


def _gone(handle: TableHandle, number: int, last: int) -> str:
    there = [record.version for record in handle.ledger.newest_first(None)]
    end = min([version - 1 for version in there if version > number] or [last])
    which = f"version {number}" if end <= number else f"versions {number} to {end}"
    verb = "is" if end <= number else "are"
    return (
        f"{which} of {handle.what} {verb} gone, cleaned away before the stream read what they"
        " added: begin anew with another checkpoint, and clean up later than the stream reads"
    )
