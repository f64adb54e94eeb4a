"""Transactions: what made a version, and what people note about it afterwards.

A transaction is known when its version is there, so it has succeeded, and nothing can change that.
Properties can be added later; they lie in a file of their own, where Lance's directory catalogs
look for them, too.

Spec: lance-rest-openapi, DescribeTransaction, AlterTransaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    TableVersionNotFoundError,
    TransactionNotFoundError,
    UnreadableError,
)
from mooring.identifiers import quote
from mooring.tables.failures import translated
from mooring.tables.handle import At
from mooring.tables.transaction_files import TRANSACTIONS_DIR, TransactionFile, named_in
from mooring.tables.versions import BRANCHES_DIR, VERSIONS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lance import LanceDataset

    from mooring.tables.handle import TableHandle

__all__ = [
    "SUCCEEDED",
    "IfAbsent",
    "IfPresent",
    "SetProperty",
    "SetStatus",
    "Transaction",
    "UnsetProperty",
    "alter_transaction",
    "describe_transaction",
    "read_transaction",
]

SUCCEEDED = "Succeeded"
_ALTERED = "_alter_transactions"
_SUFFIX = ".txn"
_NAMELESS = "BaseOperation"
_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Transaction:
    """What made a version.

    Attributes:
        uuid: Its identifier.
        version: The version it made.
        read_version: The version it was made from.
        operation: What it did, in Lance's words.
        properties: What its writer gave along, and what was noted later.
    """

    uuid: str
    version: int
    read_version: int
    operation: str
    properties: Mapping[str, str]

    @property
    def facts(self) -> dict[str, str]:
        """What cannot be altered, as properties."""
        return {
            "uuid": self.uuid,
            "version": str(self.version),
            "read_version": str(self.read_version),
            "operation": self.operation,
        }


class IfPresent(StrEnum):
    """What to do about a property that is there and shall be set."""

    OVERWRITE = "overwrite"
    FAIL = "fail"
    SKIP = "skip"


class IfAbsent(StrEnum):
    """What to do about a property that is not there and shall be unset."""

    SKIP = "skip"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class SetStatus:
    """Give a transaction a status; it can only be the one it has."""

    status: str


@dataclass(frozen=True, slots=True)
class SetProperty:
    """Give a transaction a property."""

    key: str
    value: str
    if_present: IfPresent = IfPresent.OVERWRITE


@dataclass(frozen=True, slots=True)
class UnsetProperty:
    """Take a property from a transaction."""

    key: str
    if_absent: IfAbsent = IfAbsent.SKIP


Action = SetStatus | SetProperty | UnsetProperty


class _Notes(msgspec.Struct, frozen=True):
    """What was noted about a transaction: the file's content."""

    status: str | None = None
    properties: dict[str, str] = {}
    removed_properties: list[str] = []


def describe_transaction(
    handle: TableHandle, key: str, *, branch: str | None = None
) -> Transaction:
    """Find a transaction by its identifier, or by the version that it made.

    Raises:
        TransactionNotFoundError: no version that is there was made by it.
    """
    with handle.reading(At(branch=branch)) as dataset:
        found = _find(handle, dataset, key, At(branch=branch).branch)
    if found is None:
        msg = f"no version of {handle.what} was made by a transaction {quote(key)}"
        raise TransactionNotFoundError(msg)
    notes, _ = _read_notes(handle, found.uuid)
    return replace(found, properties=_merge(found.properties, notes))


def alter_transaction(handle: TableHandle, key: str, actions: Sequence[Action]) -> Transaction:
    """Set and unset properties of a transaction: all of it, or nothing.

    An object store decides between several that alter one transaction; on disk the last one
    counts.

    Raises:
        TransactionNotFoundError: no version that is there was made by it.
        InvalidInputError: a property cannot be altered, or is there, or is not, against what an
            action demands.
        InvalidTableStateError: it is to get another status than it has.
        ConcurrentModificationError: others kept altering it.
    """
    handle.ledger.prepare()
    with handle.reading() as dataset:
        found = _find(handle, dataset, key, None)
    if found is None:
        msg = f"no version of {handle.what} was made by a transaction {quote(key)}"
        raise TransactionNotFoundError(msg)
    for _ in range(_ATTEMPTS):
        notes, put = _read_notes(handle, found.uuid)
        wanted = _apply(found, notes, actions)
        if wanted == notes or put(msgspec.json.encode(wanted)):
            handle.ledger.confirm()
            return replace(found, properties=_merge(found.properties, wanted))
    msg = f"transaction {quote(key)} of {handle.what} is altered by others all the time: try again"
    raise ConcurrentModificationError(msg)


def read_transaction(
    handle: TableHandle, dataset: LanceDataset, version: int, branch: str | None
) -> Transaction | None:
    """Read what made a version; None where there is no such version or Lance kept nothing."""
    try:
        with translated(handle.what):
            found = dataset.read_transaction(version)
    except TableVersionNotFoundError:
        return None
    except InvalidInputError as exc:
        # Lance cannot put every transaction that it wrote into objects of Python.
        if not isinstance(exc.__cause__, TypeError):
            raise
        found = None
    if found is None or type(found.operation).__name__ == _NAMELESS:
        return _read_file(handle, version, branch)
    return Transaction(
        found.uuid,
        version,
        found.read_version,
        type(found.operation).__name__,
        dict(found.transaction_properties or {}),
    )


