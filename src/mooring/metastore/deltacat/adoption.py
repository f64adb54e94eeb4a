"""Adoption: a catalog of deltacat becomes one of ours, in a new root, by one commit.

Everything that is alive comes along with its id and names, and with what our model has no place
for. Data files stay where they are; manifests refer to them there. The source is only read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import ConflictError
from mooring.metastore.locator import ROOT, Kind
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import LOCATION, Delta, Stream
from mooring.metastore.recognition import Layout, recognise
from mooring.namespace.locations import is_outside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.metastore.model import MetaObject
    from mooring.metastore.transaction import Found, Transaction
    from mooring.store import Store

__all__ = ["Adoption", "adopt"]


@dataclass(slots=True)
class Adoption:
    """What was adopted, or would be.

    Attributes:
        objects: How many of each kind.
        data_files: How many files their manifests refer to.
        data_bytes: How large these are, as far as the manifests tell.
        seq: The entry of the new chain; None for a dry run.
    """

    objects: Counter[Kind] = field(default_factory=Counter)
    data_files: int = 0
    data_bytes: int = 0
    seq: int | None = None


def adopt(source: Metastore, target: Store, *, author: str, dry_run: bool = False) -> Adoption:
    """Take a catalog over into a new root.

    One entry of the new chain decides. Whatever a crash leaves before it is passed over, and
    adopting again into the same root starts afresh.

    Args:
        source: The catalog.
        target: Where it goes: a root without a metastore.
        author: In whose name to commit.
        dry_run: Only tell what there is.

    Raises:
        ConflictError: the target holds a metastore.
        UnknownOutcomeError: the store never said whether it is done.
    """
    if recognise(target) is not Layout.EMPTY:
        msg = f"'{target.location('')}' holds a metastore already: adopt into another root"
        raise ConflictError(msg)
    reading = source.begin()
    found = Adoption()
    with Metastore(target, author=author).transaction(message="adopted from deltacat") as txn:
        for one in _everything(reading):
            value = _elsewhere(one.value, source.store)
            _count(found, value)
            if dry_run:
                continue
            txn.create(one.locator, value, object_id=one.id)
            _give_names(txn, one, reading)
    found.seq = None if dry_run else txn.committed_at
    return found


def _everything(reading: Transaction) -> Iterator[Found]:
    """Go through all objects, each before those below it."""
    waiting = reading.children(ROOT)
    while waiting:
        one = waiting.pop()
        yield one
        if one.value.kind is not Kind.DELTA:
            waiting += reading.children(one.locator)


def _give_names(txn: Transaction, one: Found, reading: Transaction) -> None:
    """Give a namespace or table its further names; those of others follow from what they are."""
    if one.value.kind not in {Kind.NAMESPACE, Kind.TABLE}:
        return
    for parts in reading.names(one.locator):
        if parts != one.locator.parts:
            txn.add_alias(one.locator, *parts)


def _elsewhere(value: MetaObject, store: Store) -> MetaObject:
    """Refer to data files, and to Lance tables, from a root that is not theirs."""
    if isinstance(value, Stream) and LOCATION in value.properties:
        location = _absolute(value.properties[LOCATION], store)
        return msgspec.structs.replace(value, properties={**value.properties, LOCATION: location})
    if not isinstance(value, Delta):
        return value
    files = tuple(
        msgspec.structs.replace(file, path=_absolute(file.path, store))
        for file in value.manifest.files
    )
    manifest = msgspec.structs.replace(value.manifest, files=files)
    return msgspec.structs.replace(value, manifest=manifest)


def _absolute(path: str, store: Store) -> str:
    return path if is_outside(path) else store.location(path)


def _count(found: Adoption, value: MetaObject) -> None:
    found.objects[value.kind] += 1
    if isinstance(value, Delta):
        found.data_files += len(value.manifest.files)
        found.data_bytes += sum(file.size_bytes or 0 for file in value.manifest.files)
