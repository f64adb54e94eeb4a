"""What a table in a directory is at one moment: its files, its markers, its chain.

Files come first, then the chain: a listing that is older than the state it is judged by belongs
to a table that existed. Where a marker of another program is there, or the directory of a live or
deregistered table is not, that is not enough: the chain must be the same before and after. Were
marker and chain of different moments, a marker that is gone could make a living table look
dropped, and a purge of it would delete live data.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.directory.chain import Chain
from mooring.directory.decisions import State
from mooring.directory.layout import TABLE_SUFFIX, table_dir
from mooring.directory.markers import Marker, read_markers
from mooring.errors import TableNotFoundError
from mooring.hints import suggest
from mooring.identifiers import quote
from mooring.namespace.presence import was_dropped

if TYPE_CHECKING:
    from mooring.clock import Clock
    from mooring.directory.chain import Chains
    from mooring.store import Listing, Store

__all__ = ["TableView", "has_late_files", "other_spelling", "version_to_undrop", "view_table"]

# What a table is only as long as its directory is there.
_BY_DIRECTORY = frozenset({State.LIVE, State.DEREGISTERED})


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as it was read.

    Attributes:
        chain: The end of its chain of decisions.
        has_directory: Whether its directory exists.
        markers: Markers of other programs, consumed or not.
    """

    chain: Chain
    has_directory: bool
    markers: tuple[Marker, ...]

    @property
    def name(self) -> str:
        """The table's name."""
        return self.chain.name

    @property
    def state(self) -> State | None:
        """What the table is; None where there is none and never was one."""
        decided = self.chain.state
        if decided not in {None, *_BY_DIRECTORY}:
            return decided
        # A table whose directory somebody else removed is gone, and its name is free.
        if not self.has_directory:
            return None
        if decided is State.DEREGISTERED:
            return decided
        return State.DELETED if self.unconsumed else State.LIVE

    @property
    def unconsumed(self) -> tuple[Marker, ...]:
        """Markers of other programs that no decision has taken account of."""
        consumed = self.chain.decision.consumed if self.chain.decision else ()
        return tuple(marker for marker in self.markers if marker.mark not in consumed)

    @property
    def is_protected(self) -> bool:
        """Whether drops are refused."""
        return self.chain.is_protected

    @property
    def marks(self) -> tuple[str, ...]:
        """What a decision that makes the table live takes account of."""
        return tuple(marker.mark for marker in self.markers)

    @property
    def deletion(self) -> tuple[int, int | None]:
        """When the table was dropped, and its time to live in the trash."""
        decision = self.chain.decision
        if decision is not None and decision.deleted_at_ms is not None:
            return decision.deleted_at_ms, decision.ttl_ms
        marker = next(iter(self.unconsumed), None)
        return (marker.deleted_at_ms, marker.ttl_ms) if marker else (0, None)

    def require_live(self, clock: Clock) -> None:
        """Refuse to go on with a table that is not live.

        Raises:
            TableNotFoundError: with what happened to it and what can be done.
        """
        if self.state is not State.LIVE:
            raise self._why_not_live(clock)

    def _why_not_live(self, clock: Clock) -> TableNotFoundError:
        if self.state in {State.DELETED, State.REVIVING, State.UNDROPPING}:
            return was_dropped(self.name, clock.now_ms() - self.deletion[0])
        return TableNotFoundError(self._what_happened())

    def _what_happened(self) -> str:
        shown = quote(self.name)
        match self.state:
            case State.DEREGISTERED:
                undo = f'bring it back with "{suggest("table register", self.name)}"'
                return f"table {shown} is deregistered; {undo}"
            case State.PURGING:
                return f"table {shown} is being purged"
            case State.RENAMING:
                undo = f'undo it with "{suggest("table undrop", self.name)}"'
                return f"table {shown} is being renamed; if that was cut off, {undo}"
            case _:
                return f"there is no table {shown}"


def view_table(store: Store, chains: Chains, name: str) -> TableView:
    """Read what a table is, as it was at one moment."""
    before: Chain | None = None
    listing = store.list_dir(table_dir(name))
    if other_spelling(store, name, listing):
        return TableView(Chain(name), has_directory=False, markers=())
    while True:
        has_directory = listing.exists  # before the chain
        markers = read_markers(store, name, listing)
        chain = chains.read(name, since=before)
        foreign = tuple(marker for marker in markers if marker.is_foreign(chain.seq))
        is_plain = not foreign and (has_directory or chain.state not in _BY_DIRECTORY)
        if is_plain or (before is not None and before.seq == chain.seq):
            return TableView(chain, has_directory, foreign)
        before = chain
        if not has_directory:
            listing = store.list_dir(table_dir(name))


def version_to_undrop(view: TableView, newest: int) -> int:
    """Tell the version that an undrop brings back, given the newest; 0 where there is none."""
    decision = view.chain.decision
    if view.state is not State.DELETED and decision and decision.version is not None:
        return decision.version
    return newest


def has_late_files(view: TableView, newest: int) -> bool:
    """Whether somebody committed to a purged table after its purge."""
    decision = view.chain.decision
    return newest > ((decision.version if decision else None) or 0)


def other_spelling(store: Store, name: str, listing: Listing) -> str | None:
    """Find a table that the disk confuses with ``name``: it differs by case or Unicode form.

    Args:
        store: The catalog's store.
        name: The name that was asked for.
        listing: What the disk gave for its directory.
    """
    if store.capabilities.case_sensitive or not listing.exists:
        return None
    wanted = table_dir(name)
    directories = store.list_dir("").directories
    if wanted in directories:
        return None
    folded = _fold(wanted)
    alike = next((found for found in directories if _fold(found) == folded), None)
    return alike and alike.removesuffix(TABLE_SUFFIX)


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
