"""Tables all of whose files are their own, for those who may see no others.

A version of a table names its files, also in directories of other tables: a shallow clone does.
Whoever can write a table's files can have it name any that whoever opens it can read. A server
reads for clients of whom some may see a part of a catalog only: for them it opens what is confined.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from mooring.errors import PermissionDeniedError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance import LanceDataset

__all__ = ["check_confined", "confined", "has_own_files"]

_is_confined: ContextVar[bool] = ContextVar("mooring_is_confined", default=False)


@contextmanager
def confined(*, only: bool = True) -> Iterator[None]:
    """Open, within this, only tables all of whose files are their own.

    Args:
        only: Whether to; for those who may see everything there is no need.
    """
    before = _is_confined.set(only)
    try:
        yield
    finally:
        _is_confined.reset(before)


def check_confined(dataset: LanceDataset, location: str) -> LanceDataset:
    """Return a table that was opened at a location, where that is allowed.

    Raises:
        PermissionDeniedError: it names files elsewhere, and only those of its own may be read.
    """
    if _is_confined.get() and not has_own_files(dataset, location):
        msg = (
            f"the table at {quote(location)} names files of other tables, which takes a role in"
            " the whole catalog to read"
        )
        raise PermissionDeniedError(msg)
    return dataset


def has_own_files(dataset: LanceDataset, location: str) -> bool:
    """Whether all files of a table that was opened at a location are its own."""
    root = f"{location.rstrip('/')}/"
    return all(
        f"{base.path.rstrip('/')}/".startswith(root) and ".." not in base.path.split("/")
        for base in dataset.base_paths().values()
    )
