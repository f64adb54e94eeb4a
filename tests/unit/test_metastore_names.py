"""Locators and the layout of a metastore.

Spec: deltacat-storage-model, "Naming, Mutability, and Canonical Strings" and "Directory & File
Structure".
"""

from __future__ import annotations

import hashlib

import pytest

from mooring.errors import InvalidInputError, InvalidNameError
from mooring.metastore import layout
from mooring.metastore.layout import Operation, RevisionName
from mooring.metastore.locator import Kind, Locator

TXN = "1737070822189_20444dca-7e3d-4dd2-af70-23b8bc890966"


def test_canonical_string_holds_that_of_the_parent():
    table = Locator.of("MyNamespace", "MyTable")
    assert table.canonical == "MyNamespace|MyTable"
    assert table.digest == hashlib.sha1(b"MyNamespace|MyTable").hexdigest()  # noqa: S324
    assert table.parent == Locator.of("MyNamespace")
    stream = table.child("1").child("s-1", "lance")
    assert stream.canonical == "MyNamespace|MyTable|1|s-1|lance"
    assert stream.kind is Kind.STREAM


def test_kinds_lie_on_levels():
    assert [kind.level for kind in Kind] == [1, 2, 3, 4, 5, 6]
    deep = Locator.of("n", "t", "1", "s", "p", "7")
    assert deep.kind is Kind.DELTA
    with pytest.raises(InvalidInputError):
        deep.child("below")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a|b", "a\0b"])
def test_name_that_would_be_misread_is_refused(name):
    with pytest.raises(InvalidNameError):
        Locator.of(name)


def test_revision_file_is_named_as_the_document_says():
    name = RevisionName(1, Operation.CREATE, TXN)
    path = layout.revision_path(("ns-id", "table-id"), name)
    assert path == f"ns-id/table-id/rev/00000000000000000001_create_{TXN}.mpk"
    assert layout.parse_revision(path.rpartition("/")[2]) == name


def test_mapping_file_is_named_as_the_document_says():
    name = RevisionName(2, Operation.DELETE, TXN, "table-id")
    path = layout.mapping_path(("ns-id",), "digest", name)
    assert path == f"ns-id/digest/00000000000000000002_delete_{TXN}.table-id"
    assert layout.parse_mapping(path.rpartition("/")[2]) == name
    assert layout.mapping_path((), "digest", name).startswith("digest/")


def test_log_is_read_in_both_writings_of_the_document():
    assert layout.log_path(TXN) == f"txn/{TXN}"
    assert layout.parse_log(TXN) == TXN
    assert layout.parse_log(TXN.replace("_", "-", 1)) == TXN
    assert layout.parse_log("_commits") is None


def test_checkpoints_are_listed_from_the_last():
    paths = [layout.checkpoint_path(seq) for seq in (1, 9, 10, 1000)]
    assert paths == sorted(paths, reverse=True)
    assert layout.parse_checkpoint(paths[0].rpartition("/")[2]) == 1
    assert layout.parse_checkpoint("rest") is None
