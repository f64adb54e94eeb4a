"""The audit of a catalog: every fault in it, from one listing a table and a few looks beside.

The parts of the job are groups of tables, done in threads or on Spark. A worker opens the catalog
itself and is told where the tables lie, so it asks the catalog only where something seems wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mooring.clock import DAY_MS, SystemClock
from mooring.errors import InvalidInputError
from mooring.identifiers import ROOT
from mooring.jobs.address import CatalogAddress
from mooring.jobs.runner import Threads
from mooring.upkeep.audit_catalog import Around, audit_catalog
from mooring.upkeep.audit_look import Checks, Subject
from mooring.upkeep.audit_table import audit_tables
from mooring.upkeep.findings import Severity
from mooring.upkeep.stored import stored_backend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.catalog import Catalog
    from mooring.clock import Clock
    from mooring.identifiers import ObjectId
    from mooring.jobs.runner import Runner
    from mooring.upkeep.findings import Finding

    Progress = Callable[[int, int], None]

__all__ = ["FEW_TABLES", "OLDER_THAN_MS", "YOUNGEST_ORPHAN_MS", "Audit", "audit", "groups_of"]

# So many are done sooner by threads than Spark takes to start.
FEW_TABLES = 4000
OLDER_THAN_MS = 7 * DAY_MS
# Nothing but its age tells an orphan from the file of a writer at work: younger ones never count.
YOUNGEST_ORPHAN_MS = DAY_MS // 24
_GROUP = 32


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        findings: The faults, sorted.
        tables: How many tables were looked at.
    """

    findings: tuple[Finding, ...]
    tables: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong; information does not count."""
        return all(finding.severity is Severity.INFO for finding in self.findings)


def audit(
    catalog: Catalog,
    within: ObjectId = ROOT,
    *,
    runner: Runner | None = None,
    older_than_ms: int = OLDER_THAN_MS,
    all_versions: bool = False,
    footers: bool = True,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Look through a catalog, or a namespace of it; nothing is changed.

    Args:
        catalog: The catalog.
        within: The namespace.
        runner: Does the parts; threads of this process unless given.
        older_than_ms: What was written longer ago is no longer anybody's who is at work.
        all_versions: Whether the files of all versions must be there, not only of the newest.
        footers: Whether to read the end of every data file of the newest versions.
        clock: Tells how old something is.
        progress: Told how many tables are done, of how many.

    Raises:
        NamespaceNotFoundError: there is no such namespace.
        UnsupportedError: the catalog does not lie in storage.
        InvalidInputError: the age makes no sense.
    """
    if older_than_ms < 0:
        msg = f"nothing is older than {older_than_ms} ms: an age is not negative"
        raise InvalidInputError(msg)
    now_ms = (clock or SystemClock()).now_ms()
    # The tables first: one that is dropped meanwhile is found to be so.
    catalog.describe_namespace(within)
    tables = stored_backend(catalog).describe_tables(within)
    subjects = [Subject(info.id.names, info.location) for info in tables]
    checks = Checks(
        CatalogAddress.of(catalog),
        now_ms - older_than_ms,
        now_ms - max(older_than_ms, YOUNGEST_ORPHAN_MS),
        all_versions,
        footers,
    )
    done = 0

    def on_done(_: object) -> None:
        nonlocal done
        done = min(done + _GROUP, len(subjects))
        if progress:
            progress(done, len(subjects))

    groups = groups_of(subjects)
    runner = runner or Threads()
    found = runner.run(
        partial(audit_tables, checks), groups, label="auditing tables", on_done=on_done
    )
    beside = audit_catalog(catalog, Around(within, now_ms, checks.before_ms))
    return Audit(_sorted([*(one for part in found for one in part), *beside]), len(subjects))


def groups_of(subjects: Sequence[Subject], size: int = _GROUP) -> list[Sequence[Subject]]:
    """Divide tables among workers."""
    return [subjects[start : start + size] for start in range(0, len(subjects), size)]


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    """Sort findings; of a rename that two looks found, one is enough."""
    known = {(one.kind, one.table, one.targets or one.path): one for one in findings}
    renames = {one.table: one for one in known.values() if one.kind.value == "unfinished-rename"}
    kept = [
        one
        for one in known.values()
        if one.kind.value != "unfinished-rename" or renames[one.table] is one
    ]
    return tuple(sorted(kept, key=lambda one: one.order))
