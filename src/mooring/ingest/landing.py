"""How what was written gets into a table that is there: by one commit, and no key twice.

See `mooring.tables.keys` for why: an upsert looks for its keys in a version and lands only where no
later version changed rows; an append into a table that has a key does the same with the opposite
wish. Whoever is refused looks again; the data files stay as they are.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mooring.errors import ConcurrentModificationError, ConflictError
from mooring.ingest.matching import TableVersion
from mooring.tables.draft import field_ids
from mooring.tables.fragments import Landed, append_operation, commit, overwrite_operation
from mooring.tables.key_types import require_key_types
from mooring.tables.keys import note_key, read_key
from mooring.tables.upserts import (
    KeyFiles,
    RowsChanged,
    RowsUnchanged,
    commit_edits,
    update_operation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from mooring.ingest.matching import Matcher
    from mooring.jobs.address import TableAddress
    from mooring.tables.draft import Draft
    from mooring.tables.fragments import BaseOperation, FragmentMetadata
    from mooring.tables.handle import TableHandle
    from mooring.tables.place import Place
    from mooring.tables.runs import RunMark

    LeaveOut = Callable[[Draft, Mapping[int, str]], list[FragmentMetadata]]

__all__ = ["AppendLanding", "DeleteLanding", "UpsertLanding", "note_upsert_key", "require_same_key"]

_ATTEMPTS = 40
_PAUSE_S = 0.02
_SHOWN = 5
KEY_EXISTS, KEY_REPEATS, KEY_IS_NULL = "key exists", "key repeats", "key is null"


class _KeyAppeared(Exception):  # noqa: N818  # an answer, not an error
    """The table has another key than was minded: look again."""


def note_upsert_key(place: Place, columns: Sequence[str]) -> None:
    """Make the key of an upsert known, before anything is compared.

    Raises:
        ConflictError: rows of the table are known by another key.
    """
    note_key(place, columns)
    require_same_key(place, columns)


def require_same_key(place: Place, columns: Sequence[str]) -> None:
    """Refuse an upsert by another key than earlier ones.

    Raises:
        ConflictError: rows of the table are known by another key.
    """
    known = read_key(place)
    if known is not None and set(known) != set(columns):
        msg = (
            f"the table's key is {', '.join(known)}, by which earlier upserts knew its rows, and"
            f" not {', '.join(columns)}: use --key {','.join(known)}"
        )
        raise ConflictError(msg)


@dataclass
class _Landing:
    """What all of them know.

    Attributes:
        address: The table, for workers.
        matcher: Compares keys.
        mark: The run's name, if it has one.
    """

    address: TableAddress
    matcher: Matcher
    mark: RunMark | None

    def base(self, handle: TableHandle, draft: Draft, *, same: bool = True) -> TableVersion:
        """Read the newest version; the data files must still fit it."""
        with handle.reading() as dataset:
            if same and field_ids(dataset) != draft.fields:
                msg = f"the columns of {handle.what} were changed meanwhile: run it again"
                raise ConcurrentModificationError(msg)
            fragments = tuple(fragment.fragment_id for fragment in dataset.get_fragments())
            return TableVersion(handle, self.address, int(dataset.version), fragments)

    def repeat(
        self,
        handle: TableHandle,
        look: Callable[[], TableVersion],
        land: Callable[[TableVersion], Landed],
    ) -> Landed:
        """Look and try to land until nobody else was first; what looking refuses is refused.

        Raises:
            ConcurrentModificationError: others were faster all the time.
        """
        for attempt in range(_ATTEMPTS):
            base = look()
            try:
                return land(base)
            except (RowsChanged, ConcurrentModificationError):
                self.pause(attempt)
        raise self.give_up(handle)

    def pause(self, attempt: int) -> None:
        """Wait a little, so that those who meet part."""
        time.sleep(random.random() * _PAUSE_S * min(attempt + 1, 10))  # noqa: S311  # no secret

    def give_up(self, handle: TableHandle) -> ConcurrentModificationError:
        """Say that others were faster all the time."""
        msg = (
            f"{handle.what} was changed by others {_ATTEMPTS} times while rows were looked for in"
            " it: nothing was changed; try again when there is less to do"
        )
        return ConcurrentModificationError(msg)


@dataclass
class AppendLanding(_Landing):
    """Appends or overwrites; where the table has a key, no key comes twice.

    Attributes:
        schema: The rows' schema, to overwrite the table with it; None to append.
        leave_out: Writes parts again without some rows; None where conflicts end the run.
    """

    schema: pa.Schema | None = None
    leave_out: LeaveOut | None = None

    def __call__(
        self,
        handle: TableHandle,
        draft: Draft,
        fragments: list[FragmentMetadata],
        *,
        rows: int,
        claim: Callable[[], None],
    ) -> Landed:
        """Commit.

        Raises:
            ConflictError: keys are in the table, or come twice.
            ConcurrentModificationError: others were faster all the time.
        """
        claim()
        for attempt in range(_ATTEMPTS):
            base = self.base(handle, draft, same=self.schema is None)
            key = read_key(handle.place)
            if key is not None and fragments:
                rows = self._mind(key, base, draft, fragments)
            try:
                return commit(
                    handle,
                    self._operation(fragments),
                    base.version,
                    mark=self.mark,
                    rows=rows,
                    watches=[RowsUnchanged()] if key is not None and self.schema is None else (),
                    before=partial(_require_key, handle.place, key),
                )
            except (_KeyAppeared, RowsChanged):
                self.pause(attempt)
        raise self.give_up(handle)

    def _operation(self, fragments: list[FragmentMetadata]) -> BaseOperation:
        if self.schema is None:
            return append_operation(fragments)
        return overwrite_operation(self.schema, fragments)

    def _mind(
        self,
        key: tuple[str, ...],
        base: TableVersion,
        draft: Draft,
        fragments: list[FragmentMetadata],
    ) -> int:
        """See to it that no key is there or comes twice; return how many rows are left."""
        if self.schema is not None:
            require_key_types(self.schema, key, f"the new {base.handle.what}")
        files = KeyFiles.of(draft, fragments, key)
        wrong = dict.fromkeys(self.matcher.repeats(files).tolist(), KEY_REPEATS)
        if self.schema is None:
            wrong |= dict.fromkeys(self.matcher.existing(files, base).tolist(), KEY_EXISTS)
        wrong |= dict.fromkeys(self.matcher.nulls(files).tolist(), KEY_IS_NULL)
        if wrong and self.leave_out is None:
            raise _conflict(files, wrong, base.handle.what)
        if wrong and self.leave_out is not None:
            # In place: whoever called keeps the files of what is in the list.
            fragments[:] = self.leave_out(draft, wrong)
        return sum(fragment.physical_rows for fragment in fragments)


def _require_key(place: Place, known: tuple[str, ...] | None, version: int) -> None:
    del version
    if read_key(place) != known:
        raise _KeyAppeared


def _conflict(files: KeyFiles, wrong: Mapping[int, str], what: str) -> ConflictError:
    first = sorted(wrong)[:_SHOWN]
    more = "" if len(wrong) == len(first) else f" and {len(wrong) - len(first):,} more"
    msg = (
        f"{what} has the key {', '.join(files.columns)}, and {len(wrong):,} of the rows have one"
        f" that is there, comes twice or is null: {files.show(first)}{more}; update such rows with"
        " --mode upsert, or leave them out with --on-conflict reject"
    )
    return ConflictError(msg)


@dataclass
class UpsertLanding(_Landing):
    """Updates the rows whose keys are there, and inserts the others.

    Attributes:
        key: The key.
        updated: How many rows were updated, when it is done.
    """

    key: tuple[str, ...] = ()
    updated: int = field(default=0, init=False)

    def __call__(
        self,
        handle: TableHandle,
        draft: Draft,
        fragments: list[FragmentMetadata],
        *,
        rows: int,
        claim: Callable[[], None],
    ) -> Landed:
        """Commit.

        Raises:
            ConcurrentModificationError: others were faster all the time.
        """
        handle.confirm()  # the key's note stays with the table
        claim()
        return self.repeat(
            handle,
            lambda: self.base(handle, draft),
            lambda base: self._try(handle, draft, fragments, rows=rows, base=base),
        )

    def _try(
        self,
        handle: TableHandle,
        draft: Draft,
        fragments: list[FragmentMetadata],
        *,
        rows: int,
        base: TableVersion,
    ) -> Landed:
        files = KeyFiles.of(draft, fragments, self.key)
        edits = self.matcher.delete(files, base) if fragments else []
        operation = append_operation(fragments)
        if edits:
            operation = update_operation(edits, fragments, draft.fields)
        watches = [RowsUnchanged()]
        landed = commit_edits(
            handle, operation, base.version, edits, mark=self.mark, rows=rows, watches=watches
        )
        found = [edit.positions for edit in edits]
        self.updated = len(np.unique(np.concatenate(found))) if found else 0
        return landed


@dataclass
class DeleteLanding(_Landing):
    """Deletes the rows that have one of the keys.

    Attributes:
        key: The key.
        deleted: How many rows were deleted, when it is done.
    """

    key: tuple[str, ...] = ()
    deleted: int = field(default=0, init=False)

    def __call__(
        self, handle: TableHandle, draft: Draft, fragments: list[FragmentMetadata]
    ) -> Landed:
        """Commit.

        Raises:
            ConcurrentModificationError: others were faster all the time.
        """
        return self.repeat(
            handle,
            lambda: self.base(handle, draft, same=False),
            lambda base: self._try(handle, draft, fragments, base),
        )

    def _try(
        self,
        handle: TableHandle,
        draft: Draft,
        fragments: list[FragmentMetadata],
        base: TableVersion,
    ) -> Landed:
        files = KeyFiles.of(draft, fragments, self.key)
        edits = self.matcher.delete(files, base) if fragments else []
        if not edits and self.mark is None:
            return Landed(base.version)
        with handle.reading() as dataset:
            fields = field_ids(dataset)
        operation = update_operation(edits, [], fields) if edits else append_operation([])
        landed = commit_edits(
            handle, operation, base.version, edits, mark=self.mark, watches=[RowsUnchanged()]
        )
        self.deleted = sum(edit.rows for edit in edits) if landed.is_new else 0
        return landed
