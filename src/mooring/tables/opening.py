"""Open a located table for reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance

from mooring.errors import TableNotFoundError, TableVersionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance import LanceDataset

__all__ = ["open_at"]


def open_at(
    location: str, options: Mapping[str, str], version: int | str | None = None
) -> LanceDataset:
    """Open a table, at a version or tag if given.

    Raises:
        TableVersionNotFoundError: the table has no such version or tag.
        TableNotFoundError: there is nothing to open: the table is only declared.
    """
    try:
        return lance.dataset(location, version=version, storage_options=dict(options) or None)
    except (ValueError, OSError) as exc:
        if version is not None:
            msg = f"the table at '{location}' has no version or tag '{version}'"
            raise TableVersionNotFoundError(msg) from exc
        msg = f"the table at '{location}' has no data yet: it is only declared"
        raise TableNotFoundError(msg) from exc