def _read_file(handle: TableHandle, version: int, branch: str | None) -> Transaction | None:
    place = handle.place
    above = f"{BRANCHES_DIR}/{branch}/" if branch else ""
    name = handle.ledger.describe(version, branch).manifest_path.rpartition("/")[2]
    manifest = place.store.get(place.path(f"{above}{VERSIONS_DIR}/{name}"))
    for file in named_in(manifest or b""):
        body = place.store.get(place.path(f"{above}{TRANSACTIONS_DIR}/{file}"))
        if body is not None:
            made = TransactionFile.decode(body)
            return Transaction(
                made.uuid, version, made.read_version, made.operation, made.properties
            )
    return None


# -- finding one ---------------------------------------------------------------------------------


def _find(
    handle: TableHandle, dataset: LanceDataset, key: str, branch: str | None
) -> Transaction | None:
    if key.isascii() and key.isdecimal() and len(key) < len(str(2**63)):
        return read_transaction(handle, dataset, int(key), branch)
    for version in _candidates(handle, dataset.version, key, branch):
        found = read_transaction(handle, dataset, version, branch)
        if found is not None and found.uuid == key:
            return found
    return None


def _candidates(handle: TableHandle, newest: int, uuid: str, branch: str | None) -> Iterator[int]:
    """Say where to look for a transaction: its file tells from which version it was made."""
    place = handle.place
    directory = place.path(
        f"{BRANCHES_DIR}/{branch}/{TRANSACTIONS_DIR}" if branch else TRANSACTIONS_DIR
    )
    for name in place.store.list_dir(directory).files:
        read_version, _, rest = name.removesuffix(_SUFFIX).partition("-")
        if rest == uuid and read_version.isdecimal():
            # The next one, unless others were faster.
            yield from range(int(read_version) + 1, newest + 1)
            return
    # Lance can keep a transaction in the manifest alone.
    yield from (record.version for record in handle.ledger.newest_first(branch))


# -- what was noted ------------------------------------------------------------------------------


class _Put:
    """Replaces what was read."""

    def __init__(self, handle: TableHandle, path: str) -> None:
        self._store = handle.place.store
        self._path = path
        self.found = self._store.read(path)

    def __call__(self, body: bytes) -> bool:
        if self.found is None:
            return self._store.put_new(self._path, body)
        if self._store.capabilities.compare_and_swap:
            return self._store.put_if(self._path, body, self.found.meta.tag)
        self._store.put(self._path, body)
        return True


def _read_notes(handle: TableHandle, uuid: str) -> tuple[_Notes, _Put]:
    put = _Put(handle, handle.place.path(f"{_ALTERED}/{uuid}.json"))
    if put.found is None:
        return _Notes(), put
    try:
        return msgspec.json.decode(put.found.body, type=_Notes), put
    except msgspec.DecodeError as exc:
        msg = f"the notes on transaction {quote(uuid)} of {handle.what} are damaged: {exc}"
        raise UnreadableError(msg) from exc


def _merge(given: Mapping[str, str], notes: _Notes) -> dict[str, str]:
    kept = {key: value for key, value in given.items() if key not in notes.removed_properties}
    return {**kept, **notes.properties}


def _apply(found: Transaction, notes: _Notes, actions: Sequence[Action]) -> _Notes:
    for action in actions:
        match action:
            case SetStatus():
                _require_succeeded(action.status)
            case SetProperty():
                notes = _set(found, notes, action)
            case UnsetProperty():
                notes = _unset(found, notes, action)
    return notes


def _require_succeeded(status: str) -> None:
    if status.lower() != SUCCEEDED.lower():
        msg = (
            f"the transaction has succeeded, its version is there: it cannot become {status};"
            " restore an older version to undo what it did"
        )
        raise InvalidTableStateError(msg)


def _set(found: Transaction, notes: _Notes, action: SetProperty) -> _Notes:
    _require_alterable(found, action.key)
    if action.key in _merge(found.properties, notes):
        if action.if_present is IfPresent.SKIP:
            return notes
        if action.if_present is IfPresent.FAIL:
            msg = f"the transaction has a property {quote(action.key)} already"
            raise InvalidInputError(msg)
    return msgspec.structs.replace(
        notes,
        properties={**notes.properties, action.key: action.value},
        removed_properties=[key for key in notes.removed_properties if key != action.key],
    )


def _unset(found: Transaction, notes: _Notes, action: UnsetProperty) -> _Notes:
    _require_alterable(found, action.key)
    if action.key not in _merge(found.properties, notes):
        if action.if_absent is IfAbsent.FAIL:
            msg = f"the transaction has no property {quote(action.key)}"
            raise InvalidInputError(msg)
        return notes
    given = [action.key] if action.key in found.properties else []
    return msgspec.structs.replace(
        notes,
        properties={key: value for key, value in notes.properties.items() if key != action.key},
        removed_properties=[*notes.removed_properties, *given],
    )


def _require_alterable(found: Transaction, key: str) -> None:
    if not key:
        msg = "a property needs a key"
        raise InvalidInputError(msg)
    if key in found.facts:
        msg = f"{quote(key)} says what the transaction is: it cannot be altered"
        raise InvalidInputError(msg)
