"""Manifests of deltas as deltacat writes them: data files, and what they are together."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import msgspec

from mooring.metastore.deltacat.kept import as_dict, as_list, beyond, put_back
from mooring.metastore.model import DataFile

if TYPE_CHECKING:
    from mooring.metastore.deltacat.kept import Dictionary
    from mooring.metastore.model import Manifest
    from mooring.metastore.timeline import Ids

__all__ = ["OURS", "read_manifest", "write_manifest"]

# The one key that we add to its dictionaries, and only where there is something to say.
OURS = "mooring"
_STATISTICS = ("minimum", "maximum", "nulls", "segments")
_SUMS = ("record_count", "content_length", "source_content_length")
_COMMON = ("content_type", "content_encoding", "entry_type")


def write_manifest(manifest: Manifest, ids: Ids) -> Dictionary:
    """Write a manifest; its id follows from the delta's."""
    entries = [_write_file(file) for file in manifest.files]
    found: Dictionary = {
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(ids))),
        "meta": _together([as_dict(entry.get("meta")) for entry in entries]),
        "entries": entries,
    }
    if manifest.author is not None:
        found["author"] = {"name": manifest.author}
    return found


def read_manifest(found: object) -> Dictionary:
    """Read a manifest."""
    raw = as_dict(found)
    files = [_read_file(as_dict(entry)) for entry in as_list(raw.get("entries"))]
    return {"files": files, "author": as_dict(raw.get("author")).get("name")}


def _write_file(file: DataFile) -> Dictionary:
    bare = msgspec.structs.replace(file, kept={})
    return put_back(
        _write_bare(bare),
        file.kept,
        lambda entry: msgspec.convert(_read_bare(entry), DataFile) == bare,
    )


def _read_file(entry: Dictionary) -> Dictionary:
    found = _read_bare(entry)
    kept = beyond(entry, _write_bare(msgspec.convert(found, DataFile)))
    return {**found, "kept": kept}


def _write_bare(file: DataFile) -> Dictionary:
    meta = {
        "record_count": file.rows,
        "content_length": file.size_bytes,
        "content_type": file.content_type,
        "content_encoding": "identity",
        "entry_type": "data",
    }
    found: Dictionary = {
        "url": file.path,
        "meta": {key: value for key, value in meta.items() if value is not None},
        "mandatory": True,
    }
    statistics = {key: getattr(file, key) for key in _STATISTICS if getattr(file, key)}
    return {**found, OURS: statistics} if statistics else found


def _read_bare(entry: Dictionary) -> Dictionary:
    meta = as_dict(entry.get("meta"))
    found = {
        "path": entry.get("url") or entry.get("uri") or "",
        "content_type": meta.get("content_type"),
        "rows": meta.get("record_count"),
        "size_bytes": meta.get("content_length"),
        **as_dict(entry.get(OURS)),
    }
    return {key: value for key, value in found.items() if value is not None}


def _together(metas: list[Dictionary]) -> Dictionary:
    """Add up what files are, and say what they all have in common."""
    found: Dictionary = {
        key: sum(value for meta in metas if isinstance(value := meta.get(key), int))
        for key in _SUMS
    }
    for key in _COMMON:
        values = {str(meta.get(key)) for meta in metas if meta.get(key) is not None}
        if len(values) == 1:
            found[key] = values.pop()
    return found
