"""What a migration found and did, and why it left tables alone."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum

from mooring.amounts import how_many
from mooring.directory.decisions import State
from mooring.directory.layout import table_dir
from mooring.hints import suggest
from mooring.identifiers import DELIMITER

__all__ = ["BY_STATE", "MigrationReport", "Reason", "Skipped", "skip"]


class Reason(StrEnum):
    """Why a directory of the root gets no row."""

    DROPPED = "dropped"
    DEREGISTERED = "deregistered"
    CREATING = "being created"
    PURGING = "being purged"
    RENAMING = "being renamed"
    REGISTERED = "registered under another name"
    INVALID_NAME = "not a name"
    DELIMITER = "name holds the delimiter"
    DECOMPOSED = "name is not in composed form"
    RESERVED = "name is reserved"
    NAMESPACE = "name of a namespace"
    OTHER_TABLE = "name of another table"
    UNREADABLE = "unreadable"

    @property
    def blocks(self) -> bool:
        """Whether a table that is live now would be lost to those who do not list."""
        return self in _BLOCKING


_BLOCKING = {
    Reason.RENAMING,
    Reason.DELIMITER,
    Reason.DECOMPOSED,
    Reason.RESERVED,
    Reason.NAMESPACE,
    Reason.UNREADABLE,
}
BY_STATE = {
    State.DELETED: Reason.DROPPED,
    State.REVIVING: Reason.DROPPED,
    State.UNDROPPING: Reason.DROPPED,
    State.DEREGISTERED: Reason.DEREGISTERED,
    State.CREATING: Reason.CREATING,
    State.PURGING: Reason.PURGING,
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A directory that gets no row, and why."""

    name: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """How directories and manifest compare, and what a run did about it.

    Attributes:
        already: Tables that had their row before.
        missing: Live tables that a run gives their row; none are left after one.
        stale: Rows that do not say what their directory says; none are left after a run.
        skipped: Directories that get no row.
        added: Tables that got their row.
        removed: Tables that were dropped meanwhile, whose row went.
    """

    already: tuple[str, ...]
    missing: tuple[str, ...]
    stale: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def to_do(self) -> tuple[str, ...]:
        """What a run would change."""
        return (*self.missing, *self.stale)

    @property
    def blocked(self) -> tuple[Skipped, ...]:
        """Live tables that a run cannot help: they need somebody's decision."""
        return tuple(found for found in self.skipped if found.reason.blocks)

    @property
    def is_complete(self) -> bool:
        """Whether the manifest names every live table, so that listings can be switched off."""
        return not self.to_do and not self.blocked

    @property
    def advice(self) -> str:
        """What remains, and what can be done now."""
        if self.to_do:
            changes = how_many(len(self.to_do), "row")
            return f"{changes} of the manifest are to be added or mended: run the migration"
        if self.blocked:
            tables = how_many(len(self.blocked), "live table")
            return (
                f"{tables} cannot be found by the manifest alone: settle what is said about each,"
                " and keep listing directories until then"
            )
        return (
            "the manifest names every live table: to use it alone, open the catalog with"
            " dir_listing_enabled=false, on the command line with --no-listing"
        )


def skip(name: str, reason: Reason) -> Skipped:
    """Say why a directory gets no row, and what can be done."""
    return Skipped(name, reason, _DETAILS[reason].format(**_commands(name)))


def _commands(name: str) -> dict[str, str]:
    directory = shlex.quote(table_dir(name))
    return {
        "undrop": suggest("table undrop", name),
        "register": suggest("table register", name),
        "rename": suggest("table rename", name),
        "name": f"mooring table register NEW_NAME --location {directory}",
    }


_NEW_NAME = 'give it another one with "{name}"'
_DETAILS = {
    Reason.DROPPED: 'it is in the trash: bring it back with "{undrop}"',
    Reason.DEREGISTERED: 'its name was forgotten: bring it back with "{register}"',
    Reason.CREATING: "somebody is creating it, or was cut off",
    Reason.PURGING: "its files are being deleted",
    Reason.RENAMING: 'a rename of it was cut off, or goes on: finish it with "{rename} NEW_NAME"',
    Reason.INVALID_NAME: "the catalog lists no table of this name, with a manifest or without",
    Reason.DELIMITER: f"'{DELIMITER}' separates the levels of names in a manifest: {_NEW_NAME}",
    Reason.DECOMPOSED: f"its letters are in decomposed Unicode form: {_NEW_NAME}",
    Reason.RESERVED: f"the manifest keeps dropped objects under this name: {_NEW_NAME}",
    Reason.NAMESPACE: f"a namespace has its name: {_NEW_NAME}",
    Reason.OTHER_TABLE: f"a table that lies elsewhere has its name: {_NEW_NAME}",
    Reason.UNREADABLE: "a file that tells its state is damaged: restore it from a copy",
}
