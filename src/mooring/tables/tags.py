"""Tags: names for versions of a table, kept in files as Lance keeps them.

A tag is created by a create-only put, as Lance does it. Lance moves a tag without a condition;
here an object store decides that, too. A tag is acknowledged only where the table is still live
and the version still there.

Spec: lance-rest-openapi, ListTableTags, GetTableTagVersion, CreateTableTag, UpdateTableTag,
DeleteTableTag.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from mooring.clock import RandomIds, SystemClock
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableBranchNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnreadableError,
)
from mooring.identifiers import quote
from mooring.store.numbered import create_once
from mooring.tables.api import BY
from mooring.tables.reference_names import (
    branch_of,
    check_tag,
    parse_references,
    reference_file,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.clock import Clock, IdSource
    from mooring.store import StoredObject
    from mooring.tables.api import VersionRecord
    from mooring.tables.handle import At, TableHandle

__all__ = ["Tag", "Tags", "resolve"]

_DIR = "_refs/tags"
_NONCE = "mooring.nonce"
_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a version.

    Attributes:
        name: The tag.
        version: The version it names.
        branch: The version's branch; None for main.
        size_bytes: The size of the version's manifest.
        created_at: When it was made, where that is known.
        updated_at: When it was moved last, where that is known.
        metadata: What is kept with it; who made it, among others.
    """

    name: str
    version: int
    branch: str | None = None
    size_bytes: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


class _File(msgspec.Struct, frozen=True, rename="camel"):
    """What Lance keeps of a tag."""

    branch: str | None
    version: int
    created_at: datetime | None = None
    updated_at: datetime | None = None
    manifest_size: int = 0
    metadata: dict[str, str] = {}


