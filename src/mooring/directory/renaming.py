"""Renaming a root table that lies in `<name>.lance`: it moves to a directory of its own.

No store moves a directory in one step, and writers that know the old path go on for a while. So:
an intent is committed to the table's row; the old directory is sealed, from where on every writer
of it is refused; its files are linked or copied; a decision takes the old name away, which a drop
of the same table would have to put as well; the row is switched. Until then the table is read under
its old name. Whoever renames it to the same name again goes on where another stopped.

Spec: directory-namespace, "Compatibility Mode", rule 4.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.directory.commits import being_renamed
from mooring.directory.decisions import UNDO_RENAME, State
from mooring.directory.entries import (
    RenameIntent,
    intent_of,
    make_row,
    parent_of,
    properties_of,
    with_intent,
    with_properties,
)
from mooring.directory.layout import DEREGISTERED, table_dir
from mooring.directory.locations import new_location
from mooring.directory.markers import settle_markers
from mooring.directory.view import view_table
from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    MooringError,
    NotFoundError,
    ServiceUnavailableError,
    UnsupportedError,
)
from mooring.hints import suggest
from mooring.identifiers import quote
from mooring.namespace.properties import PROTECTED
from mooring.tables.manifest import TABLE
from mooring.tables.seal import put_seal
from mooring.tables.versions import BRANCHES_DIR, VERSIONS_DIR, parse_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.directory.chain import Chain, Chains
    from mooring.directory.commits import VersionCommits
    from mooring.directory.draft import Draft
    from mooring.directory.manifest import Manifest
    from mooring.directory.view import TableView
    from mooring.namespace.home import Home
    from mooring.tables.manifest import ManifestRow

__all__ = ["Renaming", "is_moving"]


def is_moving(row: ManifestRow | None, view: TableView) -> bool:
    """Whether a table's name is taken away already, but its row is not switched yet."""
    decision, intent = view.chain.decision, intent_of(row)
    return (
        intent is not None
        and decision is not None
        and view.state is State.RENAMING
        and decision.intent == intent.nonce
    )


