"""Purging many tables: the parts are tables, and every decision remains the catalog's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from mooring.errors import MooringError
from mooring.identifiers import ObjectId
from mooring.jobs.address import CatalogAddress
from mooring.namespace.api import PurgeReport
from mooring.upkeep.stored import whole_backend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.catalog import Catalog
    from mooring.jobs.runner import Runner
    from mooring.namespace.api import PurgeProgress

__all__ = ["purge"]

# A group of tables is marked by one commit and forgotten by another, where there is a manifest.
_GROUP = 64


@dataclass(frozen=True)
class _Purged:
    """What a worker did: all of it travels."""

    purged: list[tuple[str, ...]] = field(default_factory=list)
    failed: list[tuple[tuple[str, ...], MooringError]] = field(default_factory=list)
    sizes: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)


def purge(
    catalog: Catalog,
    names: Sequence[ObjectId],
    *,
    runner: Runner,
    only_expired: bool,
    progress: PurgeProgress | None = None,
) -> PurgeReport:
    """Purge tables in parts.

    Args:
        catalog: The catalog.
        names: The tables.
        runner: Does the parts.
        only_expired: Purge only those drops of a name whose time is over, or whose purge was cut
            off; then what else has expired goes, too, as the names of dropped namespaces.
        progress: Told the files and bytes of each table that were deleted.
    """
    whole_backend(catalog).require_writable()

    def on_done(part: _Purged) -> None:
        for one, (files, size_bytes) in part.sizes.items():
            if progress:
                progress(ObjectId(one), files, size_bytes)

    unique = list(dict.fromkeys(names))
    groups = [unique[start : start + _GROUP] for start in range(0, len(unique), _GROUP)]
    work = partial(_purge_group, CatalogAddress.of(catalog), only_expired=only_expired)
    done = runner.run(work, groups, label="purging tables", on_done=on_done)
    report = PurgeReport(
        [ObjectId(one) for part in done for one in part.purged],
        {ObjectId(one): exc for part in done for one, exc in part.failed},
    )
    if only_expired:
        rest = catalog.purge_tables(None, progress)
        report.purged.extend(table for table in rest.purged if table not in report.purged)
        report.failed.update(rest.failed)
    return report


def _purge_group(
    address: CatalogAddress, tables: Sequence[ObjectId], *, only_expired: bool
) -> _Purged:
    catalog = address.open()
    done = _Purged()

    def note(table: ObjectId, files: int, size_bytes: int) -> None:
        done.sizes[table.names] = files, size_bytes

    if only_expired:
        report = whole_backend(catalog).purge_expired(tables, note)
    else:
        report = catalog.purge_tables(tables, note)
    done.purged.extend(table.names for table in report.purged)
    for table, exc in report.failed.items():
        failure = exc if isinstance(exc, MooringError) else MooringError(str(exc))
        done.failed.append((table.names, failure))
    return done
