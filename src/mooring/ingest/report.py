"""What an ingestion did, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.ingest.request import IngestMode

__all__ = ["IngestReport", "Progress"]


@dataclass(frozen=True)
class IngestReport:
    """What an ingestion did.

    Attributes:
        table: The table.
        mode: How.
        version: The version it made, or made then.
        is_new: Whether it was done now; not where the run was in the table already.
        rows_in: Records read.
        rows_written: Rows written: those inserted and updated.
        rows_inserted: Rows that are new.
        rows_updated: Rows that have other values now.
        rows_deleted: Rows that are gone.
        rows_rejected: Records left out.
        bytes_read: What was read.
        files: Files read.
        seconds: How long it took.
        engine: ``threads`` or ``spark``.
        changes: What was changed of the table's columns.
    """

    table: str
    mode: IngestMode
    version: int
    is_new: bool
    rows_in: int = 0
    rows_written: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_rejected: int = 0
    bytes_read: int = 0
    files: int = 0
    seconds: float = 0.0
    engine: str = "threads"
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far an ingestion has come.

    Attributes:
        rows: Rows written.
        bytes: Bytes read.
        total_bytes: Of how many.
    """

    rows: int
    bytes: int
    total_bytes: int
