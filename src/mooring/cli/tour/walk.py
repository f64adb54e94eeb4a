"""The walk: a folder that is made for it, every step in its turn, and nothing left behind."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import ExitStack, contextmanager, redirect_stderr
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mooring.cli.tour.story import CATALOG, FILES, NEXT, STEPS
from mooring.errors import ConflictError, MooringError, PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.cli.tour.screen import Screen
    from mooring.cli.tour.story import Line, Step

__all__ = ["INTERRUPTED", "walk"]

INTERRUPTED = 130
_OURS = "MOORING_"
_USER = "MOORING_USER"
# Runs the program in a process of its own, whatever it is called on this machine.
_PROGRAM = "from mooring.cli.app import main; main()"


def walk(screen: Screen, *, keep: str | None = None) -> int:
    """Take the tour.

    Args:
        screen: Where it is shown.
        keep: A new directory in which everything stays; else nothing does.

    Returns:
        The exit code.

    Raises:
        ConflictError: the directory to keep is there, and not empty.
        MooringError: a step ended otherwise than the tour tells.
        PermissionDeniedError: the directory cannot be made.
    """
    with ExitStack() as held:
        folder = _make(Path(keep)) if keep else Path(held.enter_context(TemporaryDirectory()))
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        with _alone_in(folder):
            code = _tour(screen, folder)
    _say_goodbye(screen, folder if keep else None, is_whole=code is None)
    return code or 0


def _tour(screen: Screen, folder: Path) -> int | None:
    """Go from step to step.

    Returns:
        None at the end of it, else the exit code of whoever left before.
    """
    try:
        _welcome(screen, folder)
        for number, step in enumerate(STEPS, 1):
            if not screen.wait():
                return 0
            screen.heading(f"{number} of {len(STEPS)}. {step.heading}")
            screen.prose(step.why)
            _take(screen, step)
    except KeyboardInterrupt:
        screen.gap()
        return INTERRUPTED
    return None


def _welcome(screen: Screen, folder: Path) -> None:
    screen.heading("A tour of Mooring")
    screen.prose(
        f"{len(STEPS)} steps, a few minutes. Every command below is really run, in {folder}, where"
        " two files lie:"
    )
    for name, text in FILES.items():
        screen.file(name, text)


def _take(screen: Screen, step: Step) -> None:
    if step.at_once:
        _race(screen, step)
        return
    for line in step.lines:
        screen.command(line.text)
        code = _run(shlex.split(line.text)[1:])
        _check(line, code)
        if code:
            screen.remark(f"exit code {code}")
        screen.gap()


def _run(words: list[str]) -> int:
    """Run the program in this process, which has Lance loaded already.

    Raises:
        KeyboardInterrupt: somebody wants to leave.
    """
    # What is said on standard error is a part of the picture, in its place.
    with redirect_stderr(sys.stdout):
        try:
            _program().main(words, prog_name="mooring")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    sys.stdout.flush()
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


@cache
def _program() -> Any:  # noqa: ANN401  # Typer's commands have no public type
    """Make the program once: a hundred options take longer than most commands."""
    from typer.main import get_command

    from mooring.cli.app import app

    return get_command(app)


def _race(screen: Screen, step: Step) -> None:
    """Let several people type at once."""
    running = []
    for who, line in zip(step.at_once, step.lines, strict=True):
        screen.command(f"{_USER}={who} {line.text} &")
        running.append(_start(who, line))
    ends = [(process.communicate()[0], process.returncode) for process in running]
    for who, (text, code) in zip(step.at_once, ends, strict=True):
        told = " ".join(text.split())
        screen.remark(f"{who}, exit code {code}:")
        screen.prose(f"  {told}")
    codes = sorted(code for _, code in ends)
    if codes != sorted([0, *(line.code for line in step.lines[1:])]):
        _refuse(f"the race ended with the exit codes {codes}")


def _start(who: str, line: Line) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  # this program, with words of the story
        [sys.executable, "-c", _PROGRAM, *shlex.split(line.text)[1:]],
        env={**os.environ, _USER: who},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _check(line: Line, code: int) -> None:
    if code != line.code:
        _refuse(f'"{line.text}" ended with the exit code {code}')


def _refuse(what: str) -> None:
    msg = f"the tour cannot go on: {what}, other than it should here; what it printed says why"
    raise MooringError(msg)


def _make(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            msg = f"'{folder}' is not empty: name a new directory to keep the tour in"
            raise ConflictError(msg)
    except (FileExistsError, NotADirectoryError):
        msg = f"'{folder}' is no directory: name a new one to keep the tour in"
        raise ConflictError(msg) from None
    except PermissionError as exc:
        msg = f"'{folder}' cannot be made: {exc.strerror}"
        raise PermissionDeniedError(msg) from exc
    return folder.absolute()


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Work in a folder as somebody who has set nothing: no catalog of the user's is in reach."""
    before, place = dict(os.environ), Path.cwd()
    for name in before:
        if name.startswith(_OURS) and name != _USER:
            del os.environ[name]
    os.environ[f"{_OURS}CONFIG"] = str(folder / "config.toml")
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)


def _say_goodbye(screen: Screen, kept: Path | None, *, is_whole: bool) -> None:
    screen.heading("What to try next" if is_whole else "Until another time")
    if kept is None:
        screen.prose(
            "The catalog of the tour is deleted, and nothing of it is left. One that stays, to play"
            " with: mooring tour --keep DIR"
        )
    else:
        screen.prose(f"Everything stays in {kept}: go there, and the catalog is '{CATALOG}'.")
        screen.command(f"cd {shlex.quote(str(kept))}")
        screen.gap()
    if is_whole:
        screen.choices(NEXT)
