"""The program, run in this process: another one would import Lance again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from typer.main import get_command
from typer.testing import CliRunner

from mooring.cli.app import app

if TYPE_CHECKING:
    from typer.testing import Result

__all__ = ["PROGRAM", "invoke"]

# Made once: more than a thousand options take longer than most commands.
PROGRAM = get_command(app)


def invoke(*words: object, **options: Any) -> Result:  # as the runner has them
    """Run a command line."""
    with patch("typer.testing._get_command", return_value=PROGRAM):
        return CliRunner().invoke(app, [str(word) for word in words], **options)
