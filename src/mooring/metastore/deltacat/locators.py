"""Locators as deltacat writes them, nested from the object up to its namespace.

Names change, so its files do not hold those of the objects above: where the name of a namespace or
table would be, the id of the object itself stands. Only logs of transactions hold names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.metastore.deltacat.kept import as_dict, as_list
from mooring.metastore.locator import Kind

if TYPE_CHECKING:
    from mooring.metastore.deltacat.kept import Dictionary
    from mooring.metastore.timeline import Ids

__all__ = ["LOCATOR_KEYS", "Around", "read_around", "write_alias", "write_locator"]

LOCATOR_KEYS = {
    Kind.NAMESPACE: "namespaceLocator",
    Kind.TABLE: "tableLocator",
    Kind.TABLE_VERSION: "tableVersionLocator",
    Kind.STREAM: "streamLocator",
    Kind.PARTITION: "partitionLocator",
    Kind.DELTA: "deltaLocator",
}


@dataclass(frozen=True, slots=True)
class Around:
    """What a locator tells beside ids.

    Attributes:
        name: Of the namespace or table itself.
        stream_format: Of the stream that it is or lies in.
        partition_values: Of the partition that it is or lies in.
        above: The names of namespace and table, where they are to be told.
    """

    name: str = ""
    stream_format: str | None = None
    partition_values: list[object] = field(default_factory=list)
    above: tuple[str, ...] | None = None


def write_locator(ids: Ids, around: Around) -> Dictionary:
    """Write the locator of an object."""
    namespace, table = around.above or (ids[-1], ids[-1])
    kind = Kind.at(len(ids))
    if kind is Kind.NAMESPACE:
        return {"namespace": around.name}
    found: Dictionary = {"namespaceLocator": {"namespace": namespace}}
    found["tableName"] = around.name if kind is Kind.TABLE else table
    steps: list[Dictionary] = [
        {"tableVersion": ids[2]} if len(ids) >= Kind.TABLE_VERSION.level else {},
        {"streamId": ids[3], "format": around.stream_format}
        if len(ids) >= Kind.STREAM.level
        else {},
        {"partitionValues": around.partition_values or None, "partitionId": ids[4]}
        if len(ids) >= Kind.PARTITION.level
        else {},
        {"streamPosition": int(ids[5])} if len(ids) >= Kind.DELTA.level else {},
    ]
    for above, step in zip(list(Kind)[1:], steps, strict=False):
        found = {LOCATOR_KEYS[above]: found, **step} if step else found
    return found


def write_alias(ids: Ids, around: Around, scheme_id: str | None) -> Dictionary | None:
    """Write the further locator of a stream or partition; None for other objects."""
    kind = Kind.at(len(ids))
    if kind is Kind.STREAM:
        parent = as_dict(write_locator(ids, around)["tableVersionLocator"])
        return {"format": around.stream_format, "parent": parent}
    if kind is not Kind.PARTITION:
        return None
    return {
        "partition_values": around.partition_values or None,
        "partition_scheme_id": scheme_id,
        "parent": write_locator(ids, around)["streamLocator"],
    }


def read_around(raw: Dictionary, kind: Kind) -> Around:
    """Read what a locator tells beside ids."""
    locator = as_dict(raw.get(LOCATOR_KEYS[kind]))
    if kind is Kind.NAMESPACE:
        return Around(name=str(locator.get("namespace") or ""))
    if kind is Kind.TABLE:
        return Around(name=str(locator.get("tableName") or ""))
    partition = as_dict(locator.get("partitionLocator")) if kind is Kind.DELTA else locator
    stream = locator if kind is Kind.STREAM else as_dict(partition.get("streamLocator"))
    stream_format = stream.get("format")
    return Around(
        stream_format=None if stream_format is None else str(stream_format),
        partition_values=as_list(partition.get("partitionValues")),
    )
