"""Figures, the targets they are held against, and how both are printed."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Literal

__all__ = ["Figure", "Section", "describe_machine", "print_json", "print_tables"]

Kind = Literal["seconds", "requests", "count"]
_PACKAGES = ("mooring", "pylance", "lance-namespace", "pyarrow", "obstore", "msgspec", "typer")


@dataclass(frozen=True)
class Figure:
    """One measured value, if possible beside another one of the same run.

    Attributes:
        what: What was done.
        ours: Mooring's seconds, requests or how many.
        kind: Which of the three.
        beside: Whose value stands beside it.
        theirs: That value.
        at_least: How many times faster than the other it has to be.
        within: How many times the other's time it may take.
        at_most: The most it may be by itself.
        detail: Shown instead of the ratio.
    """

    what: str
    ours: float
    kind: Kind = "seconds"
    beside: str = ""
    theirs: float | None = None
    at_least: float | None = None
    within: float | None = None
    at_most: float | None = None
    detail: str = ""

    @property
    def faster(self) -> float | None:
        """How many times as long the other takes."""
        return None if self.theirs is None or not self.ours else self.theirs / self.ours

    @property
    def target(self) -> str:
        """The target in words; empty where there is none."""
        if self.at_least is not None:
            return f">= {self.at_least:g}x faster"
        if self.within is not None:
            return f"within {self.within:g}x of it"
        return "" if self.at_most is None else f"<= {_show(self.at_most, self.kind)}"

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        faster = self.faster or 0.0
        if self.at_least is not None:
            return faster >= self.at_least
        if self.within is not None:
            return faster >= 1 / self.within
        return None if self.at_most is None else self.ours <= self.at_most

    def to_json(self) -> dict[str, object]:
        """Return the figure with what follows from it."""
        found = {key: value for key, value in asdict(self).items() if value not in {None, ""}}
        return found | {"times_faster": self.faster, "target": self.target, "met": self.is_met}


@dataclass(frozen=True)
class Section:
    """Figures that belong together, and what to know about them.

    Attributes:
        title: What they are about.
        figures: In the order to print.
        notes: What a reader has to know.
        ours: What the column of the measured values is called.
    """

    title: str
    figures: list[Figure]
    notes: list[str] = field(default_factory=list)
    ours: str = "mooring"


def describe_machine() -> dict[str, str]:
    """Tell what the figures were measured on."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": str(os.cpu_count()),
        "load": load,
        "python": platform.python_version(),
    } | {name: version(name) for name in _PACKAGES}


def print_json(machine: dict[str, str], sections: list[Section]) -> None:
    """Print everything as one document."""
    document = {
        "machine": machine,
        "sections": [
            {
                "title": section.title,
                "figures": [figure.to_json() for figure in section.figures],
                "notes": section.notes,
            }
            for section in sections
        ],
    }
    json.dump(document, sys.stdout, indent=2)
    print()


def print_tables(machine: dict[str, str], sections: list[Section]) -> None:
    """Print everything as text."""
    print("machine   " + ", ".join(f"{key} {value}" for key, value in machine.items()))
    for section in sections:
        _print_section(section)
    targets = [figure for section in sections for figure in section.figures if figure.target]
    met = sum(bool(figure.is_met) for figure in targets)
    print(f"\ntargets met: {met} of {len(targets)}")


def _print_section(section: Section) -> None:
    head = ("", section.ours, "", "", "", "target", "")
    rows = [head, *(_row(figure) for figure in section.figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    print(f"\n{section.title}\n")
    for row in rows:
        cells = [
            cell.rjust(width) if column in {1, 3} else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip())
    for note in section.notes:
        print(f"  * {note}")


def _row(figure: Figure) -> tuple[str, ...]:
    theirs = "" if figure.theirs is None else _show(figure.theirs, figure.kind)
    verdict = {None: "", True: "met", False: "MISSED"}[figure.is_met]
    ours = _show(figure.ours, figure.kind)
    return figure.what, ours, figure.beside, theirs, _ratio(figure), figure.target, verdict


def _ratio(figure: Figure) -> str:
    faster = figure.faster
    if figure.detail or faster is None:
        return figure.detail
    if figure.within is None and faster >= 1:
        return f"{faster:.1f}x faster"
    return f"{1 / faster:.2f}x of it" if faster else ""


def _show(value: float, kind: Kind) -> str:
    if kind != "seconds":
        return f"{value:g}"
    if value >= 10:
        return f"{value:.1f} s"
    return f"{value * 1e3:,.1f} ms" if value >= 1e-3 else f"{value * 1e6:,.0f} us"
