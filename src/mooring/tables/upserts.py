"""Rows found by their keys: what an upsert or a deletion by key does to a table's fragments.

The new rows lie in data files that belong to no version yet; the keys in them are compared with
those of each fragment of a version, rows that have the same are deleted there, and one commit of
Lance's `Update` adds the one and takes away the other. Nothing may have changed rows since the
version that was compared: `RowsUnchanged` watches the commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.file import LanceFileReader

from mooring.errors import InvalidTableStateError, ServiceUnavailableError, UnknownOutcomeError
from mooring.identifiers import quote
from mooring.tables.failures import translated
from mooring.tables.fragments import commit, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lance.fragment import FragmentMetadata, LanceFragment

    from mooring.tables.draft import Draft
    from mooring.tables.fragments import Landed
    from mooring.tables.handle import TableHandle
    from mooring.tables.place import Place
    from mooring.tables.transactions import Transaction

__all__ = [
    "OFFSET",
    "POSITION",
    "FragmentEdit",
    "KeyFiles",
    "LanceDataset",
    "RowsChanged",
    "RowsUnchanged",
    "commit_edits",
    "delete_offsets",
    "find_rows",
    "fragment_keys",
    "undo_edits",
    "update_operation",
]

# Names that no column of a table is likely to have; a key is never read with other columns.
OFFSET, POSITION = "_mooring_offset", "_mooring_position"
_ADDRESS = "_rowaddr"
_OFFSET_BITS = 0xFFFFFFFF
_BATCH = 64 * 1024
# What these do leaves the rows and their values as they are; Lance itself refuses where a
# compaction took a fragment away that is to be changed.
_HARMLESS = {"CreateIndex", "Rewrite", "ReserveFragments", "UpdateConfig", "UpdateMemWalState"}


class RowsChanged(Exception):  # noqa: N818  # an answer, not an error
    """Rows were changed since they were looked at: look again."""

    def __init__(self, version: int, operation: str) -> None:
        """Tell by which version."""
        super().__init__(f"version {version} ({operation}) changed rows meanwhile")
        self.version = version


class RowsUnchanged:
    """Refuses a commit where a version since the one that was read changed rows."""

    def see(self, version: int, transaction: Transaction | None) -> None:
        """Look at a version.

        Raises:
            RowsChanged: it changed rows, or nobody can tell.
        """
        operation = "unknown" if transaction is None else transaction.operation
        if operation not in _HARMLESS:
            raise RowsChanged(version, operation)


@dataclass(frozen=True)
class KeyFiles:
    """Data files, and the columns in them by which rows are known; it travels.

    Attributes:
        location: The table's directory, as Lance names it.
        options: Storage options of Lance.
        names: The files, below the table's `data/`, in order.
        starts: How many rows come before each file.
        columns: The key.
    """

    location: str
    options: Mapping[str, str] = field(repr=False)  # it holds secrets
    names: tuple[str, ...]
    starts: tuple[int, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, draft: Draft, new: Sequence[FragmentMetadata], columns: Sequence[str]) -> KeyFiles:
        """Find the keys of fragments that were just written."""
        counts = [fragment.physical_rows for fragment in new]
        starts = tuple(sum(counts[:number]) for number in range(len(counts)))
        names = tuple(fragment.files[0].path for fragment in new)
        return cls(draft.location, dict(draft.options), names, starts, tuple(columns))

    def read(self, number: int) -> pa.Table:
        """Read the keys of one file, each with its position among all rows."""
        with translated(f"the new rows in {quote(self.location)}"):
            reader = LanceFileReader(
                f"{self.location}/data/{self.names[number]}",
                dict(self.options) or None,
                list(self.columns),
            )
            keys = reader.read_all(batch_size=_BATCH).to_table().select(list(self.columns))
        first = self.starts[number]
        return keys.append_column(POSITION, pa.array(np.arange(first, first + keys.num_rows)))

    def read_all(self) -> pa.Table:
        """Read all keys, each with its position."""
        return pa.concat_tables(self.read(number) for number in range(len(self.names)))

    def show(self, positions: Iterable[int]) -> str:
        """Say the keys at some positions in a message."""
        shown = []
        for position in positions:
            number = int(np.searchsorted(self.starts, position, side="right")) - 1
            row = self.read(number).slice(position - self.starts[number], 1).to_pylist()[0]
            shown.append(" and ".join(f"{name}={row[name]!r}" for name in self.columns))
        return "; ".join(shown)


@dataclass(frozen=True)
class FragmentEdit:
    """A fragment from which rows were deleted, for a version that is not there yet.

    Attributes:
        fragment: Its number.
        updated: The fragment as it is to be, packed; None where no row is left of it.
        rows: How many rows were deleted.
        positions: Which of the new rows had their keys.
    """

    fragment: int
    updated: str | None
    rows: int
    positions: np.ndarray[Any, Any]


def fragment_keys(dataset: LanceDataset, number: int, columns: Sequence[str]) -> pa.Table:
    """Read the keys of a fragment's rows, each with its offset in the fragment."""
    rows = (
        _fragment(dataset, number).scanner(columns=list(columns), with_row_address=True).to_table()
    )
    offsets = pc.bit_wise_and(rows[_ADDRESS], pa.scalar(_OFFSET_BITS, pa.uint64()))
    return rows.select(list(columns)).append_column(OFFSET, offsets)


