"""A Lance table as objects of a metastore.

It is a table with one table version, whose stream of format `lance` tells where the table lies; a
partition of that stream is a branch, and a delta is a version. A table of changes has a stream of
them instead: to drop, rename and purge it is the same.

Spec: objects-and-relationships, "Table Version"; deltacat-storage-model, the object types.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import DELIMITER, ObjectId, quote
from mooring.metastore.layout import object_dir
from mooring.metastore.locator import Locator, check_part
from mooring.metastore.model import (
    LOCATION,
    CommitState,
    Lifecycle,
    Partition,
    Stream,
    Table,
    TableVersion,
)
from mooring.namespace.states import TRASH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.metastore.transaction import Found, Transaction

__all__ = [
    "CHANGES",
    "HISTORY",
    "LanceTable",
    "any_in",
    "branch_id",
    "branch_locator",
    "check_names",
    "check_new_name",
    "check_new_table",
    "create_table",
    "find_any",
    "find_table",
    "locator_of",
    "move_table",
    "partition_of",
    "relocate",
    "stream_locator",
    "tables_in",
]

FORMAT = "lance"
# The stream of a table of changes: its id and its format.
CHANGES = ("changes", "deltacat")
# The namespace of what a catalog keeps for itself, such as runs of pipelines; nobody sees it.
HISTORY = "__mooring_history"
_VERSION = "1"
_STREAM = "lance"
_MAIN = "main"


@dataclass(frozen=True, slots=True)
class LanceTable:
    """A Lance table as a transaction sees it.

    Attributes:
        locator: Its names.
        revision: The number of the table's newest revision.
        value: The table.
        location: Where it lies: below the root, or outside.
        newest: Its newest version on main; None for one that is only declared.
        is_lance: Whether it is one of Lance's; a table of changes lies in no directory of its own.
    """

    locator: Locator
    revision: int
    value: Table
    location: str
    newest: int | None
    is_lance: bool = True

    @property
    def id(self) -> ObjectId:
        """Its identifier in the catalog."""
        return ObjectId(tuple(parts[0] for parts in self.locator.levels))


def locator_of(object_id: ObjectId) -> Locator:
    """Return the locator of a namespace or table.

    Raises:
        InvalidNameError: a name cannot be one.
    """
    check_names(object_id)
    return Locator.of(*object_id.names)


def check_names(object_id: ObjectId) -> None:
    """Refuse an identifier that no object can have.

    Raises:
        InvalidNameError: a name cannot be one.
    """
    for name in object_id.names:
        check_part(name)
        if name.startswith(TRASH):
            msg = f"{quote(name)} cannot be a name: dropped objects are kept under such names"
            raise InvalidNameError(msg)
        if name == HISTORY:
            msg = f"{quote(name)} cannot be a name: the catalog keeps runs of pipelines there"
            raise InvalidNameError(msg)


def check_new_name(object_id: ObjectId) -> None:
    """Refuse what cannot be the name of a new object.

    Raises:
        InvalidNameError: it cannot.
    """
    check_names(object_id)
    if DELIMITER in object_id.name:
        msg = (
            f"{quote(object_id.name)} cannot be a new name: it holds the delimiter '{DELIMITER}',"
            " which separates levels"
        )
        raise InvalidNameError(msg)


def check_new_table(table: ObjectId) -> None:
    """Refuse what cannot be the name of a new table.

    Raises:
        InvalidInputError: it cannot, or it names no namespace.
    """
    if table.is_root:
        msg = "a table needs a name"
        raise InvalidInputError(msg)
    check_new_name(table)
    if table.level != 2:  # noqa: PLR2004  # namespace and table
        msg = (
            f"{quote(str(table))} cannot be a table: tables of a metastore lie in a namespace;"
            " name both, as in 'namespace$table'"
        )
        raise InvalidInputError(msg)


def stream_locator(table: Locator) -> Locator:
    """Return the locator of a table's stream of Lance versions."""
    return table.child(_VERSION).child(_STREAM, FORMAT)


def branch_locator(table: Locator, branch: str | None) -> Locator:
    """Return the locator of a branch; a branch's name may hold what the name of no object can."""
    return stream_locator(table).child(branch_id(branch))


