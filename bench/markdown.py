"""The report: all kept results as one page of Markdown, with pictures beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_args

from bench.bars import draw_ratios
from bench.charts import describe, draw_curve
from bench.curves import Growth
from bench.report import tell_ratio, tell_spread
from bench.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bench.curves import Curve
    from bench.figures import Figure
    from bench.results import Result

__all__ = ["write_report"]

_PICTURES = "pictures"
_VERDICTS = {None: "", True: "met", False: "**missed**"}
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_HOW_TO_READ = """\
Where another can do the same, its value of the same run stands beside Mooring's. Both take turns,
so that a machine that is busy is busy for both; notes tell where they could not. A ratio is that of
the two medians beside it, or means where the name says so. Its spread is the middle half of the
ratios of the single rounds, or all of them where there were fewer than 8; *1 run* is a value that
was measured once. `2.0x faster` means that the other took twice as long, `1.30x of it` that Mooring
took 1.3 times as long as the other. Requests are counted, not timed.

A target is what a figure is held against, met or not; figures without one only tell. What could not
be measured is shown as that, with the reason."""


def write_report(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write the report and its pictures, and remove pictures that are no longer in it.

    Returns:
        What was written, the report first.
    """
    pictures = dict(_draw(results))
    place = folder / _PICTURES
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.svg"):
        if old.name not in pictures:
            old.unlink()
    for name, drawn in pictures.items():
        (place / name).write_text(drawn, encoding="utf-8")
    report = folder / "report.md"
    report.write_text("\n".join(_page(results, set(pictures))).rstrip() + "\n", encoding="utf-8")
    return [report, *(place / name for name in pictures)]


