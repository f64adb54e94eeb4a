"""Rows of root tables that lie in `<name>.lance`: they follow from the directory and its chain.

A row is added when the table becomes live. When it is hidden the row is parked in the trash with
its properties, and an undrop gets them back. Whoever changes a row looks at the directory again
afterwards, for another may have changed that meanwhile.

A row that is there although one is parked for the last decision was put by another program, after
the table was hidden here: by the rules of compatibility mode the manifest is right, and the table
is live.

Spec: directory-namespace, "Compatibility Mode".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mooring.directory.decisions import State
from mooring.directory.entries import (
    is_namespace,
    is_parked_at,
    is_table,
    make_parked,
    make_row,
    parked_key,
    parked_properties,
    properties_of,
    with_properties,
)
from mooring.directory.layout import table_dir
from mooring.directory.renaming import is_moving
from mooring.errors import (
    NamespaceAlreadyExistsError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    UnknownOutcomeError,
)
from mooring.identifiers import DELIMITER, quote
from mooring.tables.manifest import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mooring.directory.draft import Draft
    from mooring.directory.manifest import Manifest
    from mooring.directory.view import TableView
    from mooring.tables.manifest import ManifestRow

__all__ = ["RootRows", "is_named"]

_SETTLING_ROUNDS = 8
_log = logging.getLogger(__name__)


def is_named(row: ManifestRow) -> bool:
    """Whether a root table lives by its row: it does not lie where its name says."""
    return row.location != table_dir(row.object_id)


class RootRows:
    """Keeps the rows of root tables in line with their directories."""

    def __init__(
        self, manifest: Manifest, view: Callable[[str], TableView], *, author: str
    ) -> None:
        """Work on a catalog.

        Args:
            manifest: Its manifest.
            view: Looks at one root table closely.
            author: In whose name rows are parked.
        """
        self._manifest = manifest
        self._view = view
        self._author = author

    def is_registered_again(self, view: TableView) -> bool:
        """Whether another program gave a table that is hidden here a row again.

        Row and parked row are of one version, which is read after the view: a row from before
        the table was hidden must not be taken for one from after.
        """
        if view.state not in {State.DELETED, State.DEREGISTERED}:
            return False
        with self._manifest.reading() as draft:
            row, parked = draft.get(view.name), draft.get(parked_key(view.name))
        if row is None or not is_table(row) or is_named(row) or is_moving(row, view):
            return False
        return is_parked_at(parked, view.chain.seq)

    def settle(
        self,
        name: str,
        properties: Mapping[str, str] | None = None,
        *,
        inherit: bool = True,
        fresh: bool = False,
        is_decisive: bool = False,
    ) -> None:
        """Bring the row of a root table in line with its directory.

        Where the directory has decided already, a store that fails is no failure: the row is
        brought in line by whoever comes next.

        Args:
            name: The table.
            properties: Those of a table that just became live; None where none did.
            inherit: Whether it gets the properties back that it had before.
            fresh: Whether it is a new table, so that a row of an older one says nothing.
            is_decisive: Whether the row decides: the name may have been given to another table.

        Raises:
            TableAlreadyExistsError: the manifest gave the name of a live table to another.
            UnknownOutcomeError: whether it did cannot be seen, and the row decides.
        """
        if DELIMITER in name:
            return

        def follow(draft: Draft, view: TableView) -> None:
            row = draft.get(name)
            if fresh and view.state is State.LIVE and row is not None and not is_named(row):
                draft.put(with_properties(row, properties or {}))
            _follow(draft, view, properties or {}, inherit=inherit, author=self._author)

        try:
            if properties is None and not self._manifest.exists:
                return
            for _ in range(_SETTLING_ROUNDS):
                # The directory is read after the version that the change builds on.
                self._manifest.change(lambda draft: follow(draft, self._view(name)))
                view = self._view(name)
                with self._manifest.reading() as draft:
                    follow(draft, view)
                    if draft.change.is_empty:
                        return
        except ServiceUnavailableError as exc:
            if is_decisive:
                msg = (
                    f"table {quote(name)} is there, and whether its name was given to another table"
                    f" meanwhile cannot be seen: look what it holds ({exc})"
                )
                raise UnknownOutcomeError(msg) from exc
            _log.warning("the manifest's row of table %s is not up to date: %s", name, exc)


def _follow(
    draft: Draft, view: TableView, properties: Mapping[str, str], *, inherit: bool, author: str
) -> None:
    row, parked = draft.get(view.name), draft.get(parked_key(view.name))
    if view.state is State.LIVE:
        if is_namespace(row):
            msg = f"{quote(view.name)} is the name of a namespace already"
            raise NamespaceAlreadyExistsError(msg)
        if row is not None and is_named(row):
            msg = f"table {quote(view.name)} exists already"
            raise TableAlreadyExistsError(msg)
        known = parked_properties(parked) if inherit else {}
        _add(draft, view.name, row, {**known, **properties})
    elif row is not None and is_table(row) and not is_named(row):
        seq = view.chain.seq
        if view.state in {None, State.RENAMING} or is_parked_at(parked, seq):
            return  # a rename that is under way changes the row itself
        draft.remove(view.name)
        if view.state not in {State.PURGED, State.PURGING}:
            draft.put(make_parked(row, author, seq))
            return
    elif row is None and view.state in {State.DELETED, State.DEREGISTERED}:
        # Parked also without a row: what another program registers from here on is newer.
        if not is_parked_at(parked, view.chain.seq):
            bare = make_row(view.name, TABLE, None, parked_properties(parked))
            draft.put(make_parked(bare, author, view.chain.seq))
        return
    if parked is not None and view.state in {State.LIVE, State.PURGED, None}:
        draft.remove(parked.object_id)


def _add(draft: Draft, name: str, row: ManifestRow | None, properties: Mapping[str, str]) -> None:
    if row is None:
        draft.put(make_row(name, TABLE, table_dir(name), properties))
    elif is_table(row) and properties:
        draft.put(with_properties(row, {**properties_of(row), **properties}))
