"""Progress of long work, on a terminal's standard error and nowhere else."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mooring.cli.output import Output

__all__ = ["Meter", "format_size", "show_progress", "show_stages"]

_UNIT = 1000
_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")


class Meter(Protocol):
    """Hears how far the work has come."""

    def __call__(self, subject: str, done: str) -> None:
        """Show that so much of ``subject`` is done."""
        ...


@contextmanager
def show_progress(output: Output, *, shows: bool = True) -> Iterator[Meter]:
    """Show a moving bar while the work lasts; without a terminal, nothing.

    Args:
        output: Where the command writes.
        shows: Whether to show it; not where the work shows a bar of its own.
    """
    if not shows or output.is_quiet or not sys.stderr.isatty():
        yield _ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[done]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None, done="")

        def update(subject: str, done: str) -> None:
            bar.update(task, description=subject, done=done)

        yield update


@contextmanager
def show_stages(output: Output) -> Iterator[Callable[[str, int, int], None] | None]:
    """Give what shows a bar with the tasks of a job that are done; without a terminal, nothing.

    The bar is there from the first call on.
    """
    if output.is_quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tasks"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=None)

    def update(label: str, done: int, total: int) -> None:
        bar.start()
        bar.update(task, description=f"spark: {label}" if label else "spark", total=total)
        bar.update(task, completed=done)
        if done == total:
            bar.stop()

    try:
        yield update
    finally:
        bar.stop()


def format_size(size_bytes: float) -> str:
    """Say a number of bytes in its largest unit: ``12 B``, ``3.4 MB``."""
    unit = 0
    while size_bytes >= _UNIT and unit < len(_SIZES) - 1:
        size_bytes /= _UNIT
        unit += 1
    return f"{size_bytes:.1f} {_SIZES[unit]}" if unit else f"{size_bytes:.0f} B"


def _ignore(subject: str, done: str) -> None:
    del subject, done
