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

from mooring.directory.decisions import State
from mooring.directory.entries import (
    PROTECTED,
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
    MooringError,
    ServiceUnavailableError,
)
from mooring.hints import suggest
from mooring.identifiers import quote
from mooring.tables.manifest import TABLE
from mooring.tables.seal import lift_seal, put_seal
from mooring.tables.versions import VERSIONS_DIR, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.directory.chain import Chain, Chains
    from mooring.directory.commits import VersionCommits
    from mooring.directory.draft import Draft
    from mooring.directory.home import Home
    from mooring.directory.manifest import Manifest
    from mooring.directory.view import TableView
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
        """
        fresh = RenameIntent(
            self._home.ids.new_id(), new, new_location(new, self._home.ids), self._home.author
        )
        intent = self._manifest.change(lambda draft: self._announce(draft, name, fresh))
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
            view.require_live(self._home.clock)
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
        sealed = put_seal(self._store, table_dir(name), intent.nonce)
        self._copy_files(name, intent.location, sealed)
        decision = view.chain.decision
        if decision is not None and decision.intent == intent.nonce:
            chain = view.chain
        else:
            view.require_live(self._home.clock)
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
        """
        old = f"{table_dir(name)}/"
        for meta in self._store.list_prefix(table_dir(name)):
            path = meta.path.removeprefix(old)
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

    # -- back ----------------------------------------------------------------------------------

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
            chain = self._chains.advance(chain, State.LIVE, action="undo rename", sealed=False)
        if chain.state in {None, State.LIVE}:
            lift_seal(
                self._store,
                table_dir(name),
                lambda: self._commits.require_end(chain, "rename"),
                intent.nonce,
            )
        self._store.delete_prefix(intent.location)

    def _require_new(self, draft: Draft, new: str) -> None:
        draft.require_namespace(parent_of(new))
        draft.require_free(new)
        self._check(draft, new)


def _moves(path: str, sealed: int) -> bool:
    directory, _, file = path.rpartition("/")
    if directory == VERSIONS_DIR:
        version = parse_manifest(file)
        return version is not None and version <= sealed
    return path != DEREGISTERED
