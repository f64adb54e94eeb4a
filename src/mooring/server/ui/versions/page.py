"""The versions of a table: a timeline of them, and what is known of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.errors import InvalidInputError, NotLanceTableError, UnsupportedError
from mooring.identifiers import quote
from mooring.server.roles import Role
from mooring.server.ui.versions.drawing import draw
from mooring.server.ui.versions.history import LISTED, read_history
from mooring.server.ui.versions.operations import mark_of
from mooring.server.ui.versions.positions import Positions, find_positions
from mooring.server.ui.versions.timeline import lines_of
from mooring.server.ui.view import View
from mooring.tables.api import AT_MS, BY
from mooring.tables.reference_names import MAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.versions.drawing import Drawing
    from mooring.server.ui.versions.history import History
    from mooring.server.ui.versions.operations import Mark
    from mooring.server.ui.visit import Visit
    from mooring.tables.api import VersionRecord
    from mooring.tables.log import LogEntry

__all__ = ["EVEN", "TIME", "BranchRow", "Moment", "VersionRow", "VersionsView", "show_versions"]

TIME, EVEN = "time", "even"
# What is kept with a version for other reasons than to be read here.
_HIDDEN = frozenset({BY, AT_MS, "mooring.nonce"})
_MESSAGES = ("__lance_commit_message", "mooring.message", "message")
_EVENLY_BESIDE = 25


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A version, and where more of it is."""

    version: int
    at_ms: int | None
    operation: str
    word: str
    rows: int
    rows_change: int | None
    size_bytes: int
    size_change: int | None
    by: str | None
    message: str | None
    properties: dict[str, str]
    transaction_id: str | None
    tags: list[str]
    branches: list[str]
    overview: str
    preview: str
    diff: str | None
    tag: str | None
    restore: str | None

    @property
    def mark(self) -> Mark:
        """How it is drawn."""
        return mark_of(self.operation, self.version)


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A version of which only the time is known."""

    version: int
    at_ms: int | None


class BranchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of versions, and the newest of them.

    Attributes:
        name: Its name; ``main`` for the table itself.
        parent: The line that it comes from; None for main.
        parent_version: The version that it comes from.
        created_at_ms: When it was made.
        by: By whom.
        is_shown: Whether it is the one that is told.
        href: Where it is told.
        delete: Where it can be deleted.
        versions: Its versions as far as they are drawn, the newest first.
        tags: Its tags: their versions by their names.
    """

    name: str
    parent: str | None
    parent_version: int | None
    created_at_ms: int | None
    by: str | None
    is_shown: bool
    href: str
    delete: str | None
    versions: list[Moment]
    tags: dict[str, int]


class VersionsView(View, frozen=True, kw_only=True):
    """What the page shows.

    Attributes:
        branch: The line that is told.
        scale: ``time`` for a drawing to scale, ``even`` for one version after another.
        newest: The newest version of the line; None for a table that has none.
        at: The version that other pages of the table are about, where one is chosen.
        versions: What is told, the newest first.
        branches: All lines.
        undrawn: How many branches the drawing leaves out.
        goes_back: Whether there are versions before those that are drawn.
        newer: Where newer versions are told.
        older: Where older versions are told.
        to_time: The same to scale.
        to_even: The same one after another.
        make_branch: Where a branch can be made.
        make_tag: Where a tag can be made.
        positions: Of a table of changes: its positions instead.
        unavailable: Why there is nothing to show.
    """

    branch: str = MAIN
    scale: str = TIME
    newest: int | None = None
    at: int | None = None
    versions: list[VersionRow] = msgspec.field(default_factory=list)
    branches: list[BranchRow] = msgspec.field(default_factory=list)
    undrawn: int = 0
    goes_back: bool = False
    newer: str | None = None
    older: str | None = None
    to_time: str = ""
    to_even: str = ""
    make_branch: str | None = None
    make_tag: str | None = None
    positions: Positions | None = None
    unavailable: str = ""

    @property
    def drawing(self) -> Drawing | None:
        """The timeline."""
        return draw(lines_of(self), is_even=self.scale == EVEN)


def show_versions(visit: Visit) -> VersionsView:
    """Show the versions of a table.

    Raises:
        TableNotFoundError: there is no such table.
        TableBranchNotFoundError: it has no such branch.
        InvalidInputError: a parameter makes no sense.
    """
    scale = visit.query.get("scale") or TIME
    if scale not in {TIME, EVEN}:
        raise InvalidInputError(f"'scale' is '{TIME}' or '{EVEN}', not {quote(scale)}")
    branch, before = visit.query.get("branch") or None, visit.number("before", least=1)
    try:
        history = read_history(visit.open_table(), branch, before)
    except NotLanceTableError as exc:
        return _of_changes(visit, scale, exc)
    except UnsupportedError as exc:
        return VersionsView(scale=scale, unavailable=str(exc))
    return _View(visit, history, scale, before).whole()