class Renaming:
    """Moves root tables to other names."""

    def __init__(
        self,
        home: Home,
        manifest: Manifest,
        chains: Chains,
        commits: VersionCommits,
        *,
        check: Callable[[Draft, str], None],
    ) -> None:
        """Work on a catalog.

        Args:
            home: Where it is.
            manifest: Its manifest.
            chains: The chains of decisions about its root tables.
            commits: Commits of versions under them.
            check: Whether an identifier may be given to a table.
        """
        self._home = home
        self._store = home.store
        self._manifest = manifest
        self._chains = chains
        self._commits = commits
        self._check = check

    def run(self, name: str, new: str, ttl_ms: int | None) -> ManifestRow:
        """Rename a live root table, or go on with a rename to the same name.

        Args:
            name: The root table.
            new: The identifier it gets.
            ttl_ms: How long the old directory stays in the trash.

        Raises:
            TableNotFoundError: no live table has this name.
            NamespaceNotFoundError: the namespace it would lie in is not there.
            TableAlreadyExistsError: the new identifier is taken.
            ConcurrentModificationError: somebody else's change came first.
            UnsupportedError: the table has branches.
        """
        if self._store.list_dir(f"{table_dir(name)}/{BRANCHES_DIR}").directories:
            raise _has_branches(name)
        fresh = RenameIntent(
            self._home.ids.new_id(), new, new_location(new, self._home.ids), self._home.author
        )
        try:
            intent = self._manifest.change(lambda draft: self._announce(draft, name, fresh))
        except (ConflictError, NotFoundError):
            self._give_up(name, new)
            raise
        try:
            chain = self._take_away(name, intent)
            row = self._manifest.change(lambda draft: self._switch(draft, name, chain, intent))
        except MooringError as exc:
            # Where the store fails, whoever renames the table again can also go on from here.
            with suppress(*([MooringError] if isinstance(exc, ServiceUnavailableError) else [])):
                self._undo(name, intent)
            raise
        self._put_into_trash(chain, ttl_ms)
        return row

    # -- the steps -----------------------------------------------------------------------------

    def _announce(self, draft: Draft, name: str, fresh: RenameIntent) -> RenameIntent:
        row = draft.get(name)
        # Read after the version that this change builds on.
        view = view_table(self._store, self._chains, name)
        known = intent_of(row)
        moving = is_moving(row, view)
        if not moving:
            self._require_live(view)
        if known is not None and known.to != fresh.to and moving:
            again = suggest("table rename", name)
            msg = (
                f"table {quote(name)} is being renamed to {quote(known.to)}: if that was cut off,"
                f' finish it with "{again} {known.to}"'
            )
            raise ConcurrentModificationError(msg)
        self._require_new(draft, fresh.to)
        if known is not None and known.to == fresh.to:
            return known
        draft.put(with_intent(row or make_row(name, TABLE, table_dir(name), None), fresh))
        return fresh

    def _take_away(self, name: str, intent: RenameIntent) -> Chain:
        """Seal and copy the table, then put the decision that takes its name away."""
        view = view_table(self._store, self._chains, name)
        decision = view.chain.decision
        is_decided = decision is not None and decision.intent == intent.nonce
        if not is_decided:
            # Before the seal: whoever opens a hidden table again need not look for another.
            self._require_live(view)
        sealed = put_seal(self._store, table_dir(name), intent.nonce)
        self._copy_files(name, intent.location, sealed)
        chain = view.chain
        if not is_decided:
            chain = self._chains.advance(
                view.chain,
                State.RENAMING,
                action="rename",
                sealed=True,
                intent=intent.nonce,
                consumed=view.marks,
            )
        # A declared table has nothing to seal: its first version may have come in between.
        again = put_seal(self._store, table_dir(name), intent.nonce)
        if again != sealed:
            self._copy_files(name, intent.location, again)
        return chain

    def _put_into_trash(self, chain: Chain, ttl_ms: int | None) -> None:
        """Leave the old directory in the trash, for readers that still have it open."""
        newest = self._commits.newest(chain.name)
        try:
            chain = self._chains.advance(
                chain,
                State.DELETED,
                action="rename",
                deleted_at_ms=self._home.clock.now_ms(),
                ttl_ms=ttl_ms,
                version=newest,
                manifest=self._commits.digest(chain.name, newest),
                protected=False,
            )
        except ConcurrentModificationError:
            return  # somebody has brought the old name back already
        settle_markers(self._store, self._chains, chain)

    def _copy_files(self, name: str, location: str, sealed: int) -> None:
        """Bring every file of the table to its new directory, but for the seal and markers.

        One that is gone again was another writer's, who was refused.

        Raises:
            UnsupportedError: the table has got a branch.
        """
        old = f"{table_dir(name)}/"
        for meta in self._store.list_prefix(table_dir(name)):
            path = meta.path.removeprefix(old)
            if path.startswith(f"{BRANCHES_DIR}/"):
                raise _has_branches(name)
            if _moves(path, sealed):
                self._store.copy(meta.path, f"{location}/{path}")

    def _switch(self, draft: Draft, name: str, chain: Chain, intent: RenameIntent) -> ManifestRow:
        """Give the table its new row, as long as it is this rename that took the old name."""
        row = draft.get(name)
        known = intent_of(row)
        done = draft.get(intent.to)
        if done is not None and done.location == intent.location:
            return done  # somebody else finished it
        if row is None or known is None or known.nonce != intent.nonce:
            msg = f"the rename of table {quote(name)} was undone by somebody else"
            raise ConcurrentModificationError(msg)
        self._commits.require_end(chain, "rename")
        self._require_new(draft, intent.to)
        moved = replace(with_intent(row, None), object_id=intent.to, location=intent.location)
        if chain.is_protected:
            moved = with_properties(moved, {**properties_of(moved), PROTECTED: "true"})
        draft.remove(name)
        draft.put(moved)
        return moved

    # -- after a crash -------------------------------------------------------------------------

    def end(self, view: TableView, ttl_ms: int | None) -> bool:
        """End a rename that was cut off after its last commit, which took the intent away.

        The row tells: where it is gone it was switched, and the old directory goes into the
        trash; where it is there the rename was taken back, and so is its decision.

        Args:
            view: The root table, looked at before its row is.
            ttl_ms: How long the old directory stays in the trash.

        Returns:
            Whether there was anything to end.
        """
        if view.state is not State.RENAMING:
            return False
        row = self._manifest.find(view.name)
        if is_moving(row, view):
            return False  # it may be under way yet
        if row is not None and row.location == table_dir(view.name):
            self._give_back(view.chain)
        else:
            self._put_into_trash(view.chain, ttl_ms)
        return True

    # -- back ----------------------------------------------------------------------------------

    def _give_up(self, name: str, new: str) -> None:
        """Call off a rename that was cut off and cannot be finished: its new name is not free."""
        view = view_table(self._store, self._chains, name)
        intent = intent_of(self._manifest.find(name))
        if view.state is State.RENAMING and intent is not None and intent.to == new:
            self.call_off(view)

    def call_off(self, view: TableView) -> None:
        """Undo a rename between its intent and its last commit, unless that comes first.

        Args:
            view: The root table, looked at before its row is.
        """
        row = self._manifest.find(view.name)
        intent = intent_of(row)
        if intent is not None and (view.state is State.LIVE or is_moving(row, view)):
            self._undo(view.name, intent)

    def _undo(self, name: str, intent: RenameIntent) -> None:
        """Take the intent back, then give name and writers back what they had."""

        def forget(draft: Draft) -> bool:
            row = draft.get(name)
            known = intent_of(row)
            if row is None or known is None or known.nonce != intent.nonce:
                return False
            draft.put(with_intent(row, None))
            return True

        # Once the intent is gone nobody can finish the rename any more.
        self._manifest.change(forget)
        with self._manifest.reading() as draft:
            if any(row.location == intent.location for row in draft.rows()):
                return  # somebody else has finished it
        chain = self._chains.read(name)
        if chain.decision is not None and chain.decision.intent == intent.nonce:
            self._give_back(chain)
        elif chain.state in {None, State.LIVE}:
            self._commits.unseal(chain, intent.nonce)
        self._store.delete_prefix(intent.location)

    def _give_back(self, chain: Chain) -> None:
        """Make a table live again whose name a rename took away; what is live is writable."""
        with suppress(ConcurrentModificationError):  # somebody else has done so
            self._commits.unseal(chain)
            self._chains.advance(chain, State.LIVE, action=UNDO_RENAME, sealed=False)

    def require_new(self, new: str) -> None:
        """Refuse an identifier that no table could get now.

        Raises:
            NamespaceNotFoundError: the namespace it would lie in is not there.
            TableAlreadyExistsError: it is taken.
        """
        with self._manifest.reading() as draft:
            self._require_new(draft, new)

    def _require_live(self, view: TableView) -> None:
        if view.state is State.RENAMING:
            raise being_renamed(view.name)
        view.require_live(self._home.clock)

    def _require_new(self, draft: Draft, new: str) -> None:
        draft.require_namespace(parent_of(new))
        draft.require_free(new)
        self._check(draft, new)


def _has_branches(name: str) -> UnsupportedError:
    """Say why a table stays: a branch holds the path of the directory that it was made in."""
    msg = (
        f"table {quote(name)} has branches, which name its files by their path, and a rename moves"
        " a table of the root; delete the branches first"
    )
    return UnsupportedError(msg)


def _moves(path: str, sealed: int) -> bool:
    directory, _, file = path.rpartition("/")
    if directory == VERSIONS_DIR:
        version = parse_record(file)
        return version is not None and version <= sealed
    return path != DEREGISTERED
