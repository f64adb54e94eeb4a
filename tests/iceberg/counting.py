"""A way to a server that counts the requests which go through it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.iceberg.passing import passing

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Counter", "counting"]


@dataclass
class Counter:
    """How many requests went through, and where."""

    uri: str = ""
    paths: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many there were."""
        return len(self.paths)


@contextmanager
def counting(uri: str) -> Iterator[Counter]:
    """Pass requests on to a server, and count them."""
    counter = Counter()
    with passing(uri, note=counter.paths.append) as counter.uri:
        yield counter
