"""The versions of a table as records: one manifest each, made by a create-only put.

Lance writes a manifest under a name of its own and asks for it to become a version. That is the
commit: the content is put under the version's name, once, and the staged file goes. Who loses
leaves nothing either. A staged file of a version that exists can never become one: whoever
crashed before it asked is cleaned up after by the next commit.

What a writer gives along lies in a file beside, named by the manifest's digest: it is there before
the version is, and a loser's belongs to no version.

Spec: objects-and-relationships, "Table Version", "External Manifest Store".
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
)
from mooring.identifiers import quote
from mooring.store.numbered import create_once
from mooring.tables.api import VersionRange, VersionRecord
from mooring.tables.versions import BRANCHES_DIR, VERSIONS_DIR, manifest_name, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mooring.store import ObjectMeta, Store

__all__ = ["ALL", "VersionRecords", "check_range", "final_name", "key_for_lance"]

ALL = VersionRange(0, -1)
# A file's tag, as `store.local` writes it.
_FILE_TAG = re.compile("(?P<inode>[0-9a-f]+)-(?P<ns>[0-9a-f]+)-(?P<size>[0-9a-f]+)")
_FILE = re.compile(r"([0-9]+\.manifest)(?:-[^/]+|\.([0-9a-f]{64})\.json)?")
_TAGS_DIR = "_refs/tags"
# How many older versions a commit looks at for what crashed writers left: within one page.
_SWEPT = 100
# On disk Lance writes a file under a name with such an end, and then renames it. It takes that for
# a failure of the disk, and not for a lost race, if the file goes meanwhile: so late a writer is
# taken for dead.
_UNFINISHED = re.compile(r"#[0-9]+$")
_IN_FLIGHT = 16


@dataclass(slots=True)
class _Files:
    """The files that are named for one version.

    Attributes:
        version: The version.
        name: The name of its manifest.
        meta: The manifest, where the version exists.
        staged: Manifests that have not become it.
        given: What writers gave along, by the digests of their manifests.
    """

    version: int
    name: str
    meta: ObjectMeta | None = None
    staged: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)

    @property
    def counts_down(self) -> bool:
        return self.name == manifest_name(self.version)


class VersionRecords:
    """The records of one table, or of one branch of it."""

    def __init__(self, store: Store, table_dir: str, branch: str | None = None) -> None:
        """Work on a table's directory in a store; it need not have versions yet."""
        self._store = store
        self._table_dir = table_dir
        self._branch = branch
        below = f"{table_dir}/{BRANCHES_DIR}/{branch}" if branch else table_dir
        self._dir = f"{below}/{VERSIONS_DIR}"
        self._key = key_for_lance(store.location(self._dir))

    # -- reading ---------------------------------------------------------------------------------

    def newest_first(self, limit: int | None = None) -> list[VersionRecord]:
        """Return the versions, the newest first; a few of them with one look."""
        return [self._record(found) for found in self._newest(limit)]

    def describe(self, version: int) -> VersionRecord:
        """Return one version.

        Raises:
            TableVersionNotFoundError: there is no such version.
        """
        found = self._find(version)
        if found is None:
            raise TableVersionNotFoundError(self._lacks(version))
        return self._record(found)

    def _lacks(self, version: int) -> str:
        where = f"branch {quote(self._branch)}" if self._branch else "the table"
        return f"{where} has no version {version}"

    def _find(self, version: int) -> _Files | None:
        for counting_down in (True, False):
            name = manifest_name(version, counting_down=counting_down)
            # Names are compared from the one before, so that its own is the first.
            found = next(self._files(after=name[:-1]), None)
            if found is not None and found.name == name and found.meta is not None:
                return found
        return None

    def _newest(self, limit: int | None) -> list[_Files]:
        files = (found for found in self._files() if found.meta is not None)
        first = next(files, None)
        if first is None:
            return []
        if first.counts_down:
            rest = files if limit is None else islice(files, limit - 1)
            return [first, *rest]
        return sorted([first, *files], key=lambda found: found.version, reverse=True)[:limit]

    def _files(self, after: str = "") -> Iterator[_Files]:
        """Go through the versions' files in the order of their names, as far as it is wanted."""
        current: _Files | None = None
        for meta in self._store.iter_dir(self._dir, after=after):
            match = _FILE.fullmatch(meta.path.rpartition("/")[2])
            version = parse_manifest(match[1]) if match else None
            if match is None or version is None:
                continue
            if current is None or current.name != match[1]:
                if current is not None:
                    yield current
                current = _Files(version, match[1])
            if match[2]:
                current.given[match[2]] = meta.path
            elif match[0] == match[1]:
                current.meta = meta
            else:
                current.staged.append(meta.path)
        if current is not None:
            yield current

    def _record(self, files: _Files) -> VersionRecord:
        meta = files.meta
        if meta is None:  # somebody deletes records meanwhile
            raise TableVersionNotFoundError(self._lacks(files.version))
        key = f"{self._key}/{files.name}"
        record = VersionRecord(files.version, key, meta.size_bytes, meta.tag.etag, meta.modified_ms)
        if not files.given:
            return record
        return replace(record, metadata=self._read_given(files, meta.path))

    def _read_given(self, files: _Files, path: str) -> Mapping[str, str]:
        body = self._store.get(path)
        beside = files.given.get(_digest(body)) if body is not None else None
        found = self._store.get(beside) if beside else None
        return {} if found is None else msgspec.json.decode(found, type=dict[str, str])

    # -- making one ------------------------------------------------------------------------------

    def create(
        self, version: int, staged_path: str, given: Mapping[str, str] | None = None
    ) -> VersionRecord:
        """Make a staged manifest a version.

        Args:
            version: Its number.
            staged_path: Where the manifest was written: a file among the table's versions.
            given: Metadata of the writer's, kept with the record.

        Raises:
            ConcurrentModificationError: the version exists, or existed.
            InvalidInputError: there is no such manifest, or the number leaves a gap.
            UnknownOutcomeError: the store never said what was decided.
        """
        staged = self.staged_path(staged_path)
        before = self._before(version)
        body = self._store.get(staged)
        if body is None or before.newest >= version:
            self._store.delete([staged])
            # A loser's staged file may have been cleaned up by whoever won.
            self._require_absent(version, before.newest)
            msg = f"there is no manifest {quote(staged_path)} that could be version {version}"
            raise InvalidInputError(msg)
        final = f"{self._dir}/{final_name(staged, version, counting_down=before.counts_down)}"
        beside = self._put_given(final, body, given)
        decided = create_once(self._store, final, body)
        meta: ObjectMeta | None = None
        # What comes after the decision must not be told as another one.
        with suppress(ServiceUnavailableError):
            self._store.delete({staged, *before.dead, *(() if decided else beside)})
            meta = self._store.head(final) if decided else None
        if not decided:
            raise self._taken(version)
        name = final.rpartition("/")[2]
        if meta is None:
            record = VersionRecord(version, f"{self._key}/{name}", len(body))
        else:
            record = self._record(_Files(version, name, meta))
        return replace(record, metadata=dict(given or {}))

    def check_staged(
        self,
        version: int,
        staged_path: str,
        *,
        size_bytes: int | None = None,
        e_tag: str | None = None,
        counts_down: bool | None = None,
    ) -> None:
        """Refuse a manifest that is not as its writer describes it; one that is absent is not.

        Raises:
            InvalidInputError: the size, the tag, or the way versions are named is another.
        """
        staged = self.staged_path(staged_path)
        meta = self._store.head(staged)
        if meta is None:
            return
        final = final_name(staged, version, counting_down=self._before(version).counts_down)
        for what, told, found in (
            ("size in bytes", size_bytes, meta.size_bytes),
            ("e_tag", _bare(e_tag), _tag_as(e_tag, meta.tag.etag)),
            ("naming scheme", counts_down, _Files(version, final.rpartition("/")[2]).counts_down),
        ):
            if told is not None and told != found:
                msg = f"the {what} of manifest {quote(staged_path)} is another than the request's"
                raise InvalidInputError(msg)

    def staged_path(self, path: str) -> str:
        """Return a manifest's path in the store.

        Raises:
            InvalidInputError: it is none that could become a version of this table.
        """
        directory, _, name = path.rpartition("/")
        known = {self._key, self._dir, VERSIONS_DIR, self._store.location(self._dir)}
        if not name or not {directory, directory.lstrip("/")} & known:
            msg = f"a manifest of this table lies in '{self._key}', and {quote(path)} does not"
            raise InvalidInputError(msg)
        if parse_manifest(name) is not None:
            msg = f"{quote(path)} is a version already: stage a manifest under another name"
            raise InvalidInputError(msg)
        return f"{self._dir}/{name}"

    def _before(self, version: int) -> _Before:
        """Look what was there before a new version.

        Raises:
            InvalidInputError: the number leaves a gap.
        """
        if version < 1:
            msg = f"versions begin with 1, and {version} was asked for"
            raise InvalidInputError(msg)
        seen = self._look()
        existing = [found for found in seen if found.meta is not None]
        newest = max((found.version for found in existing), default=0)
        if existing and version > newest + 1:
            msg = f"versions have no gaps: after {newest} comes {newest + 1}, not {version}"
            raise InvalidInputError(msg)
        # Whoever staged the same version loses if this one does not.
        dead = [
            path
            for found in seen
            for path in found.staged
            if found.version <= version - (_IN_FLIGHT if _UNFINISHED.search(path) else 0)
        ]
        # Lance cleans up versions, and knows nothing of what their writers gave along.
        for found in seen:
            if found.meta is None and found.version < newest:
                dead += found.given.values()
        return _Before(newest, all(found.counts_down for found in existing), dead)

    def dead(self, version: int) -> list[str]:
        """Return what writers left who cannot make a version any more, since this one exists."""
        return self._before(version).dead

    def _look(self) -> list[_Files]:
        """Look at the newest version and some before it; at all where names count up."""
        seen = []
        older = 0
        for found in self._files():
            seen.append(found)
            older += found.meta is not None and found.counts_down
            if older > _SWEPT:
                break
        return seen

    def _require_absent(self, version: int, newest: int) -> None:
        if version <= newest or self._find(version) is not None:
            raise self._taken(version)

    def _taken(self, version: int) -> ConcurrentModificationError:
        msg = f"version {version} was made by another writer: try again on the newest"
        return ConcurrentModificationError(msg)

    def _put_given(self, final: str, body: bytes, given: Mapping[str, str] | None) -> Sequence[str]:
        if not given:
            return ()
        path = f"{final}.{_digest(body)}.json"
        self._store.put(path, msgspec.json.encode(dict(given)))
        return (path,)

    # -- deleting --------------------------------------------------------------------------------

    def delete(self, ranges: Sequence[VersionRange]) -> int:
        """Delete records, and no data; return how many there were.

        Raises:
            InvalidInputError: a range makes no sense.
            InvalidTableStateError: the newest would go and older ones stay, or a tag names one.
        """
        files = list(self._files())
        existing = sorted(found.version for found in files if found.meta is not None)
        doomed = self.choose(ranges, existing)
        self._remove(files, doomed)
        return len(doomed)

    def choose(self, ranges: Sequence[VersionRange], existing: Sequence[int]) -> list[int]:
        """Choose the versions of ranges whose records may go.

        Args:
            ranges: Which are to go.
            existing: Those that there are, the oldest first.

        Raises:
            InvalidInputError: a range makes no sense.
            InvalidTableStateError: the newest would go and older ones stay, or a tag names one.
        """
        for found in ranges:
            check_range(found)
        doomed = [version for version in existing if any(version in found for found in ranges)]
        if doomed and doomed != list(existing):
            self._require_safe(doomed, existing[-1])
        return doomed

    def remove(self, versions: Sequence[int]) -> None:
        """Delete the files of versions whose records are gone, the oldest first."""
        self._remove(list(self._files()), versions)

    def _remove(self, files: Sequence[_Files], versions: Sequence[int]) -> None:
        # The newest goes last: a crash on the way leaves the table as it is.
        for doomed in (versions[:-1], versions[-1:]):
            self._store.delete(
                [path for found in files if found.version in doomed for path in _paths(found)]
            )

    def _require_safe(self, doomed: Sequence[int], newest: int) -> None:
        if newest in doomed:
            msg = (
                f"version {newest} is the newest: without its record the table would turn back,"
                " and the number be given out again; restore an older version instead, or"
                " delete all records with the range from 0 to -1"
            )
            raise InvalidTableStateError(msg)
        for name, version in self._tagged():
            if version in doomed:
                msg = f"tag {quote(name)} names version {version}: delete the tag first"
                raise InvalidTableStateError(msg)

    def _tagged(self) -> Iterator[tuple[str, int]]:
        directory = f"{self._table_dir}/{_TAGS_DIR}"
        for name in self._store.list_dir(directory).files:
            body = self._store.get(f"{directory}/{name}")
            if body is None or not name.endswith(".json"):
                continue
            tag = msgspec.json.decode(body, type=_Tag)
            if (tag.branch or None) == self._branch:
                yield name.removesuffix(".json"), tag.version


