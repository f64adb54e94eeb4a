"""What one listing of the root tells about every table.

Decisions and hints lie beside the tables' directories, so names and states come from the same
listing, whatever the number of tables. Only what it cannot tell is looked at one by one: the
newest decision that lacks its hint, the marker of another program on a table with a chain, and,
in a directory that was never adopted, the nested markers.

Spec: soft-delete, "Move the delete marker to the namespace root"; directory-namespace, "V1".
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.directory.decisions import Hint, State, decode_decision
from mooring.directory.layout import (
    FOREIGN_SUFFIX,
    TABLE_SUFFIX,
    decision_path,
    filter_table_names,
    is_table_name,
    nested_marker_path,
    parse_state_file,
)
from mooring.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mooring.directory.view import TableView
    from mooring.store import Store

__all__ = ["Scan", "scan_tables"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Row:
    """What the root says of a table that has a chain or a marker."""

    seq: int = 0
    hint: str | None = None
    has_decision: bool = False
    has_marker: bool = False

    def see(self, seq: int, hint: str | None) -> None:
        if seq > self.seq:
            self.seq, self.hint, self.has_decision = seq, None, False
        if seq < self.seq:
            return
        if hint is None:
            self.has_decision = True
        else:
            self.hint = hint


@dataclass(frozen=True, slots=True)
class Scan:
    """The tables of a root, by what they are."""

    live: list[str] = field(default_factory=list)
    other: dict[str, Hint] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


def scan_tables(store: Store, view: Callable[[str], TableView], *, adopted: bool) -> Scan:
    """List the root once and tell every table's state.

    Args:
        store: The catalog's store.
        view: Looks at one table closely, where the listing cannot tell.
        adopted: Whether nested markers of other programs were lifted, so none need be looked for.

    Returns:
        Names of live tables, sorted; the state of all others.
    """
    listing = store.list_dir("")
    cut = -len(TABLE_SUFFIX)
    tables = [name[:cut] for name in listing.directories if name.endswith(TABLE_SUFFIX)]
    tables = filter_table_names(tables)
    rows = _read_rows(listing.files)
    present = set(tables) if rows else set()
    scan = Scan(live=[name for name in tables if name not in rows] if rows else tables)
    for name, row in rows.items():
        try:
            _sort_in(scan, name, _tell(store, view, name, row, has_directory=name in present))
        except UnreadableError as exc:
            # One damaged file must not hide all other tables.
            _log.warning("table %s is left out of listings: %s", name, exc)
            scan.unreadable.append(name)
    if not adopted:
        scan = _look_inside(store, view, scan)
    scan.live.sort()
    return scan


def _look_inside(store: Store, view: Callable[[str], TableView], scan: Scan) -> Scan:
    """Look closely at the seemingly live tables that hold a nested marker."""
    by_path = {nested_marker_path(name): name for name in scan.live}
    marked = {by_path[path] for path in store.existing(list(by_path))}
    live = [name for name in scan.live if name not in marked]
    seen = Scan(live, scan.other, scan.unreadable)
    for name in marked:
        _sort_in(seen, name, _look(view, name))
    return seen


def _read_rows(files: Iterable[str]) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    for file in files:
        if found := parse_state_file(file):
            rows.setdefault(found.name, _Row()).see(found.seq, found.hint)
        elif file.endswith(FOREIGN_SUFFIX):
            rows.setdefault(file.removesuffix(FOREIGN_SUFFIX), _Row()).has_marker = True
    return {name: row for name, row in rows.items() if is_table_name(name)}


def _tell(
    store: Store, view: Callable[[str], TableView], name: str, row: _Row, *, has_directory: bool
) -> Hint | None:
    # A listing is no snapshot: it can show a hint and miss the decision written just before.
    if row.seq and not row.has_decision:
        return _look(view, name)
    hint = _decided(store, name, row)
    if hint is not None and hint.state is State.DEREGISTERED and not has_directory:
        return _look(view, name)
    if hint is not None and hint.state is not State.LIVE:
        return hint
    if not has_directory:
        return None
    # A marker of another program may be consumed by the decision; only its body tells.
    return _look(view, name) if row.has_marker else Hint(State.LIVE)


def _decided(store: Store, name: str, row: _Row) -> Hint | None:
    """Return what was decided last: by its hint, or by its body where the hint is missing."""
    if not row.seq:
        return None
    known = Hint.parse(row.hint) if row.hint else None
    if known is not None:
        return known
    path = decision_path(name, row.seq)
    body = store.get(path)
    return decode_decision(path, body).hint if body is not None else None


def _look(view: Callable[[str], TableView], name: str) -> Hint | None:
    seen = view(name)
    if seen.state is None:
        return None
    if not seen.state.in_trash:
        return Hint(seen.state)
    deleted_at_ms, ttl_ms = seen.deletion
    return Hint(seen.state, deleted_at_ms, ttl_ms)


def _sort_in(scan: Scan, name: str, hint: Hint | None) -> None:
    if hint is None:
        return
    if hint.state is State.LIVE:
        scan.live.append(name)
    else:
        scan.other[name] = hint
