"""What a run reads: sources at the versions that they have when it is planned."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.amounts import how_many
from mooring.changes.objects import find_objects
from mooring.changes.plan import find_moment, plan_read
from mooring.changes.replacement import REPLACEMENT
from mooring.changes.rounds import KIND
from mooring.errors import InvalidInputError, MooringError, NotFoundError
from mooring.identifiers import quote
from mooring.ingest.source import FileSource
from mooring.ingest.sources import Kind, TextOptions, find_sources, parse_kind
from mooring.pipelines.definition import ChangesSource, FilesSource, TableSource
from mooring.tables.handle import At
from mooring.tables.tags import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.catalog import Catalog
    from mooring.changes.objects import ChangeObjects
    from mooring.changes.plan import Moment
    from mooring.ingest.sources import SourceFile
    from mooring.pipelines.definition import Source
    from mooring.pipelines.history import Remembered

__all__ = ["ChangesInput", "FilesInput", "Input", "MergedInput", "TableInput", "find_input"]


@dataclass(frozen=True)
class FilesInput:
    """Files as they are now.

    Attributes:
        source: The source.
        files: The files.
        marks: Path, size and time of change of each.
    """

    source: FilesSource
    files: tuple[SourceFile, ...]
    marks: tuple[tuple[str, int, int], ...]

    @property
    def name(self) -> str:
        """What is read."""
        return ", ".join(self.source.paths)

    @property
    def version(self) -> dict[str, object]:
        """Which of it."""
        return {"files": len(self.files), "bytes": self.size_bytes, "digest": self.digest}

    @property
    def digest(self) -> str:
        """Tell these files from others, and from themselves once they are changed."""
        return hashlib.sha256(json.dumps(self.marks).encode()).hexdigest()[:16]

    @property
    def size_bytes(self) -> int:
        """How large they are."""
        return sum(size for _, size, _ in self.marks)

    def show(self) -> str:
        """Tell the version to people."""
        return how_many(len(self.files), "file")

    def rows(self) -> FileSource:
        """Return what reads them."""
        return FileSource(self.files, _text_options(self.source))

    def require_same(self) -> None:
        """Refuse files that were changed since.

        Raises:
            InvalidInputError: one was.
        """
        now = _marks(self.files)
        changed = [old[0] for old, new in zip(self.marks, now, strict=True) if old != new]
        if changed:
            msg = (
                f"{quote(changed[0])} of source {quote(self.source.name)} was changed while the run"
                " read it: run the pipeline again"
            )
            raise InvalidInputError(msg)


@dataclass(frozen=True)
class TableInput:
    """A Lance table at a version."""

    source: TableSource
    table: str
    number: int
    row_count: int

    @property
    def name(self) -> str:
        """What is read."""
        return self.table

    @property
    def version(self) -> dict[str, object]:
        """Which of it."""
        return {"version": self.number, "rows": self.row_count}

    def show(self) -> str:
        """Tell the version to people."""
        return f"version {self.number}"


@dataclass(frozen=True)
class MergedInput:
    """A change table at a position."""

    source: TableSource
    table: str
    table_id: str
    position: int
    row_count: int

    @property
    def name(self) -> str:
        """What is read."""
        return self.table

    @property
    def version(self) -> dict[str, object]:
        """Which of it."""
        return {"position": self.position, "table_id": self.table_id}

    def show(self) -> str:
        """Tell the version to people."""
        return f"position {self.position}"


@dataclass(frozen=True)
class ChangesInput:
    """The changes of a table after a position, up to another.

    Attributes:
        source: The source.
        table: The table.
        table_id: Its id: a table of the same name that came later is another.
        after: The last position that was read before.
        position: The last one that is read.
        row_count: How many rows that are.
    """

    source: ChangesSource
    table: str
    table_id: str
    after: int
    position: int
    row_count: int

    @property
    def name(self) -> str:
        """What is read."""
        return self.table

    @property
    def version(self) -> dict[str, object]:
        """Which of it."""
        return {"position": self.position, "after": self.after, "table_id": self.table_id}

    def show(self) -> str:
        """Tell the version to people."""
        if self.after >= self.position:
            return f"nothing after position {self.after}"
        if self.after + 1 == self.position:
            return f"position {self.position}"
        return f"positions {self.after + 1} to {self.position}"


Input = FilesInput | TableInput | MergedInput | ChangesInput


def find_input(catalog: Catalog, source: Source, remembered: Mapping[str, Remembered]) -> Input:
    """Find what a source is now.

    Args:
        catalog: The catalog.
        source: The source.
        remembered: Up to where earlier runs have read changes, by source.

    Raises:
        MooringError: it is not there, or cannot be read so; its place in the file is named.
    """
    try:
        match source:
            case FilesSource():
                return _find_files(catalog, source)
            case TableSource():
                return _find_table(catalog, source)
            case ChangesSource():
                return _find_changes(catalog, source, remembered.get(source.name))
    except MooringError as exc:
        msg = f"{source.place}: source {quote(source.name)} cannot be read: {exc}"
        raise type(exc)(msg) from exc


def _find_files(catalog: Catalog, source: FilesSource) -> FilesInput:
    _text_options(source)
    storage = dict(catalog.options.get("storage_options") or {})
    found = tuple(find_sources(source.paths, parse_kind(source.format), storage))
    return FilesInput(source, found, _marks(found))


def _text_options(source: FilesSource) -> TextOptions:
    return TextOptions(source.delimiter, source.header, source.null_values)


def _marks(files: tuple[SourceFile, ...]) -> tuple[tuple[str, int, int], ...]:
    return tuple(_mark(file) for file in files)


def _mark(file: SourceFile) -> tuple[str, int, int]:
    if file.kind is Kind.LANCE:
        from mooring.ingest.reading import open_lance

        opened = open_lance(file)
        return file.uri, FileSource([file]).size_bytes, int(opened.version)
    info = file.filesystem.get_file_info(file.path)
    if info.size is None:
        raise NotFoundError(f"there is no source {quote(file.uri)} any more")
    return file.uri, int(info.size), int(info.mtime_ns or 0)


def _find_table(catalog: Catalog, source: TableSource) -> TableInput | MergedInput:
    objects = _change_table(catalog, source.table)
    if objects is None:
        return _find_lance(catalog, source)
    if source.version is not None or source.tag is not None:
        msg = f"{objects.what} has positions, and no versions or tags: say 'position'"
        raise InvalidInputError(msg)
    moment = find_moment(catalog, objects.id, position=source.position)
    count = sum(bucket.rows for bucket in plan_read(moment).buckets)
    return MergedInput(source, str(objects.id), objects.lasting_id, moment.position, count)


def _find_lance(catalog: Catalog, source: TableSource) -> TableInput:
    if source.position is not None:
        msg = f"table {quote(source.table)} is a Lance table: say 'version' or 'tag'"
        raise InvalidInputError(msg)
    table = catalog.table(source.table)
    at = resolve(table.handle, At(source.version, tag=source.tag))
    with table.handle.reading(at) as opened:
        number, rows = int(opened.version), int(opened.count_rows())
    return TableInput(source, str(catalog.identifier(source.table)), number, rows)


def _find_changes(
    catalog: Catalog, source: ChangesSource, known: Remembered | None
) -> ChangesInput:
    objects = _change_table(catalog, source.table)
    if objects is None:
        catalog.table(source.table)
        msg = f"table {quote(source.table)} is a Lance table, which has no changes to read"
        raise InvalidInputError(msg)
    is_same = known is not None and known.table_id == objects.lasting_id
    after = max(known.position, source.after) if known is not None and is_same else source.after
    return _changes_after(catalog, source, objects, after)


def _changes_after(
    catalog: Catalog, source: ChangesSource, objects: ChangeObjects, after: int
) -> ChangesInput:
    moment = find_moment(catalog, objects.id)
    if after > moment.position:
        msg = f"{objects.what} has no position {after}: the newest is {moment.position}"
        raise InvalidInputError(msg)
    _require_changes(moment, after)
    count = sum(
        file.rows or 0
        for log in moment.partitions.values()
        for delta in log.deltas_between(after, moment.position)
        for file in delta.files
    )
    return ChangesInput(source, str(objects.id), objects.lasting_id, after, moment.position, count)


def _require_changes(moment: Moment, after: int) -> None:
    """Refuse where some of what happened is not there as changes of rows.

    Raises:
        InvalidInputError: it was tidied away, or rows were replaced.
    """
    what, horizon = moment.table.what, moment.table.horizon
    way_out = "read all rows with 'table' once, and go on with 'after: {}'"
    if after < horizon:
        msg = f"changes of {what} up to position {horizon} are tidied away"
        raise InvalidInputError(f"{msg}: {way_out.format(horizon)}")
    replaced = [
        base.through
        for log in moment.partitions.values()
        for base in log.bases
        if base.properties.get(KIND) == REPLACEMENT and after < base.through <= moment.position
    ]
    if replaced:
        msg = (
            f"rows of {what} were replaced at position {max(replaced)}, which is no change of rows"
        )
        raise InvalidInputError(f"{msg}: {way_out.format(max(replaced))}")


def read_again(catalog: Catalog, known: ChangesInput, after: int) -> ChangesInput:
    """Return the same changes from another position on, as an earlier run read them."""
    objects = _change_table(catalog, known.table)
    if objects is None or after == known.after:
        return known
    found = _changes_after(catalog, known.source, objects, after)
    return replace(found, position=known.position)


def _change_table(catalog: Catalog, name: str) -> ChangeObjects | None:
    return find_objects(catalog.metastore.begin(), catalog.identifier(name))
