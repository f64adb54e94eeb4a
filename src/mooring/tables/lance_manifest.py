"""`__manifest` as a Lance table: strict commits that cost what they change.

A commit writes one small fragment with the rows it adds. Rows that go leave a deletion vector on
a large fragment; a small one is rewritten into the new fragment. Fragments of a size are merged
when there are several, so that their number grows with the logarithm of the rows.

Spec: directory-namespace, "Manifest Table Schema".
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import lance
import msgspec
import pyarrow as pa
from lance import LanceOperation
from lance.fragment import write_fragments

from mooring.errors import (
    MooringError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
)
from mooring.identifiers import DELIMITER
from mooring.tables.manifest import BY, SHARED, Glimpse, ManifestRow, Named, RowChange, check_format
from mooring.tables.manifest_upkeep import is_due, is_ours, keep_indexed, keep_up
from mooring.tables.strict import commit_strictly, sweep_transaction, transaction_path
from mooring.tables.versions import list_versions, manifest_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lance import LanceDataset
    from lance.fragment import FragmentMetadata, LanceFragment

    BaseOperation = lance.LanceOperation.BaseOperation

    from mooring.store import Store
    from mooring.tables.manifest import CatchUp, Scope

__all__ = ["SCHEMA", "LanceManifest"]

_STORAGE_VERSION = "2.2"
_PRIMARY_KEY = {"lance-schema:unenforced-primary-key:position": "0"}
SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata=_PRIMARY_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)
_UPKEEP = "mooring"
_ADDRESS = "_rowaddr"
_OFFSET_BITS = 32
_OFFSETS = (1 << _OFFSET_BITS) - 1
# Below this many rows a fragment is rewritten rather than given a deletion vector.
_SMALL = 256
# So many are cheaper to list than to ask for single ones.
_MANY_VERSIONS = 128
_PROBED = 8
_MANY_FRAGMENTS = 16
# So many fragments of a size become one.
_FAN = 4


@dataclass(slots=True)
class _Part:
    """A fragment as a state knows it: its description, and its rows by offset."""

    fragment: FragmentMetadata
    ids: list[str | None]
    live: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a change is written: fragments rewritten whole, rows struck out of others."""

    rewritten: list[int]
    struck: dict[int, list[int]]
    rows: list[ManifestRow]


@contextmanager
def _landed() -> Iterator[None]:
    """Look at what was committed: what fails then must not look as if nothing had been done."""
    try:
        yield
    except UnknownOutcomeError:
        raise
    except (MooringError, OSError, RuntimeError, ValueError) as exc:
        msg = (
            f"the catalog was changed, and not to be read afterwards: look what came of it ({exc})"
        )
        raise UnknownOutcomeError(msg) from exc


