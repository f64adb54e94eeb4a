"""The state of a metastore at every entry of its chain, as far back as this process has read.

Each object keeps its changes with the numbers of the entries that made them, so that a transaction
reads the state that it began with while others go on. Nothing is ever taken back: what is appended
while somebody reads has a number that the reader does not look at. A process that lives long goes
on with a new one now and then, which begins later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Generic, TypeVar

from mooring.metastore.checkpoint import Checkpoint, NameState
from mooring.metastore.layout import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mooring.metastore.entry import Change, Entry

__all__ = ["Ids", "Parts", "Timeline"]

Ids = tuple[str, ...]
Parts = tuple[str, ...]
T = TypeVar("T")


class _Moments(Generic[T]):
    """Values with the numbers from which they hold."""

    __slots__ = ("_seqs", "_values")

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._values: list[T] = []

    def add(self, seq: int, value: T) -> None:
        # The value first: whoever sees the number finds it.
        self._values.append(value)
        self._seqs.append(seq)

    def at(self, seq: int) -> T | None:
        index = bisect_right(self._seqs, seq)
        return self._values[index - 1] if index else None


class Timeline:
    """What every object was, and what every name meant, at each entry."""

    def __init__(self, begins_at: int = 0) -> None:
        """Begin with nothing, at an entry before which nothing is known."""
        self.begins_at = begins_at
        self.seq = begins_at
        self._changes: dict[Ids, _Moments[Change]] = defaultdict(_Moments)
        self._names: dict[tuple[Ids, Parts], _Moments[Ids | None]] = defaultdict(_Moments)
        self._revisions: dict[tuple[Ids, str], int] = {}
        self._own_names: dict[Ids, _Moments[Parts]] = defaultdict(_Moments)
        self._known_names: dict[Ids, set[Parts]] = defaultdict(set)
        self._children: dict[Ids, dict[Ids, None]] = defaultdict(dict)
        self._aborted: set[str] = set()
        self._committed: dict[str, int] = {}

    @classmethod
    def begin_at(
        cls, checkpoint: Checkpoint, committed: Mapping[str, int] | None = None
    ) -> Timeline:
        """Begin with the state of a checkpoint, and with the entries of some transactions."""
        found = cls(checkpoint.seq)
        found._committed.update(committed or {})
        for change in checkpoint.changes:
            found._changes[change.ids].add(checkpoint.seq, change)
            found._children[change.ids[:-1]][change.ids] = None
        for name in checkpoint.names:
            found._names[name.parent, name.parts].add(checkpoint.seq, name.ids)
            found._known_names[name.ids].add(name.parts)
            if not name.is_alias:
                found._own_names[name.ids].add(checkpoint.seq, name.parts)
        for parent, digest, revision in checkpoint.mappings:
            found._note_mapping(parent, digest, revision)
        found._aborted.update(checkpoint.aborted)
        return found

    def checkpoint(self) -> Checkpoint:
        """Write down the newest state."""
        seq = self.seq
        names = [
            NameState(parent, parts, ids, self.name(ids, seq) != parts)
            for (parent, parts), moments in self._names.items()
            if (ids := moments.at(seq)) is not None
        ]
        changes = [change for moments in self._changes.values() if (change := moments.at(seq))]
        return Checkpoint(
            seq=seq,
            changes=tuple(sorted(changes, key=lambda change: change.ids)),
            names=tuple(sorted(names, key=lambda name: (name.parent, name.parts))),
            mappings=tuple(sorted((*key, revision) for key, revision in self._revisions.items())),
            aborted=tuple(sorted(self._aborted)),
        )

    def renewed(self, remembers: int) -> Timeline:
        """Return one of the newest state alone, and of who committed after an entry."""
        late = {txn_id: seq for txn_id, seq in self._committed.items() if seq > remembers}
        return Timeline.begin_at(self.checkpoint(), late)

    def __len__(self) -> int:
        """How many objects there are or were."""
        return len(self._changes)

    def apply(self, seq: int, entry: Entry) -> None:
        """Take in the next entry."""
        for record in entry.records:
            self._committed[record.txn_id] = seq
            for change in record.changes:
                self._apply(seq, change)
            for mapping in record.remapped:
                self._note_mapping(mapping.ids[:-1], mapping.digest, mapping.revision)
        self._aborted.update(entry.aborted)
        self.seq = seq

    def _apply(self, seq: int, change: Change) -> None:
        parent = change.ids[:-1]
        self._changes[change.ids].add(seq, change)
        self._children[parent][change.ids] = None
        for name in change.names:
            begins = name.operation is not Operation.DELETE
            self._names[parent, name.parts].add(seq, change.ids if begins else None)
            self._note_mapping(parent, name.digest, name.revision)
            self._known_names[change.ids].add(name.parts)
            if begins and not name.is_alias:
                self._own_names[change.ids].add(seq, name.parts)

    def _note_mapping(self, parent: Ids, digest: str, revision: int) -> None:
        key = (parent, digest)
        self._revisions[key] = max(revision, self._revisions.get(key, 0))

    # -- reading ---------------------------------------------------------------------------------

    def find(self, ids: Ids, seq: int) -> Change | None:
        """Return the last change of an object that is alive; None for one that is not."""
        moments = self._changes.get(ids)
        found = moments.at(seq) if moments else None
        if found is None or found.operation is Operation.DELETE:
            return None
        return found

    def revision(self, ids: Ids, seq: int) -> int:
        """Return the number of an object's newest revision, alive or not; 0 without one."""
        moments = self._changes.get(ids)
        found = moments.at(seq) if moments else None
        return found.revision if found else 0

    def resolve(self, parent: Ids, parts: Parts, seq: int) -> Ids | None:
        """Return the ids of the child that a name means; None where it means none."""
        moments = self._names.get((parent, parts))
        return moments.at(seq) if moments else None

    def mapping_revision(self, parent: Ids, digest: str) -> int:
        """Return the newest number of a name's mapping files; 0 without one."""
        return self._revisions.get((parent, digest), 0)

    def name(self, ids: Ids, seq: int) -> tuple[str, ...] | None:
        """Return the name of an object that has a changing one."""
        moments = self._own_names.get(ids)
        return moments.at(seq) if moments else None

    def names_of(self, ids: Ids, seq: int) -> set[Parts]:
        """Return every name and alias that means an object."""
        known = self._known_names.get(ids, ())
        return {parts for parts in known if self.resolve(ids[:-1], parts, seq) == ids}

    def alive(self, seq: int) -> Iterator[Change]:
        """Go through all objects that are alive."""
        for ids in list(self._changes):
            found = self.find(ids, seq)
            if found is not None:
                yield found

    def children(self, parent: Ids, seq: int) -> Iterator[Change]:
        """Go through the children of an object that are alive, in the order of their making."""
        for ids in list(self._children.get(parent, ())):
            found = self.find(ids, seq)
            if found is not None:
                yield found

    def committed_at(self, txn_id: str) -> int | None:
        """Return the entry that a transaction was committed by."""
        return self._committed.get(txn_id)

    def is_aborted(self, token: str) -> bool:
        """Whether a sweep has given a transaction up, or a vacuum what it staged."""
        return token in self._aborted
