"""A version of a table in whole, by opening it once: what pages about a table show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.errors import TableVersionNotFoundError
from mooring.tables.confinement import has_own_files
from mooring.tables.handle import NEWEST, At
from mooring.tables.indexes import describe_indexes
from mooring.tables.schema_tree import schema_tree
from mooring.tables.shape import shape_of
from mooring.tables.tags import resolve
from mooring.tables.transactions import read_transaction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.tables.api import VersionRecord
    from mooring.tables.handle import TableHandle
    from mooring.tables.indexes import Index
    from mooring.tables.schema_tree import TreeField
    from mooring.tables.shape import Shape
    from mooring.tables.transactions import Transaction

__all__ = ["Portrait", "portray"]


@dataclass(frozen=True)
class Portrait:
    """A version of a table.

    Attributes:
        at: Which one, of which branch.
        records: The versions of its branch that are there, the newest first.
        fields: The schema.
        metadata: That of the schema.
        shape: Its fragments and files.
        indexes: Its indexes.
        made: What made it, where Lance kept that.
        file_format: The version of its data files' format.
        has_own_files: Whether it names none of other tables, as a shallow clone does.
    """

    at: At
    records: Sequence[VersionRecord]
    fields: Sequence[TreeField]
    metadata: Mapping[str, str]
    shape: Shape
    indexes: Sequence[Index]
    made: Transaction | None
    file_format: str
    has_own_files: bool

    @property
    def version(self) -> int:
        """Its number."""
        return self.shape.version

    @property
    def newest(self) -> int:
        """The newest version of its branch."""
        return self.records[0].version if self.records else self.version

    @property
    def at_ms(self) -> int | None:
        """When it was made."""
        found = (record.at_ms for record in self.records if record.version == self.version)
        return next(found, None)


def portray(handle: TableHandle, at: At = NEWEST) -> Portrait:
    """Look at a version.

    Raises:
        TableNotFoundError: the table is only declared.
        TableVersionNotFoundError: there is no such version.
        TableTagNotFoundError: there is no such tag.
        TableBranchNotFoundError: there is no such branch.
    """
    found = resolve(handle, at)
    with handle.reading(found) as dataset:
        version = int(dataset.version)
        # A branch has what it came from as its first version, under the number it had there.
        try:
            made = read_transaction(handle, dataset, version, found.branch)
        except TableVersionNotFoundError:
            made = None
        return Portrait(
            at=replace(found, version=version),
            records=handle.ledger.newest_first(found.branch),
            fields=schema_tree(dataset),
            metadata=_texts(dataset.schema.metadata),
            shape=shape_of(dataset),
            indexes=describe_indexes(dataset),
            made=made,
            file_format=str(dataset.data_storage_version),
            has_own_files=has_own_files(dataset, handle.location),
        )


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (metadata or {}).items()
    }
