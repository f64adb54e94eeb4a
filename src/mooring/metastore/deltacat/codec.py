"""Objects as deltacat keeps them: the model to its dictionaries, and back without a loss."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import UnreadableError
from mooring.metastore import model
from mooring.metastore.decoding import decode_with
from mooring.metastore.deltacat.kept import as_dict, as_list, beyond, put_back
from mooring.metastore.deltacat.locators import LOCATOR_KEYS, read_around, write_locator
from mooring.metastore.deltacat.manifest import OURS, read_manifest, write_manifest
from mooring.metastore.deltacat.schemes import (
    NO_SCHEME_ID,
    read_partition_scheme,
    read_sort_scheme,
    write_partition_scheme,
    write_sort_scheme,
)
from mooring.metastore.locator import Kind
from mooring.metastore.model import CommitState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mooring.metastore.deltacat.kept import Dictionary
    from mooring.metastore.deltacat.locators import Around
    from mooring.metastore.model import MetaObject
    from mooring.metastore.timeline import Ids, Parts

__all__ = ["Decoded", "aliases", "decode", "encode", "partition_values", "scheme_id"]

_CLASSES: dict[Kind, type[MetaObject]] = {
    Kind.NAMESPACE: model.Namespace,
    Kind.TABLE: model.Table,
    Kind.TABLE_VERSION: model.TableVersion,
    Kind.STREAM: model.Stream,
    Kind.PARTITION: model.Partition,
    Kind.DELTA: model.Delta,
}
# Fields that have a place in its dictionaries or locators; others go under a key of ours.
_PLACED: dict[Kind, frozenset[str]] = {
    Kind.NAMESPACE: frozenset({"properties"}),
    Kind.TABLE: frozenset({"properties", "description", "latest_version", "latest_active_version"}),
    Kind.TABLE_VERSION: frozenset(model.TableVersion.__struct_fields__),
    Kind.STREAM: frozenset(model.Stream.__struct_fields__) - {"properties"},
    Kind.PARTITION: frozenset(model.Partition.__struct_fields__) - {"properties"},
    Kind.DELTA: frozenset(model.Delta.__struct_fields__),
}
_VALUES = "partitionValues"
_NAMED = {Kind.NAMESPACE, Kind.TABLE}
_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[object] = msgspec.msgpack.Decoder()


@dataclass(frozen=True, slots=True)
class Decoded:
    """An object that was read.

    Attributes:
        value: The object.
        name: What it is called there; empty for one whose name is its id.
    """

    value: MetaObject
    name: str


def encode(value: MetaObject, ids: Ids, around: Around) -> bytes:
    """Write an object as deltacat keeps it."""
    bare = msgspec.structs.replace(value, kept={})
    kept = {key: one for key, one in value.kept.items() if key != _VALUES}
    content = put_back(_write(bare, ids), kept, lambda found: _says(found, bare, ids, around))
    if isinstance(value, model.TableVersion):
        content = _with_all_schemes(content)
    found = {LOCATOR_KEYS[value.kind]: write_locator(ids, around), **content}
    found["ancestor_ids"] = list(ids[:-1])
    if value.kind in _NAMED:
        found["id"] = ids[-1]
    return _encoder.encode(found)


def decode(body: bytes, ids: Ids, where: str) -> Decoded:
    """Read an object that deltacat keeps.

    Raises:
        UnreadableError: it is damaged, or of a kind that is not known.
    """
    kind = Kind.at(len(ids))
    raw = _raw(body, where)
    if LOCATOR_KEYS[kind] not in raw:
        msg = f"'{where}' is damaged (it is no {kind.value}): restore it from a copy"
        raise UnreadableError(msg)
    around = read_around(raw, kind)
    besides = {LOCATOR_KEYS[kind], "ancestor_ids", "id"}
    content = {key: value for key, value in raw.items() if key not in besides}
    bare = _convert(content, ids, around, where)
    kept = beyond(content, _write(bare, ids))
    if content.get("schemas"):
        kept["schemas"] = content["schemas"]  # files tell by which of them they were written
    if isinstance(bare, model.Partition) and list(bare.values) != around.partition_values:
        kept[_VALUES] = around.partition_values
    return Decoded(msgspec.structs.replace(bare, kept=kept), around.name)


def aliases(value: MetaObject) -> list[Parts]:
    """Return the names by which a stream or partition is found once it is committed."""
    if isinstance(value, model.Stream) and value.state is not CommitState.STAGED:
        return [(value.format,)]
    if isinstance(value, model.Partition) and value.state is not CommitState.STAGED:
        # Its library compares what Python prints for a list.
        return [(str(partition_values(value) or None), str(scheme_id(value)))]
    return []


def partition_values(value: model.Partition) -> list[object]:
    """Return the values of a partition as its library has them."""
    kept = as_list(value.kept.get(_VALUES))
    return kept if _plain(kept) == list(value.values) else list(value.values)


def scheme_id(value: model.Partition) -> str | None:
    """Return the id of a partition's scheme; its library has one also for none."""
    return value.scheme_id if value.values else NO_SCHEME_ID