class _View:
    """Says what is known of the versions of a table."""

    def __init__(self, visit: Visit, history: History, scale: str, before: int | None) -> None:
        self._visit = visit
        self._history = history
        self._scale = scale
        self._before = before
        self._on = None if history.branch == MAIN else history.branch
        self._may_write = visit.may(Role.WRITER, visit.table)

    def whole(self) -> VersionsView:
        history = self._history
        listed = history.listed
        words = ["table", "history"]
        if self._on:
            words += [f"--branch={self._on}"]
        return VersionsView(
            cli=self._visit.cli(*words, names=[str(self._visit.table)]),
            branch=history.branch,
            scale=self._scale,
            newest=history.newest,
            at=self._at(),
            versions=[self._row(number, one) for number, one in enumerate(listed)],
            branches=list(self._branches()),
            undrawn=max(len(history.branches) - len(history.beside), 0) if not self._on else 0,
            goes_back=not history.is_last,
            newer=self._newer(),
            older=self._here(before=listed[-1].version) if listed and history.has_older else None,
            to_time=self._here(before=self._before, scale=TIME),
            to_even=self._here(before=self._before, scale=EVEN),
            make_branch=self._act("branch", branch=self._on),
            make_tag=self._act("tag", branch=self._on),
        )

    def _at(self) -> int | None:
        wanted = self._visit.query.get("tag")
        tagged = [tag.version for tag in self._history.tags if tag.name == wanted]
        return tagged[0] if tagged else self._visit.number("version")

    def _here(self, **query: str | int | None) -> str:
        scale = query.pop("scale", self._scale)
        shown = None if scale == TIME else scale
        table = self._visit.table
        return self._visit.links.table(
            table, "versions", **{"branch": self._on, "scale": shown, **query}
        )

    def _newer(self) -> str | None:
        if self._before is None:
            return None
        later = self._before + LISTED
        newest = self._history.newest or 0
        return self._here(before=later if later <= newest else None)

    def _act(self, action: str, **query: str | int | None) -> str | None:
        if not self._may_write or self._history.newest is None:
            return None
        return self._visit.links.table(self._visit.table, action, **query)

    def _row(self, number: int, entry: LogEntry) -> VersionRow:
        entries, history = self._history.entries, self._history
        before = entries[number + 1] if number + 1 < len(entries) else None
        version, on = entry.version, self._on
        links, table = self._visit.links, self._visit.table
        properties = dict(entry.properties)
        message = next((properties.pop(key) for key in _MESSAGES if properties.get(key)), None)
        here = f"{on}:" if on else ""
        return VersionRow(
            version=version,
            at_ms=None if entry.at is None else int(entry.at.timestamp() * 1000),
            operation=entry.operation,
            word=mark_of(entry.operation, version).word,
            rows=entry.rows,
            rows_change=None if before is None else entry.rows - before.rows,
            size_bytes=entry.size_bytes,
            size_change=None if before is None else entry.size_bytes - before.size_bytes,
            by=entry.by,
            message=message,
            properties={key: text for key, text in properties.items() if key not in _HIDDEN},
            transaction_id=entry.transaction_id,
            tags=history.tags_of(version),
            branches=history.branches_of(version),
            overview=links.table(table, version=version, branch=on),
            preview=links.table(table, "rows", version=version, branch=on),
            diff=None
            if before is None
            else links.table(
                table, "diff", **{"from": f"{here}{before.version}", "to": f"{here}{version}"}
            ),
            tag=self._act("tag", version=version, branch=on),
            restore=None
            if version == history.newest
            else self._act("restore", version=version, branch=on),
        )

    def _branches(self) -> Sequence[BranchRow]:
        history = self._history
        drawn = {one.name: one.records for one in history.beside}
        drawn[history.branch] = history.records
        beside = [name for name in (MAIN, *history.branches) if name != history.branch]
        return [self._branch(name, drawn.get(name, ())) for name in (history.branch, *beside)]

    def _branch(self, name: str, records: Sequence[VersionRecord]) -> BranchRow:
        known = self._history.branches.get(name)
        links, table = self._visit.links, self._visit.table
        is_even = self._scale == EVEN and name != self._history.branch
        shown = records[:_EVENLY_BESIDE] if is_even else records
        return BranchRow(
            name=name,
            parent=None if known is None else known.parent_branch or MAIN,
            parent_version=known.parent_version if known else None,
            created_at_ms=int(known.created_at.timestamp() * 1000) if known else None,
            by=known.metadata.get(BY) if known else None,
            is_shown=name == self._history.branch,
            href=links.table(
                table,
                "versions",
                branch=None if name == MAIN else name,
                scale=None if self._scale == TIME else self._scale,
            ),
            delete=self._act("delete-branch", branch=name) if known else None,
            versions=[Moment(version=one.version, at_ms=one.at_ms) for one in shown],
            tags={
                tag.name: tag.version for tag in self._history.tags if (tag.branch or MAIN) == name
            },
        )


# -- tables of changes -----------------------------------------------------------------------------


def _of_changes(visit: Visit, scale: str, failure: NotLanceTableError) -> VersionsView:
    positions = find_positions(visit, LISTED)
    if positions is None:
        return VersionsView(scale=scale, unavailable=str(failure))
    links, table = visit.links, visit.table
    return VersionsView(
        cli=visit.cli("changes", "log", names=[str(table)]),
        scale=scale,
        newest=positions.changes[0].number if positions.changes else None,
        positions=positions,
        to_time=links.table(table, "versions"),
        to_even=links.table(table, "versions", scale=EVEN),
    )
