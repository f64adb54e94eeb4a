"""What a committed transaction did, by the names that its objects had then."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.metastore.entry import Change, Record
    from mooring.metastore.locator import Locator
    from mooring.metastore.metastore import Metastore
    from mooring.metastore.transaction import Transaction

__all__ = ["ToldChange", "tell_changes"]


@dataclass(frozen=True, slots=True)
class ToldChange:
    """What was done to an object.

    Attributes:
        operation: What was done.
        kind: What the object is.
        locator: What it was called.
        id: Its ids.
        revision: The number of the revision.
        names: Names that began, after a ``+``, and that ended, after a ``-``.
    """

    operation: str
    kind: str
    locator: Locator
    id: str
    revision: int
    names: tuple[str, ...]


def tell_changes(metastore: Metastore, seq: int, record: Record) -> Iterator[ToldChange]:
    """Tell what a transaction did, one by one.

    Args:
        metastore: Has it.
        seq: The entry that holds it.
        record: The transaction.
    """
    states = _States(metastore, seq)
    for change in record.changes:
        yield _tell(states, change)


def _tell(states: _States, change: Change) -> ToldChange:
    # What was deleted has its name in the state before.
    state = states.after if change.body is not None else states.before
    return ToldChange(
        change.operation.value,
        change.kind.value,
        state.locate(change.ids),
        "/".join(change.ids),
        change.revision,
        tuple(
            f"{'-' if name.operation == 'delete' else '+'}{'|'.join(name.parts)}"
            for name in change.names
        ),
    )


class _States:
    """The metastore before and after an entry, each looked at where it is needed."""

    def __init__(self, metastore: Metastore, seq: int) -> None:
        self._metastore = metastore
        self._seq = seq

    @cached_property
    def before(self) -> Transaction:
        return self._metastore.begin(at=self._seq - 1)

    @cached_property
    def after(self) -> Transaction:
        return self._metastore.begin(at=self._seq)
