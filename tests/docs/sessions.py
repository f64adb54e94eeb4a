"""Shell sessions of documents: what each command prints, and what it is compared with."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tests.docs.documents import commands_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.docs.documents import Block

__all__ = ["follow_session", "mask", "matches"]

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z|\d+ s ago")
# Where the documents say that they are.
_HOME = "/home/ada"


def follow_session(
    block: Block,
    shell: Callable[[str], tuple[list[str], int]],
    form: Callable[[list[str]], list[str]] = list,
) -> None:
    """Run the commands of a session, which print what the session says, and end as it says.

    Args:
        block: The session.
        shell: Runs a command; returns the masked lines that it printed, and its exit code.
        form: What lines are compared as.
    """
    for command in commands_of(block):
        printed, code = shell(command.line)
        assert code == command.exit_code, (command.line, printed)
        expected = mask("\n".join(command.output))
        assert matches(form(printed), form(expected)), (command, printed)


def mask(text: str, home: str = "") -> list[str]:
    """Make what differs from run to run the same; trailing blanks do not count."""
    text = _TIME.sub("<time>", text.replace(home or os.getcwd(), _HOME))  # noqa: PTH109
    return [line.rstrip() for line in text.splitlines()]


def matches(printed: list[str], expected: list[str]) -> bool:
    """Compare lines; ``...`` stands for any number of them."""
    if "..." not in expected:
        return printed == expected
    cut = expected.index("...")
    head, tail = expected[:cut], expected[cut + 1 :]
    rest = printed[cut:]
    return printed[:cut] == head and any(
        matches(rest[start:], tail) for start in range(len(rest) + 1)
    )
