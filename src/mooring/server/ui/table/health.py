"""How a table does: small files, deletions, unindexed rows, old versions, and what they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.errors import MooringError, TableNotFoundError
from mooring.server.ui.table.drawing import Drawing, draw_growth
from mooring.server.ui.table.findings import Finding, find_all
from mooring.server.ui.table.storage import Growth, StoredKind, growth_of, stored_kinds
from mooring.server.ui.table.subject import Subject, TableView, find_subject
from mooring.tables.compaction import compact
from mooring.tables.stats import Lengths, is_small
from mooring.upkeep.table_files import list_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.visit import Visit
    from mooring.tables.portrait import Portrait
    from mooring.tables.shape import Piece
    from mooring.upkeep.table_files import TableFiles

__all__ = ["HealthView", "show_health"]

_DATA_DIR = "data"
# Fragments by how many rows they were written with: each step is ten times the one before.
_STEPS = (0, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The fragments of about one length.

    Attributes:
        label: How many rows they hold.
        fragments: How many there are.
        part: Of the most of any step, from 0 to 1.
    """

    label: str
    fragments: int
    part: float


class FragmentFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The fragments of a version.

    Attributes:
        fragments: How many there are.
        small: How many hold fewer rows than a compaction aims for.
        files: How many data files they have.
        shortest: How many rows the shortest holds.
        median: And the one in the middle.
        longest: And the longest.
        steps: How many there are of about each length.
    """

    fragments: int
    small: int
    files: int
    shortest: int
    median: int
    longest: int
    steps: list[Step]


class StorageFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a table takes.

    Attributes:
        files: How many files there are.
        size_bytes: What they take.
        needed_bytes: What of it are data files of the version that is shown.
        held_bytes: What of it are data files of others: old versions, branches, unended writes.
        kinds: By kind.
        growth: Over time.
        drawing: The same, drawn.
    """

    files: int
    size_bytes: int
    needed_bytes: int
    held_bytes: int
    kinds: list[StoredKind]
    growth: Growth
    drawing: Drawing | None


class HealthView(TableView, frozen=True, kw_only=True):
    """How a table does.

    Attributes:
        findings: What to know, and what to do.
        fragments: Its fragments.
        storage: What it takes.
        unlisted: Why nobody knows what it takes, where that is so.
        is_other: Whether another version was asked for than the newest, of which this is.
    """

    findings: list[Finding] = msgspec.field(default_factory=list)
    fragments: FragmentFigures | None = None
    storage: StorageFigures | None = None
    unlisted: str = ""
    is_other: bool = False


def show_health(visit: Visit) -> HealthView:
    """Show how a table does.

    Raises:
        TableNotFoundError: there is no live table of this name.
    """
    found = find_subject(visit, newest=True)
    if not isinstance(found, Subject):
        return HealthView(id=list(visit.table.names), lack=found)
    portrait, branch = found.portrait, found.portrait.at.branch
    files, unlisted = _list(found)
    storage = None if files is None else _storage(files, portrait, visit.now_ms)
    plan = compact(found.handle, branch=branch, dry_run=True)
    on = [f"--branch={branch}"] if branch else []
    return HealthView(
        cli=visit.cli("table", "stats", *on, names=[found.name]),
        id=list(visit.table.names),
        shown=found.shown("health"),
        findings=find_all(
            found, plan, storage.held_bytes if storage else None, len(files.runs) if files else 0
        ),
        fragments=_fragments(list(portrait.shape.pieces.values())),
        storage=storage,
        unlisted=unlisted,
        is_other=(visit.number("version") or portrait.version) != portrait.version,
    )


def _list(subject: Subject) -> tuple[TableFiles | None, str]:
    """List the files of a table; with why they cannot be, where that is so."""
    try:
        return list_files(subject.handle.place), ""
    except TableNotFoundError:
        raise
    except MooringError as exc:
        return None, f"What it takes cannot be told: {exc}"


def _storage(files: TableFiles, portrait: Portrait, now_ms: int) -> StorageFigures:
    growth = growth_of(files, now_ms)
    kinds = stored_kinds(files)
    data = sum(one.size_bytes for one in kinds if one.kind == _DATA_DIR)
    needed = sum(portrait.shape.files.values())
    return StorageFigures(
        files=len(files.metas),
        size_bytes=files.bytes,
        needed_bytes=needed,
        held_bytes=max(data - needed, 0),
        kinds=kinds,
        growth=growth,
        drawing=draw_growth(growth),
    )


def _fragments(pieces: Sequence[Piece]) -> FragmentFigures:
    rows = [piece.rows for piece in pieces]
    lengths = Lengths.of(rows)
    return FragmentFigures(
        fragments=len(rows),
        small=sum(map(is_small, rows)),
        files=sum(len(piece.files) for piece in pieces),
        shortest=lengths.min,
        median=lengths.p50,
        longest=lengths.max,
        steps=_steps(rows),
    )


def _steps(rows: Sequence[int]) -> list[Step]:
    counts = [
        (low, high, sum(low <= one and (high is None or one < high) for one in rows))
        for low, high in zip(_STEPS, [*_STEPS[1:], None], strict=True)
    ]
    used = [place for place, (_, _, number) in enumerate(counts) if number]
    if not used:
        return []
    most = max(number for _, _, number in counts)
    # Empty steps between are shown, so that lengths can be compared by eye.
    return [
        Step(label=_label(low, high), fragments=number, part=number / most)
        for low, high, number in counts[used[0] : used[-1] + 1]
    ]


def _label(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,} rows or more"
    return f"{low:,} to {high - 1:,} rows"
