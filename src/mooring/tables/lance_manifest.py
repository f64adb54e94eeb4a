"""`__manifest` as a Lance table: strict commits that cost what they change.

A commit writes one small fragment with the rows it adds, and deletion vectors for rows that go; by
way of the copy in memory it puts fragments together as well. It lands as the version after the one
that it was made for, or not at all.

Spec: directory-namespace, "Manifest Table Commits".
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

import lance
from lance import LanceOperation

from mooring.errors import (
    MooringError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
)
from mooring.identifiers import DELIMITER
from mooring.tables.manifest import BY, SHARED, Glimpse, RowChange, check_format
from mooring.tables.manifest_copy import ManifestCopy, Plan
from mooring.tables.manifest_rows import (
    ADDRESS,
    SCHEMA,
    address_condition,
    by_fragment,
    children_condition,
    fragment_of,
    fragments_of,
    read_rows,
    rows_condition,
    write_rows,
)
from mooring.tables.manifest_upkeep import is_due, is_ours, keep_indexed, keep_up
from mooring.tables.strict import commit_strictly, sweep_transaction, transaction_path
from mooring.tables.versions import list_versions, manifest_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lance import LanceDataset
    from lance.fragment import FragmentMetadata

    BaseOperation = lance.LanceOperation.BaseOperation

    from mooring.store import Store
    from mooring.tables.manifest import CatchUp, ManifestRow, Scope

__all__ = ["LanceManifest"]

_UPKEEP = "mooring"
# So many are cheaper to list than to ask for single ones.
_MANY_VERSIONS = 128
_PROBED = 8
_MANY_FRAGMENTS = 16


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
        self._copy = ManifestCopy()
        # The newest version that was seen, its file, and how many there were.
        self._newest = 0
        self._like = ""
        self._versions = 0
        self._committed = 0
        self._base: LanceDataset | None = None
        self._written: tuple[tuple[ManifestRow, ...], list[FragmentMetadata]] | None = None

    @property
    def version(self) -> int:
        """The version of the copy in memory; 0 before the first."""
        return self._copy.version

    @property
    def rows(self) -> Mapping[str, ManifestRow]:
        """Every row of that version by its identifier."""
        return self._copy.rows

    @property
    def metadata(self) -> Mapping[str, str]:
        """The table's own map at that version."""
        return self._copy.metadata

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
        condition = rows_condition(object_ids, scopes)
        with self._reading(version):
            dataset = self._open(version)
            check_format(dataset.metadata)
            found = (
                dataset.to_table(SCHEMA.names, filter=condition, with_row_address=True)
                if condition
                else None
            )
            rows = read_rows(found) if found else []
            addresses = found[ADDRESS].to_pylist() if found else []
            by_us = is_ours(dataset, version)
        places = dict(zip((row.object_id for row in rows), addresses, strict=True))
        by_id = {row.object_id: row for row in rows}
        scattered = len(dataset.get_fragments()) > _MANY_FRAGMENTS
        return Glimpse(version, by_id, dict(dataset.metadata), by_us, (dataset, places), scattered)

    def children(self, version: int, parent: str, kind: str) -> list[str]:
        """Name what of a kind lies in a namespace, reading identifiers alone."""
        prefix = parent + DELIMITER if parent else ""
        with self._reading(version):
            dataset = self._open(version)
            check_format(dataset.metadata)
            found = dataset.to_table(["object_id"], filter=children_condition(prefix, kind))
        object_ids = found["object_id"].to_pylist()
        names = [object_id.removeprefix(prefix) for object_id in object_ids]
        return [name for name in names if DELIMITER not in name]

    def follow(self, version: int) -> set[str]:
        """Bring the copy up to a version, reading the fragments that changed only."""
        with self._reading(version):
            dataset = self._open(version)
            check_format(dataset.metadata)
            return self._copy.follow(dataset)

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
        plan = self._copy.plan(change)
        staged: list[str] = []

        def stage(dataset: LanceDataset) -> BaseOperation:
            new = write_rows(dataset, plan.rows) if plan.rows else []
            staged.extend(self._files_of(new))
            return self._operation(dataset, plan, new, staged)

        committed = self._commit(None, stage, staged, properties)
        if committed is None:
            return None
        self._require_kept(committed, change)
        return lambda: self._copy.follow_own(committed, plan)

    def commit_on(self, glimpse: Glimpse, change: RowChange, properties: Mapping[str, str]) -> bool:
        """Commit a change on top of single rows that were read, as fast as can be."""
        dataset, places = cast("tuple[LanceDataset, dict[str, int]]", glimpse.handle)
        new = self._written_for(dataset, change.added)
        struck = by_fragment(places[object_id] for object_id in sorted(change.removed))
        staged: list[str] = []

        def stage(base: LanceDataset) -> BaseOperation:
            return self._operation(base, Plan([], struck, []), new, staged)

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
            new = write_rows(dataset, list(rows)) if rows else []
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
        plan: Plan,
        new: list[FragmentMetadata],
        staged: list[str],
    ) -> BaseOperation:
        """Write deletion vectors and put a change together; their files go to ``staged``."""
        removed, updated = list(plan.rewritten), []
        for number, offsets in plan.struck.items():
            left = fragment_of(dataset, number).delete(address_condition(number, offsets))
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

    # -- small things ------------------------------------------------------------------------

    def _at_copy(self) -> LanceDataset:
        """Return the table at the copy's version, which is open unless it was read in parts."""
        copy = self._copy
        if copy.dataset is None or copy.dataset.version != copy.version:
            copy.dataset = self._open(copy.version)
        return copy.dataset

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


def _content_of(dataset: LanceDataset) -> object:
    fragments = {number: str(found) for number, found in fragments_of(dataset).items()}
    return fragments, dict(dataset.metadata)