def _draw(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    for result in results:
        if not result.section:
            continue
        drawn = draw_ratios(result.section.title, result.section.figures)
        if drawn:
            yield _ratios_name(result), drawn
        for curve in result.section.curves:
            yield _curve_name(result, curve), draw_curve(curve)


def _ratios_name(result: Result) -> str:
    return f"{result.bench}-ratios.svg"


def _curve_name(result: Result, curve: Curve) -> str:
    return f"{result.bench}-{_NOT_WORD.sub('-', curve.title.lower()).strip('-')}.svg"


def _page(results: Sequence[Result], pictures: set[str]) -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield (
        "Written by `make bench`, which measures all of it anew;"
        " `.venv/bin/python -m bench --render` only writes it."
    )
    if any(result.is_quick for result in results):
        yield ""
        yield "**Sizes were small and rounds few (`--quick`): this only tries the benchmarks out.**"
    yield from ("", "## How to read it", "", _HOW_TO_READ, "")
    if not results:
        yield "Nothing was measured yet."
        return
    yield from _machine(results)
    yield from _summary(results)
    yield from _growth(results)
    yield from _not_measured(results)
    for result in results:
        yield from _section(result, pictures)


# -- what comes first ------------------------------------------------------------------------------


def _machine(results: Sequence[Result]) -> Iterator[str]:
    newest = max(results, key=lambda result: result.measured_at)
    yield from ("## Machine and versions", "")
    yield f"Of the run of {newest.measured_at}, the newest; each section tells its own."
    yield ""
    yield from _table(("", ""), [(name, told) for name, told in newest.machine.items()])
    yield ""


def _summary(results: Sequence[Result]) -> Iterator[str]:
    figures = [(one, figure) for one in results for figure in _figures(one)]
    targets = [figure for _, figure in figures if figure.target]
    met = sum(figure.is_met is True for figure in targets)
    missed = sum(figure.is_met is False for figure in targets)
    yield from ("## In short", "")
    rows = [
        (
            figure.what,
            _show(figure.our_value, figure),
            figure.beside,
            _show(figure.their_value, figure),
            tell_ratio(figure) or _missing(figure),
            tell_spread(figure),
            f"[{one.bench}](#{one.bench})",
        )
        for one, figure in figures
        if figure.is_telling
    ]
    if rows:
        yield from _table(("what", "mooring", "beside", "its", "ratio", "spread", "more"), rows)
        yield ""
    told = f"Targets: {met} met, {missed} missed"
    left = len(targets) - met - missed
    yield f"{told}{f', {left} not measured' if left else ''}."
    yield ""


def _growth(results: Sequence[Result]) -> Iterator[str]:
    found = [(one, curve) for one in results if one.section for curve in one.section.curves]
    if not found:
        return
    yield from ("## Growth", "")
    yield "Medians; a thin line at a point is the spread of its rounds."
    yield ""
    for growth in get_args(Growth):
        yield from (f"### By {growth}", "")
        drawn = [(one, curve) for one, curve in found if curve.grows == growth]
        for one, curve in drawn:
            yield f"![{_alt(curve)}]({_PICTURES}/{_curve_name(one, curve)})"
            yield ""
            missing = f" Not measured: {_cell(curve.missing)}." if curve.missing else ""
            yield f"{curve.title}: `{_command(one, curve.group)}`.{missing}"
            yield ""
        if not drawn:
            yield from ("Not measured yet.", "")


def _not_measured(results: Sequence[Result]) -> Iterator[str]:
    rows = [
        *((one.bench, "all of it", one.failure) for one in results if one.failure),
        *(
            (one.bench, figure.what, figure.missing)
            for one in results
            for figure in _figures(one)
            if figure.missing
        ),
    ]
    if not rows:
        return
    yield from ("## Not measured", "")
    yield from _table(("benchmark", "what", "why"), rows)
    yield ""


# -- sections --------------------------------------------------------------------------------------


def _section(result: Result, pictures: set[str]) -> Iterator[str]:
    yield from (f'<a id="{result.bench}"></a>', "")
    yield f"## {result.section.title if result.section else result.bench}"
    yield ""
    if result.failure:
        yield f"**The last attempt came to no end: {_cell(result.failure)}**"
        yield ""
    yield f"Again by `make bench ONLY={result.bench}`; {_one_figure(result)}."
    yield ""
    if result.section is None:
        return
    if _ratios_name(result) in pictures:
        yield f"![Ratios: {result.section.title}]({_PICTURES}/{_ratios_name(result)})"
        yield ""
    head = ("what", result.section.ours, "beside", "its", "ratio", "spread", "more", "target", "is")
    if result.section.figures:
        rows = [_row(figure) for figure in result.section.figures]
        yield from _table(*_without_empty(head, rows))
        yield ""
    for note in result.section.notes:
        yield f"- {note}"
    yield f"- {_measured(result)}"
    yield ""


def _one_figure(result: Result) -> str:
    names = [figure.what for figure in _figures(result)]
    example = min(names, key=len) if names else "words of its name"
    return f'one figure of it by `.venv/bin/python -m bench {result.bench} --figure "{example}"`'


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.what,
        _show(figure.our_value, figure) or "not measured",
        figure.beside,
        _show(figure.their_value, figure),
        tell_ratio(figure) or _missing(figure),
        tell_spread(figure),
        figure.detail,
        figure.target,
        _VERDICTS[figure.is_met],
    )


def _measured(result: Result) -> str:
    told = dict(result.machine)
    load, cores = told.pop("load", "?"), told.pop("cores", "?")
    versions = ", ".join(f"{name} {version}" for name, version in told.items())
    quick = ", quick" if result.is_quick else ""
    return (
        f"measured {result.measured_at} in {result.seconds:,.0f} s{quick};"
        f" {cores} cores, load {load} at the start; {versions}"
    )


# -- small things ----------------------------------------------------------------------------------


def _figures(result: Result) -> list[Figure]:
    return result.section.figures if result.section else []


def _command(result: Result, group: str) -> str:
    return f'.venv/bin/python -m bench {result.bench} --group "{group}"' if group else result.bench


def _alt(curve: Curve) -> str:
    return f"{curve.title}. {describe(curve)}".replace("[", "(").replace("]", ")")


def _missing(figure: Figure) -> str:
    return "not measured" if figure.missing else ""


def _show(value: float | None, figure: Figure) -> str:
    return "" if value is None else show(value, figure.kind)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield _line(head)
    yield _line(["---"] * len(head))
    for row in rows:
        yield _line(row)


def _without_empty(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Leave columns out that say nothing in any row."""
    kept = [number for number in range(len(head)) if any(row[number] for row in rows)]
    return [head[number] for number in kept], [[row[number] for number in kept] for row in rows]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(text) for text in cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")
