"""Results: what a benchmark found, kept as JSON until it is measured again."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from bench.sections import Section

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Result", "keep", "load", "load_all"]

# Where somebody else's server was looked for says nothing about a figure.
_ADDRESS = re.compile(r"\s*\(?\bhttps?://[^\s)\"\\]+\)?")


@dataclass(frozen=True)
class Result:
    """What a benchmark found, and when and where that was.

    Attributes:
        bench: Its name.
        section: What it found; None where it found nothing.
        measured_at: When it began.
        seconds: How long it took.
        is_quick: Whether sizes were small and rounds few.
        machine: What it ran on, and with which versions.
        failure: Why the last attempt came to no end; empty where it did.
    """

    bench: str
    section: Section | None
    measured_at: str
    seconds: float = 0.0
    is_quick: bool = False
    machine: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""

    @property
    def failures(self) -> list[str]:
        """What did not come to an end, in words."""
        figures = self.section.figures if self.section else []
        told = [f"{one.what}: {one.missing}" for one in figures if one.is_failure]
        return [*([self.failure] if self.failure else []), *told]

    def to_json(self) -> dict[str, Any]:
        """Return the result as what JSON knows."""
        return vars(self) | {"section": self.section.to_json() if self.section else None}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read a result back."""
        section = Section.from_json(found["section"]) if found["section"] else None
        return cls(**{**found, "section": section})


def keep(result: Result, folder: Path) -> None:
    """Keep a result in place of the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{result.bench}.json"
    whole = place.with_suffix(".part")
    told = _ADDRESS.sub("", json.dumps(result.to_json()))
    whole.write_text(f"{told}\n", encoding="utf-8")
    whole.replace(place)


def load(bench: str, folder: Path) -> Result | None:
    """Return what is kept of a benchmark; None where that is nothing."""
    place = folder / f"{bench}.json"
    if not place.exists():
        return None
    return Result.from_json(json.loads(place.read_text(encoding="utf-8")))


def load_all(folder: Path) -> list[Result]:
    """Return all that is kept, by the names of the benchmarks."""
    names = sorted(place.stem for place in folder.glob("*.json"))
    return [found for name in names if (found := load(name, folder))]
