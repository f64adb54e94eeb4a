"""Command lines to suggest in messages, written so that a shell reads them as meant."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["suggest"]


def suggest(verb: str, *words: str, options: Sequence[str] = ()) -> str:
    """Write a command line: ``mooring table undrop 'a$b'``.

    Args:
        verb: Noun and verb.
        words: What follows.
        options: What stands before the verb.
    """
    separator = ["--"] if any(word.startswith("-") for word in words) else []
    return shlex.join(["mooring", *options, *verb.split(), *separator, *words])
