"""From whatever goes wrong to one line on standard error and an exit code."""

from __future__ import annotations

import os
import re
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import typer

from mooring.cli.advice import advise
from mooring.cli.output import Format, Output
from mooring.errors import InvalidInputError, MooringError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.cli.session import Session

__all__ = ["Invocation"]

# What the library that reads the options says, and how it reads better.
_WORDING = (
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be a valid (\w+), unable to parse .*"), r"it should be a \1"),
    (re.compile(r"Input should be"), "it should be"),
    (re.compile(r"\ba integer\b"), "a whole number"),
    # An option that is near to no other is no help.
    (re.compile(r" \(Possible options: --quiet\)"), ""),
)


class Invocation:
    """One call of the program: how its failures are told.

    A failure may come before the options are read, so the two that matter here are looked up in
    the arguments until a session knows them.
    """

    def __init__(self, args: Sequence[str]) -> None:
        """Look at the arguments."""
        self._output = Output(_guess_format(args))
        self._session: Session | None = None
        self.is_verbose = any(arg in {"-v", "--verbose"} for arg in _options(args))

    def enter(self, session: Session) -> None:
        """Take the settings of the session that was opened."""
        self._session = session
        self._output = session.output
        self.is_verbose = session.flags.verbose
        if self.is_verbose:
            _log_to_stderr()

    def tell(self, exc: Exception) -> int:
        """Tell a failure.

        Returns:
            The exit code.
        """
        if self.is_verbose:
            _write_traceback(exc)
        match exc:
            case MooringError():
                text = advise(exc, self._session)
                self._output.error(type(exc).__name__, exc.code, text)
                return exc.exit_code
            case typer.TyperException():
                self._output.error("UsageError", InvalidInputError.code, _usage_message(exc))
                return exc.exit_code
            case _:
                self._output.error(type(exc).__name__, MooringError.code, self._surprise(exc))
                return MooringError.exit_code

    def _surprise(self, exc: Exception) -> str:
        text = " ".join(str(exc).split())
        hint = "" if self.is_verbose else " (run with -v for the traceback)"
        return f"{type(exc).__name__}: {text}{hint}"


def _usage_message(exc: typer.TyperException) -> str:
    message = " ".join(exc.format_message().split())
    for pattern, better in _WORDING:
        message = pattern.sub(better, message)
    if message[-1:] not in {".", "?", ")"}:
        message += "."
    ctx = getattr(exc, "ctx", None)
    return f'{message} Try "{ctx.command_path} --help".' if ctx else message


def _guess_format(args: Sequence[str]) -> Format:
    said = os.environ.get("MOORING_OUTPUT", "")
    for option, value in pairwise([*_options(args), ""]):
        if option in {"-o", "--output"}:
            said = value
        elif option.startswith("--output="):
            said = option.removeprefix("--output=")
        elif option.startswith("-o"):
            said = option.removeprefix("-o")
    return Format(said) if said in set(Format) else Format.TABLE


def _options(args: Sequence[str]) -> Sequence[str]:
    return args[: args.index("--")] if "--" in args else args


def _write_traceback(exc: Exception) -> None:
    import traceback

    traceback.print_exception(exc, file=sys.stderr)


def _log_to_stderr() -> None:
    import logging

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("mooring").setLevel(logging.DEBUG)
