"""Changes of a manifest that share a commit: each is told what became of it, and of nothing else.

Spec: directory-namespace, "Manifest Table Commits".
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mooring.clock import RandomIds
from mooring.directory import shared_manifest
from mooring.directory.shared_manifest import SharedManifest
from mooring.errors import (
    NamespaceAlreadyExistsError,
    ServiceUnavailableError,
    UnknownOutcomeError,
)
from mooring.store.remote import RemoteStore
from mooring.tables.manifest import ManifestRow
from tests.races.manifests import StoreManifest

if TYPE_CHECKING:
    from mooring.directory.draft import Draft
    from mooring.store import Listing

LIMIT_S = 30


class FailingManifest(StoreManifest):
    """Fails to commit whatever holds a certain row."""

    def commit(self, change, properties):
        if any(row.object_id == "lost" for row in change.added):
            raise ServiceUnavailableError("the store does not answer")
        return super().commit(change, properties)


class WornStore(RemoteStore):
    """Lists nothing any more once a version was made, while it is worn."""

    is_worn = is_spent = False

    def put_new(self, path: str, body: bytes) -> bool:
        is_made = super().put_new(path, body)
        self.is_spent = self.is_worn
        return is_made

    def list_dir(self, path: str) -> Listing:
        if self.is_spent:
            raise ServiceUnavailableError("the store does not answer")
        return super().list_dir(path)


class LeavingManifest(StoreManifest):
    """Cannot delete what it wrote for a try that lost."""

    def give_up(self) -> None:
        raise ServiceUnavailableError("the store does not answer")


@pytest.fixture
def store():
    return RemoteStore("memory://", {})


def open_shared(store, kind: type[StoreManifest] = StoreManifest) -> SharedManifest:
    return SharedManifest(store, lambda: kind(store, RandomIds()))


def add(name: str):
    def plan(draft: Draft) -> str:
        draft.require_free(name)
        draft.put(ManifestRow(name, "namespace"))
        return name

    return plan


def await_line(shared: SharedManifest, length: int) -> None:
    waited = threading.Event()
    for _ in range(LIMIT_S * 1000):
        if shared.waiting >= length:
            return
        waited.wait(0.001)
    pytest.fail("they never came")


def test_what_landed_is_told_so_however_long_it_took(store, monkeypatch):
    open_shared(store).change(add("a"), by="ada")
    monkeypatch.setattr(shared_manifest, "_PATIENCE_S", -1)
    late = open_shared(store)
    assert late.change(add("b"), by="bob") == "b"
    assert late.find("b") is not None


def test_nobody_is_refused_by_what_was_not_committed(store):
    shared = open_shared(store, FailingManifest)
    shared.change(add("there"), by="ada")
    is_held, goes_on = threading.Event(), threading.Event()

    def hold(draft: Draft) -> None:
        is_held.set()
        assert goes_on.wait(LIMIT_S)

    with ThreadPoolExecutor(4) as threads:
        threads.submit(shared.change, hold, by="eve")
        assert is_held.wait(LIMIT_S)
        asked = []
        for place, name in enumerate(["there", "lost", "lost"], 1):
            asked.append(threads.submit(shared.change, add(name), by="bob"))
            await_line(shared, place)
        goes_on.set()
        errors = [one.exception(LIMIT_S) for one in asked]
    assert list(map(type, errors)) == [
        NamespaceAlreadyExistsError,
        ServiceUnavailableError,
        ServiceUnavailableError,
    ]
    assert shared.find("lost") is None


def test_what_landed_is_never_told_as_not_done():
    store = WornStore("memory://", {})
    shared = open_shared(store)
    shared.change(add("a"), by="ada")
    store.is_worn = True
    with pytest.raises(UnknownOutcomeError):
        shared.change(add("b"), by="ada")
    store.is_worn = store.is_spent = False
    assert shared.find("b") is not None


def test_what_cannot_be_tidied_up_does_not_undo_a_change(store):
    shared = open_shared(store, LeavingManifest)
    assert shared.change(add("a"), by="ada") == "a"
