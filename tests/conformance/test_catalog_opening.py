"""Opening a catalog: settings, formats, reading only, and stores that cannot be trusted."""

from __future__ import annotations

import uuid

import msgspec
import pytest

import mooring
from mooring.clock import DAY_MS
from mooring.errors import (
    CatalogFormatError,
    MooringError,
    PermissionDeniedError,
    ReadOnlyError,
    StoreUnsafeError,
)
from mooring.identifiers import ROOT
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.settings import settings_path
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.store import open_store
from mooring.store.observed import ObservedStore
from mooring.store.probe import PROBE_PREFIX
from mooring.store.scripted import ScriptedStore
from tests.lakes import NOON_MS, rows, table_id

T = table_id("t")
WRITES = {"put", "put_new", "put_if", "delete", "delete_prefix"}


class NoWrites:
    """A script of a store that grants no permission to write."""

    def before(self, call):
        if call.verb in WRITES:
            msg = f"{call.verb} {call.path} needs permission to write"
            raise PermissionDeniedError(msg)

    def after(self, call, result):
        pass


CHANGES = {
    "create": lambda backend: backend.create_table(T, rows([1])),
    "create if absent": lambda backend: backend.create_table(T, rows([1]), CreateMode.EXIST_OK),
    "overwrite": lambda backend: backend.create_table(T, rows([1]), CreateMode.OVERWRITE),
    "declare": lambda backend: backend.declare_table(table_id("new")),
    "register": lambda backend: backend.register_table(table_id("gone"), "gone.lance"),
    "deregister": lambda backend: backend.deregister_table(T),
    "drop": lambda backend: backend.drop_table(T),
    "undrop": lambda backend: backend.undrop_table(table_id("dropped")),
    "purge": lambda backend: backend.purge_table(table_id("dropped")),
    "purge list": lambda backend: backend.purge_tables([table_id("dropped")]),
    "purge expired": lambda backend: backend.purge_tables(),
    "protect": lambda backend: backend.protect_table(T),
    "initialize": lambda backend: backend.initialize(adopt=True),
}


@pytest.fixture
def filled(lake):
    for name in ("t", "dropped", "gone"):
        lake.create(name, [1])
    lake.drop("dropped")
    lake.backend.deregister_table(table_id("gone"))
    return lake


# -- reading only ---------------------------------------------------------------------------------


def test_a_catalog_opened_to_read_refuses_every_change(filled):
    store = ObservedStore(filled.store)
    backend = filled.open(read_only=True, store=store)
    for change, act in CHANGES.items():
        with pytest.raises(ReadOnlyError, match="read-only") as caught:
            act(backend)
        assert caught.value.code == 15, change
        assert not set(store.counts) & WRITES, change


def test_a_catalog_opened_to_read_asks_for_no_permission_to_write(filled):
    store = ObservedStore(ScriptedStore(filled.store, NoWrites()))
    backend = filled.open(read_only=True, store=store)
    assert backend.list_tables(ROOT) == ["t"]
    assert backend.list_tables(ROOT, include_declared=False) == ["t"]
    assert backend.table_status(T) == Exists()
    assert backend.describe_table(T, check_declared=True).is_only_declared is False
    assert isinstance(backend.table_status(table_id("dropped")), SoftDeleted)
    assert backend.table_status(table_id("gone")) == NotFound()
    assert [found.id.name for found in backend.list_purgable_tables()] == ["dropped"]
    assert backend.table_history(table_id("dropped"))
    assert not set(store.counts) & WRITES


def test_a_directory_never_adopted_is_read_without_writing(lake):
    lake.write_elsewhere("t")
    lake.write_elsewhere("hidden")
    lake.mark_deregistered("hidden")
    lake.write_elsewhere("dropped")
    lake.mark_deleted("dropped", b"{}")
    store = ObservedStore(ScriptedStore(lake.store, NoWrites()))
    backend = lake.open(read_only=True, store=store)
    assert backend.list_tables(ROOT) == ["t"]
    assert "dropped" in [found.id.name for found in backend.list_purgable_tables()]
    assert not set(store.counts) & WRITES


def test_a_change_without_permission_is_refused_by_the_store(filled):
    backend = filled.open(store=ScriptedStore(filled.store, NoWrites()))
    with pytest.raises(PermissionDeniedError):
        backend.drop_table(T)
    assert filled.names() == ["t"]


def test_connect_passes_read_only_on(filled):
    catalog = filled.connect(read_only=True)
    assert catalog.list_tables() == ["t"]
    with pytest.raises(ReadOnlyError):
        catalog.drop_table("t")


@pytest.mark.s3
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_whole_bucket_can_be_a_catalog(moto, slash):
    bucket = f"whole-{uuid.uuid4().hex}"
    moto.make_bucket(bucket)
    catalog = mooring.connect(f"s3://{bucket}{slash}", storage_options=moto.options)
    catalog.create_table("t", [{"n": 1}])
    assert catalog.list_tables() == ["t"]
    catalog.drop_table("t")
    catalog.undrop_table("t")
    assert catalog.table("t").count() == 1