class Tags:
    """The tags of one table."""

    def __init__(
        self, handle: TableHandle, *, clock: Clock | None = None, ids: IdSource | None = None
    ) -> None:
        """Work on a located table; nothing is read yet."""
        self._handle = handle
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()

    # -- reading ---------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Name the tags, sorted, by one look."""
        place = self._handle.place
        return parse_references(place.store.list_dir(place.path(_DIR)).files)

    def list(self, names: Sequence[str] | None = None) -> list[Tag]:
        """Return the tags by name, or some of them; one that is deleted meanwhile is left out."""
        wanted = self.names() if names is None else names
        bodies = self._handle.place.read_all([self._path(name) for name in wanted])
        return [
            _tag(name, body) for name, body in zip(wanted, bodies, strict=True) if body is not None
        ]

    def get(self, name: str) -> Tag:
        """Return a tag.

        Raises:
            TableTagNotFoundError: there is no such tag.
            InvalidInputError: no tag can have this name.
        """
        return _tag(name, self._read(name).body)

    # -- changing --------------------------------------------------------------------------------

    def create(self, name: str, version: int | None = None, *, branch: str | None = None) -> Tag:
        """Name a version; of several creators of one tag, one wins.

        Args:
            name: The tag.
            version: The version; the newest unless given.
            branch: The version's branch; main unless given.

        Raises:
            TableTagAlreadyExistsError: there is such a tag.
            TableVersionNotFoundError: there is no such version, or it was cleaned up meanwhile.
            TableBranchNotFoundError: there is no such branch.
            InvalidInputError: no tag can have this name.
            TableNotFoundError: the table was dropped meanwhile.
        """
        check_tag(name)
        self._handle.ledger.prepare()
        record = self._version(version, branch)
        now = self._now()
        wanted = _File(
            branch_of(branch), record.version, now, now, record.size_bytes or 0, self._stamp({})
        )
        store = self._handle.place.store
        if not create_once(store, self._path(name), _encode(wanted)):
            msg = f"{self._handle.what} has a tag {quote(name)} already: update it to move it"
            raise TableTagAlreadyExistsError(msg)
        self._confirm(name, wanted)
        return _from_file(name, wanted)

    def update(self, name: str, version: int | None = None, *, branch: str | None = None) -> Tag:
        """Let a tag name another version; the newest unless given.

        An object store decides between several that move a tag; on disk the last one counts.

        Raises:
            TableTagNotFoundError: there is no such tag.
            TableVersionNotFoundError: there is no such version.
            TableBranchNotFoundError: there is no such branch.
            ConcurrentModificationError: others kept moving it.
        """
        check_tag(name)
        self._handle.ledger.prepare()
        self._read(name)
        record = self._version(version, branch)
        for _ in range(_ATTEMPTS):
            found = self._read(name)
            old = _decode(name, found.body)
            moved = msgspec.structs.replace(
                old,
                branch=branch_of(branch),
                version=record.version,
                updated_at=self._now(),
                manifest_size=record.size_bytes or 0,
                metadata=self._stamp(old.metadata),
            )
            if self._replace(name, found, _encode(moved)):
                self._handle.confirm()
                return _from_file(name, moved)
        msg = f"tag {quote(name)} of {self._handle.what} is moved by others all the time: try again"
        raise ConcurrentModificationError(msg)

    def delete(self, name: str) -> None:
        """Forget a tag; the version stays.

        Raises:
            TableTagNotFoundError: there is no such tag.
        """
        check_tag(name)
        self._handle.ledger.prepare()
        self._handle.confirm()
        self._read(name)
        self._handle.place.store.delete([self._path(name)])
        self._handle.confirm()

    # -- small things ----------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return self._handle.place.path(f"{_DIR}/{reference_file(name)}")

    def _read(self, name: str) -> StoredObject:
        check_tag(name)
        found = self._handle.place.store.read(self._path(name))
        if found is None:
            msg = f"{self._handle.what} has no tag {quote(name)}"
            raise TableTagNotFoundError(msg)
        return found

    def _replace(self, name: str, found: StoredObject, body: bytes) -> bool:
        store = self._handle.place.store
        if store.capabilities.compare_and_swap:
            return store.put_if(self._path(name), body, found.meta.tag)
        store.put(self._path(name), body)
        return True

    def _version(self, version: int | None, branch: str | None) -> VersionRecord:
        """Find the version that a tag is to name."""
        ledger = self._handle.ledger
        on = branch_of(branch)
        if version is not None and version < 1:
            msg = f"versions begin with 1: a tag cannot name version {version}"
            raise InvalidInputError(msg)
        # This also tells whether there is such a branch.
        newest = ledger.newest(on) if version is None or on else None
        if version is not None:
            return ledger.describe(version, on)
        if newest is None:
            msg = f"{self._handle.what} has no versions yet: it is only declared"
            raise TableVersionNotFoundError(msg)
        return newest

    def _confirm(self, name: str, written: _File) -> None:
        """Acknowledge a tag only of a version that is there, in a table that is live."""
        try:
            self._handle.ledger.describe(written.version, written.branch)
        except (TableVersionNotFoundError, TableBranchNotFoundError):
            # Somebody cleaned up, or deleted the branch, who looked before this one was there.
            self._handle.place.store.delete([self._path(name)])
            raise
        self._handle.confirm()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)

    def _stamp(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """Say who; and make the file unlike any other, so that an etag proves its state."""
        return {
            **metadata,
            **{key: value for key, value in self._handle.stamp.items() if key == BY},
            _NONCE: self._ids.new_id(),
        }


def resolve(handle: TableHandle, at: At) -> At:
    """Say which version of which branch a state is, where a tag names it.

    Raises:
        TableTagNotFoundError: there is no such tag.
    """
    if at.tag is None:
        return at
    tag = Tags(handle).get(at.tag)
    return replace(at, tag=None, version=tag.version, branch=tag.branch)


def _encode(file: _File) -> bytes:
    return msgspec.json.format(msgspec.json.encode(file), indent=2)


def _decode(name: str, body: bytes) -> _File:
    try:
        return msgspec.json.decode(body, type=_File)
    except msgspec.DecodeError as exc:
        msg = f"the file of tag {quote(name)} is damaged: {exc}"
        raise UnreadableError(msg) from exc


def _tag(name: str, body: bytes) -> Tag:
    return _from_file(name, _decode(name, body))


def _from_file(name: str, file: _File) -> Tag:
    return Tag(
        name,
        file.version,
        branch_of(file.branch),
        file.manifest_size,
        file.created_at,
        file.updated_at,
        {key: value for key, value in file.metadata.items() if key != _NONCE},
    )