# -- writing -------------------------------------------------------------------------------------


def _write(value: MetaObject, ids: Ids) -> Dictionary:
    found = _write_placed(value, ids)
    fields = as_dict(msgspec.to_builtins(value, builtin_types=(bytes,)))
    rest = {key: one for key, one in fields.items() if key not in _PLACED[value.kind]}
    rest.pop("kind", None)
    return {**found, OURS: rest} if rest else found


def _write_placed(value: MetaObject, ids: Ids) -> Dictionary:
    match value:
        case model.Namespace():
            return {"properties": _properties(value.properties)}
        case model.Table():
            return _write_table(value)
        case model.TableVersion():
            return _write_table_version(value)
        case model.Stream():
            return _write_stream(value)
        case model.Partition():
            return _write_partition(value)
        case model.Delta():
            return _write_delta(value, ids)


def _write_table(value: model.Table) -> Dictionary:
    return {
        "description": value.description,
        "properties": _properties(value.properties),
        "latest_active_table_version": value.latest_active_version,
        "latest_table_version": value.latest_version,
        "nativeObject": None,
    }


def _write_table_version(value: model.TableVersion) -> Dictionary:
    partition_scheme = write_partition_scheme(value.partition_scheme)
    sort_scheme = write_sort_scheme(value.sort_scheme)
    return {
        "schema": value.schema,
        "partitionScheme": partition_scheme,
        "description": value.description,
        "properties": _properties(value.properties),
        "contentTypes": list(value.content_types) or None,
        "sortScheme": sort_scheme,
        "watermark": value.watermark,
        "state": value.state.value,
        "schemas": [value.schema] if value.schema else None,
        "partitionSchemes": [partition_scheme],
        "sortSchemes": [sort_scheme],
        "previous_table_version": value.previous_version,
        "nativeObject": None,
    }


def _write_stream(value: model.Stream) -> Dictionary:
    return {
        "partitionScheme": write_partition_scheme(value.partition_scheme),
        "state": value.state.value,
        "previousStreamId": value.previous_stream_id,
        "watermark": value.watermark,
        "nativeObject": None,
    }


def _write_partition(value: model.Partition) -> Dictionary:
    return {
        "contentTypes": list(value.content_types) or None,
        "state": value.state.value,
        "previousStreamPosition": value.previous_position,
        "previousPartitionId": value.previous_partition_id,
        "streamPosition": value.stream_position,
        "partitionSchemeId": scheme_id(value),
        "compactionRoundCompletionInfo": value.compaction,
    }


def _write_delta(value: model.Delta, ids: Ids) -> Dictionary:
    manifest = write_manifest(value.manifest, ids)
    return {
        "type": value.type.value,
        "meta": manifest["meta"],
        "properties": _properties(value.properties),
        "manifest": manifest,
        "previousStreamPosition": value.previous_position,
    }


def _with_all_schemes(content: Dictionary) -> Dictionary:
    """Add a scheme or schema that came after those it is listed with."""
    found = dict(content)
    pairs = {
        "schemas": "schema",
        "partitionSchemes": "partitionScheme",
        "sortSchemes": "sortScheme",
    }
    for many, one in pairs.items():
        listed = as_list(found.get(many))
        if found.get(one) is not None and found[one] not in listed:
            found[many] = [*listed, found[one]]
    return found


def _properties(properties: Mapping[str, str]) -> Dictionary | None:
    return dict(properties) or None


