"""Loading: the rows of files become changes of a table, all in one transaction.

Workers read what they are given of the files and write it for the table. Columns that a file does
not have are left alone by an upsert. A column of the files may say what each row does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from mooring.changes.commits import WrittenChange
from mooring.changes.parts import Draft, PartWritten, check_columns, require_distinct
from mooring.changes.replacement import replace_files
from mooring.changes.writing import ChangeRun, parse_type
from mooring.clock import RandomIds
from mooring.errors import InvalidInputError, TableSchemaValidationError
from mooring.identifiers import quote
from mooring.ingest.fitting import fit
from mooring.jobs.runner import Threads
from mooring.metastore import DeltaType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mooring.changes.commits import Landed
    from mooring.changes.table import ChangeTable
    from mooring.changes.transforms import Values
    from mooring.ingest.reading import Chunk
    from mooring.ingest.source import FileSource, Piece
    from mooring.ingest.sources import TextOptions
    from mooring.ingest.splits import Part, Split
    from mooring.jobs.runner import Runner

__all__ = ["load_files", "replace_by_files"]

# Words and letters by which other systems say it.
_WORDS = {
    **dict.fromkeys(("upsert", "update", "insert", "create", "u", "i", "c", "r"), DeltaType.UPSERT),
    **dict.fromkeys(("delete", "d"), DeltaType.DELETE),
    **dict.fromkeys(("append", "a"), DeltaType.APPEND),
    "add": DeltaType.ADD,
}
# What is deleted is deleted before anything comes.
_ORDER = (DeltaType.DELETE, DeltaType.UPSERT, DeltaType.APPEND, DeltaType.ADD)


def load_files(
    table: ChangeTable,
    source: FileSource,
    type_: DeltaType | str = DeltaType.APPEND,
    *,
    type_column: str | None = None,
    runner: Runner | None = None,
    run: str | None = None,
    message: str | None = None,
    on_done: Callable[[int], None] | None = None,
) -> list[Landed]:
    """Change a table by the rows of files, all of them or none.

    Args:
        table: The table.
        source: The files.
        type_: What the rows do.
        type_column: A column that says it of each row: ``upsert``, ``delete``, ``append``, or a
            letter such as ``u`` and ``d``; where it is null, ``type_`` counts.
        runner: Who reads and writes; threads of this process unless given.
        run: A name; a run that is repeated changes nothing.
        message: What it is for.
        on_done: Hears how many rows each part had, once it is written.

    Returns:
        The change of each type that came; one of nothing where there were no rows.

    Raises:
        InvalidInputError: a row has no key, says something unknown, or cannot be read.
        ConflictError: a key comes twice, and no merge order tells which counts.
        TableSchemaValidationError: rows do not fit.
    """
    usual = parse_type(type_)
    chosen = runner or Threads()
    with ChangeRun(table.catalog, run=run) as work:
        done = work.find_done([table.id])
        if done is not None:
            return done
        types = [one for one in _ORDER if type_column is not None or one is usual]
        if type_column is not None and not table.definition.is_keyed:
            types = [DeltaType.APPEND, DeltaType.ADD]
        drafts = {one: work.draft(table.id, one) for one in types}
        parts = _write(drafts, source, chosen, _Kinds(usual, type_column), on_done=on_done)
        changing = [*parts.get(DeltaType.DELETE, ()), *parts.get(DeltaType.UPSERT, ())]
        # A key that is deleted and upserted at once has no meaning either.
        require_distinct(changing, drafts[types[0]].what, table.definition.keys)
        for one, draft in drafts.items():
            if any(part.rows for part in parts[one]) or (one is usual and not type_column):
                work.add(table.id, draft, parts[one])
        return work.commit(message=message)


def replace_by_files(
    table: ChangeTable,
    source: FileSource,
    *,
    partitions: Sequence[Values] | None = None,
    only_touched: bool = False,
    runner: Runner | None = None,
    run: str | None = None,
    message: str | None = None,
    on_done: Callable[[int], None] | None = None,
) -> Landed:
    """Put the rows of files in the place of all that a table has, or some of its partitions.

    Args:
        table: The table.
        source: The files; where the table has keys each comes once.
        partitions: The values of partitions that are replaced; all unless given.
        only_touched: Replace those partitions that the rows fall into, and no other.
        runner: Who reads and writes; threads of this process unless given.
        run: A name; a run that is repeated changes nothing.
        message: What it is for.
        on_done: Hears how many rows each part had, once it is written.

    Raises:
        InvalidInputError: rows fall into a partition that is not to be replaced.
        ConflictError: a key comes twice, and no merge order tells which counts.
        TableSchemaValidationError: rows do not fit.
    """
    if partitions is not None and only_touched:
        msg = "name the partitions, or replace those that rows fall into: not both"
        raise InvalidInputError(msg)
    with ChangeRun(table.catalog, run=run) as work:
        done = work.find_done([table.id])
        if done is not None:
            return done[0]
        usual = DeltaType.UPSERT if table.definition.is_keyed else DeltaType.APPEND
        draft = work.draft(table.id, usual)
        kinds = _Kinds(usual, None, is_whole=True)
        strict = {usual: draft.strict()}
        parts = _write(strict, source, runner or Threads(), kinds, on_done=on_done)[usual]
        require_distinct(parts, draft.what, draft.table.keys)
        files = tuple(file for part in parts for file in part.files)
        touched = list(dict.fromkeys(one.values for one in files)) if only_touched else partitions
        change = WrittenChange(table.id, draft.table, DeltaType.APPEND, files)
        return replace_files(work, change, touched, message=message)


@dataclass(frozen=True)
class _Kinds:
    """What rows do: all the same, or what a column says; whole rows, or some of their columns."""

    usual: DeltaType
    column: str | None
    is_whole: bool = False

    def of(self, rows: pa.RecordBatch, wanted: DeltaType) -> pa.RecordBatch:
        """Choose the rows that do something.

        Raises:
            InvalidInputError: a row says something unknown.
        """
        if self.column is None or self.column not in rows.schema.names:
            return rows if wanted is self.usual else rows.slice(0, 0)
        said = rows[self.column].cast(pa.string())
        known = {
            text: self.usual if text is None else _WORDS.get(text.strip().lower())
            for text in pc.unique(said).to_pylist()
        }
        unknown = next((text for text, type_ in known.items() if type_ is None), None)
        if unknown is not None:
            msg = (
                f"{quote(unknown)} in column {quote(self.column)} does not say what a row does:"
                f" write one of {', '.join(_WORDS)}"
            )
            raise InvalidInputError(msg)
        chosen = [text for text, type_ in known.items() if type_ is wanted]
        # Null is among them where it is looked for.
        mask = pc.is_in(said, value_set=pa.array(chosen, pa.string()))
        return rows.filter(mask)


@dataclass(frozen=True)
class _Task:
    """A part of the files, to be written as changes; it travels."""

    part: Part
    options: TextOptions
    drafts: dict[DeltaType, Draft]
    kinds: _Kinds


def _write(
    drafts: dict[DeltaType, Draft],
    source: FileSource,
    runner: Runner,
    kinds: _Kinds,
    *,
    on_done: Callable[[int], None] | None,
) -> dict[DeltaType, list[PartWritten]]:
    """Let workers write the files' rows, each for what it does."""
    draft = next(iter(drafts.values()))
    plan = source.plan(
        runner, [*draft.table.schema.names, *([kinds.column] if kinds.column else [])]
    )
    for piece in plan.pieces:
        _check(piece, draft, kinds)
    tasks = [_Task(cast("Part", part), source.options, drafts, kinds) for part in plan.parts]

    def tell(found: dict[DeltaType, PartWritten]) -> None:
        if on_done is not None:
            on_done(sum(part.rows for part in found.values()))

    written = runner.run(_load, tasks, label="writing", on_done=tell)
    return {one: [found[one] for found in written if one in found] for one in drafts}


