"""What differs between two versions of a table: schema, rows, files, indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import (
    InvalidInputError,
    NotLanceTableError,
    TableBranchNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedError,
)
from mooring.server.ui.view import View
from mooring.tables.reference_names import MAIN, branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.server.ui.visit import Visit
    from mooring.tables.api import VersionRecord
    from mooring.tables.comparison import VersionDiff
    from mooring.tables.handle import At, TableHandle
    from mooring.tables.schema_changes import SchemaChange

__all__ = ["DiffView", "Share", "StateRow", "show_diff", "state_text"]

_FILES = 50
_OFFERED = 50
_NAMED = 10
_BAR = 100.0
_NOT_THERE = (
    TableVersionNotFoundError,
    TableTagNotFoundError,
    TableBranchNotFoundError,
    InvalidInputError,
)


class StateRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two: what was asked for, and which version that is."""

    asked: str
    version: int
    branch: str
    at_ms: int | None
    rows: int
    overview: str


class SchemaRow(msgspec.Struct, frozen=True, kw_only=True):
    """A column that differs; without a path the schema itself."""

    path: str
    change: str
    before: str | None
    after: str | None


class FileRow(msgspec.Struct, frozen=True, kw_only=True):
    """A data file that only one of them has."""

    path: str
    size_bytes: int


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """How rows changed on the way; ``updated`` is None where manifests do not tell."""

    added: int
    deleted: int
    updated: int | None


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Data files that only one of them has; the largest of them by name."""

    number: int
    size_bytes: int
    largest: list[FileRow]


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """What differs."""

    schema: list[SchemaRow]
    rows: Rows
    added: Files
    removed: Files
    indexes_added: list[str]
    indexes_removed: list[str]


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a bar."""

    x: float
    width: float
    tone: str
    word: str
    number: int


class DiffView(View, frozen=True, kw_only=True):
    """What the page shows.

    Attributes:
        asked_from: What stands in the form.
        asked_to: The same for the other one.
        branch: Whose versions numbers mean.
        swapped: The same the other way round.
        offered: What can be compared: tags, branches, and the newest versions.
        error: Why nothing is compared.
        old: What is compared from.
        new: What is compared to.
        is_same: Whether both are one version.
        found: What differs.
    """

    asked_from: str
    asked_to: str
    branch: str = MAIN
    swapped: str = ""
    offered: list[tuple[str, str]] = msgspec.field(default_factory=list)
    error: str = ""
    old: StateRow | None = None
    new: StateRow | None = None
    is_same: bool = False
    found: Differences | None = None

    @property
    def row_shares(self) -> list[Share]:
        """What became of the rows, as parts of a bar."""
        if self.found is None or self.old is None:
            return []
        rows = self.found.rows
        updated = rows.updated or 0
        kept = max(self.old.rows - rows.deleted - updated, 0)
        parts = (
            ("kept", "kept", kept),
            ("updated", "updated", updated),
            ("added", "added", rows.added),
            ("deleted", "deleted", rows.deleted),
        )
        return _shares(parts)

    @property
    def byte_shares(self) -> list[Share]:
        """What files brought and took, as parts of a bar."""
        if self.found is None:
            return []
        added, removed = self.found.added.size_bytes, self.found.removed.size_bytes
        return _shares((("added", "added", added), ("deleted", "removed", removed)))


def show_diff(visit: Visit) -> DiffView:
    """Compare two versions.

    Raises:
        TableNotFoundError: there is no such table.
    """
    asked = visit.query.get("from", "").strip(), visit.query.get("to", "").strip()
    try:
        return _Comparison(visit, *asked).view()
    except (NotLanceTableError, UnsupportedError) as exc:
        return DiffView(asked_from=asked[0], asked_to=asked[1], error=str(exc))


def state_text(version: int, branch: str | None) -> str:
    """Write a version so that it can be asked for: of a branch with its name."""
    return f"{branch}:{version}" if branch and branch != MAIN else str(version)


