"""The parts that workers wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.tables.fragments import unpack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.ingest.rejects import Reject
    from mooring.ingest.task import Ingested
    from mooring.tables.fragments import FragmentMetadata

__all__ = ["WrittenParts"]


@dataclass
class WrittenParts:
    """What workers wrote, part by part, and which rows were left out of each afterwards.

    Attributes:
        parts: One for each part.
        left_out: Why rows were left out, by their places in the part, by its number.
    """

    parts: list[Ingested] = field(default_factory=list)
    left_out: dict[int, dict[int, str]] = field(default_factory=dict)

    def fragments(self) -> list[FragmentMetadata]:
        """Return what was written of all parts."""
        return unpack(text for part in self.parts for text in part.fragments)

    def rejects(self) -> list[Reject]:
        """Return the records that did not fit."""
        return [reject for part in self.parts for reject in part.rejects]

    def leave_out(self, wrong: Mapping[int, str]) -> set[int]:
        """Note rows by their positions among all; return the parts that have some."""
        touched = set()
        before = 0
        for number, part in enumerate(self.parts):
            here = {at - before: wrong[at] for at in wrong if 0 <= at - before < part.rows}
            before += part.rows
            if here:
                self._note(number, here, part.rows)
                touched.add(number)
        return touched

    def _note(self, number: int, here: Mapping[int, str], rows: int) -> None:
        known = self.left_out.setdefault(number, {})
        # Rows are counted without those that were left out before.
        places = [at for at in range(rows + len(known)) if at not in known]
        known.update({places[at]: reason for at, reason in here.items()})
