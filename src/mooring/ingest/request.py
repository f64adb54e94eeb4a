"""What an ingestion is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from mooring.ingest.rejects import RejectRules
    from mooring.tables.runs import RunMark

__all__ = ["IngestMode", "OnConflict", "Request"]


class IngestMode(StrEnum):
    """What becomes of the rows."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    UPSERT = "upsert"
    DELETE = "delete"


class OnConflict(StrEnum):
    """What becomes of rows whose key is there, where a table has a key and rows are appended."""

    FAIL = "fail"
    REJECT = "reject"


@dataclass(frozen=True)
class Request:
    """What was asked for.

    Attributes:
        mode: What becomes of the rows.
        key: The columns by which rows are the same.
        rules: What becomes of records that do not fit.
        on_conflict: What becomes of appended rows whose key is there.
        mark: By which the run is known again; None where it is not to be.
        evolve: Whether the table's columns may be added to and widened.
    """

    mode: IngestMode
    key: tuple[str, ...]
    rules: RejectRules
    on_conflict: OnConflict
    mark: RunMark | None
    evolve: bool

    @property
    def by_key(self) -> bool:
        """Whether rows are found by the key."""
        return self.mode in {IngestMode.UPSERT, IngestMode.DELETE}

    def check(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            InvalidInputError: a key is missing, or of no use.
        """
        if self.by_key and not self.key:
            msg = f"to {self.mode} needs a key: name its columns with --key a,b"
            raise InvalidInputError(msg)
        if self.key and not self.by_key:
            msg = f"a key is for upsert and delete: to {self.mode} needs none"
            raise InvalidInputError(msg)
