"""Migrating a catalog of many tables: groups of them in parts, each group by one strict commit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.migration import BATCH_ROWS, Migration
from mooring.errors import UnsupportedError
from mooring.iceberg.backend import IcebergBackend
from mooring.jobs.address import CatalogAddress
from mooring.metastore.backend import MetastoreBackend
from mooring.remote.backend import RemoteBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.catalog import Catalog
    from mooring.directory.migration import MigrationReport, Settled
    from mooring.jobs.runner import Runner

    Progress = Callable[[int, int], None]

__all__ = ["migrate", "migration_of"]


def migration_of(catalog: Catalog, group: int = BATCH_ROWS) -> Migration:
    """Prepare the migration of a catalog; nothing is read or written.

    Args:
        catalog: The catalog.
        group: How many tables one commit takes.

    Raises:
        UnsupportedError: the catalog is opened without its manifest.
    """
    if isinstance(catalog.backend, IcebergBackend | MetastoreBackend | RemoteBackend):
        msg = (
            f"'{catalog.uri}' is no directory of tables, and a migration gives those of one their"
            " rows in its manifest: there is nothing to do here"
        )
        raise UnsupportedError(msg)
    if not isinstance(catalog.backend, CompatBackend):
        msg = f"'{catalog.uri}' is opened without its manifest, and a migration leads to that"
        raise UnsupportedError(msg)
    return Migration(catalog.backend, batch_rows=group)


def migrate(
    catalog: Catalog,
    *,
    runner: Runner,
    group: int = BATCH_ROWS,
    progress: Progress | None = None,
) -> MigrationReport:
    """Give every table of the root its row in the manifest, group by group.

    Args:
        catalog: The catalog.
        runner: Does the groups.
        group: How many tables one commit takes.
        progress: Told how many tables are done, of how many.

    Raises:
        UnsupportedError: the catalog is opened without its manifest.
        ConcurrentModificationError: others kept changing the manifest; what was done stays.
    """
    migration = migration_of(catalog, group)
    work = partial(_settle, CatalogAddress.of(catalog))

    def settle(
        groups: Sequence[Sequence[str]], on_done: Callable[[Settled], None]
    ) -> list[Settled]:
        return runner.run(work, groups, label="migrating tables", on_done=on_done)

    return migration.run(progress, settle)


def _settle(address: CatalogAddress, names: Sequence[str]) -> Settled:
    return migration_of(address.open()).settle(names)
