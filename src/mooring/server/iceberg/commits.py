"""Commits: the versions that Lance writers make through the catalog, and properties.

A writer stages a manifest below the table and asks for it to become the next version. The
catalog's own decision about that number is the commit; what is checked here before it only tells
sooner, and better, why one cannot land.

Spec: iceberg-namespace, "Requirement for Implementation Managed Table"; iceberg-rest-openapi,
"updateTable", "commitTransaction".
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.iceberg.snapshots import unreadable_address
from mooring.identifiers import quote
from mooring.namespace.properties import PROTECTED, check_properties
from mooring.namespace.table_operations import CreateVersion
from mooring.server.iceberg.calls import NO_CONTENT, Answer
from mooring.server.iceberg.manifests import check_staged
from mooring.server.iceberg.metadata import derive
from mooring.server.iceberg.requirements import Requirement, check_requirements, pins_main
from mooring.server.iceberg.tables import TableName
from mooring.server.iceberg.updates import read_updates
from mooring.server.iceberg.versions import kept_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mooring.iceberg.snapshots import Snapshot
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.server.iceberg.calls import Call
    from mooring.server.iceberg.updates import Changes

__all__ = ["commit_transaction", "update_table"]


class _Commit(msgspec.Struct, frozen=True):
    requirements: list[Requirement]
    updates: list[dict[str, Any]]
    identifier: TableName | None = None


class _Transaction(msgspec.Struct, frozen=True, rename="kebab"):
    table_changes: list[_Commit]


@dataclass(frozen=True, slots=True)
class _Planned:
    """A commit of one table that could land: a version, properties, or nothing new."""

    info: TableInfo
    version: CreateVersion | None
    properties: Mapping[str, str | None]


def update_table(call: Call) -> Answer:
    """Commit to one table."""
    asked, table = call.read(_Commit), call.table
    _apply(call, _plan(call, table, asked))
    with _landed(table):
        # A commit costs what it changes: whoever wants all snapshots loads the table.
        metadata = derive(call.backend, call.backend.describe_table(table), refs_only=True)
    # PyIceberg takes a commit for failed where the answer lacks this.
    location = unreadable_address(metadata["current-snapshot-id"])
    return Answer({"metadata-location": location, "metadata": metadata})


def commit_transaction(call: Call) -> Answer:
    """Commit to several tables, to all or to none."""
    asked = call.read(_Transaction).table_changes
    tables = [_table_of(call, one) for one in asked]
    twice = next((one for one in tables if tables.count(one) > 1), None)
    if twice is not None:
        raise InvalidInputError(
            f"table {quote(str(twice))} is changed twice by one transaction: send one change of it"
        )
    planned = [_plan(call, table, one) for table, one in zip(tables, asked, strict=True)]
    if len(planned) == 1:
        _apply(call, planned[0])
    elif planned:
        call.backend.commit_tables([_version_of(one) for one in planned])
    return NO_CONTENT


def _table_of(call: Call, asked: _Commit) -> ObjectId:
    if asked.identifier is None:
        raise InvalidInputError("each change of a transaction needs the 'identifier' of its table")
    return call.names.table(asked.identifier.namespace, asked.identifier.name)


def _version_of(planned: _Planned) -> CreateVersion:
    """Return the version that a table gets by a transaction.

    Raises:
        UnsupportedError: it gets none, and what it gets instead could not be decided with the rest.
    """
    if planned.version is None:
        raise UnsupportedError(
            "a transaction over several tables makes a version of each: send what else is to be"
            f" done to {quote(str(planned.info.id))} by itself"
        )
    return planned.version


def _plan(call: Call, table: ObjectId, asked: _Commit) -> _Planned:
    """Check all of a commit before anything is done.

    Raises:
        ConcurrentModificationError: somebody else was first.
        InvalidInputError: it makes no sense.
        UnsupportedError: it has no meaning for a Lance table.
    """
    changes = read_updates(asked.updates)
    info = call.backend.describe_table(table)
    metadata = derive(call.backend, info, refs_only=not changes.removed)
    changes.require_meaning(metadata)
    check_requirements(table, asked.requirements, metadata)
    if changes.snapshot is None:
        check_properties(changes.properties)
        return _Planned(info, None, changes.properties)
    current = metadata["current-snapshot-id"]
    path = _require_next(table, changes.snapshot, current)
    _require_complete(table, changes, asked.requirements)
    wanted = CreateVersion(
        table, changes.snapshot.version, path, metadata=kept_metadata(changes.snapshot)
    )
    check_staged(call.backend, info, wanted)
    return _Planned(info, wanted, {})


def _require_next(table: ObjectId, snapshot: Snapshot, current: int) -> str:
    """Refuse what is not the next version of Lance's; return where its manifest was staged."""
    shown = quote(str(table))
    if snapshot.version != current + 1:
        raise ConcurrentModificationError(
            f"after version {current} of the Lance table {shown} comes {current + 1}, not"
            f" {snapshot.version}: load it again; only Lance writes it"
        )
    if snapshot.manifest_path is None:
        raise UnsupportedError(
            f"{shown} is a Lance table, and only Lance writes it: this snapshot names no manifest"
            " of Lance's"
        )
    return snapshot.manifest_path


def _require_complete(
    table: ObjectId, changes: Changes, requirements: Sequence[Requirement]
) -> None:
    shown = quote(str(table))
    if not pins_main(requirements):
        raise InvalidInputError(
            f"a version of {shown} needs the requirement 'assert-ref-snapshot-id' of main: without"
            " it nobody could tell who was first"
        )
    if changes.snapshot is not None and changes.main != changes.snapshot.version:
        raise InvalidInputError(
            f"version {changes.snapshot.version} of {shown} is to become main: send"
            " 'set-snapshot-ref' of main with it"
        )


def _apply(call: Call, planned: _Planned) -> None:
    table, version = planned.info.id, planned.version
    if version is not None:
        call.backend.create_table_version(
            table,
            version.version,
            version.manifest_path,
            metadata=version.metadata,
            known=planned.info,
        )
    elif planned.properties.keys() == {PROTECTED}:
        # Also where no properties are kept.
        is_protected = planned.properties[PROTECTED] == "true"
        call.backend.protect_table(table, protected=is_protected)
    elif planned.properties:
        call.backend.update_table(table, planned.properties)


@contextmanager
def _landed(table: ObjectId) -> Iterator[None]:
    """After a commit: whatever fails now must not be taken for a refusal.

    The store may not answer, and another may have renamed or dropped the table meanwhile. Whoever
    took that for a refusal would write the same rows again.
    """
    try:
        yield
    except MooringError as exc:
        msg = f"the commit to {quote(str(table))} landed, and cannot be looked at: {exc}"
        raise UnknownOutcomeError(msg) from exc
