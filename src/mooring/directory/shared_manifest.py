"""The manifest of a catalog for all of a process: reads never stale, changes that share commits.

A read looks which version is the newest, which is one listing, and answers from memory if that
version is there already. A change is a function over a draft: it checks and edits, and what it
decided holds only if it is committed as the very next version. Changes that wait at the same time
in one process are committed together, whoever asked for them.

Spec: directory-namespace, "Manifest Table Commits".
"""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

from mooring.directory.draft import Draft
from mooring.directory.pending import Pending
from mooring.directory.tree import Tree
from mooring.errors import (
    ConcurrentModificationError,
    MooringError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
)
from mooring.namespace.paging import cut
from mooring.store.line import Line
from mooring.tables.manifest import BY, RowChange, check_format
from mooring.tables.versions import newest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from mooring.store import Store
    from mooring.tables.manifest import Glimpse, ManifestRow, ManifestTable, Scope

__all__ = ["MANIFEST_DIR", "SharedManifest"]

MANIFEST_DIR = "__manifest"
# A commit takes milliseconds; to lose for so long is a store under siege.
_PATIENCE_S = 120.0
# One row takes a hundredth of the time of a hundred thousand.
_LOOKUPS = 4
_LONGEST_PAUSE_S = 0.1
_GLANCE_S = 0.0005

Result = TypeVar("Result")


