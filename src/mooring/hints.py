"""Command lines to suggest in messages, written so that a shell reads them as meant."""

from __future__ import annotations

import shlex

__all__ = ["suggest"]


def suggest(verb: str, *words: str, catalog: str | None = None) -> str:
    """Write a command line: ``mooring table undrop 'a$b'``.

    Args:
        verb: Noun and verb.
        words: What follows.
        catalog: The catalog, where the command would not find it by itself.
    """
    separator = ["--"] if any(word.startswith("-") for word in words) else []
    where = ["-c", catalog] if catalog else []
    return shlex.join(["mooring", *where, *verb.split(), *separator, *words])
