"""``python -m bench``: measure, keep what was found, and write the report of all that is kept."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.markdown import write_report
from bench.measuring import measure
from bench.report import print_json, print_tables
from bench.results import keep, load, load_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.figures import Figure
    from bench.results import Result

BENCHES = (
    "changes",
    "iceberg",
    "listing",
    "manifest",
    "metastore",
    "operations",
    "pages",
    "requests",
    "server",
    "spark",
    "startup",
    "tables",
    "writers",
)
_HERE = Path(__file__).parent
_RESULTS = _HERE / "results"
# Figures of small sizes never stand in for the real ones.
_QUICK_RESULTS = _RESULTS / "quick"


def main() -> int:
    """Do what is asked for; return the code to end with."""
    args = _parse()
    results = _QUICK_RESULTS if args.quick else _RESULTS
    out = args.out or (results if args.quick else _HERE)
    if args.figure or args.group:
        return _show_some(args, results)
    measured = [] if args.render else _measure_all(args.bench or BENCHES, results, args)
    report, *pictures = write_report(load_all(results), out)
    print(f"{report}, with {len(pictures)} pictures", file=sys.stderr)
    return _end(measured, is_checked=args.check)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("bench", nargs="*", choices=[*BENCHES, []], help=", ".join(BENCHES))
    parser.add_argument("--figure", help="measure and print figures whose name has these words")
    parser.add_argument(
        "--group", action="append", default=[], help="measure and print a part of the benchmarks"
    )
    parser.add_argument("--render", action="store_true", help="write the report, measure nothing")
    parser.add_argument("--out", type=Path, help="where to write the report and its pictures")
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--check", action="store_true", help="end with 1 where a target is missed")
    return parser.parse_args()


# -- all of it -------------------------------------------------------------------------------------


def _measure_all(benches: Sequence[str], results: Path, args: argparse.Namespace) -> list[Result]:
    found = []
    for number, bench in enumerate(benches, 1):
        print(f"measuring {bench} ({number} of {len(benches)})", file=sys.stderr)
        result = measure(bench, quick=args.quick)
        keep(_beside_kept(result, results), results)
        _print([result], is_json=args.json)
        found.append(result)
    return found


def _beside_kept(result: Result, results: Path) -> Result:
    """Keep what was found before where a new attempt found nothing, and tell so."""
    before = load(result.bench, results)
    if result.section or before is None:
        return result
    return replace(before, failure=f"{result.measured_at}: {result.failure}")


# -- some of it ------------------------------------------------------------------------------------


def _show_some(args: argparse.Namespace, results: Path) -> int:
    """Measure the groups that hold the figures which are asked for, and print only these."""
    kept = {one.bench: one for one in load_all(results)}
    wanted = {bench: _groups(kept.get(bench), args) for bench in args.bench or kept}
    # Without an earlier result nobody knows what a benchmark holds: all of a named one is measured.
    benches = [bench for bench, groups in wanted.items() if groups or bench not in kept]
    if not benches:
        words = args.figure or ", ".join(args.group)
        print(
            f"error: no kept result has {words!r}; name its benchmark, as in:"
            f" python -m bench listing --figure {words!r}",
            file=sys.stderr,
        )
        return 2
    found = []
    for bench in benches:
        print(f"measuring {bench}", file=sys.stderr)
        found.append(measure(bench, quick=args.quick, groups=wanted[bench]))
    chosen = [_only(one, args.figure) for one in found]
    _print(chosen, is_json=args.json)
    return _end(chosen, is_checked=args.check)


def _groups(kept: Result | None, args: argparse.Namespace) -> list[str]:
    if kept is None or kept.section is None:
        return list(args.group)
    if args.group:
        return sorted({one.group for one in kept.section.found} & set(args.group))
    return sorted({figure.group for figure in _named(kept.section.figures, args.figure)})


def _named(figures: Iterable[Figure], words: str) -> list[Figure]:
    return [figure for figure in figures if words.lower() in figure.what.lower()]


def _only(result: Result, words: str | None) -> Result:
    if not words or result.section is None:
        return result
    failed = [figure for figure in result.section.figures if figure.is_failure]
    return replace(
        result,
        section=replace(
            result.section, found=[*_named(result.section.figures, words), *failed], notes=[]
        ),
    )


# -- the end ---------------------------------------------------------------------------------------


def _print(results: Sequence[Result], *, is_json: bool) -> None:
    for result in results:
        if result.section:
            (print_json if is_json else print_tables)(result.machine, [result.section])
            sys.stdout.flush()


def _end(results: Sequence[Result], *, is_checked: bool) -> int:
    """Tell what failed; return the code to end with."""
    failed = [f"{result.bench}: {told}" for result in results for told in result.failures]
    for told in failed:
        print(f"FAILED {told}", file=sys.stderr)
    figures = [figure for one in results if one.section for figure in one.section.figures]
    missed = any(figure.is_met is False for figure in figures)
    return int(bool(failed) or (is_checked and missed))


if __name__ == "__main__":
    sys.exit(main())
