"""The log of a table: its versions, what made them, and what is in them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError, TableVersionNotFoundError
from mooring.tables.api import BY
from mooring.tables.failures import translated
from mooring.tables.handle import At
from mooring.tables.tags import Tags
from mooring.tables.transaction_files import UNKNOWN
from mooring.tables.transactions import read_transaction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance import LanceDataset

    from mooring.tables.api import VersionRecord
    from mooring.tables.handle import TableHandle

__all__ = ["LogEntry", "log", "read_log"]

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A version.

    Attributes:
        version: Its number.
        at: When it was made.
        operation: What made it, in Lance's words.
        rows: How many rows it has.
        size_bytes: The size of its data files.
        by: Who made it, where that was kept.
        tags: The tags that name it.
        transaction_id: The transaction that made it, where Lance kept it.
        properties: What its writer gave along.
    """

    version: int
    at: datetime | None
    operation: str
    rows: int
    size_bytes: int
    by: str | None = None
    tags: tuple[str, ...] = ()
    transaction_id: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def log(
    handle: TableHandle, limit: int | None = None, *, branch: str | None = None
) -> list[LogEntry]:
    """Return versions, the newest first.

    It costs what the versions cost that are asked for, and not what the table's past does.

    Args:
        handle: The table.
        limit: How many; all unless given.
        branch: The branch; main unless given.

    Raises:
        TableBranchNotFoundError: there is no such branch.
        InvalidInputError: the limit makes no sense.
    """
    if limit is not None and limit < 1:
        msg = f"a log of {limit} versions makes no sense: the limit starts at 1"
        raise InvalidInputError(msg)
    at = At(branch=branch)
    records = handle.ledger.newest_first(at.branch, limit)
    if not records:
        return []
    named: dict[int, list[str]] = {}
    for tag in Tags(handle).list():
        if tag.branch == at.branch:
            named.setdefault(tag.version, []).append(tag.name)
    return [
        replace(entry, tags=tuple(named.get(entry.version, ())))
        for entry in read_log(handle, records, branch=at.branch)
    ]


def read_log(
    handle: TableHandle, records: Sequence[VersionRecord], *, branch: str | None = None
) -> list[LogEntry]:
    """Look into versions of a branch, without their tags; those cleaned up meanwhile are left out.

    Raises:
        TableBranchNotFoundError: there is no such branch.
    """
    at = At(branch=branch)
    with handle.reading(at) as dataset, ThreadPoolExecutor(_AT_ONCE) as readers:

        def read(record: VersionRecord) -> LogEntry | None:
            return _read(handle, dataset, record, at.branch)

        return [entry for entry in readers.map(read, records) if entry is not None]


def _read(
    handle: TableHandle, dataset: LanceDataset, record: VersionRecord, branch: str | None
) -> LogEntry | None:
    """Read a version; None where it was cleaned up meanwhile."""
    try:
        with translated(handle.what):
            opened = dataset.checkout_version((branch, record.version))
    except TableVersionNotFoundError:
        return None
    # Lance sums the manifest up much faster than its fragments can be gone through from here.
    summary = opened.get_version()["metadata"]
    made = read_transaction(handle, opened, record.version, branch)
    return LogEntry(
        version=record.version,
        at=None if record.at_ms is None else datetime.fromtimestamp(record.at_ms / 1000, UTC),
        operation=made.operation if made else UNKNOWN,
        rows=int(summary["total_rows"]),
        size_bytes=int(summary["total_files_size"]),
        # Not every operation of Lance takes along who does it; a catalog of versions knows.
        by=(made.properties.get(BY) if made else None) or record.by,
        transaction_id=made.uuid if made else None,
        properties=made.properties if made else {},
    )
