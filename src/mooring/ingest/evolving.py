"""A table's columns changed to take what comes, and changed back where it did not come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.errors import MooringError
from mooring.tables.columns import Alteration, Columns
from mooring.tables.fragments import commit, restore_operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.ingest.fitting import Misfit
    from mooring.tables.handle import TableHandle
    from mooring.tables.transactions import Transaction

__all__ = ["Evolution", "evolve"]


class _Others(Exception):  # noqa: N818  # an answer, not an error
    """Somebody else committed meanwhile."""


class _NobodyElse:
    """Refuses a commit where there is any version since the one that was read."""

    def see(self, version: int, transaction: Transaction | None) -> None:
        """Refuse."""
        del version, transaction
        raise _Others


@dataclass(frozen=True)
class Evolution:
    """A change of a table's columns.

    Attributes:
        handle: The table.
        before: The version before it.
        after: The version that it made.
        is_alone: Whether there is nothing else between the two.
        changes: What was changed, in words.
    """

    handle: TableHandle
    before: int
    after: int
    is_alone: bool
    changes: tuple[str, ...]

    def undo(self) -> bool:
        """Bring the version before back; False, and nothing changed, where others followed."""
        if not self.is_alone:
            return False
        try:
            operation = restore_operation(self.before)
            commit(self.handle, operation, self.after, watches=[_NobodyElse()])
        except (_Others, MooringError):
            return False
        return True


def evolve(handle: TableHandle, misfits: Sequence[Misfit]) -> Evolution:
    """Add the columns that a table lacks, and widen those that are too narrow.

    Raises:
        TableSchemaValidationError: Lance cannot.
    """
    new = {misfit.name: misfit.source for misfit in misfits if misfit.target is None}
    wider = {misfit.name: misfit.widened for misfit in misfits if misfit.widened is not None}
    columns = Columns(handle)
    before = after = int(handle.open().version)
    is_alone = True
    if wider:
        done = columns.alter_all([Alteration(name, data_type=kind) for name, kind in wider.items()])
        # A second commit may put the columns' metadata back.
        is_alone, after = done.version - before <= 2, done.version  # noqa: PLR2004  # see above
    if new:
        fields = [pa.field(name, kind) for name, kind in new.items()]
        added = columns.add(fields)
        is_alone, after = is_alone and added.version == after + 1, added.version
    changes = [f"{name} is {kind} now" for name, kind in wider.items()]
    changes += [f"{name} ({kind}) is new" for name, kind in new.items()]
    return Evolution(handle, before, after, is_alone, tuple(changes))
