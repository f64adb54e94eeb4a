"""Sections: figures and curves that belong together, and what to know about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from bench.curves import Curve
from bench.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Found", "Section"]

Found = Figure | Curve


@dataclass(frozen=True)
class Section:
    """What one benchmark found.

    Attributes:
        title: What it is about.
        found: Figures in the order to print, and curves.
        notes: What a reader has to know.
        ours: What the column of the measured values is called.
    """

    title: str
    found: Sequence[Found]
    notes: Sequence[str] = field(default_factory=list)
    ours: str = "mooring"

    @property
    def figures(self) -> list[Figure]:
        """The figures alone."""
        return [one for one in self.found if isinstance(one, Figure)]

    @property
    def curves(self) -> list[Curve]:
        """The curves alone."""
        return [one for one in self.found if isinstance(one, Curve)]

    def to_json(self) -> dict[str, Any]:
        """Return the section as what JSON knows."""
        return {
            "title": self.title,
            "figures": [figure.to_json() for figure in self.figures],
            "curves": [curve.to_json() for curve in self.curves],
            "notes": list(self.notes),
            "ours": self.ours,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read a section back."""
        figures = [Figure.from_json(one) for one in found["figures"]]
        curves = [Curve.from_json(one) for one in found["curves"]]
        return cls(found["title"], [*figures, *curves], found["notes"], found["ours"])
