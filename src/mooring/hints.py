"""Command lines to suggest in messages, written so that a shell reads them as meant."""

from __future__ import annotations

import shlex

__all__ = ["suggest"]


def suggest(verb: str, *words: str) -> str:
    """Write a command line: ``mooring table undrop 'a$b'``."""
    separator = ["--"] if any(word.startswith("-") for word in words) else []
    return shlex.join(["mooring", *verb.split(), *separator, *words])
