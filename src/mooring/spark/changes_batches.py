"""A stream's batches in a change table: each counts once, whoever writes it and however often.

The transaction that makes a batch visible notes its number, in one note for the whole stream. Spark
repeats a batch only until it has heard of its end, and begins no other before, so the last number
is all that has to be known. A batch before that is not of this stream as it was: rather than pass
over rows that nobody has seen, it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.changes.objects import require_objects, run_locator
from mooring.changes.writing import ChangeRun
from mooring.errors import InvalidInputError, InvalidTableStateError
from mooring.identifiers import quote
from mooring.metastore import CommitState, Partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.catalog import Catalog
    from mooring.changes.commits import Landed
    from mooring.changes.objects import ChangeObjects
    from mooring.changes.parts import Draft, PartWritten
    from mooring.identifiers import ObjectId
    from mooring.metastore import Locator
    from mooring.metastore.transaction import Transaction

__all__ = ["ChangesStream"]

_STREAM, _BATCH, _TOKEN, _CHECKPOINT = "stream", "batch", "token", "checkpoint"
_LONGEST = 200


class _AlreadyThere(Exception):  # noqa: N818  # an answer, not an error
    """The batch is in the table."""


@dataclass(frozen=True)
class ChangesStream:
    """A stream that changes a table.

    Attributes:
        catalog: The metastore.
        table: The table.
        query: The stream's name.
        checkpoint: What Spark calls the stream in its checkpoint, where that can be read.
    """

    catalog: Catalog
    table: ObjectId
    query: str
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        """Refuse a name that cannot be one."""
        if not self.query.strip() or len(self.query) > _LONGEST:
            msg = f"a stream's name has 1 to {_LONGEST} characters, not {quote(self.query)}"
            raise InvalidInputError(msg)

    def commit(self, batch: int, draft: Draft | None, parts: Sequence[PartWritten]) -> bool:
        """Make a batch visible, unless it is already; one without rows is noted.

        Args:
            batch: Its number.
            draft: What its parts were written by; None where there are none.
            parts: What workers wrote.

        Returns:
            Whether it happened now.

        Raises:
            ConflictError: a key comes twice, and no merge order tells which counts.
            ConcurrentModificationError: the table has other columns now, or a vacuum has given the
                files up: the batch has to be written again.
            InvalidTableStateError: the batch is not the stream's next one.
        """

        def note(txn: Transaction, landed: list[Landed]) -> None:
            self._note(txn, batch, landed, work.token)

        if draft is not None and self._holds(draft.token):
            return False  # the files are named: they must not be deleted as those of a repetition
        with ChangeRun(self.catalog, token=draft.token if draft else None) as work:
            if draft is not None:
                work.add(self.table, draft, parts)
            try:
                work.commit(message=f"batch {batch} of stream {self.query}", also=note)
            except _AlreadyThere:
                return False
        return True

    def _holds(self, token: str) -> bool:
        """Whether the last batch was written under an id."""
        view = self.catalog.metastore.begin()
        found = view.find(self._locator(require_objects(view, self.table)))
        return found is not None and cast("Partition", found.value).properties[_TOKEN] == token

    def _locator(self, table: ChangeObjects) -> Locator:
        return run_locator(table.locator, f"{_STREAM}\0{self.query}")

    def _note(self, txn: Transaction, batch: int, landed: Sequence[Landed], token: str) -> None:
        """Note a batch in its own transaction.

        Raises:
            _AlreadyThere: it is noted.
            InvalidTableStateError: it is not the next one.
        """
        table = require_objects(txn, self.table)
        locator = self._locator(table)
        found = txn.find(locator)
        told = {
            _STREAM: self.query,
            _BATCH: str(batch),
            _TOKEN: token,
            "position": str(landed[-1].position if landed else table.position),
            "rows": str(sum(one.rows for one in landed)),
            **({_CHECKPOINT: self.checkpoint} if self.checkpoint else {}),
        }
        if found is None:
            self._require_first(batch, table.position - len(landed))
            note = Partition(
                partition_id=locator.parts[0],
                state=CommitState.COMMITTED,
                values=(self.query,),
                properties=told,
            )
            txn.create(locator, note)
            return
        known = cast("Partition", found.value)
        self._require_next(batch, known)
        txn.update(locator, replace(known, properties={**known.properties, **told}))

    def _require_first(self, batch: int, position: int) -> None:
        """Refuse a table that took the place of the stream's."""
        if batch and not position:
            msg = (
                f"change table {quote(str(self.table))} is new and empty, and batch {batch} of"
                f" stream {quote(self.query)} is not the first: what the stream wrote before is"
                " elsewhere; bring that table back, or begin anew with another checkpoint"
            )
            raise InvalidTableStateError(msg)

    def _require_next(self, batch: int, known: Partition) -> None:
        last = int(known.properties[_BATCH])
        before = known.properties.get(_CHECKPOINT)
        is_other = None not in {before, self.checkpoint} and before != self.checkpoint
        if is_other or batch < last:
            msg = (
                f"stream {quote(self.query)} has written its batches up to {last} into change table"
                f" {quote(str(self.table))}, and this is batch {batch}"
                f"{' of another checkpoint' if is_other else ''}: nobody can tell which of its rows"
                " are there; go on with the checkpoint of then, or name the stream anew with the"
                " option 'query'"
            )
            raise InvalidTableStateError(msg)
        if batch == last:
            raise _AlreadyThere