@dataclass(frozen=True, slots=True)
class _Before:
    """What a commit finds: the newest version, how files are named, and dead ones."""

    newest: int
    counts_down: bool
    dead: list[str]


class _Tag(msgspec.Struct, frozen=True):
    """What counts of a tag's file."""

    version: int
    branch: str | None = None


def key_for_lance(location: str) -> str:
    """Return the key by which Lance's own object store knows a location."""
    if "://" not in location:
        return location.lstrip("/")
    return unquote(urlsplit(location).path).lstrip("/")


def final_name(staged: str, version: int, *, counting_down: bool) -> str:
    """Name a version as its staged file is named, else as the others are."""
    stem = staged.rpartition("/")[2].partition(".manifest")[0] + ".manifest"
    if parse_manifest(stem) == version:
        return stem
    return manifest_name(version, counting_down=counting_down)


def _bare(e_tag: str | None) -> str | None:
    return None if e_tag is None else e_tag.strip('"')


def _digest(body: bytes) -> str:
    return sha256(body).hexdigest()


def _paths(files: _Files) -> list[str]:
    manifest = [files.meta.path] if files.meta is not None else []
    return [*manifest, *files.staged, *files.given.values()]


def check_range(found: VersionRange) -> None:
    """Refuse a range that is none.

    Raises:
        InvalidInputError: it makes no sense.
    """
    if found.start < 0 or found.end < -1 or -1 < found.end < found.start:
        msg = (
            f"the range from {found.start} to {found.end} makes no sense: it goes from a version"
            " to before a later one, or to -1, which is after the newest"
        )
        raise InvalidInputError(msg)


def _tag_as(told: str | None, found: str | None) -> str | None:
    """Return a tag as whoever told it writes it: of a file, Lance's has microseconds."""
    parts = _FILE_TAG.fullmatch(found or "")
    if parts is None or told is None or _bare(told) == found:
        return _bare(found)
    return f"{parts['inode']}-{int(parts['ns'], 16) // 1000:x}-{parts['size']}"