@pytest.mark.parametrize("suffix", ["", "/", "//", "/./", "/../lake"])
def test_spellings_of_a_path_are_one_catalog(disk_lake, suffix):
    disk_lake.create("t", [1])
    for uri in (disk_lake.uri + suffix, f"file://{disk_lake.uri}{suffix}"):
        catalog = mooring.connect(uri, **disk_lake.kind.flags)
        assert catalog.list_tables() == ["t"]
        assert catalog.table("t").count() == 1


def test_secrets_are_shown_by_nothing_that_people_print(moto_lake):
    """Secrets are masked wherever a value is shown."""
    moto_lake.create("t")
    catalog = moto_lake.connect()
    namespace = mooring.DirectoryNamespace(**moto_lake.properties)
    shown = [
        repr(catalog),
        repr(catalog.table("t")),
        repr(catalog.describe_table("t")),
        repr(catalog.backend),
        repr(catalog.backend.store),
        repr(namespace),
        namespace.namespace_id(),
    ]
    secret = moto_lake.options["aws_secret_access_key"]
    assert not [text for text in shown if secret in text]


# -- settings and formats -------------------------------------------------------------------------


def test_a_catalog_notes_its_format_with_its_first_write(lake):
    lake.create("t")
    noted = msgspec.json.decode(lake.store.get(settings_path(1)))
    assert noted["format"] == 1
    assert (noted["by"], noted["at_ms"]) == ("alice", NOON_MS)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_catalog_of_a_newer_format_is_refused(lake, read_only):
    lake.create("t")
    lake.store.put_new(settings_path(2), b'{"format": 2}')
    with pytest.raises(CatalogFormatError, match="upgrade"):
        lake.open(read_only=read_only)
    with pytest.raises(CatalogFormatError):
        lake.connect(read_only=read_only)


def test_the_default_ttl_can_be_set_and_counts_for_later_drops(lake):
    for name in ("a", "b", "c"):
        lake.create(name)
    lake.drop("a")
    assert lake.backend.initialize(default_ttl=Ttl(DAY_MS)).default_ttl_ms == DAY_MS
    lake.open().drop_table(table_id("b"))
    lake.backend.initialize(default_ttl=Ttl(None))
    lake.open().drop_table(table_id("c"))
    expiries = [found.expires_at_ms for found in lake.open().list_purgable_tables()]
    assert expiries == [NOON_MS + 7 * DAY_MS, NOON_MS + DAY_MS, None]


def test_initializing_an_empty_place_writes_settings_once(lake):
    first = lake.open().initialize()
    assert (first.revision, first.adopted) == (1, True)
    assert lake.open().initialize() == first


def test_initializing_a_filled_directory_does_not_adopt_it_unasked(lake):
    lake.write_elsewhere("t")
    settings = lake.open().initialize()
    assert (settings.revision, settings.adopted) == (1, False)
    assert lake.open().initialize(adopt=True).adopted


def test_an_operation_that_finds_nothing_does_not_make_a_root(disk_lake):
    """A mistyped path stays a mistyped path."""
    from pathlib import Path

    for act in (disk_lake.backend.drop_table, disk_lake.backend.purge_table):
        with pytest.raises(MooringError):
            act(T)
    assert not Path(disk_lake.uri).exists()


# -- stores that cannot be trusted ----------------------------------------------------------------


def test_the_store_is_proved_once_and_nothing_is_left_of_it(lake):
    store = ObservedStore(lake.store)
    backend = lake.open(store=store)
    backend.declare_table(T)
    files = lake.store.list_dir("").files
    assert not [name for name in files if name.startswith(PROBE_PREFIX)]
    puts = store.counts["put_new"]
    backend.declare_table(table_id("second"))
    # One put declares the table; a second one tells those who read the manifest.
    assert store.counts["put_new"] == puts + (2 if lake.kind.manifest else 1)


@pytest.mark.s3
def test_a_store_that_ignores_conditions_is_refused_before_the_first_change(rclone, prefix):
    """Must show: `rclone serve s3` ignores `If-None-Match`."""
    catalog = mooring.connect(rclone.uri(prefix), storage_options=rclone.options)
    assert catalog.list_tables() == []
    with pytest.raises(StoreUnsafeError, match=r"second creation .* If-None-Match") as caught:
        catalog.declare_table("t")
    assert caught.value.code == 0
    store = open_store(rclone.uri(prefix), rclone.options)
    assert store.list_prefix("") == []


@pytest.mark.s3
def test_an_unsafe_store_can_still_be_read(rclone, prefix):
    store = open_store(rclone.uri(prefix), rclone.options)
    store.put("t.lance/_versions/1.manifest", b"")
    catalog = mooring.connect(rclone.uri(prefix), read_only=True, storage_options=rclone.options)
    assert catalog.list_tables() == ["t"]
    assert "t" in catalog
