"""How published rows get into a Lance table: one commit takes old rows away and adds new ones.

A commit lands only where nobody published and nobody changed rows since the version that was
planned for. What leaves rows as they are may come between; then rows are looked for again.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mooring.changes.changed_rows import ChangedKeys, has_keys
from mooring.changes.publish_plan import Action
from mooring.errors import ConcurrentModificationError
from mooring.tables.fragments import append_operation, overwrite_operation
from mooring.tables.handle import At
from mooring.tables.publications import Overtaken, PublishWatch, find_standing
from mooring.tables.upserts import (
    OFFSET,
    POSITION,
    FragmentEdit,
    commit_edits,
    delete_offsets,
    fragment_keys,
    undo_edits,
    update_operation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.changes.publish_plan import PublishPlan
    from mooring.jobs.address import TableAddress
    from mooring.jobs.runner import Runner
    from mooring.tables.draft import Draft
    from mooring.tables.fragments import BaseOperation, FragmentMetadata, Landed
    from mooring.tables.handle import TableHandle
    from mooring.tables.publications import PublishMark

__all__ = ["PublishLanding"]

_ATTEMPTS = 40
_PAUSE_S = 0.02


@dataclass
class PublishLanding:
    """Commits a publication.

    Attributes:
        plan: What is to be done.
        mark: What the commit says.
        address: The Lance table, for workers.
        schema: Its columns.
        runner: Looks for rows.
        keys: The keys whose rows go; None where no row does, or all do.
        key_names: What their columns are called in the Lance table.
        deleted: How many rows went, when it is done.
    """

    plan: PublishPlan
    mark: PublishMark
    address: TableAddress
    schema: pa.Schema
    runner: Runner
    keys: ChangedKeys | None = None
    key_names: tuple[str, ...] = ()
    minds_others: bool = True
    deleted: int = field(default=0, init=False)

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
            Overtaken: somebody else published, or changed rows: plan again.
            ConcurrentModificationError: others were faster all the time.
        """
        claim()
        for attempt in range(_ATTEMPTS):
            version = self._base(handle)
            try:
                return self._try(handle, draft, fragments, rows=rows, version=version)
            except ConcurrentModificationError:
                time.sleep(random.random() * _PAUSE_S * min(attempt + 1, 10))  # noqa: S311
        msg = (
            f"{handle.what} was changed by others {_ATTEMPTS} times while it was published into:"
            " nothing was changed; try again when there is less to do"
        )
        raise ConcurrentModificationError(msg)

    def _base(self, handle: TableHandle) -> int:
        """Return the newest version, where rows are as the plan knows them."""
        now, then = find_standing(handle), self.plan.standing
        if now is None or then is None:
            raise Overtaken(0 if now is None else now.newest)
        same = _version(now.published) == _version(then.published)
        if not same or (self.minds_others and now.foreign != then.foreign):
            raise Overtaken(now.newest)
        return now.newest

    def _try(
        self,
        handle: TableHandle,
        draft: Draft,
        fragments: list[FragmentMetadata],
        *,
        rows: int,
        version: int,
    ) -> Landed:
        edits = self._delete(handle, version)
        landed = commit_edits(
            handle,
            self._operation(draft, fragments, edits),
            version,
            edits,
            rows=rows,
            watches=[PublishWatch(minds_others=self.minds_others)],
            properties=self.mark.properties,
        )
        self.deleted = sum(edit.rows for edit in edits)
        return landed

    def _operation(
        self, draft: Draft, fragments: list[FragmentMetadata], edits: list[FragmentEdit]
    ) -> BaseOperation:
        if self.plan.action is Action.OVERWRITE:
            return overwrite_operation(self.schema, fragments)
        if edits:
            return update_operation(edits, fragments, draft.fields)
        return append_operation(fragments)

    def _delete(self, handle: TableHandle, version: int) -> list[FragmentEdit]:
        """Delete the rows of the changed keys, for a version to come; a failure leaves nothing."""
        if self.keys is None or not self.keys.pieces:
            return []
        with handle.reading(At(version)) as dataset:
            numbers = [fragment.fragment_id for fragment in dataset.get_fragments()]
        work = _Delete(replace(self.address, version=version), self.keys, self.key_names)
        # Each tells its failure as an answer, so that what the others wrote is known, too.
        told = self.runner.run(work, numbers, label="looking for changed rows") if numbers else []
        edits = [one for one in told if isinstance(one, FragmentEdit)]
        failures = [one for one in told if isinstance(one, Exception)]
        if failures:
            undo_edits(handle.place, edits)
            raise failures[0]
        return edits


def _version(published: object) -> int | None:
    return getattr(published, "version", None)


@dataclass(frozen=True)
class _Delete:
    """Deletes the rows of a fragment that have one of the keys, wherever it is."""

    at: TableAddress
    keys: ChangedKeys
    names: tuple[str, ...]

    def __call__(self, number: int) -> FragmentEdit | Exception | None:
        try:
            return self._delete(number)
        except Exception as exc:  # noqa: BLE001  # it is raised where all are known
            return exc

    def _delete(self, number: int) -> FragmentEdit | None:
        dataset = self.at.open()
        rows = fragment_keys(dataset, number, self.names)
        keys = self.keys.read().rename_columns(list(self.names))
        offsets = rows[OFFSET].to_numpy()[has_keys(rows, keys)]
        found = pa.table({OFFSET: offsets, POSITION: np.zeros(len(offsets), np.int64)})
        return delete_offsets(dataset, number, found)
