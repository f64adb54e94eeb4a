"""A change of a manifest that is planned on some of its rows first, and then on more of them.

Spec: directory-namespace, "Manifest Table Commits".
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

import mooring
from mooring.directory.draft import Draft
from mooring.directory.shared_manifest import SharedManifest
from mooring.directory.tree import Tree
from mooring.errors import NamespaceNotFoundError, ServiceUnavailableError, UnknownOutcomeError


@pytest.fixture
def lake(tmp_path):
    """A catalog with a namespace."""
    catalog = mooring.connect(tmp_path / "lake", dir_listing_enabled=False)
    catalog.create_namespace("a")
    return catalog


def test_a_store_that_fails_is_not_told_as_a_parent_that_is_missing(lake, monkeypatch):
    """The first plan sees no rows, and misses the parent; that is no answer."""
    looks = []
    plain = SharedManifest._glimpse

    def fail_later(self, *about):
        looks.append(about)
        if len(looks) > 1:
            raise ServiceUnavailableError("the store does not answer")
        return plain(self, *about)

    with monkeypatch.context() as patch:
        # As where nothing is in memory yet.
        patch.setattr(SharedManifest, "_begin", lambda *_: Draft({}, Tree({}), {}))
        patch.setattr(SharedManifest, "_glimpse", fail_later)
        with pytest.raises(ServiceUnavailableError, match="does not answer"):
            lake.create_namespace("a$b")
    assert len(looks) == 2
    lake.create_namespace("a$b")
    assert lake.list_namespaces("a") == ["b"]


def test_a_parent_that_is_missing_is_told(lake):
    with pytest.raises(NamespaceNotFoundError):
        lake.create_namespace("nowhere$b")


def test_an_overwrite_that_landed_keeps_its_files_whatever_the_look_after_it_says(
    lake, monkeypatch
):
    """The commit has landed: only whether somebody dropped the table meanwhile is not known."""
    made = lake.create_table("a$t", [{"n": 1}])
    plain = SharedManifest.reading

    @contextmanager
    def fail_after_the_commit(self):
        if len(list(Path(made.location, "_versions").glob("*.manifest"))) > 1:
            raise ServiceUnavailableError("the store does not answer")
        with plain(self) as draft:
            yield draft

    with monkeypatch.context() as patch:
        patch.setattr(SharedManifest, "reading", fail_after_the_commit)
        with pytest.raises(UnknownOutcomeError, match="written as version 2"):
            lake.create_table("a$t", [{"n": 2}], mode="overwrite")
    assert lake.table("a$t").to_arrow().to_pylist() == [{"n": 2}]
