"""From whatever goes wrong to one line on standard error and an exit code."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import typer

from mooring.cli.output import Format, Output
from mooring.errors import InvalidInputError, MooringError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.cli.session import Session

__all__ = ["Invocation"]


class Invocation:
    """One call of the program: how its failures are told.

    A failure may come before the options are read, so the two that matter here are looked up in
    the arguments until a session knows them.
    """

    def __init__(self, args: Sequence[str]) -> None:
        """Look at the arguments."""
        self._output = Output(_guess_format(args))
        self._verbose = any(arg in {"-v", "--verbose"} for arg in _options(args))

    def enter(self, session: Session) -> None:
        """Take the settings of the session that was opened."""
        self._output = session.output
        self._verbose = session.flags.verbose
        if self._verbose:
            _log_to_stderr()

    def tell(self, exc: Exception) -> int:
        """Tell a failure.

        Returns:
            The exit code.
        """
        if self._verbose:
            _write_traceback(exc)
        match exc:
            case MooringError():
                self._output.error(type(exc).__name__, exc.code, str(exc))
                return exc.exit_code
            case typer.TyperException():
                self._output.error("UsageError", InvalidInputError.code, _usage_message(exc))
                return exc.exit_code
            case _:
                self._output.error(type(exc).__name__, MooringError.code, self._surprise(exc))
                return MooringError.exit_code

    def _surprise(self, exc: Exception) -> str:
        text = " ".join(str(exc).split())
        hint = "" if self._verbose else " (run with -v for the traceback)"
        return f"{type(exc).__name__}: {text}{hint}"


def _usage_message(exc: typer.TyperException) -> str:
    message = " ".join(exc.format_message().split())
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