class SharedManifest:
    """The rows of a catalog's manifest, and changes to them in anybody's name."""

    def __init__(
        self,
        store: Store,
        open_table: Callable[[], ManifestTable],
        *,
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Read and change a manifest; it need not be there yet.

        Args:
            store: The catalog's store.
            open_table: Opens the table; called only once there is one or is to be.
            turn: Waits for a turn among other processes, so that fewer of them lose.
        """
        self._turn = turn
        self._store = store
        self._open_table = open_table
        self._table: ManifestTable | None = None
        self._tree: Tree | None = None
        self._lookups = 0
        self._found: dict[tuple[int, str], ManifestRow | None] = {}
        # Held while the copy in memory is read or brought up to another version.
        self._copying = threading.RLock()
        # Held by whoever commits for all that wait.
        self._committing = threading.RLock()
        self._line: Line[Pending[object]] = Line()

    # -- reading -----------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether there is a manifest."""
        return self._newest() > 0

    def find(self, object_id: str) -> ManifestRow | None:
        """Return a row of the newest version.

        The first looks of a process read single rows; whoever goes on gets all into memory.
        """
        newest = self._newest()
        if not newest:
            return None
        if self._version == 0 and self._lookups < _LOOKUPS:
            try:
                return self._look_up(newest, object_id)
            except TableVersionNotFoundError:
                pass
        with self._read(newest) as table:
            return table.rows.get(object_id)

    def _look_up(self, version: int, object_id: str) -> ManifestRow | None:
        key = (version, object_id)
        if key not in self._found:
            self._lookups += 1
            self._found[key] = self._opened().look(version, [object_id]).rows.get(object_id)
        return self._found[key]

    def names(self, parent: str, kind: str, after: str | None, limit: int | None) -> list[str]:
        """Name the children of a namespace, sorted, from after a name on.

        The first pages of a process are read without the rest of the catalog.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        newest = self._newest()
        if newest and limit is not None and self._version == 0 and self._lookups < _LOOKUPS:
            with suppress(TableVersionNotFoundError):
                return cut(self._look_for_children(newest, parent, kind), after, limit)
        with self._drafting(newest) as draft:
            draft.require_namespace(parent)
            return draft.names(parent, kind, after, limit)

    def _look_for_children(self, version: int, parent: str, kind: str) -> list[str]:
        self._lookups += 1
        table = self._opened()
        around = table.look(version, [parent]).rows if parent else {}
        Draft(around, Tree({}), {}).require_namespace(parent)
        return sorted(table.children(version, parent, kind))

    @contextmanager
    def reading(self) -> Iterator[Draft]:
        """Look at the newest version for a while, in which nothing else may be asked for here."""
        with self._drafting(self._newest()) as draft:
            yield draft

    @contextmanager
    def _drafting(self, newest: int) -> Iterator[Draft]:
        if not newest:
            yield Draft({}, Tree({}), {})
            return
        with self._read(newest) as table:
            yield Draft(table.rows, self._grown(), table.metadata, table.version)

    @property
    def metadata(self) -> Mapping[str, str]:
        """The manifest's own map at the newest version."""
        newest = self._newest()
        if not newest:
            return {}
        with self._read(newest) as table:
            return dict(table.metadata)

    # -- changing ----------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many changes wait for a commit."""
        return len(self._line)

    def change(self, plan: Callable[[Draft], Result], *, by: str) -> Result:
        """Make a change: one strict commit, shared with others that wait.

        Args:
            plan: Checks and edits a draft. It may run several times, each time on a newer
                version, and what it raises is raised here.
            by: In whose name.

        Raises:
            ConcurrentModificationError: others kept winning.
            UnknownOutcomeError: the store never said whether the commit landed.
        """
        pending = Pending(plan, by)
        with self._line.joined(pending) as is_first:  # type: ignore[arg-type]  # results go to their own
            if is_first:
                self._commit_for_all()
        return pending.outcome()

    def change_metadata(
        self, plan: Callable[[Mapping[str, str]], Mapping[str, str | None]], *, by: str
    ) -> None:
        """Make a change of the manifest's own map, by a strict commit in somebody's name."""
        with self._committing:
            self._create_if_missing()
            for round_ in _rounds():
                self._await_turn(round_)
                glimpse = self._glimpse()
                updates = plan(glimpse.metadata)
                if not updates:
                    return
                if self._opened().commit_metadata(glimpse, updates, {BY: by}):
                    return

    def fence(self, *, by: str) -> None:
        """Commit a version that changes nothing: whoever read an older one has to read again."""
        with self._committing:
            self._create_if_missing()
            for round_ in _rounds():
                self._await_turn(round_)
                glimpse = self._glimpse()
                if self._opened().commit_on(glimpse, RowChange(), {BY: by}):
                    return

    # -- committing --------------------------------------------------------------------------

    def _commit_for_all(self) -> None:
        with self._committing:
            if self._version:
                self._caught_up()  # before the turn, in which others wait
            with self._turn(), self._line.served() as batch:
                self._commit(batch)
            if self._table is not None:
                self._table.tidy()

    def _commit(self, batch: list[Pending[object]]) -> None:
        try:
            draft = self._begin(batch)
            if draft is None:
                return
            for losses in _rounds():
                draft = self._try_again(batch, draft, losses)
                if draft is None:  # also where that took longer than there was time for
                    return
        finally:
            if self._table is not None:
                with suppress(ServiceUnavailableError):  # what was decided stays so
                    self._table.give_up()

    def _begin(self, batch: list[Pending[object]]) -> Draft | None:
        """Make the first try: on the copy in memory, or without one if there is none yet.

        Returns:
            None where that is done; else the draft to go on from.
        """
        if self._version or self._lookups >= _LOOKUPS or not self._newest():
            return self._commit_on_copy(batch)
        self._lookups += 1
        return Draft({}, Tree({}), {})

    def _commit_on_copy(self, batch: list[Pending[object]]) -> Draft | None:
        """Plan and commit on the newest version, brought into memory.

        Returns:
            None where that is done; the draft where somebody else was first.
        """
        if not self._newest() and _plan(batch, Draft({}, Tree({}), {})).is_empty:
            return None  # what finds nothing to change makes no manifest
        table = self._caught_up()
        version = table.version
        draft = Draft(table.rows, self._grown(), table.metadata, table.version)
        change = _plan(batch, draft)
        if table.version != version:
            msg = "a change looked past its draft, at a newer version of the manifest"
            raise MooringError(msg)
        if change.is_empty:
            return None
        catch_up = table.commit(change, _names(batch))
        if catch_up is None:
            return draft
        with self._watching(table) as changed:
            catch_up()
            changed.update(change.removed, (row.object_id for row in change.added))
        return None

    def _try_again(self, batch: list[Pending[object]], lost: Draft, round_: int) -> Draft | None:
        """Plan and commit anew, if possible on the rows alone that the plan looks at.

        To bring everything into memory takes longer than others need for their next commit, if
        they rewrite all rows as pylance does.
        """
        self._await_turn(round_)
        touched, scopes = set(lost.touched), set(lost.scopes)
        while not lost.saw_all:
            glimpse = self._glimpse(touched, scopes)
            if glimpse.scattered and not round_:
                break
            draft = Draft(glimpse.rows, Tree(glimpse.rows), glimpse.metadata, glimpse.version)
            change = _plan(batch, draft)
            is_whole = draft.touched <= touched and draft.scopes <= scopes
            if is_whole and not draft.saw_all:
                if change.is_empty:
                    return None
                landed = self._opened().commit_on(glimpse, change, _names(batch))
                return None if landed else draft
            # It was planned on too few rows: a failure from here on must not be told as its answer.
            for pending in batch:
                pending.retract()
            if draft.saw_all:
                break
            touched |= draft.touched
            scopes |= draft.scopes
        return self._commit_on_copy(batch)

    def _await_turn(self, round_: int) -> None:
        """Wait after losses until the moment is good.

        Others of this kind give way as well. Those that do not are best met right after a commit
        of theirs: until the next one they need as long as this one does.
        """
        if not round_:
            return
        winner = self._glimpse()
        if winner.by_us:
            _give_way(round_)
        else:
            self._await_newer(winner.version)

    def _await_newer(self, version: int) -> None:
        """Wait until others have committed once more, but not for long."""
        table = self._opened()
        until_s = monotonic() + _LONGEST_PAUSE_S
        while table.newest() <= version and monotonic() < until_s:
            sleep(_GLANCE_S)

    def _glimpse(self, object_ids: Iterable[str] = (), scopes: Iterable[Scope] = ()) -> Glimpse:
        table = self._opened()
        while True:
            try:
                glimpse = table.look(table.newest(), object_ids, scopes)
            except TableVersionNotFoundError:
                continue
            check_format(glimpse.metadata, writing=True)
            return glimpse

    def _caught_up(self) -> ManifestTable:
        """Bring the copy up to the newest version, of a manifest that is made if need be."""
        newest = self._create_if_missing()
        # Another table than before, where the manifest was deleted and made anew meanwhile.
        with self._read(newest) as current:
            check_format(current.metadata, writing=True)
            return current

    def _create_if_missing(self) -> int:
        """Return the newest version, of a manifest that is made if need be."""
        table = self._opened()
        newest = table.newest()
        if not newest:
            table.create()
            newest = table.newest()
        return newest

    # -- the copy in memory ------------------------------------------------------------------

    def _newest(self) -> int:
        """Look for the newest version; without a manifest nothing is opened for that."""
        if self._table is not None:
            return self._table.newest()
        return newest_version(self._store, MANIFEST_DIR)

    @property
    def _version(self) -> int:
        return self._table.version if self._table else 0

    def _opened(self) -> ManifestTable:
        with self._copying:
            if self._table is None:
                self._table = self._open_table()
            return self._table

    def _grown(self) -> Tree:
        with self._copying:
            if self._tree is None:
                self._tree = Tree(self._opened().rows)
            return self._tree

    @contextmanager
    def _read(self, newest: int) -> Iterator[ManifestTable]:
        """Hold the copy, brought up to at least a version."""
        if newest < self._version:
            self._forget_if_replaced()
        while True:
            if self._version < newest:
                self._follow(newest)
            # Somebody else may have failed to follow a still newer version in between.
            with self._copying:
                if self._version >= newest:
                    yield self._opened()
                    return

    def _forget_if_replaced(self) -> None:
        """Drop a copy of a manifest that was deleted and made anew: its versions began again."""
        with self._committing, self._copying:
            if self._table is not None and self._table.newest() < self._table.version:
                self._table = self._tree = None

    def _follow(self, newest: int) -> None:
        # While a commit is under way, the copy must stay what it was planned on.
        with self._committing:
            table = self._opened()
            while table.version < newest:
                try:
                    with self._watching(table) as changed:
                        changed.update(table.follow(newest))
                except TableVersionNotFoundError:
                    newest = table.newest()

    @contextmanager
    def _watching(self, table: ManifestTable) -> Iterator[set[str]]:
        """Have the tree follow the rows."""
        changed: set[str] = set()
        with self._copying:
            try:
                yield changed
            except BaseException:
                self._tree = None
                raise
            if self._tree is not None:
                self._tree.update(changed, table.rows)


def _plan(batch: list[Pending[object]], draft: Draft) -> RowChange:
    for pending in batch:
        pending.attempt(draft)
    return draft.change


def _names(batch: list[Pending[object]]) -> dict[str, str]:
    """Say in whose names a commit is made."""
    return {BY: ", ".join(sorted({pending.by for pending in batch if pending.is_edit}))}


def _rounds() -> Iterator[int]:
    """Count tries for a while.

    Raises:
        ConcurrentModificationError: it was too long.
    """
    started_s = monotonic()
    for round_ in count():
        yield round_
        if monotonic() - started_s > _PATIENCE_S:
            msg = "others kept changing the catalog at the same time: try again"
            raise ConcurrentModificationError(msg)


def _give_way(round_: int) -> None:
    """Wait a little before the next try, not as long as the others do."""
    sleep(random.uniform(0, min(0.001 * 2**round_, _LONGEST_PAUSE_S)))  # noqa: S311  # no secret