class _Comparison:
    """Compares what somebody asked for."""

    def __init__(self, visit: Visit, old: str, new: str) -> None:
        self._visit = visit
        self._handle: TableHandle = visit.open_table().handle
        self._branch = visit.query.get("branch") or MAIN
        self._old = old
        self._new = new

    def view(self) -> DiffView:
        try:
            newest = self._newest()
        except _NOT_THERE as exc:
            self._branch = MAIN
            return self._failed(str(exc), self._newest())
        if not newest:
            return self._failed("there are no versions to compare yet: it is only declared", [])
        # Without anything said: what the newest version changed.
        self._new = self._new or state_text(newest[0].version, self._branch)
        self._old = self._old or state_text(newest[min(1, len(newest) - 1)].version, self._branch)
        try:
            return self._compare(newest)
        except _NOT_THERE as exc:
            return self._failed(f"{exc}; {_told(newest, self._branch)}", newest)

    def _newest(self) -> list[VersionRecord]:
        return self._handle.ledger.newest_first(branch_of(self._branch), _OFFERED)

    def _failed(self, error: str, newest: Sequence[VersionRecord]) -> DiffView:
        return DiffView(
            asked_from=self._old,
            asked_to=self._new,
            branch=self._branch,
            offered=self._offered(newest),
            error=error,
        )

    def _compare(self, newest: Sequence[VersionRecord]) -> DiffView:
        from mooring.tables.comparison import compare
        from mooring.tables.tags import resolve

        old = resolve(self._handle, self._parse(self._old))
        new = resolve(self._handle, self._parse(self._new))
        found = compare(self._handle, old, new)
        links, table = self._visit.links, self._visit.table
        on = None if self._branch == MAIN else self._branch
        return DiffView(
            cli=self._visit.cli(
                "table",
                "diff",
                names=[str(table), self._full(old, found.old), self._full(new, found.new)],
            ),
            asked_from=self._old,
            asked_to=self._new,
            branch=self._branch,
            swapped=links.table(
                table, "diff", **{"from": self._new, "to": self._old, "branch": on}
            ),
            offered=self._offered(newest),
            old=self._state(self._old, old, found.old, found.rows_before),
            new=self._state(self._new, new, found.new, found.rows_after),
            is_same=(old.branch, found.old) == (new.branch, found.new),
            found=_differences(found),
        )

    def _parse(self, text: str) -> At:
        from mooring.tables.handle import At
        from mooring.tables.states import parse_state

        found = parse_state(self._handle, text)
        if found.tag is None and found.branch is None and text != MAIN and ":" not in text:
            return At(found.version, branch=self._branch)
        return found

    def _full(self, at: At, version: int) -> str:
        return state_text(version, at.branch)

    def _state(self, asked: str, at: At, version: int, rows: int) -> StateRow:
        record = self._handle.ledger.describe(version, at.branch)
        return StateRow(
            asked=asked,
            version=version,
            branch=at.branch or MAIN,
            at_ms=record.at_ms,
            rows=rows,
            overview=self._visit.links.table(self._visit.table, version=version, branch=at.branch),
        )

    def _offered(self, newest: Sequence[VersionRecord]) -> list[tuple[str, str]]:
        from mooring.tables.branches import Branches
        from mooring.tables.tags import Tags

        tags = [(name, "tag") for name in Tags(self._handle).names()[:_OFFERED]]
        branches = [(name, "branch") for name in Branches(self._handle).names()[:_OFFERED]]
        versions = [(state_text(one.version, self._branch), "version") for one in newest]
        return [*tags, *branches, *versions]


def _told(newest: Sequence[VersionRecord], branch: str) -> str:
    """Say which versions there are."""
    where = "" if branch == MAIN else f" of branch '{branch}'"
    first, last = newest[-1].version, newest[0].version
    if len(newest) == 1:
        return f"there is version {last}{where}"
    older = " and older ones" if len(newest) == _OFFERED else ""
    if last - first + 1 == len(newest):
        return f"there are versions {first} to {last}{where}{older}"
    some = ", ".join(str(one.version) for one in newest[:_NAMED])
    return f"there are versions {some}{' and older ones' if len(newest) > _NAMED else ''}{where}"


def _differences(found: VersionDiff) -> Differences:
    return Differences(
        schema=[_schema(change) for change in found.schema],
        rows=Rows(added=found.rows.added, deleted=found.rows.deleted, updated=found.rows.updated),
        added=_files(found.added),
        removed=_files(found.removed),
        indexes_added=list(found.indexes_added),
        indexes_removed=list(found.indexes_removed),
    )


def _schema(change: SchemaChange) -> SchemaRow:
    return SchemaRow(
        path=change.path, change=str(change.kind), before=change.before, after=change.after
    )


def _files(files: Mapping[str, int]) -> Files:
    largest = sorted(files.items(), key=lambda pair: (-pair[1], pair[0]))[:_FILES]
    return Files(
        number=len(files),
        size_bytes=sum(files.values()),
        largest=[FileRow(path=str(path), size_bytes=taken) for path, taken in largest],
    )


def _shares(parts: Sequence[tuple[str, str, int]]) -> list[Share]:
    total = sum(number for _, _, number in parts)
    shares: list[Share] = []
    x = 0.0
    for tone, word, number in parts:
        if not number:
            continue
        width = _BAR * number / total
        shares.append(Share(round(x, 2), round(width, 2), tone, word, number))
        x += width
    return shares
