"""Version files of a Lance table.

Spec: objects-and-relationships, "Table Version".
"""

from __future__ import annotations

import pytest

from mooring.store.remote import RemoteStore
from mooring.tables.versions import list_versions, newest_version, parse_manifest

LARGEST = 2**64 - 1


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("1.manifest", 1),
        ("12.manifest", 12),
        (f"{LARGEST - 1:020}.manifest", 1),
        (f"{LARGEST - 300:020}.manifest", 300),
        ("18446744073709551614.manifest-0a1b", None),
        ("latest_version_hint.json", None),
        ("1.manifest.tmp", None),
        (".manifest", None),
        ("x.manifest", None),
        ("d123.manifest", None),
    ],
)
def test_a_manifest_is_named_for_its_version(file, version):
    assert parse_manifest(file) == version


def test_the_newest_version_is_the_largest_number_in_either_way_of_counting():
    store = RemoteStore("memory://", {})
    assert newest_version(store, "t.lance") == 0
    for name in ("9.manifest", "10.manifest", "junk"):
        store.put(f"t.lance/_versions/{name}", b"")
    assert newest_version(store, "t.lance") == 10
    store.put(f"t.lance/_versions/{LARGEST - 11:020}.manifest", b"")
    assert newest_version(store, "t.lance") == 11
    assert sorted(list_versions(store, "t.lance")) == [9, 10, 11]
