"""The settings of a directory catalog."""

from __future__ import annotations

import json

import msgspec
import pytest

from mooring.errors import CatalogFormatError, ConcurrentModificationError, MooringError
from mooring.namespace.settings import (
    DEFAULT_TTL_MS,
    FORMAT,
    Settings,
    load_settings,
    save_settings,
    settings_path,
)
from mooring.store.observed import ObservedStore
from mooring.store.remote import RemoteStore


@pytest.fixture
def memory():
    return RemoteStore("memory://", {})


def test_a_plain_directory_has_default_settings(memory):
    found = load_settings(memory)
    assert found == Settings()
    assert (found.revision, found.adopted, found.format) == (0, False, FORMAT)
    assert found.default_ttl_ms == DEFAULT_TTL_MS == 7 * 24 * 3_600_000


def test_saved_settings_are_the_next_revision(memory):
    first = save_settings(memory, Settings(adopted=True, nonce="a", by="alice", at_ms=5))
    assert first.revision == 1
    second = save_settings(memory, msgspec.structs.replace(first, default_ttl_ms=None, nonce="b"))
    assert second.revision == 2
    assert load_settings(memory) == second
    assert sorted(memory.list_dir("").files) == [settings_path(1), settings_path(2)]


def test_a_catalog_notes_its_format(memory):
    save_settings(memory, Settings(nonce="a"))
    assert json.loads(memory.get(settings_path(1)))["format"] == FORMAT


def test_the_second_to_save_the_same_revision_loses(memory):
    seen = load_settings(memory)
    save_settings(memory, msgspec.structs.replace(seen, nonce="a"))
    with pytest.raises(ConcurrentModificationError):
        save_settings(memory, msgspec.structs.replace(seen, nonce="b"))


def test_a_newer_format_is_refused_with_the_way_to_upgrade(memory):
    memory.put_new(settings_path(1), b'{"format": 2, "whatever": {"comes": ["next"]}}')
    with pytest.raises(CatalogFormatError, match=r"format 2 .*pip install --upgrade mooring"):
        load_settings(memory)


def test_a_newer_format_is_refused_whatever_its_other_fields_became(memory):
    memory.put_new(settings_path(1), b'{"format": 9, "adopted": "partly", "revision": "two"}')
    with pytest.raises(CatalogFormatError):
        load_settings(memory)


def test_unknown_fields_of_the_same_format_are_passed_over(memory):
    memory.put_new(settings_path(1), b'{"format": 1, "adopted": true, "colour": "blue"}')
    assert load_settings(memory).adopted


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"adopted": true}', b'{"format": "x"}'])
def test_damaged_settings_are_named(memory, body):
    memory.put_new(settings_path(1), body)
    with pytest.raises(MooringError, match=r"_mooring-catalog\.0+1' is damaged"):
        load_settings(memory)


def test_loading_only_reads(memory):
    observed = ObservedStore(memory)
    load_settings(observed)
    assert set(observed.counts) <= {"get", "list_dir"}