class LanceManifest:
    """The manifest of one catalog, with a copy of one version in memory."""

    def __init__(self, store: Store, path: str) -> None:
        """Work on the table at ``path`` of a store; it need not be there yet."""
        self._store = store
        self._path = path
        self.version = 0
        self.rows: dict[str, ManifestRow] = {}
        self.metadata: dict[str, str] = {}
        # The newest version that was seen, its file, and how many there were.
        self._newest = 0
        self._like = ""
        self._versions = 0
        self._committed = 0
        self._base: LanceDataset | None = None
        # The table at the copy's version.
        self._current: LanceDataset | None = None
        self._written: tuple[tuple[ManifestRow, ...], list[FragmentMetadata]] | None = None
        self._places: dict[str, int] = {}
        self._parts: dict[int, _Part] = {}

    # -- reading -----------------------------------------------------------------------------

    def newest(self) -> int:
        """Return the newest version by one look; 0 where there is no table.

        Where others write, numbers are never set free and there may be thousands: then those
        after the newest that is known are asked for one by one.
        """
        if self._like and self._versions > _MANY_VERSIONS:
            start = self._newest
            numbers = range(start, start + _PROBED)
            paths = [manifest_path(self._path, number, like=self._like) for number in numbers]
            there = self._store.existing(paths)
            count = next((at for at, path in enumerate(paths) if path not in there), _PROBED)
            if 0 < count < _PROBED:
                self._newest = newest = start + count - 1
                return newest
        versions = list_versions(self._store, self._path)
        self._newest = newest = max(versions, default=0)
        self._versions, self._like = len(versions), versions.get(newest, "")
        return newest

    def look(
        self, version: int, object_ids: Iterable[str], scopes: Iterable[Scope] = ()
    ) -> Glimpse:
        """Read single rows, by the index where there is one, and those in some scopes."""
        wanted = _condition(object_ids, scopes)
        with self._reading(version):
            dataset = self._open(version)
            check_format(dataset.metadata)
            found = (
                dataset.to_table(SCHEMA.names, filter=wanted, with_row_address=True)
                if wanted
                else None
            )
            rows = _rows_of(found) if found else []
            addresses = found[_ADDRESS].to_pylist() if found else []
            by_us = is_ours(dataset, version)
        places = dict(zip((row.object_id for row in rows), addresses, strict=True))
        by_id = {row.object_id: row for row in rows}
        scattered = len(dataset.get_fragments()) > _MANY_FRAGMENTS
        return Glimpse(version, by_id, dict(dataset.metadata), by_us, (dataset, places), scattered)

    def children(self, version: int, parent: str, kind: str) -> list[str]:
        """Name what of a kind lies in a namespace, reading identifiers alone."""
        prefix = parent + DELIMITER if parent else ""
        below = (
            f"starts_with(object_id, {_quoted(prefix)})"
            if prefix
            else f"NOT contains(object_id, {_quoted(DELIMITER)})"
        )
        with self._reading(version):
            dataset = self._open(version)
            check_format(dataset.metadata)
            wanted = f"object_type = {_quoted(kind)} AND {below}"
            found = dataset.to_table(["object_id"], filter=wanted)["object_id"].to_pylist()
        names = [object_id.removeprefix(prefix) for object_id in found]
        return [name for name in names if DELIMITER not in name]

    def follow(self, version: int) -> set[str]:
        """Bring the copy up to a version, reading the fragments that changed only."""
        with self._reading(version):
            dataset = self._open(version)
            check_format(dataset.metadata)
            fragments = _fragments_of(dataset)
            # Until all is read the copy shows no version.
            self.version = 0
            changed, fresh = self._drop_what_differs(dataset, fragments)
            if fresh:
                changed |= self._take_in(dataset, fresh, fragments)
            self._settle(dataset)
            return changed

    # -- writing -----------------------------------------------------------------------------

    def create(self) -> None:
        """Make the table, without rows, unless it is there."""
        if self.newest():
            return
        operation = LanceOperation.Overwrite(SCHEMA, [])
        nonce = uuid.uuid4().hex
        if not commit_strictly(
            self._store,
            self._path,
            operation=operation,
            version=1,
            nonce=nonce,
            properties={BY: _UPKEEP},
        ):
            sweep_transaction(self._store, self._path, nonce)
            return
        # Others may write already; an index that does not come about now comes with upkeep.
        with suppress(OSError, RuntimeError, ValueError):
            keep_indexed(self._open(None))

    def commit(self, change: RowChange, properties: Mapping[str, str]) -> CatchUp | None:
        """Commit a change of rows as the version after the copy's."""
        plan = self._plan(change)
        staged: list[str] = []

        def stage(dataset: LanceDataset) -> BaseOperation:
            new = _write(dataset, plan.rows) if plan.rows else []
            staged.extend(self._files_of(new))
            return self._operation(dataset, plan, new, staged)

        committed = self._commit(None, stage, staged, properties)
        if committed is None:
            return None
        self._require_kept(committed, change)
        return lambda: self._follow_own(committed, plan)

    def commit_on(self, glimpse: Glimpse, change: RowChange, properties: Mapping[str, str]) -> bool:
        """Commit a change on top of single rows that were read, as fast as can be."""
        dataset, places = cast("tuple[LanceDataset, dict[str, int]]", glimpse.handle)
        new = self._written_for(dataset, change.added)
        struck = _by_fragment(places[object_id] for object_id in sorted(change.removed))
        staged: list[str] = []

        def stage(base: LanceDataset) -> BaseOperation:
            return self._operation(base, _Plan([], struck, []), new, staged)

        committed = self._commit(dataset, stage, staged, properties)
        if committed is None:
            return False
        self._written = None
        self._require_kept(committed, change)
        return True

    def give_up(self) -> None:
        """Delete what was written for a next try."""
        # Forgotten first: what is half deleted is of no use to anybody.
        written, self._written = self._written, None
        if written is not None:
            self._store.delete(self._files_of(written[1]))

    def _written_for(
        self, dataset: LanceDataset, rows: tuple[ManifestRow, ...]
    ) -> list[FragmentMetadata]:
        """Write rows that are added, or take what an earlier try wrote for the same ones."""
        if self._written is None or self._written[0] != rows:
            self.give_up()
            new = _write(dataset, list(rows)) if rows else []
            # Before the race for the version, which a sync would slow down.
            self._store.sync(self._files_of(new))
            self._written = (rows, new)
        return self._written[1]

    def _files_of(self, fragments: list[FragmentMetadata]) -> list[str]:
        return [
            f"{self._path}/data/{file.path}" for fragment in fragments for file in fragment.files
        ]

    def commit_metadata(
        self, glimpse: Glimpse, updates: Mapping[str, str | None], properties: Mapping[str, str]
    ) -> bool:
        """Commit a change of the table's map as the version after a glimpse's."""
        dataset, _ = cast("tuple[LanceDataset, dict[str, int]]", glimpse.handle)
        changed = LanceOperation.UpdateMap(dict(updates))
        operation = LanceOperation.UpdateConfig(table_metadata_updates=changed)
        committed = self._commit(dataset, lambda _: operation, [], properties)
        if committed is None:
            return False
        self._require_kept(committed, RowChange(), updates)
        return True

    def tidy(self) -> None:
        """Remove old versions beyond a bound and bring the indexes up to date."""
        shared = self._base is not None and SHARED in self._base.metadata
        if is_due(self._committed, self._versions, shared=shared):
            keep_up(self._store, self._path, lambda: self._open(None), self._note)

    def _note(self, key: str, value: str) -> bool:
        """Note something in the table's map; False where that could not be done just now.

        The copy in memory stays as it is: it belongs to whoever reads through it.
        """
        glimpse = self.look(self.newest(), ())
        return self.commit_metadata(glimpse, {key: value}, {BY: _UPKEEP})

    # -- committing ----------------------------------------------------------------------------

    def _commit(
        self,
        base: LanceDataset | None,
        stage: Callable[[LanceDataset], BaseOperation],
        staged: list[str],
        properties: Mapping[str, str],
    ) -> LanceDataset | None:
        """Stage and commit on top of a version, or of the copy's; None where somebody was first."""
        read = self.version if base is None else base.version
        version = read + 1
        nonce = uuid.uuid4().hex
        try:
            dataset = self._at_copy() if base is None else base
            self._base = dataset
            committed = commit_strictly(
                self._store,
                self._path,
                operation=stage(dataset),
                version=version,
                nonce=nonce,
                properties=properties,
                needs=staged,
                base=dataset,
                # Where a number may be set free, only a list of all tells that it was.
                like=self._like if SHARED in dataset.metadata else "",
                # The manifest holds the transaction as well.
                keep_record=False,
            )
        except (OSError, ValueError, RuntimeError) as exc:
            # Others may have tidied away what this one builds on: then they were first.
            if self.newest() == read:
                msg = f"the catalog's manifest could not be written: {exc}"
                raise ServiceUnavailableError(msg) from exc
            committed = False
        if committed is False:
            self._store.delete([*staged, transaction_path(self._path, read, nonce)])
            return None
        self._committed = version
        with _landed():
            return self._open(version) if isinstance(committed, bool) else committed

    def _operation(
        self,
        dataset: LanceDataset,
        plan: _Plan,
        new: list[FragmentMetadata],
        staged: list[str],
    ) -> BaseOperation:
        """Write deletion vectors and put a change together; their files go to ``staged``."""
        removed, updated = list(plan.rewritten), []
        for number, offsets in plan.struck.items():
            addresses = ", ".join(str((number << _OFFSET_BITS) + offset) for offset in offsets)
            left = _fragment(dataset, number).delete(f"{_ADDRESS} IN ({addresses})")
            if left is None or left.deletion_file is None:
                removed.append(number)
                continue
            updated.append(left)
            staged.append(f"{self._path}/{left.deletion_file.path(number)}")
        return LanceOperation.Update(
            removed_fragment_ids=removed, updated_fragments=updated, new_fragments=new
        )

    @_landed()
    def _require_kept(
        self,
        committed: LanceDataset,
        change: RowChange,
        updates: Mapping[str, str | None] | None = None,
    ) -> None:
        """Make sure that a version's number was not one that tidying had set free.

        Versions are tidied away in order: while the one before, which this was built on, is
        there, this one was never gone. Where it is not, many commits went by, and only what is
        in the newest can tell.

        Raises:
            UnknownOutcomeError: it cannot.
        """
        known = list_versions(self._store, self._path)
        newest, self._versions = max(known, default=0), len(known)
        version = committed.version
        if newest <= version or self._is_built_on(committed, known):
            return
        wanted = {row.object_id: row for row in change.added}
        found = self.look(newest, change.removed | wanted.keys())
        is_set = all(found.metadata.get(key) == value for key, value in (updates or {}).items())
        if found.rows != wanted or not is_set:
            msg = "so many others changed the catalog at once that this change may be lost: look"
            raise UnknownOutcomeError(msg)

    def _is_built_on(self, committed: LanceDataset, known: Mapping[int, str]) -> bool:
        """Whether the version before is there, and is the one that a commit names as its base.

        A file of that number may also be one that another sleeper has left.
        """
        before = committed.version - 1
        if before not in known or self._base is None:
            return False
        try:
            there = self._open(before)
        except (OSError, RuntimeError, ValueError):
            return False  # it was tidied away just now
        return _content_of(there) == _content_of(self._base)

    def _plan(self, change: RowChange) -> _Plan:
        """Decide which fragments are rewritten with a change."""
        parts = self._parts
        gone_ids = sorted(change.removed & self._places.keys())
        struck = _by_fragment(self._places[object_id] for object_id in gone_ids)
        left = {number: parts[number].live - len(gone) for number, gone in struck.items()}
        rewritten = [
            number
            for number, count in left.items()
            if count <= _SMALL or 2 * count < len(parts[number].ids)
        ]
        count = len(change.added) + sum(left[number] for number in rewritten)
        while len(alike := self._alike(count, {*rewritten, *struck})) >= _FAN - 1:
            rewritten += alike
            count += sum(parts[number].live for number in alike)
        survivors = [
            self.rows[object_id]
            for number in rewritten
            for object_id in parts[number].ids
            if object_id is not None and object_id not in change.removed
        ]
        kept = {number: gone for number, gone in struck.items() if number not in rewritten}
        return _Plan(rewritten, kept, [*survivors, *change.added])

    def _alike(self, count: int, taken: set[int]) -> list[int]:
        """Return the fragments that are no larger than one of so many rows."""
        tier = _tier(count)
        return [
            number
            for number, part in self._parts.items()
            if number not in taken and _tier(part.live) <= tier
        ]

    # -- the copy in memory ----------------------------------------------------------------------

    def _at_copy(self) -> LanceDataset:
        """Return the table at the copy's version, which is open unless it was read in parts."""
        if self._current is None or self._current.version != self.version:
            self._current = self._open(self.version)
        return self._current

    def _settle(self, dataset: LanceDataset) -> None:
        self._current = dataset
        self.version = dataset.version
        self.metadata = dict(dataset.metadata)

    def _drop_what_differs(
        self, dataset: LanceDataset, fragments: dict[int, FragmentMetadata]
    ) -> tuple[set[str], list[int]]:
        """Forget rows that are gone; tell whose, and which fragments are to be read."""
        changed: set[str] = set()
        for number, part in list(self._parts.items()):
            found = fragments.get(number)
            if found is None or not _same_files(part.fragment, found):
                changed |= self._forget(number)
            elif _deletion(part.fragment) != _deletion(found):
                changed |= self._strike(dataset, number, found)
        return changed, [number for number in fragments if number not in self._parts]

    def _take_in(
        self, dataset: LanceDataset, numbers: list[int], fragments: dict[int, FragmentMetadata]
    ) -> set[str]:
        found = dataset.scanner(
            columns=SCHEMA.names,
            fragments=[_fragment(dataset, number) for number in numbers],
            with_row_address=True,
        ).to_table()
        for number in numbers:
            size = fragments[number].physical_rows
            self._parts[number] = _Part(fragments[number], [None] * size, 0)
        rows = _rows_of(found)
        for address, row in zip(found[_ADDRESS].to_pylist(), rows, strict=True):
            part = self._parts[address >> _OFFSET_BITS]
            part.ids[address & _OFFSETS] = row.object_id
            part.live += 1
            self.rows[row.object_id] = row
            self._places[row.object_id] = address
        return {row.object_id for row in rows}

    def _strike(self, dataset: LanceDataset, number: int, fragment: FragmentMetadata) -> set[str]:
        """Follow a new deletion vector on a fragment whose rows are known."""
        found = dataset.scanner(
            columns=[], fragments=[_fragment(dataset, number)], with_row_address=True
        ).to_table()
        left = {address & _OFFSETS for address in found[_ADDRESS].to_pylist()}
        known = enumerate(self._parts[number].ids)
        offsets = [at for at, object_id in known if object_id is not None and at not in left]
        return self._strike_out(number, offsets, fragment)

    def _strike_out(self, number: int, offsets: list[int], fragment: FragmentMetadata) -> set[str]:
        part = self._parts[number]
        gone = set()
        for offset in offsets:
            object_id, part.ids[offset] = part.ids[offset], None
            if object_id and self._places.get(object_id) == (number << _OFFSET_BITS) + offset:
                del self._places[object_id], self.rows[object_id]
                gone.add(object_id)
        part.live -= len(offsets)
        part.fragment = fragment
        return gone

    def _forget(self, number: int) -> set[str]:
        gone = set()
        for object_id in self._parts.pop(number).ids:
            if object_id and self._places.get(object_id, -1) >> _OFFSET_BITS == number:
                del self._places[object_id], self.rows[object_id]
                gone.add(object_id)
        return gone

    def _follow_own(self, dataset: LanceDataset, plan: _Plan) -> None:
        """Bring the copy up to one's own commit without reading it back."""
        fragments = _fragments_of(dataset)
        for number, offsets in plan.struck.items():
            if number in fragments:
                self._strike_out(number, offsets, fragments[number])
            else:
                self._forget(number)
        for number in plan.rewritten:
            self._forget(number)
        for number in fragments.keys() - self._parts.keys():
            ids: list[str | None] = [row.object_id for row in plan.rows]
            self._parts[number] = _Part(fragments[number], ids, len(ids))
            for offset, row in enumerate(plan.rows):
                self.rows[row.object_id] = row
                self._places[row.object_id] = (number << _OFFSET_BITS) + offset
        self._settle(dataset)

    # -- small things ------------------------------------------------------------------------

    def _open(self, version: int | None) -> LanceDataset:
        options = dict(self._store.options) or None
        location = self._store.location(self._path)
        return lance.dataset(location, version=version, storage_options=options)

    @contextmanager
    def _reading(self, version: int) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, RuntimeError) as exc:
            if version not in list_versions(self._store, self._path):
                msg = f"version {version} of the catalog's manifest was tidied away"
                raise TableVersionNotFoundError(msg) from exc
            msg = f"the catalog's manifest cannot be read: {exc}"
            raise ServiceUnavailableError(msg) from exc