def _check(piece: Piece, draft: Draft, kinds: _Kinds) -> None:
    if kinds.column is not None and kinds.column not in piece.schema.names:
        msg = f"{piece.label} has no column {quote(kinds.column)} that says what rows do"
        raise InvalidInputError(msg)
    own = pa.schema([one for one in piece.schema if one.name != kinds.column])
    type_ = DeltaType.APPEND if kinds.is_whole else draft.type
    check_columns(own, draft.table, type_, f"{draft.what}, {piece.label},")


def _load(task: _Task) -> dict[DeltaType, PartWritten]:
    """Write a part; a file is read once for each thing that its rows may do."""
    found: dict[DeltaType, PartWritten] = {}
    for type_, draft in task.drafts.items():
        name = RandomIds().new_id()
        written = [
            draft.write(_rows(split, task, type_), f"{name}-{number}")
            for number, split in enumerate(task.part.splits)
        ]
        require_distinct(written, draft.what, draft.table.keys)
        found[type_] = PartWritten(
            tuple(file for one in written for file in one.files),
            sum(one.rows for one in written),
            b"".join(one.hashes for one in written),
        )
    return found


def _rows(split: Split, task: _Task, type_: DeltaType) -> Iterator[pa.RecordBatch]:
    table = task.drafts[type_].table
    target = pa.schema([one for one in table.schema if one.name in split.schema.names])
    part = replace(task.part, splits=(split,))
    for chunk in part.read(task.options, target, None):
        _require_readable(chunk)
        rows = task.kinds.of(chunk.rows, type_)
        if task.kinds.column in rows.schema.names and task.kinds.column not in target.names:
            rows = rows.drop_columns([task.kinds.column])
        if not rows.num_rows:
            continue
        fitted = fit(rows, target)
        if fitted.wrong:
            index, why = min(fitted.wrong.items())
            # Which record it is can be told where none was left out before.
            place = f", record {chunk.number(index)}" if task.kinds.column is None else ""
            raise TableSchemaValidationError(f"{quote(chunk.file)}{place}: {why}; repair it")
        yield fitted.rows


def _require_readable(chunk: Chunk) -> None:
    if not chunk.rejects:
        return
    raise InvalidInputError(f"a record cannot be read: {min(chunk.rejects)}; repair it")
