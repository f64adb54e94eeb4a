"""The version files of a Lance table, read through a store without opening the table.

Spec: objects-and-relationships, "Table Version".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.store import Store

__all__ = [
    "BRANCHES_DIR",
    "VERSIONS_DIR",
    "list_versions",
    "manifest_name",
    "manifest_path",
    "newest_version",
    "parse_manifest",
    "parse_record",
]

VERSIONS_DIR = "_versions"
BRANCHES_DIR = "tree"
_LARGEST = 2**64 - 1
# Newer tables count down so that the newest version is listed first; older ones count up.
_COUNTING_DOWN = re.compile(r"([0-9]{20})\.manifest")
_GIVEN = re.compile(r"([0-9]+\.manifest)\.[0-9a-f]{64}\.json")
_COUNTING_UP = re.compile(r"([0-9]{1,19})\.manifest")


def parse_manifest(file_name: str) -> int | None:
    """Return the version a manifest file is named for, or None for any other file."""
    if match := _COUNTING_DOWN.fullmatch(file_name):
        return _LARGEST - int(match[1])
    if match := _COUNTING_UP.fullmatch(file_name):
        return int(match[1])
    return None


def parse_record(file_name: str) -> int | None:
    """Return the version that a manifest, or what its writer gave along, belongs to."""
    if match := _GIVEN.fullmatch(file_name):
        return parse_manifest(match[1])
    return parse_manifest(file_name)


def manifest_name(version: int, *, counting_down: bool = True) -> str:
    """Name the manifest of a version."""
    return f"{_LARGEST - version:020d}.manifest" if counting_down else f"{version}.manifest"


def manifest_path(table_dir: str, version: int, *, like: str) -> str:
    """Return the path of a version's manifest, named as another of the same table is."""
    counting_down = _COUNTING_DOWN.fullmatch(like.rpartition("/")[2]) is not None
    return f"{table_dir}/{VERSIONS_DIR}/{manifest_name(version, counting_down=counting_down)}"


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
