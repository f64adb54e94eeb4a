"""What a query's checkpoint tells, where it lies in a directory that this process can read."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Checkpoint"]

_METADATA, _COMMITS = "metadata", "commits"


class Checkpoint:
    """A checkpoint of Spark, which may be somewhere else altogether."""

    def __init__(self, location: str | None) -> None:
        """Look at a location as Spark was given it; nothing is read yet."""
        self._directory = _local(location)

    @property
    def query_id(self) -> str | None:
        """The identifier that Spark gave the query when it began; None where nobody can tell."""
        if self._directory is None:
            return None
        try:
            found = json.loads((self._directory / _METADATA).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return str(found["id"]) if isinstance(found, dict) and "id" in found else None

    @property
    def has_batches(self) -> bool:
        """Whether a batch is known to be done."""
        if self._directory is None:
            return False
        return any(name.name.isdecimal() for name in (self._directory / _COMMITS).glob("*"))


def _local(location: str | None) -> Path | None:
    if not location:
        return None
    parts = urlsplit(location)
    if parts.scheme not in {"", "file"}:
        return None
    return Path(unquote(parts.path) if parts.scheme else location)
