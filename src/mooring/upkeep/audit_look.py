"""One look at a table: its directory, listed once, and what of it is there by now."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mooring.identifiers import ObjectId
from mooring.namespace.api import TableInfo
from mooring.table import Table
from mooring.tables.files import open_version
from mooring.tables.handle import At
from mooring.upkeep.findings import Fault, Finding, Repair, Severity
from mooring.upkeep.places import shown_path, site_of
from mooring.upkeep.table_files import list_files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.catalog import Catalog
    from mooring.jobs.address import CatalogAddress
    from mooring.tables.files import Opened
    from mooring.upkeep.table_files import TableFiles

__all__ = ["Checks", "Subject", "TableLook"]


@dataclass(frozen=True)
class Checks:
    """What to look for; it travels to workers.

    Attributes:
        catalog: The catalog.
        before_ms: What was written before this time is no longer anybody's who is at work.
        orphans_before_ms: The same for files of which only their age tells.
        all_versions: Whether the files of all versions must be there, not only of the newest.
        footers: Whether the end of each data file is read.
    """

    catalog: CatalogAddress
    before_ms: int
    orphans_before_ms: int
    all_versions: bool = False
    footers: bool = True


@dataclass(frozen=True)
class Subject:
    """A table as the catalog locates it.

    Attributes:
        names: Its identifier, level by level.
        location: Where Lance finds it.
    """

    names: tuple[str, ...]
    location: str


class TableLook:
    """What an audit sees of one table."""

    def __init__(self, catalog: Catalog, checks: Checks, subject: Subject) -> None:
        """Look at a table.

        Args:
            catalog: Its catalog.
            checks: What to look for.
            subject: The table.
        """
        self.catalog = catalog
        self.checks = checks
        self.names = subject.names
        self.site = site_of(catalog, subject.location)
        info = TableInfo(ObjectId(subject.names), subject.location, self.site.options, {})
        self.handle = Table(catalog.backend, info).handle

    @cached_property
    def files(self) -> TableFiles:
        """What its directory held when it was listed, once."""
        return list_files(self.site.place)

    def open(self, branch: str | None, version: int | None = None) -> Opened:
        """Open a version; the newest unless given."""
        if version is None:
            return self.handle.open(At(branch=branch))
        return open_version(self.site, version, branch)

    def missing(self, paths: Iterable[str]) -> list[str]:
        """Tell which files are not there, those that came after the listing left out."""
        unseen = sorted(path for path in paths if path not in self.files.metas)
        if not unseen:
            return []
        there = self.existing(unseen)
        return [path for path in unseen if path not in there]

    def existing(self, paths: Iterable[str]) -> set[str]:
        """Tell which files are there now."""
        place = self.site.place
        by_path = {place.path(path): path for path in paths}
        return {by_path[path] for path in place.store.existing(list(by_path))}

    def old(self, paths: Iterable[str]) -> list[str]:
        """Keep those files that are too old to be of a writer at work."""
        limit = self.checks.orphans_before_ms
        return [path for path in paths if self.files.metas[path].modified_ms < limit]

    def finding(  # the fields of a finding, most by name
        self,
        kind: Fault,
        severity: Severity,
        path: str,
        message: str,
        *,
        files: int = 0,
        bytes: int = 0,  # noqa: A002  # the finding's word
        repair: Repair | None = None,
        advice: str | None = None,
        targets: tuple[str, ...] = (),
        version: int | None = None,
    ) -> Finding:
        """Word what was found of it."""
        return Finding(
            kind,
            severity,
            str(ObjectId(self.names)),
            shown_path(self.catalog, self.site, path),
            message,
            files=files,
            bytes=bytes,
            repair=repair,
            advice=advice,
            names=self.names,
            targets=targets,
            version=version,
        )
