"""Publications: which version of a Lance table holds which position of a change table.

A version that a publication makes says so among the properties of its transaction: from which
table, at which position, with which settings. So the newest of these says how far the table has
come, without a clock and without a file that could say something else. Versions after it may do
what leaves the rows as they are, such as a compaction or an index; one that changes rows is
somebody else's.

Whoever deletes versions calls `note_published` first, which keeps in `_published/` what they say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mooring.tables.api import BY
from mooring.tables.runs import transaction_at
from mooring.tables.upserts import RowsChanged, RowsUnchanged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mooring.tables.api import VersionRecord
    from mooring.tables.handle import TableHandle
    from mooring.tables.place import Place
    from mooring.tables.transactions import Transaction

__all__ = [
    "ForeignVersion",
    "Overtaken",
    "PublishMark",
    "PublishWatch",
    "PublishedVersion",
    "Standing",
    "find_standing",
    "list_published",
    "note_published",
]

PUBLISHED_DIR = "_published"
SOURCE, POSITION = "mooring.publish.source", "mooring.publish.position"
SETTINGS = "mooring.publish.settings"
_SUFFIX = ".json"
_DIGITS = 20
_FIRST_LOOK = 32
_GONE = "gone"


@dataclass(frozen=True, slots=True)
class PublishMark:
    """What a version says of its publication.

    Attributes:
        source: The change table, by an id that no other table has.
        position: Its position.
        settings: A digest of the columns and of how they are made.
    """

    source: str
    position: int
    settings: str

    @property
    def properties(self) -> dict[str, str]:
        """What is kept with the commit."""
        return {SOURCE: self.source, POSITION: str(self.position), SETTINGS: self.settings}

    @classmethod
    def read(cls, properties: Mapping[str, str]) -> PublishMark | None:
        """Read it from the properties of a commit; None where no publication made it."""
        if SOURCE not in properties:
            return None
        return cls(properties[SOURCE], int(properties[POSITION]), properties.get(SETTINGS, ""))


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """A version that a publication made.

    Attributes:
        version: Its number.
        mark: What it holds.
        at_ms: When it was made, where that is known.
        by: Who made it, where that was kept.
    """

    version: int
    mark: PublishMark
    at_ms: int | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignVersion:
    """A version that changed rows and is no publication's, or of which nobody can tell."""

    version: int
    operation: str

    def __str__(self) -> str:
        """Say it in a message."""
        if self.operation == _GONE:
            return f"version {self.version} is gone, and nobody can tell what it changed"
        return f"version {self.version} ({self.operation}) was made by somebody else"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a table has come.

    Attributes:
        newest: The newest version.
        published: The newest one that a publication made; None where there is none.
        foreign: The first one after it that somebody else made; None where there is none.
    """

    newest: int
    published: PublishedVersion | None = None
    foreign: ForeignVersion | None = None


class Overtaken(Exception):  # noqa: N818  # an answer, not an error
    """Rows were changed, or published, since they were looked at: look again."""

    def __init__(self, version: int) -> None:
        """Tell by which version."""
        super().__init__(f"version {version} came first")
        self.version = version


class PublishWatch:
    """Refuses a commit where somebody else published since, or changed rows."""

    def __init__(self, *, minds_others: bool = True) -> None:
        """Look at other publications and, if wanted, at all that changes rows."""
        self._minds_others = minds_others

    def see(self, version: int, transaction: Transaction | None) -> None:
        """Look at a version.

        Raises:
            Overtaken: it came first.
        """
        mark = None if transaction is None else PublishMark.read(transaction.properties)
        if mark is not None or (self._minds_others and _changes_rows(version, transaction)):
            raise Overtaken(version)


class _Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What versions said that are gone: the content of a note, whose name is the last of them."""

    version: int
    source: str
    position: int
    settings: str
    at_ms: int | None = None
    by: str | None = None
    foreign_version: int | None = None
    foreign_operation: str = ""


def find_standing(handle: TableHandle) -> Standing | None:
    """Find how far a table has come; None where it has no data."""
    record = handle.ledger.newest(None)
    if record is None:
        return None
    through, note = _read_note(handle.place)
    foreign: ForeignVersion | None = None
    expected = record.version
    for version, at_ms in _newest_first(handle):
        if version <= through:
            break
        if version < expected:
            foreign = ForeignVersion(version + 1, _GONE)
        expected = version - 1
        transaction = transaction_at(handle, version, None)
        found = _published(version, transaction, at_ms)
        if found is not None:
            return Standing(record.version, found, foreign)
        if _changes_rows(version, transaction):
            operation = _GONE if transaction is None else transaction.operation
            foreign = ForeignVersion(version, operation)
    if expected > through:
        foreign = ForeignVersion(through + 1, _GONE)
    if note is None:
        return Standing(record.version, None, foreign)
    if note.foreign_version is not None:
        foreign = ForeignVersion(note.foreign_version, note.foreign_operation)
    mark = PublishMark(note.source, note.position, note.settings)
    known = PublishedVersion(note.version, mark, note.at_ms, note.by)
    return Standing(record.version, known, foreign)


def list_published(handle: TableHandle) -> list[PublishedVersion]:
    """List the versions that publications made and that are there, the newest first."""
    found = (
        _published(record.version, transaction_at(handle, record.version, None), record.at_ms)
        for record in handle.ledger.newest_first(None)
    )
    return [one for one in found if one is not None]


def note_published(handle: TableHandle) -> None:
    """Before versions are deleted: note what they say of publications."""
    place = handle.place
    standing = find_standing(handle)
    if standing is None or standing.published is None:
        return
    published, foreign = standing.published, standing.foreign
    note = _Note(
        published.version,
        published.mark.source,
        published.mark.position,
        published.mark.settings,
        published.at_ms,
        published.by,
        None if foreign is None else foreign.version,
        "" if foreign is None else foreign.operation,
    )
    own = f"{standing.newest:0{_DIGITS}d}{_SUFFIX}"
    place.store.put_new(place.path(f"{PUBLISHED_DIR}/{own}"), msgspec.json.encode(note))
    names = place.store.list_dir(place.path(PUBLISHED_DIR)).files
    place.store.delete(place.path(f"{PUBLISHED_DIR}/{name}") for name in names if name < own)


def _newest_first(handle: TableHandle) -> Iterator[tuple[int, int | None]]:
    """Go through the versions that are there: mostly one of the last is the one."""
    last: VersionRecord | None = None
    for limit in (_FIRST_LOOK, None):
        for record in handle.ledger.newest_first(None, limit):
            if last is None or record.version < last.version:
                last = record
                yield record.version, record.at_ms


def _published(
    version: int, transaction: Transaction | None, at_ms: int | None
) -> PublishedVersion | None:
    mark = None if transaction is None else PublishMark.read(transaction.properties)
    if mark is None or transaction is None:
        return None
    return PublishedVersion(version, mark, at_ms, transaction.properties.get(BY))


def _changes_rows(version: int, transaction: Transaction | None) -> bool:
    try:
        RowsUnchanged().see(version, transaction)
    except RowsChanged:
        return True
    return False


def _read_note(place: Place) -> tuple[int, _Note | None]:
    """Return the newest note, and up to which version it tells."""
    names = place.store.list_dir(place.path(PUBLISHED_DIR)).files
    for name in sorted(names, reverse=True):
        body = place.store.get(place.path(f"{PUBLISHED_DIR}/{name}"))
        if body is not None:
            return int(name.removesuffix(_SUFFIX)), msgspec.json.decode(body, type=_Note)
    return 0, None
