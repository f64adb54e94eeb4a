"""How a metastore's objects lie in its root: the seam between commits and the files of a layout.

Commits are decided by the chain, which is ours. A dialect names the files that a transaction writes
beside it, for whoever reads the tree instead.

Spec: deltacat-storage-model, "Directory & File Structure".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mooring.metastore.entry import encode_record
from mooring.metastore.layout import (
    TXN_DIR,
    RevisionName,
    log_path,
    mapping_path,
    parse_mapping,
    revision_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mooring.metastore.entry import NameChange, Record, Remapped
    from mooring.metastore.timeline import Ids, Parts

__all__ = ["DOCUMENT", "Dialect", "DocumentDialect"]


class Dialect(Protocol):
    """The files of one layout."""

    name: str

    def txn_id(self, start_ms: int, unique: str) -> str:
        """Return the id of a transaction that began at a time, by its own clock."""
        ...

    def files(self, record: Record, name_of: Callable[[Ids], Parts]) -> Iterator[tuple[str, bytes]]:
        """Go through the files that a transaction writes before it commits.

        Args:
            record: What it did.
            name_of: Tells what an object is called once it is committed.
        """
        ...

    def log(self, record: Record) -> tuple[str, bytes]:
        """Return the file that tells of a commit once it is decided."""
        ...

    def is_logged(self, txn_id: str, exists: Callable[[str], bool]) -> bool:
        """Whether the log of a transaction is there."""
        ...

    def writer_of(self, path: str) -> str | None:
        """Return the transaction that staged a file; None for files that none did."""
        ...


class DocumentDialect:
    """The layout of the document."""

    name = "document"

    def txn_id(self, start_ms: int, unique: str) -> str:
        """Return the start in milliseconds and the unique part."""
        return f"{start_ms}_{unique}"

    def files(self, record: Record, name_of: Callable[[Ids], Parts]) -> Iterator[tuple[str, bytes]]:
        """Go through revision files and mapping files."""
        del name_of  # names are in no file of this layout
        txn_id = record.txn_id
        for change in record.changes:
            name = RevisionName(change.revision, change.operation, txn_id)
            yield revision_path(change.ids, name), change.body or b""
            for mapped in change.names:
                yield _mapping(txn_id, change.ids, mapped)
        for again in record.remapped:
            yield _mapping(txn_id, again.ids, again)

    def log(self, record: Record) -> tuple[str, bytes]:
        """Return the transaction's log."""
        return log_path(record.txn_id), encode_record(record)

    def is_logged(self, txn_id: str, exists: Callable[[str], bool]) -> bool:
        """Whether the log of a transaction is there."""
        return exists(log_path(txn_id))

    def writer_of(self, path: str) -> str | None:
        """Read a transaction from the name of a revision or mapping file."""
        if path.startswith(f"{TXN_DIR}/"):
            return None
        found = parse_mapping(path.rpartition("/")[2])
        return None if found is None else found.txn_id


DOCUMENT = DocumentDialect()


def _mapping(txn_id: str, ids: Ids, mapped: NameChange | Remapped) -> tuple[str, bytes]:
    name = RevisionName(mapped.revision, mapped.operation, txn_id, ids[-1])
    return mapping_path(ids[:-1], mapped.digest, name), b""