def find_rows(dataset: LanceDataset, number: int, keys: pa.Table) -> pa.Table:
    """Find the rows of a fragment that have one of some keys: offsets, and which key it is.

    Args:
        dataset: The table.
        number: The fragment.
        keys: The key's columns, and a position of each.
    """
    columns = [name for name in keys.schema.names if name != POSITION]
    rows = fragment_keys(dataset, number, columns)
    if not rows.num_rows or not keys.num_rows:
        return pa.table({OFFSET: pa.array([], pa.uint64()), POSITION: pa.array([], pa.int64())})
    return rows.join(keys, columns, join_type="inner").select([OFFSET, POSITION])


def delete_offsets(dataset: LanceDataset, number: int, found: pa.Table) -> FragmentEdit | None:
    """Delete rows of a fragment for a version to come; None where there are none.

    Args:
        dataset: The table.
        number: The fragment.
        found: What ``find_rows`` found in it.
    """
    if not found.num_rows:
        return None
    offsets = np.unique(found[OFFSET].to_numpy())
    left = _fragment(dataset, number).delete_rows(offsets.tolist())
    updated = None if left is None else pack([left])[0]
    return FragmentEdit(number, updated, len(offsets), found[POSITION].to_numpy())


def _fragment(dataset: LanceDataset, number: int) -> LanceFragment:
    found = dataset.get_fragment(number)
    if found is None:
        msg = f"version {dataset.version} has no fragment {number}"
        raise InvalidTableStateError(msg)
    return found


def update_operation(
    edits: Sequence[FragmentEdit], new: Sequence[FragmentMetadata], fields: Sequence[int]
) -> lance.LanceOperation.BaseOperation:
    """Make what Lance commits of rows that were deleted and others that are new.

    Args:
        edits: Fragments that lose rows.
        new: Fragments that are added.
        fields: The table's fields: an index of any of them does not cover what is new.
    """
    return lance.LanceOperation.Update(
        removed_fragment_ids=[edit.fragment for edit in edits if edit.updated is None],
        updated_fragments=unpack(edit.updated for edit in edits if edit.updated is not None),
        new_fragments=list(new),
        fields_for_preserving_frag_bitmap=list(fields),
        update_mode="rewrite_rows",
    )


def commit_edits(
    handle: TableHandle,
    operation: lance.LanceOperation.BaseOperation,
    version: int,
    edits: Sequence[FragmentEdit],
    **options: Any,  # noqa: ANN401  # those of `commit`
) -> Landed:
    """Commit what edits are part of; where it came to nothing their files go.

    Args:
        handle: The table.
        operation: What is committed.
        version: The version that the edits were made on.
        edits: The edits in it.
        options: Those of ``commit``.

    Raises:
        UnknownOutcomeError: it may have happened, and every file stays.
    """
    try:
        landed = commit(handle, operation, version, **options)
    except UnknownOutcomeError:
        raise  # the files may be in a version
    except Exception:
        # Not where a person interrupts: the commit may be on its way.
        undo_edits(handle.place, edits)
        raise
    if not landed.is_new:
        undo_edits(handle.place, edits)
    return landed


def undo_edits(place: Place, edits: Iterable[FragmentEdit]) -> None:
    """Delete the files that note deleted rows, of edits that were not committed."""
    paths = [path for edit in edits for path in _deletion_files(edit)]
    try:
        place.store.delete(place.path(path) for path in paths)
    except ServiceUnavailableError:
        return  # Lance's own cleanup finds it; what refused the commit matters more


def _deletion_files(edit: FragmentEdit) -> Iterator[str]:
    if edit.updated is None:
        return
    for fragment in unpack([edit.updated]):
        file = fragment.to_json().get("deletion_file")
        if file:
            suffix = "arrow" if file["file_type"] == "array" else "bin"
            yield f"_deletions/{edit.fragment}-{file['read_version']}-{file['id']}.{suffix}"
