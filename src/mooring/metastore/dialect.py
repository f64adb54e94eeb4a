"""How a metastore's objects lie in its root: the seam between commits and the files of a layout.

Commits are decided by the chain, which is ours. A dialect names the files that a transaction writes
beside it, for whoever reads the tree instead; and where others commit to the same tree by rules of
their own, it finds what they committed.

Spec: deltacat-storage-model, "Directory & File Structure".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mooring.metastore.entry import encode_record
from mooring.metastore.layout import (
    TXN_DIR,
    RevisionName,
    log_path,
    mapping_path,
    parse_log,
    parse_mapping,
    revision_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mooring.metastore.entry import NameChange, Record, Remapped
    from mooring.metastore.locator import Locator
    from mooring.metastore.model import MetaObject
    from mooring.metastore.timeline import Ids, Parts, Timeline
    from mooring.store import Store

__all__ = ["DOCUMENT", "Dialect", "DocumentDialect", "Others", "View"]


@dataclass(frozen=True, slots=True)
class View:
    """The objects around a transaction's changes.

    Attributes:
        name_of: Tells what an object is called once the transaction is committed.
        value_of: Returns an object as the transaction leaves it, or as it was where it deletes it;
            None where there never was one.
    """

    name_of: Callable[[Ids], Parts]
    value_of: Callable[[Ids], MetaObject | None]


class Others(Protocol):
    """Those who commit to the same tree by rules of their own."""

    name: str

    def begin_at(self, recent: Iterable[str]) -> None:
        """Begin with the transactions that a checkpoint names; what is older is in it."""
        ...

    def recent(self) -> tuple[str, ...]:
        """Return committed transactions before which nobody has to look again."""
        ...

    def note(self, txn_ids: Iterable[str]) -> None:
        """Take transactions as known: they are in the chain."""
        ...

    def look(self) -> bool:
        """Look for commits that are not known; tell whether there are any."""
        ...

    def commits(self, timeline: Timeline) -> Iterator[Record]:
        """Go through the commits that were found and are still not known, the oldest first.

        Args:
            timeline: The state so far; whoever goes through takes each commit in before the next.
        """
        ...

    def running(self) -> list[str]:
        """Return their transactions that were not over at the last look."""
        ...


class Dialect(Protocol):
    """The files of one layout."""

    name: str

    def txn_id(self, start_ms: int, unique: str) -> str:
        """Return the id of a transaction that began at a time, by its own clock."""
        ...

    def digest(self, locator: Locator) -> str:
        """Return the name of the directory by which an object is found."""
        ...

    def aliases(self, value: MetaObject) -> list[Parts]:
        """Return the further names that an object has on account of what it is."""
        ...

    def check(self, locator: Locator, value: MetaObject) -> None:
        """Refuse what cannot lie in this layout.

        Raises:
            InvalidInputError: it cannot.
        """
        ...

    def files(self, record: Record, view: View) -> Iterator[tuple[str, bytes]]:
        """Go through the files that a transaction writes before it commits.

        Args:
            record: What it did.
            view: What is around it.
        """
        ...

    def log(self, record: Record, view: View) -> tuple[str, bytes]:
        """Return the file that tells of a commit once it is decided."""
        ...

    def is_logged(self, txn_id: str, store: Store) -> bool:
        """Whether the log of a transaction is there."""
        ...

    def logged_by(self, path: str) -> str | None:
        """Return the transaction whose log a file is; None for other files."""
        ...

    def is_held(self, txn_id: str, store: Store) -> bool:
        """Whether somebody works on a transaction whom an entry of the chain does not stop."""
        ...

    def writer_of(self, path: str) -> str | None:
        """Return the transaction that staged a file; None for files that none did."""
        ...

    def others(self, store: Store) -> Others | None:
        """Return those who commit here by rules of their own; None where nobody does."""
        ...


class DocumentDialect:
    """The layout of the document."""

    name = "document"

    def txn_id(self, start_ms: int, unique: str) -> str:
        """Return the start in milliseconds and the unique part."""
        return f"{start_ms}_{unique}"

    def digest(self, locator: Locator) -> str:
        """Return the digest of all names down to the object."""
        return locator.digest

    def aliases(self, value: MetaObject) -> list[Parts]:
        """Return none: names are given by people here."""
        del value
        return []

    def check(self, locator: Locator, value: MetaObject) -> None:
        """Refuse nothing: the layout is made for these objects."""

    def files(self, record: Record, view: View) -> Iterator[tuple[str, bytes]]:
        """Go through revision files and mapping files."""
        del view  # names are in no file of this layout
        txn_id = record.txn_id
        for change in record.changes:
            name = RevisionName(change.revision, change.operation, txn_id)
            yield revision_path(change.ids, name), change.body or b""
            for mapped in change.names:
                yield _mapping(txn_id, change.ids, mapped)
        for again in record.remapped:
            yield _mapping(txn_id, again.ids, again)

    def log(self, record: Record, view: View) -> tuple[str, bytes]:
        """Return the transaction's log."""
        del view
        return log_path(record.txn_id), encode_record(record)

    def is_logged(self, txn_id: str, store: Store) -> bool:
        """Whether the log of a transaction is there."""
        return store.head(log_path(txn_id)) is not None

    def logged_by(self, path: str) -> str | None:
        """Read a transaction from the name of its log."""
        top, _, name = path.partition("/")
        return parse_log(name) if top == TXN_DIR else None

    def is_held(self, txn_id: str, store: Store) -> bool:
        """Whether somebody works on it whom the chain does not stop: it stops everybody."""
        del txn_id, store
        return False

    def writer_of(self, path: str) -> str | None:
        """Read a transaction from the name of a revision or mapping file."""
        if path.startswith(f"{TXN_DIR}/"):
            return None
        found = parse_mapping(path.rpartition("/")[2])
        return None if found is None else found.txn_id

    def others(self, store: Store) -> Others | None:
        """Return none: whoever writes this layout commits to the chain."""
        del store
        return None


DOCUMENT = DocumentDialect()


def _mapping(txn_id: str, ids: Ids, mapped: NameChange | Remapped) -> tuple[str, bytes]:
    name = RevisionName(mapped.revision, mapped.operation, txn_id, ids[-1])
    return mapping_path(ids[:-1], mapped.digest, name), b""