def branch_id(branch: str | None) -> str:
    """Return the id of a branch; None is main."""
    if branch is None:
        return _MAIN
    return f"branch-{hashlib.sha1(branch.encode(), usedforsecurity=False).hexdigest()}"


def partition_of(locator: Locator, branch: str | None) -> Partition:
    """Return a new branch without versions."""
    values = () if branch is None else (branch,)
    return Partition(partition_id=locator.parts[0], values=values, state=CommitState.COMMITTED)


def find_table(txn: Transaction, locator: Locator) -> LanceTable | None:
    """Find a live Lance table; None where there is none, or none of Lance's."""
    found = txn.find(locator)
    # An alias stays with a dropped table, and comes back with it.
    if found is None or cast("Table", found.value).dropped is not None:
        return None
    return _read(txn, found)


def tables_in(txn: Transaction, namespace: Locator) -> list[LanceTable]:
    """Return the Lance tables of a namespace, dropped ones too, sorted by name."""
    found = (_read(txn, child) for child in txn.children(namespace))
    return [table for table in found if table is not None]


def find_any(txn: Transaction, locator: Locator) -> LanceTable | None:
    """Find a live table, of Lance or of changes; None where there is none."""
    found = txn.find(locator)
    if found is None or cast("Table", found.value).dropped is not None:
        return None
    return _read(txn, found) or _read_changes(txn, found)


def any_in(txn: Transaction, namespace: Locator, *, only_dropped: bool = False) -> list[LanceTable]:
    """Return the tables of a namespace, of Lance and of changes, dropped ones too or alone."""
    children = txn.children(namespace)
    if only_dropped:
        children = [one for one in children if cast("Table", one.value).dropped is not None]
    found = (_read(txn, child) or _read_changes(txn, child) for child in children)
    return [table for table in found if table is not None]


def _read_changes(txn: Transaction, found: Found) -> LanceTable | None:
    if txn.find_below(found, (_VERSION,), CHANGES) is None:
        return None
    value, place = cast("Table", found.value), object_dir(found.ids)
    return LanceTable(found.locator, found.revision, value, place, None, is_lance=False)


def _read(txn: Transaction, found: Found) -> LanceTable | None:
    stream = txn.find_below(found, (_VERSION,), (_STREAM, FORMAT))
    if stream is None:
        return None
    location = cast("Stream", stream.value).properties.get(LOCATION, "")
    main = txn.find_below(stream, (_MAIN,))
    newest = None if main is None else cast("Partition", main.value).stream_position
    value = cast("Table", found.value)
    return LanceTable(found.locator, found.revision, value, location, newest)


def create_table(
    txn: Transaction, locator: Locator, properties: Mapping[str, str], location: str
) -> None:
    """Make the objects of a Lance table that has no versions yet."""
    table = Table(
        properties=dict(properties), latest_version=_VERSION, latest_active_version=_VERSION
    )
    txn.create(locator, table)
    txn.create(locator.child(_VERSION), TableVersion(version=_VERSION, state=Lifecycle.ACTIVE))
    stream = Stream(
        stream_id=_STREAM,
        format=FORMAT,
        state=CommitState.COMMITTED,
        properties={LOCATION: location},
    )
    txn.create(stream_locator(locator), stream)


def relocate(txn: Transaction, table: Locator, location: str) -> None:
    """Let a table lie elsewhere."""
    locator = stream_locator(table)
    stream = cast("Stream", txn.get(locator).value)
    txn.update(locator, replace(stream, properties={**stream.properties, LOCATION: location}))


def move_table(txn: Transaction, old: Locator, new: Locator, value: Table) -> None:
    """Give a table another name and content; in another namespace it gets another id.

    An object lies below its parent's id and never moves: there it is made anew, with all below it.
    Where its data lies does not change.
    """
    txn.update(old, value)
    if old.parent == new.parent:
        txn.rename(old, *new.parts)
        return
    txn.create(new, value)
    _copy_children(txn, old, new)
    txn.delete(old, cascade=True)


def _copy_children(txn: Transaction, old: Locator, new: Locator) -> None:
    for child in txn.children(old):
        copy = new.child(*child.locator.parts)
        txn.create(copy, child.value)
        _copy_children(txn, child.locator, copy)
