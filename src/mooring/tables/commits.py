"""A change that was committed: the version it made, and the transaction that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance import LanceDataset

__all__ = ["Committed"]


@dataclass(frozen=True, slots=True)
class Committed:
    """A change that was committed.

    Attributes:
        version: The version it made.
        transaction_id: The transaction's identifier; None where Lance kept none.
    """

    version: int
    transaction_id: str | None = None

    @classmethod
    def of(cls, dataset: LanceDataset) -> Committed:
        """Read what the last change made through an opened table was."""
        transaction = dataset.read_transaction(dataset.version)
        return cls(dataset.version, None if transaction is None else transaction.uuid)
