"""Where the objects of a change table are, and what a state of the metastore says of them.

Below a table's version lie three streams. That of the changes has a partition for every partition
of the rows, and a delta for every position at which its rows changed. That of the bases has the
same partitions; a delta of it is a round of compaction, and holds what all changes up to a
position come to. That of the runs has a partition, without deltas, for every named run.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mooring.changes.definition import VERSION, Definition
from mooring.errors import InvalidTableStateError, TableNotFoundError
from mooring.identifiers import ObjectId, quote
from mooring.metastore import (
    CommitState,
    Partition,
    PartitionScheme,
    Stream,
    Table,
    TableVersion,
)
from mooring.metastore.lance_table import CHANGES, locator_of
from mooring.metastore.trash import why_not_live

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.changes.transforms import Values
    from mooring.metastore import Locator
    from mooring.metastore.timeline import Ids
    from mooring.metastore.transaction import Found, Transaction

__all__ = [
    "BASES",
    "CHANGES",
    "COLUMNS",
    "LEVEL",
    "RUNS",
    "THROUGH",
    "ChangeObjects",
    "create_objects",
    "find_objects",
    "objects_then",
    "require_objects",
    "run_locator",
    "stream_of",
]

BASES = ("bases", "mooring-bases")
RUNS = ("runs", "mooring-runs")
# Of a delta of the bases: up to which position it holds all changes, and how they lie in it.
THROUGH, LEVEL = "through", "level"
# And which columns were written: the greatest number of all, then theirs.
COLUMNS = "columns"


@dataclass(frozen=True)
class ChangeObjects:
    """A change table as a state has it.

    Attributes:
        id: Its identifier.
        locator: Its names.
        ids: The ids of its version.
        definition: What it is.
        position: The newest position; 0 before the first change.
        horizon: The oldest position that can be read; what was before is tidied away.
    """

    id: ObjectId
    locator: Locator
    ids: Ids
    definition: Definition
    position: int
    horizon: int = 0

    @property
    def what(self) -> str:
        """The table, as messages name it."""
        return f"change table {quote(str(self.id))}"

    @property
    def lasting_id(self) -> str:
        """An id that no other table has, and that stays when it is moved to another namespace."""
        return self.definition.identity or "/".join(self.ids)

    @property
    def changes(self) -> Locator:
        """The stream of its changes."""
        return stream_of(self.locator, CHANGES)

    @property
    def bases(self) -> Locator:
        """The stream of its bases."""
        return stream_of(self.locator, BASES)


def stream_of(table: Locator, name: tuple[str, str]) -> Locator:
    """Return the locator of one of a table's streams."""
    return table.child(VERSION).child(*name)


def run_locator(table: Locator, run: str) -> Locator:
    """Return the locator of a named run, whatever is in its name."""
    digest = hashlib.sha1(run.encode(), usedforsecurity=False).hexdigest()
    return stream_of(table, RUNS).child(f"r{digest}")


def find_objects(txn: Transaction, table: ObjectId) -> ChangeObjects | None:
    """Find a change table that is not dropped; None where there is none."""
    return _objects(txn, table, txn.find(locator_of(table)))


def objects_then(txn: Transaction, table: ChangeObjects) -> ChangeObjects:
    """Find a change table in an older state, whatever it was called there.

    Raises:
        TableNotFoundError: it was not there, or dropped, or in another namespace: a table that had
            its name is another one.
    """
    ids = table.ids[:2]
    was_there = txn.timeline.find(ids, txn.seq) is not None
    # One that was moved to another namespace and back is known by its name alone.
    found = _objects(txn, table.id, txn.find(txn.locate(ids) if was_there else table.locator))
    if found is None or found.definition.identity != table.definition.identity:
        msg = f"there was no {table.what} then: it was made, moved here or brought back later"
        raise TableNotFoundError(msg)
    return found


def _objects(txn: Transaction, table: ObjectId, found: Found | None) -> ChangeObjects | None:
    if found is None or cast("Table", found.value).dropped is not None:
        return None
    version = txn.find(found.locator.child(VERSION))
    stream = txn.find(stream_of(found.locator, CHANGES))
    if version is None or stream is None:
        return None
    definition = Definition.from_version(
        cast("TableVersion", version.value), f"table {quote(str(table))}"
    )
    position = cast("Stream", stream.value).watermark or 0
    bases = txn.find(stream_of(found.locator, BASES))
    horizon = (cast("Stream", bases.value).watermark or 0) if bases else 0
    return ChangeObjects(table, found.locator, version.ids, definition, position, horizon)


def require_objects(txn: Transaction, table: ObjectId) -> ChangeObjects:
    """Find a change table.

    Raises:
        TableNotFoundError: there is no table of this identifier.
        InvalidTableStateError: it is none of changes.
    """
    found = find_objects(txn, table)
    if found is not None:
        return found
    known = txn.find(locator_of(table))
    if known is not None and cast("Table", known.value).dropped is None:
        msg = f"table {quote(str(table))} takes no changes: it is a Lance table"
        raise InvalidTableStateError(msg)
    raise why_not_live(txn, table)


def create_objects(
    txn: Transaction, table: ObjectId, definition: Definition, properties: Mapping[str, str]
) -> ChangeObjects:
    """Make a change table.

    Raises:
        ConflictError: the name is taken.
        NotFoundError: the namespace is not there.
    """
    locator = locator_of(table)
    txn.create(
        locator,
        Table(properties=dict(properties), latest_version=VERSION, latest_active_version=VERSION),
    )
    version = txn.create(locator.child(VERSION), definition.to_version())
    scheme = PartitionScheme(fields=definition.partitions) if definition.partitions else None
    for stream_id, stream_format in (CHANGES, BASES, RUNS):
        stream = Stream(
            stream_id=stream_id,
            format=stream_format,
            partition_scheme=None if stream_id == RUNS[0] else scheme,
            state=CommitState.COMMITTED,
        )
        txn.create(stream_of(locator, (stream_id, stream_format)), stream)
    return ChangeObjects(table, locator, version.ids, definition, 0)


def partition_at(
    txn: Transaction, stream: Locator, partition_id: str, values: Values
) -> tuple[Locator, Partition]:
    """Find a partition of a stream, or make it."""
    locator = stream.child(partition_id)
    found = txn.find(locator)
    if found is not None:
        return locator, cast("Partition", found.value)
    made = Partition(partition_id=partition_id, values=values, state=CommitState.COMMITTED)
    txn.create(locator, made)
    return locator, made
