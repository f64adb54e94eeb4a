"""How long the package takes to import and the command to answer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import mooring
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import fill, workspace
from bench.sections import Section
from bench.timing import time_rounds
from mooring.directory.migration import Migration

__all__ = ["run"]

_PYTHON = sys.executable
_MOORING = str(Path(sys.executable).with_name("mooring"))
_IMPORT_LINE = re.compile(r"import time:\s*\d+ \|\s*(\d+) \| (\S+)")


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure imports and whole processes."""
    rounds = 3 if quick else 9
    found = groups.measure("import", lambda: _imports(rounds))
    found += groups.measure("commands", lambda: _commands(rounds))
    return Section(
        "Starting",
        found,
        ["imports as python -X importtime tells them, commands from start to end of the process"],
    )


def _imports(rounds: int) -> list[Figure]:
    modules = ("mooring", "lance_namespace")
    took: dict[str, list[float]] = {module: [] for module in modules}
    for _ in range(rounds):
        for module in modules:
            took[module].append(_import_once(module))
    return [
        Figure(
            "import mooring",
            took["mooring"],
            beside="import lance_namespace",
            theirs=took["lance_namespace"],
            at_most=0.150,
            is_telling=True,
        )
    ]


def _commands(rounds: int) -> list[Figure]:
    with workspace() as space:
        root, migrated = space / "lake", space / "migrated"
        for directory in (root, migrated):
            fill(directory, 100)
            mooring.connect(directory).backend.initialize(adopt=True)
        Migration(mooring.connect(migrated).backend).run()
        took = time_rounds(
            {
                "python": lambda: _call(_PYTHON, "-c", "pass"),
                "help": lambda: _call(_MOORING, "--help"),
                "ls": lambda: _call(_MOORING, "ls", str(root)),
                "migrated": lambda: _call(_MOORING, "ls", str(migrated)),
            },
            rounds,
        )
    bare = {"beside": "python -c pass", "theirs": took["python"]}
    return [
        Figure("mooring --help", took["help"], at_most=0.400, **bare),
        Figure("mooring ls, 100 tables on disk", took["ls"], at_most=0.700, **bare),
        Figure("mooring ls, the same with a manifest", took["migrated"], **bare),
    ]


def _import_once(module: str) -> float:
    """Return the seconds of a module's import, those of what it imports included."""
    command = [_PYTHON, "-X", "importtime", "-c", f"import {module}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    by_module = {name: int(micros) for micros, name in _IMPORT_LINE.findall(told)}
    return by_module[module] / 1e6


def _call(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
