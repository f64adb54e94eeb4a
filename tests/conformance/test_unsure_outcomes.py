"""What was written and never acknowledged is not taken for lost, and its data is not deleted.

Spec: the rule that a failed commit is lost, refused or unknown, never one for the other.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from mooring.directory.listing_backend import ListingBackend
from mooring.errors import ServiceUnavailableError, UnknownOutcomeError
from mooring.identifiers import ROOT
from mooring.namespace.home import Home
from mooring.opening import open_directory
from mooring.store.local import LocalStore
from mooring.store.numbered import create_once
from mooring.store.scripted import ScriptedStore
from mooring.tables.opening import open_at

TABLE = ROOT.child("t")


def _rows(text: str) -> pa.RecordBatchReader:
    return pa.table({"text": [text]}).to_reader()


def _read(backend) -> list[str]:
    info = backend.describe_table(TABLE)
    return open_at(info.location, info.storage_options).to_table()["text"].to_pylist()


class _LostAnswer:
    """Loses the answer to the put of a path, and fails what is asked about it afterwards."""

    def __init__(self, part: str) -> None:
        self._part = part
        self.lost = False

    def before(self, call) -> None:
        if self.lost and call.verb == "get" and self._part in call.path:
            raise ServiceUnavailableError(call.path)

    def after(self, call, result) -> None:
        if call.verb == "put_new" and self._part in call.path and not self.lost:
            self.lost = True
            raise UnknownOutcomeError(call.path)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr("mooring.store.numbered.pause", lambda _: None)


@pytest.fixture
def root(tmp_path) -> str:
    return str(tmp_path / "lake")


def _open(root: str, script) -> ListingBackend:
    known = open_directory(root, {})
    known.initialize()
    store = ScriptedStore(LocalStore(root), script)
    return ListingBackend(Home(store, author="a", settings=known.settings))


def test_a_refusal_whose_reason_cannot_be_read_is_no_refusal(root):
    store = ScriptedStore(LocalStore(root), _LostAnswer("x"))
    with pytest.raises(UnknownOutcomeError):
        create_once(store, "x", b"mine")
    assert LocalStore(root).get("x") == b"mine"


def test_an_object_that_vanishes_after_a_refusal_is_sent_again(root):
    class Vanishing:
        def before(self, call) -> None:
            if call.verb == "get":
                LocalStore(root).delete(["x"])

        def after(self, call, result) -> None:
            """Nothing to do."""

    LocalStore(root).put_new("x", b"theirs")
    assert create_once(ScriptedStore(LocalStore(root), Vanishing()), "x", b"mine")


@pytest.mark.parametrize("mode", ["create", "overwrite"])
def test_a_version_that_landed_unheard_keeps_its_data(root, mode):
    if mode == "overwrite":
        open_directory(root, {}).create_table(TABLE, _rows("old"))
    backend = _open(root, _LostAnswer("t.lance/_versions/"))
    operation = backend._creation.create if mode == "create" else backend._creation.overwrite
    with pytest.raises(UnknownOutcomeError):
        operation("t", _rows("new"))
    assert _read(open_directory(root, {})) == ["new"]


def test_a_version_whose_name_could_not_be_synced_keeps_its_data(root, monkeypatch):
    backend = open_directory(root, {})
    backend.initialize()
    sync = os.fsync

    def fail(descriptor: int) -> None:
        target = Path(f"/proc/self/fd/{descriptor}").readlink()
        if target.name == "_versions" and list(target.glob("*.manifest")):
            raise OSError(errno.EIO, "broken disk")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UnknownOutcomeError):
        backend.create_table(TABLE, _rows("new"))
    monkeypatch.undo()
    assert _read(open_directory(root, {})) == ["new"]


def test_a_drop_that_landed_unheard_says_so(root):
    open_directory(root, {}).create_table(TABLE, _rows("old"))
    with pytest.raises(UnknownOutcomeError) as caught:
        _open(root, _LostAnswer("t.lance-state.")).drop_table(TABLE)
    assert not caught.value.retryable


def test_a_creation_that_failed_before_its_commit_leaves_no_table(root):
    class NoStaging:
        def before(self, call) -> None:
            if call.verb == "put_new" and "_versions" in call.path:
                raise ServiceUnavailableError(call.path)

        def after(self, call, result) -> None:
            """Nothing to do."""

    with pytest.raises(ServiceUnavailableError):
        _open(root, NoStaging()).create_table(TABLE, _rows("new"))
    assert open_directory(root, {}).list_tables(ROOT) == []
