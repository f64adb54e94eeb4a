"""``python -m bench``: run the benchmarks and print what they found."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module

from bench.report import describe_machine, print_json, print_tables

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


def main() -> int:
    """Run the benchmarks that are asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("bench", nargs="*", choices=[*BENCHES, []], help=", ".join(BENCHES))
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--check", action="store_true", help="end with 1 where a target is missed")
    args = parser.parse_args()
    # Lance reads it when it is imported; it warns of every commit that loses a race.
    os.environ.setdefault("LANCE_LOG", "error")
    machine = describe_machine()
    sections = []
    for name in args.bench or BENCHES:
        print(f"measuring {name} ...", file=sys.stderr)
        sections.append(import_module(f"bench.{name}").run(quick=args.quick))
    (print_json if args.json else print_tables)(machine, sections)
    missed = any(figure.is_met is False for section in sections for figure in section.figures)
    return int(args.check and missed)


if __name__ == "__main__":
    sys.exit(main())
