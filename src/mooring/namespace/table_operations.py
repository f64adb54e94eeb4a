"""What a commit of several tables is made of, and what comes of each part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.tables.api import VersionRange, VersionRecord

__all__ = [
    "CreateVersion",
    "Declare",
    "DeleteVersionRecords",
    "Deregister",
    "Outcome",
    "TableOperation",
]


@dataclass(frozen=True, slots=True)
class Declare:
    """To reserve a name."""

    table: ObjectId
    location: str | None = None
    properties: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CreateVersion:
    """To make a manifest a version."""

    table: ObjectId
    version: int
    manifest_path: str
    branch: str | None = None
    metadata: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class DeleteVersionRecords:
    """To delete records of versions."""

    table: ObjectId
    ranges: Sequence[VersionRange]
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Deregister:
    """To forget a table and keep its bytes."""

    table: ObjectId


TableOperation: TypeAlias = Declare | CreateVersion | DeleteVersionRecords | Deregister
# Of a declaration and a deregistration the table, of a version its record, else how many.
Outcome: TypeAlias = "TableInfo | VersionRecord | int"
