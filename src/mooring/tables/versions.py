"""The version files of a Lance table, read through a store without opening the table.

Spec: objects-and-relationships, "Table Version".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.store import Store

__all__ = ["VERSIONS_DIR", "list_versions", "manifest_path", "newest_version", "parse_manifest"]

VERSIONS_DIR = "_versions"
_LARGEST = 2**64 - 1
# Newer tables count down so that the newest version is listed first; older ones count up.
_COUNTING_DOWN = re.compile(r"([0-9]{20})\.manifest")
_COUNTING_UP = re.compile(r"([0-9]{1,19})\.manifest")


def parse_manifest(file_name: str) -> int | None:
    """Return the version a manifest file is named for, or None for any other file."""
    if match := _COUNTING_DOWN.fullmatch(file_name):
        return _LARGEST - int(match[1])
    if match := _COUNTING_UP.fullmatch(file_name):
        return int(match[1])
    return None


def manifest_path(table_dir: str, version: int, *, like: str) -> str:
    """Return the path of a version's manifest, named as another of the same table is."""
    name = like.rpartition("/")[2]
    number = f"{_LARGEST - version:020d}" if _COUNTING_DOWN.fullmatch(name) else str(version)
    return f"{table_dir}/{VERSIONS_DIR}/{number}.manifest"


def list_versions(store: Store, table_dir: str) -> dict[int, str]:
    """Return the manifest's path of every version."""
    directory = f"{table_dir}/{VERSIONS_DIR}"
    versions = {}
    for name in store.list_dir(directory).files:
        version = parse_manifest(name)
        if version is not None:
            versions[version] = f"{directory}/{name}"
    return versions


def newest_version(store: Store, table_dir: str) -> int:
    """Return the newest version, 0 for a table without any."""
    return max(list_versions(store, table_dir), default=0)
