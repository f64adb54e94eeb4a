"""What workers write for a run, and one worker's try at a part of it.

On disk an attempt writes into a directory of its own and links what is finished into `data/`; on an
object store it writes there at once. Either way its files are noted before anybody can count on
them: see `mooring.tables.pending`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import msgspec
from lance.fragment import FragmentMetadata, write_fragments
from lance.progress import FragmentWriteProgress

from mooring.tables.data_files import DATA_DIR, delete_files
from mooring.tables.pending import NOTE, PENDING_DIR, Note, given_up, prune_run
from mooring.tables.place import open_place
from mooring.tables.versions import newest_version
from mooring.tables.watched_rows import WatchedRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from lance import LanceDataset, LanceOperation
    from lance.schema import LanceSchema

    Overwrite = LanceOperation.Overwrite

    from mooring.tables.place import Place

__all__ = ["Draft", "draft_for", "field_ids"]

_ROWS_A_FILE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Draft:
    """What a worker must know to write data files for a run; it travels to other machines.

    Attributes:
        location: The table's directory, as Lance names it.
        options: Storage options of Lance.
        run: The run.
        fields: The identifiers of the table's fields, in the order of its schema, nested ones
            after those they lie in; none for a table that is new.
        storage_version: The version of the file format, Lance's own choice unless given.
        has_versions: Whether the directory has versions by which Lance finds a table.
    """

    location: str
    options: Mapping[str, str] = field(repr=False)  # it holds secrets
    run: str
    fields: tuple[int, ...] = ()
    storage_version: str | None = None
    has_versions: bool = False

    def write(
        self, rows: pa.RecordBatchReader, *, rows_a_file: int | None = None
    ) -> list[FragmentMetadata]:
        """Write rows as fragments that belong to no version yet; a failure leaves nothing.

        The rows have the table's columns, in the table's order.

        Raises:
            InvalidInputError: the rows could not be read to their end.
        """
        attempt = _Attempt(self, open_place(self.location, self.options))
        source = WatchedRows(rows)
        try:
            fragments = attempt.write(source.reader, rows_a_file or _ROWS_A_FILE)
            attempt.require_noted()
        except BaseException as exc:
            attempt.undo()
            if source.failure is not None:
                raise source.failure from exc
            raise
        return [self._renumber(fragment, attempt.fields) for fragment in fragments]

    def _renumber(self, fragment: FragmentMetadata, written: Sequence[int]) -> FragmentMetadata:
        """Give the fields as they were written the table's own identifiers."""
        own = dict(zip(written, self.fields or range(len(written)), strict=True))
        document = fragment.to_json()
        for file in document["files"]:
            file["fields"] = [own[field] for field in file["fields"]]
        return FragmentMetadata.from_json(msgspec.json.encode(document).decode())


class _Attempt:
    """One worker's try at a part of a run."""

    def __init__(self, draft: Draft, place: Place) -> None:
        self._draft = draft
        self._place = place
        self._name = uuid.uuid4().hex
        self._home = f"{PENDING_DIR}/{draft.run}/{self._name}"
        self._files: list[str] = []
        self.fields: tuple[int, ...] = ()

    @property
    def _is_on_disk(self) -> bool:
        return "://" not in self._place.store.location("")

    def write(self, rows: pa.RecordBatchReader, rows_a_file: int) -> list[FragmentMetadata]:
        if not self._is_on_disk:
            mode = "overwrite" if self._draft.has_versions else "create"
            return self._write(
                rows, self._draft.location, mode=mode, rows_a_file=rows_a_file, notes=_Notes(self)
            )
        private = self._place.store.location(self._place.path(self._home))
        fragments = self._write(rows, private, mode="create", rows_a_file=rows_a_file)
        self._move_in()
        return fragments

    def _write(
        self,
        rows: pa.RecordBatchReader,
        location: str,
        *,
        mode: str,
        rows_a_file: int,
        notes: _Notes | None = None,
    ) -> list[FragmentMetadata]:
        written = write_fragments(
            rows,
            location,
            mode=mode,
            max_rows_per_file=rows_a_file,
            data_storage_version=self._draft.storage_version,
            storage_options=dict(self._draft.options) or None,
            progress=notes,
            return_transaction=True,
        )
        operation = cast("Overwrite", written.operation)
        for fragment in operation.fragments:
            self.note(fragment)  # the last one is not told of
        self.fields = _walk(cast("LanceSchema", operation.new_schema))
        return list(operation.fragments)

    def note(self, fragment: FragmentMetadata) -> None:
        """Keep the names of a fragment's files where a cleanup finds them."""
        paths = [str(file.path) for file in fragment.files]
        names = [path for path in paths if path not in self._files]
        if names:
            self._keep([*self._files, *names])

    def _keep(self, files: list[str]) -> None:
        self._files = files
        if not self._is_on_disk:
            path = self._place.path(self._home + NOTE)
            self._place.store.put(path, msgspec.json.encode(Note(files)))

    def _move_in(self) -> None:
        """Link what was written into the table's data, after its names are noted."""
        store = self._place.store
        above = self._place.path(f"{self._home}/{DATA_DIR}/")
        found = [meta.path for meta in store.list_prefix(above.rstrip("/"))]
        self._files = [path.removeprefix(above) for path in found]
        store.put(self._place.path(self._home + NOTE), msgspec.json.encode(Note(self._files)))
        for path, name in zip(found, self._files, strict=True):
            store.copy(path, self._place.path(f"{DATA_DIR}/{name}"))
        store.delete_prefix(self._place.path(self._home))

    def require_noted(self) -> None:
        """After everything is written: refuse where a cleanup has taken the note away meanwhile.

        Raises:
            ConcurrentModificationError: one has given the run up.
        """
        if self._files and self._place.store.head(self._place.path(self._home + NOTE)) is None:
            raise given_up(self._draft.run)

    def undo(self) -> None:
        delete_files(self._place, self._files)
        self._place.store.delete_prefix(self._place.path(self._home))
        self._place.store.delete([self._place.path(self._home + NOTE)])
        prune_run(self._place, self._draft.run)


class _Notes(FragmentWriteProgress):
    """Hears of each file that is finished."""

    def __init__(self, attempt: _Attempt) -> None:
        self._attempt = attempt

    def begin(self, fragment: FragmentMetadata, **_: Any) -> None:  # noqa: ANN401  # Lance's own
        """Nothing has a name yet."""

    def complete(self, fragment: FragmentMetadata, **_: Any) -> None:  # noqa: ANN401  # Lance's own
        """Note the file's name."""
        self._attempt.note(fragment)


def draft_for(
    location: str, options: Mapping[str, str], run: str, dataset: LanceDataset | None = None
) -> Draft:
    """Describe to workers how to write for a table: one that is open, or a new one.

    Args:
        location: The table's directory, as Lance names it.
        options: Storage options of Lance.
        run: The run.
        dataset: The table, to append to it; none where the data replaces what is there.
    """
    place = open_place(location, options)
    return Draft(
        location,
        dict(options),
        run,
        () if dataset is None else field_ids(dataset),
        None if dataset is None else str(dataset.data_storage_version),
        bool(newest_version(place.store, place.directory)),
    )


def field_ids(dataset: LanceDataset) -> tuple[int, ...]:
    """Return the identifiers of a table's fields, each before those that lie in it."""
    return _walk(dataset.lance_schema)


def _walk(schema: LanceSchema) -> tuple[int, ...]:
    def walk(fields: Iterable[Any]) -> Iterable[int]:
        for one in fields:
            yield one.id()
            yield from walk(one.children())

    return tuple(walk(schema.fields()))
