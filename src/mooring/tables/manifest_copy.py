"""A copy of one version of `__manifest` in memory, which follows the table by what changed.

It knows in which fragment, and where in it, every row lies. So it tells how a change is written
best: a small fragment that loses rows is rewritten into the new one, a large one gets a deletion
vector, and fragments of a size are merged when there are several, so that their number grows with
the logarithm of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.tables.manifest_rows import (
    ADDRESS,
    OFFSET_BITS,
    OFFSETS,
    SCHEMA,
    by_fragment,
    fragment_of,
    fragments_of,
    read_rows,
)

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import FragmentMetadata

    from mooring.tables.manifest import ManifestRow, RowChange

__all__ = ["ManifestCopy", "Plan"]

# Below this many rows a fragment is rewritten rather than given a deletion vector.
_SMALL = 256
# So many fragments of a size become one.
_FAN = 4


@dataclass(slots=True)
class _Part:
    """A fragment as the copy knows it: its description, and its rows by offset."""

    fragment: FragmentMetadata
    ids: list[str | None]
    live: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How a change is written: fragments rewritten whole, rows struck out of others."""

    rewritten: list[int]
    struck: dict[int, list[int]]
    rows: list[ManifestRow]


class ManifestCopy:
    """The rows of one version.

    Attributes:
        version: Which; 0 before the first, and while one is read.
        rows: Every row by its identifier.
        metadata: The table's own map.
        dataset: The table at that version; another one where a read was cut off.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.version = 0
        self.rows: dict[str, ManifestRow] = {}
        self.metadata: dict[str, str] = {}
        self.dataset: LanceDataset | None = None
        self._places: dict[str, int] = {}
        self._parts: dict[int, _Part] = {}

    # -- following -------------------------------------------------------------------------------

    def follow(self, dataset: LanceDataset) -> set[str]:
        """Become another version, reading the fragments that changed only; tell whose rows did."""
        fragments = fragments_of(dataset)
        # Until all is read the copy shows no version.
        self.version = 0
        changed, fresh = self._drop_what_differs(dataset, fragments)
        if fresh:
            changed |= self._take_in(dataset, fresh, fragments)
        self._settle(dataset)
        return changed

    def follow_own(self, dataset: LanceDataset, plan: Plan) -> None:
        """Become what was committed by a plan, without reading it back."""
        fragments = fragments_of(dataset)
        for number, offsets in plan.struck.items():
            if number in fragments:
                self._strike_out(number, offsets, fragments[number])
            else:
                self._forget(number)
        for number in plan.rewritten:
            self._forget(number)
        for number in fragments.keys() - self._parts.keys():
            ids: list[str | None] = [row.object_id for row in plan.rows]
            self._parts[number] = _Part(fragments[number], ids, len(ids))
            for offset, row in enumerate(plan.rows):
                self.rows[row.object_id] = row
                self._places[row.object_id] = (number << OFFSET_BITS) + offset
        self._settle(dataset)

    def _settle(self, dataset: LanceDataset) -> None:
        self.dataset = dataset
        self.version = dataset.version
        self.metadata = dict(dataset.metadata)

    def _drop_what_differs(
        self, dataset: LanceDataset, fragments: dict[int, FragmentMetadata]
    ) -> tuple[set[str], list[int]]:
        """Forget rows that are gone; tell whose, and which fragments are to be read."""
        changed: set[str] = set()
        for number, part in list(self._parts.items()):
            found = fragments.get(number)
            if found is None or not _same_files(part.fragment, found):
                changed |= self._forget(number)
            elif _deletion(part.fragment) != _deletion(found):
                changed |= self._strike(dataset, number, found)
        return changed, [number for number in fragments if number not in self._parts]

    def _take_in(
        self, dataset: LanceDataset, numbers: list[int], fragments: dict[int, FragmentMetadata]
    ) -> set[str]:
        found = dataset.scanner(
            columns=SCHEMA.names,
            fragments=[fragment_of(dataset, number) for number in numbers],
            with_row_address=True,
        ).to_table()
        for number in numbers:
            size = fragments[number].physical_rows
            self._parts[number] = _Part(fragments[number], [None] * size, 0)
        rows = read_rows(found)
        for address, row in zip(found[ADDRESS].to_pylist(), rows, strict=True):
            part = self._parts[address >> OFFSET_BITS]
            part.ids[address & OFFSETS] = row.object_id
            part.live += 1
            self.rows[row.object_id] = row
            self._places[row.object_id] = address
        return {row.object_id for row in rows}

    def _strike(self, dataset: LanceDataset, number: int, fragment: FragmentMetadata) -> set[str]:
        """Follow a new deletion vector on a fragment whose rows are known."""
        found = dataset.scanner(
            columns=[], fragments=[fragment_of(dataset, number)], with_row_address=True
        ).to_table()
        left = {address & OFFSETS for address in found[ADDRESS].to_pylist()}
        known = enumerate(self._parts[number].ids)
        offsets = [at for at, object_id in known if object_id is not None and at not in left]
        return self._strike_out(number, offsets, fragment)

    def _strike_out(self, number: int, offsets: list[int], fragment: FragmentMetadata) -> set[str]:
        part = self._parts[number]
        gone = set()
        for offset in offsets:
            object_id, part.ids[offset] = part.ids[offset], None
            if object_id and self._places.get(object_id) == (number << OFFSET_BITS) + offset:
                del self._places[object_id], self.rows[object_id]
                gone.add(object_id)
        part.live -= len(offsets)
        part.fragment = fragment
        return gone

    def _forget(self, number: int) -> set[str]:
        gone = set()
        for object_id in self._parts.pop(number).ids:
            if object_id and self._places.get(object_id, -1) >> OFFSET_BITS == number:
                del self._places[object_id], self.rows[object_id]
                gone.add(object_id)
        return gone

    # -- planning --------------------------------------------------------------------------------

    def plan(self, change: RowChange) -> Plan:
        """Decide which fragments are rewritten with a change."""
        parts = self._parts
        gone_ids = sorted(change.removed & self._places.keys())
        struck = by_fragment(self._places[object_id] for object_id in gone_ids)
        left = {number: parts[number].live - len(gone) for number, gone in struck.items()}
        rewritten = [
            number
            for number, count in left.items()
            if count <= _SMALL or 2 * count < len(parts[number].ids)
        ]
        count = len(change.added) + sum(left[number] for number in rewritten)
        while len(alike := self._alike(count, {*rewritten, *struck})) >= _FAN - 1:
            rewritten += alike
            count += sum(parts[number].live for number in alike)
        survivors = [
            self.rows[object_id]
            for number in rewritten
            for object_id in parts[number].ids
            if object_id is not None and object_id not in change.removed
        ]
        kept = {number: gone for number, gone in struck.items() if number not in rewritten}
        return Plan(rewritten, kept, [*survivors, *change.added])

    def _alike(self, count: int, taken: set[int]) -> list[int]:
        """Return the fragments that are no larger than one of so many rows."""
        tier = _tier(count)
        return [
            number
            for number, part in self._parts.items()
            if number not in taken and _tier(part.live) <= tier
        ]


def _tier(count: int) -> int:
    return max(count - 1, 0).bit_length() // 2


def _same_files(one: FragmentMetadata, other: FragmentMetadata) -> bool:
    return [file.path for file in one.files] == [file.path for file in other.files]


def _deletion(fragment: FragmentMetadata) -> object:
    found = fragment.deletion_file
    return None if found is None else (found.read_version, found.id, found.num_deleted_rows)
