"""From a path, URI or properties to a catalog."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

import mooring
from mooring import namespaces
from mooring.errors import InvalidInputError
from mooring.iceberg import opening as iceberg
from mooring.opening import current_author
from mooring.remote import opening as remote
from mooring.store import open_store
from mooring.store.local import LocalStore
from mooring.store.remote import RemoteStore


def test_a_plain_path_is_a_directory_of_the_disk(tmp_path):
    store = open_store(tmp_path / "lake")
    assert isinstance(store, LocalStore)
    assert store.location("t.lance") == str(tmp_path / "lake" / "t.lance")


def test_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_store("lake").location("") == str(tmp_path / "lake")


def test_the_home_directory_is_known(monkeypatch):
    monkeypatch.setenv("HOME", "/home/alice")
    assert open_store("~/lake").location("") == "/home/alice/lake"


def test_an_unknown_home_directory_is_refused():
    with pytest.raises(InvalidInputError):
        open_store("~no-such-user-here/lake")


def test_a_file_uri_is_unquoted():
    assert open_store("file:///data/my%20lake").location("") == "/data/my lake"


@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "memory"])
def test_object_stores_are_opened_by_uri(scheme):
    options = {
        "s3": {"aws_region": "us-east-1"},
        "gs": {"google_skip_signature": "true"},
        "az": {"azure_storage_account_name": "a", "azure_skip_signature": "true"},
        "memory": {},
    }[scheme]
    uri = "memory://" if scheme == "memory" else f"{scheme}://bucket/prefix"
    store = open_store(uri, options)
    assert isinstance(store, RemoteStore)
    assert store.options == options


def test_a_location_of_an_object_store_is_a_quoted_uri():
    store = open_store("s3://bucket/a/b/", {"aws_region": "us-east-1"})
    assert store.location("") == "s3://bucket/a/b"
    assert store.location("50% of #1?.lance") == "s3://bucket/a/b/50%25%20of%20%231%3F.lance"


@pytest.mark.parametrize("uri", ["", "ftp://host/x", "http://host/x", "hdfs://x"])
def test_an_unknown_place_is_refused(uri):
    with pytest.raises(InvalidInputError):
        open_store(uri)


def test_an_unknown_storage_option_is_named():
    with pytest.raises(InvalidInputError, match="colour"):
        open_store("s3://bucket/x", {"aws_region": "us-east-1", "colour": "blue"})


def test_a_remote_catalog_is_opened_without_asking_its_server():
    catalog = mooring.connect(
        "lance+https://host.invalid/lance?delimiter=.",
        storage_options={"lance.credential": "me:secret", "aws_region": "us-east-1"},
        author="carol",
    )
    assert catalog.backend.author == "carol"
    assert catalog.backend.connection.storage_options == {"aws_region": "us-east-1"}
    assert catalog.backend.connection.settings.delimiter == "."
    assert "secret" not in repr(catalog.backend.connection.settings)


def test_an_iceberg_catalog_is_opened_without_asking_its_server():
    catalog = mooring.connect(
        "iceberg+https://host.invalid/x?warehouse=lake&managed_by=IMPL",
        storage_options={"iceberg.credential": "me:secret", "aws_region": "us-east-1"},
        author="carol",
    )
    assert catalog.backend.author == "carol"
    assert catalog.backend.connection.storage_options == {"aws_region": "us-east-1"}
    assert "secret" not in repr(vars(catalog.backend.connection.client))


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("iceberg+https://host/x?colour=blue", "colour"),
        ("iceberg+https://host/x?managed_by=me", "managed_by"),
        ("iceberg+ftp://host/x", "ftp"),
        ("iceberg+https://host/x?page_size=many", "page_size"),
    ],
)
def test_what_cannot_be_of_an_iceberg_catalog_is_named(uri, words):
    with pytest.raises(InvalidInputError, match=words):
        mooring.connect(uri)


def test_opening_writes_nothing(tmp_path):
    catalog = mooring.connect(tmp_path / "lake")
    assert catalog.list_tables() == []
    assert list(catalog) == []
    assert "t" not in catalog
    assert not Path(tmp_path / "lake").exists()


def test_the_author_is_the_argument_the_environment_or_the_system_user(tmp_path, monkeypatch):
    monkeypatch.delenv("MOORING_USER", raising=False)
    assert current_author() == getpass.getuser()
    monkeypatch.setenv("MOORING_USER", "bob")
    assert current_author() == "bob"
    assert mooring.connect(tmp_path).backend.author == "bob"
    assert mooring.connect(tmp_path, author="carol").backend.author == "carol"


def test_a_catalog_shows_where_it_is(tmp_path):
    assert repr(mooring.connect(tmp_path)) == f"Catalog('{tmp_path}')"


@pytest.mark.parametrize(
    ("kind", "opening"),
    [(namespaces.IcebergNamespace, iceberg), (namespaces.RemoteNamespace, remote)],
)
def test_a_server_is_reached_by_the_same_properties_from_lance(kind, opening):
    assert kind._known == opening.KNOWN | {"author", "read_only"}
