"""Open a located table for reading."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import lance

from mooring.errors import (
    ServiceUnavailableError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance import LanceDataset

__all__ = ["open_at"]

# Lance has no class of its own for what is not there.
_NOT_FOUND = re.compile(r"not found|no such|does not exist", re.IGNORECASE)


def open_at(
    location: str, options: Mapping[str, str], version: int | str | None = None
) -> LanceDataset:
    """Open a table, at a version or tag if given.

    Raises:
        TableVersionNotFoundError: the table has no such version or tag.
        TableNotFoundError: there is nothing to open: the table is only declared.
        ServiceUnavailableError: the table cannot be read.
    """
    try:
        return lance.dataset(location, version=version, storage_options=dict(options) or None)
    except (ValueError, OSError) as exc:
        reason = str(exc).partition(", /")[0]
        if not _NOT_FOUND.search(reason):
            msg = f"the table at '{location}' cannot be opened: {reason}"
            raise ServiceUnavailableError(msg) from exc
        if version is not None:
            msg = f"the table at '{location}' has no version or tag '{version}'"
            raise TableVersionNotFoundError(msg) from exc
        msg = f"the table at '{location}' has no data yet: it is only declared"
        raise TableNotFoundError(msg) from exc
