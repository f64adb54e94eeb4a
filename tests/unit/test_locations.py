"""Where tables of a manifest may lie."""

from __future__ import annotations

import re

import pytest

from mooring.clock import RandomIds
from mooring.directory.locations import new_location
from mooring.errors import InvalidInputError, InvalidNameError
from mooring.namespace.locations import check_location, is_outside, overlaps

DISK = "/data/lake"
BUCKET = "s3://bucket/a%20lake"


@pytest.mark.parametrize("object_id", ["t", "ns$t", "it's 100%", "語" * 82, "x" * 246])
def test_a_new_location_is_a_hash_and_the_identifier(object_id):
    """Spec: directory-namespace, "`<hash>_<object_id>`"."""
    location = new_location(object_id, RandomIds())
    assert re.fullmatch(rf"[0-9a-f]{{8}}_{re.escape(object_id)}", location)
    assert len(location.encode()) <= 255


def test_new_locations_differ():
    assert len({new_location("t", RandomIds()) for _ in range(100)}) == 100


@pytest.mark.parametrize("object_id", ["x" * 247, "語" * 83])
def test_an_identifier_too_long_for_a_file_name_is_refused(object_id):
    with pytest.raises(InvalidNameError, match="246"):
        new_location(object_id, RandomIds())


def test_no_new_location_reads_as_a_directory_of_v1():
    assert not new_location("ns$x.lance", RandomIds()).endswith(".lance")


@pytest.mark.parametrize(
    ("location", "root", "path"),
    [
        ("t.lance", DISK, "t.lance"),
        ("a/b/c", DISK, "a/b/c"),
        ("a/b/", DISK, "a/b"),
        ("/data/lake/a/b", DISK, "a/b"),
        ("/data/lake/a/b/", DISK, "a/b"),
        ("/data/lake/50%25", DISK, "50%25"),
        ("s3://bucket/a%20lake/x%24y", BUCKET, "x$y"),
        ("x%24y", BUCKET, "x%24y"),
    ],
)
def test_a_location_below_the_root_is_kept_relative(location, root, path):
    """A path of the disk is taken as it is; of a URI what is quoted is unquoted."""
    assert check_location(location, root, ()) == path


@pytest.mark.parametrize(
    "location",
    [
        "",
        "/",
        "//",
        ".",
        "..",
        "../x",
        "a/../b",
        "a/./b",
        "a//b",
        "/data/lake",
        "/data/lake/",
        "/data/lake/..",
        "/data/lake/../other",
        "/data/lakeside/x",
        "/data",
        "/etc/passwd",
        "s3://bucket/x",
        "file:///data/lake/x",
        "__manifest",
        "__manifest/x",
        "/data/lake/__manifest",
        "a\\b",
        "a\0b",
        "a\nb",
    ],
    ids=ascii,
)
def test_any_other_location_is_refused(location):
    with pytest.raises(InvalidInputError):
        check_location(location, DISK, (), own=("__manifest",))


@pytest.mark.parametrize(
    ("location", "allowed"),
    [
        ("/shelf/x", ["/shelf"]),
        ("/shelf/x/", ["/other", "/shelf/"]),
        ("s3://other/x/y", ["s3://other"]),
    ],
)
def test_a_location_outside_is_accepted_below_an_allowed_one(location, allowed):
    assert check_location(location, DISK, allowed) == location.rstrip("/")


@pytest.mark.parametrize(
    "location",
    ["/shelf", "/shelf/", "/shelf-2/x", "/shelf/../x", "/shelf/./x", "/shelf//", "s3://shelf/x"],
)
def test_a_location_beside_an_allowed_one_is_refused(location):
    with pytest.raises(InvalidInputError):
        check_location(location, DISK, ["/shelf"])


def test_what_an_empty_entry_would_allow_is_not_allowed():
    for location in ("/etc", "s3://bucket/x"):
        with pytest.raises(InvalidInputError):
            check_location(location, DISK, [""])


@pytest.mark.parametrize(
    ("location", "outside"),
    [("a/b", False), ("a:b", False), ("/a", True), ("s3://a/b", True), ("file:///a", True)],
)
def test_a_location_is_inside_or_outside(location, outside):
    assert is_outside(location) == outside


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", True),
        ("a", "a/b", True),
        ("a/b/c", "a", True),
        ("a", "ab", False),
        ("a/b", "a/c", False),
        ("a.lance", "a.lance2", False),
    ],
)
def test_locations_overlap_where_one_lies_in_the_other(one, other, expected):
    assert overlaps(one, other) == overlaps(other, one) == expected