def _write(dataset: LanceDataset, rows: list[ManifestRow]) -> list[FragmentMetadata]:
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return write_fragments(
        pa.Table.from_arrays(arrays, schema=SCHEMA),
        dataset,
        mode="append",
        data_storage_version=_STORAGE_VERSION,
    )


def _fragment(dataset: LanceDataset, number: int) -> LanceFragment:
    found = dataset.get_fragment(number)
    if found is None:
        msg = f"fragment {number} is not in version {dataset.version}"
        raise ValueError(msg)
    return found


def _fragments_of(dataset: LanceDataset) -> dict[int, FragmentMetadata]:
    return {found.fragment_id: found.metadata for found in dataset.get_fragments()}


def _condition(object_ids: Iterable[str], scopes: Iterable[Scope]) -> str:
    """Put into SQL which rows are looked for; empty for none."""
    conditions = [
        f"starts_with(object_id, {_quoted(scope.prefix)})"
        f" AND contains(object_id, {_quoted(scope.part)})"
        if isinstance(scope, Named)
        else f"location IN ({_quoted_all(scope.around)})"
        f" OR starts_with(location, {_quoted(scope.location + '/')})"
        for scope in scopes
    ]
    if wanted := _quoted_all(object_ids):
        conditions.append(f"object_id IN ({wanted})")
    return " OR ".join(f"({condition})" for condition in conditions)


def _quoted_all(texts: Iterable[str]) -> str:
    return ", ".join(map(_quoted, texts))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _by_fragment(addresses: Iterable[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for address in addresses:
        found.setdefault(address >> _OFFSET_BITS, []).append(address & _OFFSETS)
    return found


def _content_of(dataset: LanceDataset) -> object:
    fragments = {number: str(found) for number, found in _fragments_of(dataset).items()}
    return fragments, dict(dataset.metadata)


def _tier(count: int) -> int:
    return max(count - 1, 0).bit_length() // 2


def _rows_of(table: pa.Table) -> list[ManifestRow]:
    columns = [table[name].to_pylist() for name in SCHEMA.names[:-1]]
    if table["base_objects"].null_count == table.num_rows:
        return list(map(ManifestRow, *columns))
    bases = [None if found is None else tuple(found) for found in table["base_objects"].to_pylist()]
    return list(map(ManifestRow, *columns, bases))


def _same_files(one: FragmentMetadata, other: FragmentMetadata) -> bool:
    return [file.path for file in one.files] == [file.path for file in other.files]


def _deletion(fragment: FragmentMetadata) -> object:
    found = fragment.deletion_file
    return None if found is None else (found.read_version, found.id, found.num_deleted_rows)
