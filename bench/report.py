"""What benchmarks found, printed as text or as JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from bench.machine import describe_machine
from bench.units import rounds_of, show, show_spread, spread_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.figures import Figure
    from bench.sections import Section

__all__ = ["describe_machine", "print_json", "print_tables", "tell_ratio", "tell_spread"]


def print_json(machine: Mapping[str, str], sections: Sequence[Section]) -> None:
    """Print everything as one document."""
    document = {"machine": machine, "sections": [section.to_json() for section in sections]}
    json.dump(document, sys.stdout, indent=2)
    print()


def print_tables(machine: Mapping[str, str], sections: Sequence[Section]) -> None:
    """Print everything as text."""
    print("machine   " + ", ".join(f"{key} {value}" for key, value in machine.items()))
    for section in sections:
        _print_section(section)
    targets = [figure for section in sections for figure in section.figures if figure.target]
    met = sum(bool(figure.is_met) for figure in targets)
    print(f"\ntargets met: {met} of {len(targets)}")


def tell_ratio(figure: Figure) -> str:
    """Tell how many times faster, or how many times the other's time."""
    faster = figure.faster
    if not faster:
        return ""
    is_counted = figure.kind in {"requests", "count"}
    if faster > 1 if is_counted else faster >= 1:
        return f"{_times(faster)} {'fewer' if is_counted else 'faster'}"
    return f"{_times(1 / faster)} of it"


def tell_spread(figure: Figure) -> str:
    """Tell between what the rounds lie: their ratios, or where nothing stands beside, ours."""
    if figure.our_value is None or figure.kind in {"requests", "count"}:
        return ""
    if figure.spread is None or figure.faster is None:
        own = spread_of(rounds_of(figure.ours))
        return f"{show_spread(own, figure.kind)}, {_runs(figure)}" if own else "1 run"
    low, high = figure.spread
    if not tell_ratio(figure).endswith("faster"):
        low, high = 1 / high, 1 / low
    return f"{_times(low)} to {_times(high)}, {_runs(figure)}"


def _times(ratio: float) -> str:
    """Write a ratio with as many digits as tell something."""
    digits = 2 if ratio < 3 else 1 if ratio < 100 else 0
    return f"{ratio:,.{digits}f}x"


def _runs(figure: Figure) -> str:
    ours, theirs = len(rounds_of(figure.ours)), len(rounds_of(figure.theirs))
    if not theirs or ours == theirs:
        return f"{ours} rounds"
    return f"{ours} {'run' if ours == 1 else 'runs'} beside {theirs}"


def _print_section(section: Section) -> None:
    head = ("", section.ours, "", "", "", "", "target", "")
    rows = [head, *(_row(figure) for figure in section.figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    print(f"\n{section.title}\n")
    for row in rows:
        cells = [
            cell.rjust(width) if column in {1, 3} else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip())
    for curve in section.curves:
        print(f"  ~ {curve.title}, by {curve.along}")
        for line in curve.lines:
            points = (f"{x:,g}: {show(y, curve.kind)}" for x, y in line.averages)
            print(f"    {line.name}: {', '.join(points)}")
    for note in section.notes:
        print(f"  * {note}")


def _row(figure: Figure) -> tuple[str, ...]:
    ours, theirs = (
        "" if value is None else show(value, figure.kind)
        for value in (figure.our_value, figure.their_value)
    )
    verdict = {None: "", True: "met", False: "MISSED"}[figure.is_met]
    missing = f"not measured: {figure.missing}" if figure.missing else ""
    told = "; ".join(filter(None, (tell_ratio(figure), figure.detail, missing)))
    return (
        figure.what,
        ours,
        figure.beside,
        theirs,
        told,
        tell_spread(figure),
        figure.target,
        verdict,
    )
