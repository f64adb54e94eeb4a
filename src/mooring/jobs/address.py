"""How a worker on another machine finds a catalog, and a table at a version."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.opening import METASTORE_SCHEME, connect
from mooring.tables.handle import At

if TYPE_CHECKING:
    from lance import LanceDataset

    from mooring.catalog import Catalog
    from mooring.table import Table
    from mooring.tables.handle import TableHandle

__all__ = ["CatalogAddress", "TableAddress"]


@dataclass(frozen=True)
class CatalogAddress:
    """A catalog, as text that travels."""

    uri: str
    options: str = field(default="{}", repr=False)  # it holds secrets

    @classmethod
    def of(cls, catalog: Catalog) -> CatalogAddress:
        """Return where a catalog is and how it was opened."""
        return cls(
            _absolute(catalog.uri), msgspec.json.encode(catalog.options, order="sorted").decode()
        )

    @classmethod
    def at(cls, uri: str, **options: Any) -> CatalogAddress:  # noqa: ANN401  # those of connect
        """Return the address of a catalog that is not open."""
        return cls(_absolute(uri), msgspec.json.encode(options, order="sorted").decode())

    def open(self) -> Catalog:
        """Open the catalog, once in a process."""
        return _open(self)


@dataclass(frozen=True)
class TableAddress:
    """A table of a catalog, at a version.

    Attributes:
        catalog: The catalog.
        names: The table's identifier, level by level.
        version: The version.
        branch: Its branch; main unless given.
    """

    catalog: CatalogAddress
    names: tuple[str, ...]
    version: int | None = None
    branch: str | None = None

    def table(self) -> Table:
        """Locate the table."""
        return self.catalog.open().table(list(self.names))

    def open(self) -> LanceDataset:
        """Open the table at the version; where the same table is open already, that one."""
        handle = self.table().handle
        if self.version is None:
            return handle.open(At(branch=self.branch))
        return _open_version(_Located(self, handle))


class _Located:
    """A table at a version where it lies now; one that took its name since is another one."""

    def __init__(self, address: TableAddress, handle: TableHandle) -> None:
        self.handle = handle
        self.at = At(address.version, branch=address.branch)
        self._key = (address, handle.location)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Located) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=32)
def _open(address: CatalogAddress) -> Catalog:
    return connect(address.uri, **msgspec.json.decode(address.options))


@lru_cache(maxsize=32)
def _open_version(located: _Located) -> LanceDataset:
    return located.handle.open(located.at)


def _absolute(uri: str) -> str:
    """Name a directory so that it is the same one wherever a worker runs."""
    scheme = METASTORE_SCHEME if uri.startswith(METASTORE_SCHEME) else ""
    root = uri.removeprefix(scheme)
    return uri if "://" in root else f"{scheme}{Path(root).absolute()}"
