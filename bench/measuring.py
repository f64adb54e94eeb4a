"""One benchmark in a process of its own: what it does to memory, or dies of, stays there."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.groups import Groups
from bench.machine import describe_machine
from bench.results import Result, keep, load

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["measure"]

_ROOT = Path(__file__).parents[1]


def measure(bench: str, *, quick: bool, groups: Collection[str] = ()) -> Result:
    """Run a benchmark, or some groups of it, and return what it found."""
    began = _now()
    with TemporaryDirectory(prefix="mooring-bench-") as space:
        command = [sys.executable, "-m", "bench.measuring", bench, space]
        command += ["--quick"] if quick else []
        command += [word for group in groups for word in ("--group", group)]
        code, last = _run(command)
        found = load(bench, Path(space))
    if found is None:
        failure = f"ended with {code}{f': {last}' if last else ''}"
        return Result(bench, None, began, is_quick=quick, failure=failure)
    return found


def _run(command: list[str]) -> tuple[int, str]:
    """Run a command, pass on what it tells, and return how it ended and its last line."""
    tail = b""
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=_ROOT) as process:
        assert process.stderr is not None
        # As it comes, not line by line: a group is told before it is measured.
        while told := os.read(process.stderr.fileno(), 65_536):
            sys.stderr.buffer.write(told)
            sys.stderr.flush()
            tail = (tail + told)[-4_096:]
    lines = tail.decode(errors="replace").strip().splitlines()
    return process.returncode, lines[-1][:300] if lines else ""


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def main() -> None:
    """Run the benchmark that is named, and keep what it found where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.measuring", description=__doc__)
    parser.add_argument("bench")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--group", action="append", default=[])
    args = parser.parse_args()
    # Lance reads it when it is imported; it warns of every commit that loses a race.
    os.environ.setdefault("LANCE_LOG", "error")
    began, began_s = _now(), time.monotonic()
    machine = describe_machine()
    module = import_module(f"bench.{args.bench}")
    section = module.run(quick=args.quick, groups=Groups(frozenset(args.group)))
    # Peers may have been built meanwhile; the load is that of the beginning.
    machine = {**describe_machine(), "load": machine["load"]}
    result = Result(args.bench, section, began, is_quick=args.quick, machine=machine)
    keep(replace(result, seconds=time.monotonic() - began_s), args.folder)


if __name__ == "__main__":
    main()
