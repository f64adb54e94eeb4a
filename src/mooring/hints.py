"""What to suggest in messages: command lines as a shell reads them, and names that are close."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["close_names", "lance_spark_settings", "suggest"]

_MANY_SUGGESTIONS = 3


def suggest(verb: str, *words: str, options: Sequence[str] = ()) -> str:
    """Write a command line: ``mooring table undrop 'a$b'``.

    Args:
        verb: Noun and verb.
        words: What follows.
        options: What stands before the verb.
    """
    separator = ["--"] if any(word.startswith("-") for word in words) else []
    return shlex.join(["mooring", *options, *verb.split(), *separator, *words])


def lance_spark_settings(name: str) -> dict[str, str]:
    """Return the settings of Spark that every SQL catalog of lance-spark needs.

    Args:
        name: What SQL calls the catalog.
    """
    return {
        "spark.jars.packages": "org.lance:lance-spark-bundle-4.1_2.13:0.7.1",
        "spark.sql.extensions": "org.lance.spark.extensions.LanceSparkSessionExtensions",
        f"spark.sql.catalog.{name}": "org.lance.spark.LanceNamespaceSparkCatalog",
    }


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the names most like one, whatever their letters' case."""
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    found = get_close_matches(name.casefold(), folded, n=_MANY_SUGGESTIONS)
    return [folded[match] for match in found]
