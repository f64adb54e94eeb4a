"""Where the tour is shown: headings, prose as wide as the terminal, and the wait for a key."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

from mooring.cli.output import is_coloured

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Screen"]

_BOLD, _CYAN, _DIM, _PLAIN = "\033[1m", "\033[36m", "\033[2m", "\033[0m"
# Prose in longer lines is hard to read, and in shorter ones there is none.
_WIDEST, _NARROWEST = 88, 24
_LEAVE = {"q", "quit", "exit"}


class Screen:
    """Writes to standard output, and waits where somebody sits before it."""

    def __init__(self, *, pauses: bool) -> None:
        """Look at the terminal.

        Args:
            pauses: Whether to wait after a step; only a terminal is waited for.
        """
        self._pauses = pauses and sys.stdin.isatty() and sys.stdout.isatty()
        self._width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))

    def heading(self, text: str) -> None:
        """Begin a part."""
        self._write("", *(self._styled(line, _BOLD) for line in self._fold(text)))

    def prose(self, text: str) -> None:
        """Tell something."""
        self._write(*self._fold(text), "")

    def file(self, name: str, text: str) -> None:
        """Show what is in a file."""
        self._write(f"  {name}", *(self._styled(f"    {line}", _DIM) for line in text.splitlines()))
        self._write("")

    def command(self, text: str) -> None:
        """Show what is typed; whole, so that it can be copied."""
        self._write(self._styled(f"$ {text}", _CYAN))

    def remark(self, text: str) -> None:
        """Say something beside."""
        self._write(self._styled(text, _DIM))

    def gap(self) -> None:
        """Leave a line."""
        self._write("")

    def choices(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Show lines that can be typed, each with what it is."""
        for line, meaning in pairs:
            self._write(self._styled(f"  {line}", _CYAN))
            self._write(*self._fold(meaning, indent="      "))

    def wait(self) -> bool:
        """Wait for Enter where somebody can press it.

        Returns:
            Whether to go on.
        """
        if not self._pauses:
            return True
        sys.stdout.write(self._styled("Enter goes on, q leaves: ", _DIM))
        sys.stdout.flush()
        answer = sys.stdin.readline()
        if not answer:  # the end of the input: nobody will answer any more
            self._write("")
            return False
        return answer.strip().lower() not in _LEAVE

    def _fold(self, text: str, indent: str = "") -> list[str]:
        """Make lines of a text; a path or a command stays whole, so that it can be copied."""
        return textwrap.wrap(
            text,
            self._width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{text}{_PLAIN}" if is_coloured(sys.stdout) else text

    def _write(self, *lines: str) -> None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        # What other processes write to the same terminal comes after it.
        sys.stdout.flush()
