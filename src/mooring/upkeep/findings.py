"""What an audit finds: kinds of faults, how bad each is, and the repair that is offered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["EXPLICIT", "Fault", "Finding", "Repair", "Severity"]


class Fault(StrEnum):
    """A kind of fault."""

    UNREADABLE = "unreadable"
    MISSING_FILE = "missing-file"
    ORPHAN_FILE = "orphan-file"
    ROW_WITHOUT_DIRECTORY = "row-without-directory"
    DIRECTORY_WITHOUT_ROW = "directory-without-row"
    UNNAMED_DIRECTORY = "unnamed-directory"
    STALE_ROW = "stale-row"
    STAGED_MANIFEST = "staged-manifest"
    PENDING_RUN = "pending-run"
    INCOMING_TABLE = "incoming-table"
    NEVER_WRITTEN = "never-written"
    UNFINISHED_RENAME = "unfinished-rename"
    UNFINISHED_PURGE = "unfinished-purge"
    UNFINISHED_CHANGE = "unfinished-change"
    STRAY_DATA = "stray-data"
    TRANSACTION_LEFTOVER = "transaction-leftover"
    EXPIRED_TRASH = "expired-trash"


class Severity(StrEnum):
    """How bad a fault is.

    ``error``: something cannot be read. ``warning``: something was left that should go.
    ``info``: nothing is wrong, but worth knowing.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Repair(StrEnum):
    """What makes a finding go away."""

    RESTORE = "restore"
    FORGET_VERSION = "forget-version"
    DROP_INDEX = "drop-index"
    DELETE_FILES = "delete-files"
    END_RUN = "end-run"
    SWEEP_INCOMING = "sweep-incoming"
    DEREGISTER = "deregister"
    DROP = "drop"
    SETTLE_RENAME = "settle-rename"
    UNDROP = "undrop"
    PURGE = "purge"
    PURGE_EXPIRED = "purge-expired"
    SWEEP = "sweep"
    VACUUM = "vacuum"
    MIGRATE = "migrate"


# What changes or forgets content is done only where its kind of fault is named.
EXPLICIT = frozenset({Repair.RESTORE, Repair.FORGET_VERSION})


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault.

    Attributes:
        kind: What kind it is of.
        severity: How bad it is.
        table: The table it concerns, by its full identifier; None for one of the catalog's own.
        path: Where it is, below the catalog's root, or in full where that is elsewhere.
        message: What it is, in one sentence.
        files: How many files it is about.
        bytes: What they take; of what is missing, nothing.
        repair: What is offered.
        advice: Why nothing is offered, and what else can be done.
        names: The table, level by level.
        targets: What the repair works on: files, runs, transactions, an index.
        version: The version that the repair works on.
    """

    kind: Fault
    severity: Severity
    table: str | None
    path: str
    message: str
    files: int = 0
    bytes: int = 0
    repair: Repair | None = None
    advice: str | None = None
    names: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    version: int | None = None

    @property
    def order(self) -> tuple[str, str, str, str]:
        """By what findings are sorted: those of the catalog first, then table by table."""
        return (self.table or "", self.kind.value, self.path, self.message)

    def row(self) -> dict[str, object]:
        """Return it as output."""
        return {
            "kind": self.kind.value,
            "severity": self.severity.value,
            "table": self.table,
            "path": self.path or None,
            "message": self.message,
            "files": self.files,
            "bytes": self.bytes,
            "repair": self.repair.value if self.repair else None,
            "advice": self.advice,
        }