# -- reading -------------------------------------------------------------------------------------


def _raw(body: bytes, where: str) -> Dictionary:
    return as_dict(decode_with(_decoder, body, where))


def _convert(content: Dictionary, ids: Ids, around: Around, where: str) -> MetaObject:
    kind = Kind.at(len(ids))
    fields = {**_READERS[kind](content, ids, around), **as_dict(content.get(OURS))}
    present = {key: value for key, value in fields.items() if value is not None}
    try:
        return msgspec.convert(present, _CLASSES[kind])
    except msgspec.ValidationError as exc:
        msg = f"'{where}' cannot be read ({exc}): a newer version of deltacat may have written it"
        raise UnreadableError(msg) from exc


def _says(content: Dictionary, value: MetaObject, ids: Ids, around: Around) -> bool:
    try:
        return _convert(content, ids, around, "") == value
    except UnreadableError:
        return False


def _read_namespace(raw: Dictionary, ids: Ids, around: Around) -> Dictionary:
    del ids, around
    return {"properties": _texts(raw.get("properties"))}


def _read_table(raw: Dictionary, ids: Ids, around: Around) -> Dictionary:
    del ids, around
    return {
        "description": raw.get("description"),
        "properties": _texts(raw.get("properties")),
        "latest_active_version": raw.get("latest_active_table_version"),
        "latest_version": raw.get("latest_table_version"),
    }


def _read_table_version(raw: Dictionary, ids: Ids, around: Around) -> Dictionary:
    del around
    return {
        "version": ids[-1],
        "schema": raw.get("schema"),
        "partition_scheme": read_partition_scheme(raw.get("partitionScheme")),
        "sort_scheme": read_sort_scheme(raw.get("sortScheme")),
        "content_types": as_list(raw.get("contentTypes")),
        "state": raw.get("state"),
        "watermark": raw.get("watermark"),
        "previous_version": raw.get("previous_table_version"),
        "description": raw.get("description"),
        "properties": _texts(raw.get("properties")),
    }


def _read_stream(raw: Dictionary, ids: Ids, around: Around) -> Dictionary:
    return {
        "stream_id": ids[-1],
        "format": around.stream_format,
        "partition_scheme": read_partition_scheme(raw.get("partitionScheme")),
        "state": raw.get("state"),
        "previous_stream_id": raw.get("previousStreamId"),
        "watermark": raw.get("watermark"),
    }


def _read_partition(raw: Dictionary, ids: Ids, around: Around) -> Dictionary:
    found_id = raw.get("partitionSchemeId")
    is_without = not around.partition_values and found_id == NO_SCHEME_ID
    return {
        "partition_id": ids[-1],
        "values": _plain(around.partition_values),
        "scheme_id": None if is_without else found_id,
        "state": raw.get("state"),
        "stream_position": raw.get("streamPosition"),
        "previous_position": raw.get("previousStreamPosition"),
        "previous_partition_id": raw.get("previousPartitionId"),
        "content_types": as_list(raw.get("contentTypes")),
        "compaction": raw.get("compactionRoundCompletionInfo"),
    }


def _read_delta(raw: Dictionary, ids: Ids, around: Around) -> Dictionary:
    del around
    return {
        "stream_position": int(ids[-1]),
        "type": raw.get("type"),
        "manifest": read_manifest(raw.get("manifest")),
        "previous_position": raw.get("previousStreamPosition"),
        "properties": _texts(raw.get("properties")),
    }


_READERS = {
    Kind.NAMESPACE: _read_namespace,
    Kind.TABLE: _read_table,
    Kind.TABLE_VERSION: _read_table_version,
    Kind.STREAM: _read_stream,
    Kind.PARTITION: _read_partition,
    Kind.DELTA: _read_delta,
}


def _texts(found: object) -> dict[str, str]:
    """Return properties as texts; its library allows any value."""
    return {
        str(key): value if isinstance(value, str) else _dump(value)
        for key, value in as_dict(found).items()
    }


def _plain(values: Iterable[object]) -> list[object]:
    return [
        one if one is None or isinstance(one, str | int | float) else str(one) for one in values
    ]


_dump = partial(json.dumps, default=repr, sort_keys=True)
