"""A Lance table as an Iceberg catalog has it.

Spec: iceberg-namespace, "Table Definition".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from mooring.errors import InvalidTableStateError, NotLanceTableError
from mooring.http.handed_options import prefer
from mooring.iceberg.credentials import storage_options
from mooring.iceberg.properties import (
    CREATED,
    ManagedBy,
    is_lance,
    managed_by,
    users_properties,
)
from mooring.iceberg.snapshots import current_version
from mooring.identifiers import quote
from mooring.namespace.api import TableInfo
from mooring.tables.place import open_place
from mooring.tables.records import VersionRecords
from mooring.tables.reference_names import branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.iceberg.client import LoadedTable
    from mooring.identifiers import ObjectId
    from mooring.tables.place import Place

__all__ = ["IcebergTable", "lance_location", "read_table"]

# How Hadoop names the store that Lance knows as s3.
_S3 = frozenset({"s3a", "s3n"})


@dataclass(frozen=True)
class IcebergTable:
    """One table, as one answer of the server described it.

    Attributes:
        id: Its identifier.
        location: Where Lance finds it.
        by: Who decides about its versions.
        options: How Lance reaches it.
        metadata: What the server answered.
    """

    id: ObjectId
    location: str
    by: ManagedBy
    options: Mapping[str, str] = field(repr=False)  # it holds secrets
    metadata: Mapping[str, Any] = field(repr=False)

    @property
    def what(self) -> str:
        """The table, for messages."""
        return f"table {quote(str(self.id))}"

    @property
    def uuid(self) -> str | None:
        """What the server tells it by from another of the same name."""
        return self.metadata.get("table-uuid")

    @property
    def same(self) -> list[dict[str, Any]]:
        """What a request requires so that it reaches this table, and no other of its name."""
        return [] if self.uuid is None else [{"type": "assert-table-uuid", "uuid": self.uuid}]

    @property
    def properties(self) -> Mapping[str, str]:
        """All its properties."""
        return self.metadata.get("properties") or {}

    @property
    def owns_location(self) -> bool:
        """Whether its directory was made for it alone, and goes with it."""
        return self.properties.get(CREATED) == self.location

    @property
    def keeps_versions(self) -> bool:
        """Whether its versions are snapshots, and the server decides about them."""
        return self.by is ManagedBy.IMPL

    @property
    def version(self) -> int | None:
        """Its newest version, where the server decides about them; else nobody respects it."""
        return current_version(self.metadata) if self.keeps_versions else None

    @cached_property
    def place(self) -> Place:
        """Where its files lie."""
        return open_place(self.location, self.options)

    def has_data(self) -> bool:
        """Whether it has a version; one that is only declared has none."""
        if self.keeps_versions:
            return self.version is not None
        return bool(self.records().newest_first(1))

    def records(self, branch: str | None = None) -> VersionRecords:
        """Return its versions as files."""
        return VersionRecords(self.place.store, self.place.directory, branch_of(branch))

    def info(
        self, *, is_only_declared: bool | None = None, version: int | None = None
    ) -> TableInfo:
        """Describe it as every catalog does."""
        return TableInfo(
            id=self.id,
            location=self.location,
            storage_options=self.options,
            properties=users_properties(self.properties),
            is_only_declared=is_only_declared,
            version=version,
            keeps_versions=self.keeps_versions,
        )


def read_table(table: ObjectId, loaded: LoadedTable, given: Mapping[str, str]) -> IcebergTable:
    """Read what a server answered about a table.

    Args:
        table: The identifier.
        loaded: The answer.
        given: Storage options of the user's, which count more than what the server hands out.

    Raises:
        NotLanceTableError: it is a table of Iceberg's.
        InvalidTableStateError: it says of itself what makes no sense.
    """
    metadata = loaded.metadata
    properties = metadata.get("properties") or {}
    what = f"table {quote(str(table))}"
    if not is_lance(properties):
        msg = (
            f"{what} is a table of Iceberg's, and none of Lance: it lacks the property"
            " 'table_type' with the value 'lance'; read it with an Iceberg engine"
        )
        raise NotLanceTableError(msg)
    if not metadata.get("location"):
        msg = f"{what} has no location in the Iceberg catalog: register it again"
        raise InvalidTableStateError(msg)
    location = lance_location(metadata["location"])
    handed = storage_options(metadata["location"], loaded.config, loaded.credentials)
    options = prefer(handed, given)
    return IcebergTable(table, location, managed_by(properties, what), options, metadata)


def lance_location(location: str) -> str:
    """Return a location as Lance writes it: local ones as paths, S3 by its own name."""
    scheme, _, rest = location.partition(":")
    if scheme == "file":
        return unquote(urlsplit(location).path).rstrip("/") or "/"
    if scheme in _S3:
        return f"s3:{rest}".rstrip("/")
    return location.rstrip("/")
