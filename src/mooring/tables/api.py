"""What a catalog needs of a table format to create tables: data first, then one deciding commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StagedTable", "TableFiles", "Write"]


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Data files that are written but belong to no version yet."""

    table_dir: str
    schema: object
    fragments: tuple[object, ...]
    files: tuple[str, ...]
    nonce: str


@dataclass(frozen=True, slots=True)
class Write:
    """A version, and who wrote it through a catalog."""

    version: int
    by: str
    at_ms: int


class TableFiles(Protocol):
    """Writes tables into directories of a store."""

    def stage(self, table_dir: str, rows: pa.RecordBatchReader) -> StagedTable:
        """Write data files; nothing is visible yet."""
        ...

    def commit(self, staged: StagedTable, version: int) -> bool:
        """Make the staged data the table's content, as exactly this version.

        Returns:
            False, and nothing changed, where the version exists already.
        """
        ...

    def discard(self, staged: StagedTable) -> None:
        """Delete the files of a stage that was never committed."""
        ...

    def writes(self, table_dir: str) -> list[Write]:
        """Tell who wrote the versions that are still known, oldest first."""
        ...

    def restore(self, table_dir: str, version: int, as_version: int) -> bool:
        """Make an older version's content the newest, as exactly ``as_version``.

        Returns:
            False, and nothing changed, where that version exists already or the older is gone.
        """
        ...
