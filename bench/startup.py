"""How long the package takes to import and the command to answer."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from pathlib import Path

import mooring
from bench.lakes import fill, workspace
from bench.report import Figure, Section
from bench.timing import time_pairs
from mooring.directory.migration import Migration

__all__ = ["run"]

_PYTHON = sys.executable
_MOORING = str(Path(sys.executable).with_name("mooring"))
_IMPORT_LINE = re.compile(r"import time:\s*\d+ \|\s*(\d+) \| (\S+)")


def run(*, quick: bool) -> Section:
    """Measure imports and whole processes."""
    rounds = 3 if quick else 9
    imported = _time_import("mooring", rounds)
    beside = {"beside": "lance_namespace", "theirs": _time_import("lance_namespace", 3)}
    with workspace() as space:
        root, migrated = space / "lake", space / "migrated"
        for directory in (root, migrated):
            fill(directory, 100)
            mooring.connect(directory).backend.initialize(adopt=True)
        Migration(mooring.connect(migrated).backend).run()
        took = time_pairs(
            {
                "python": lambda: _call(_PYTHON, "-c", "pass"),
                "help": lambda: _call(_MOORING, "--help"),
                "ls": lambda: _call(_MOORING, "ls", str(root)),
                "migrated": lambda: _call(_MOORING, "ls", str(migrated)),
            },
            rounds,
        )
    bare = {"beside": "python -c pass", "theirs": took["python"]}
    return Section(
        "Starting",
        [
            Figure("import mooring", imported, at_most=0.150, **beside),
            Figure("mooring --help", took["help"], at_most=0.400, **bare),
            Figure("mooring ls, 100 tables on disk", took["ls"], at_most=0.700, **bare),
            Figure("mooring ls, the same with a manifest", took["migrated"], **bare),
        ],
        ["imports as python -X importtime tells them, commands from start to end of the process"],
    )


def _time_import(module: str, rounds: int) -> float:
    """Return the median seconds of a module's import, those of what it imports included."""
    return statistics.median(_import_once(module) for _ in range(rounds))


def _import_once(module: str) -> float:
    command = [_PYTHON, "-X", "importtime", "-c", f"import {module}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    by_module = {name: int(micros) for micros, name in _IMPORT_LINE.findall(told)}
    return by_module[module] / 1e6


def _call(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
