"""Keys that no path has: folder objects, and names that no file could bear.

A folder object is an empty key that ends in a slash, as consoles and Hadoop leave them in a
bucket. It holds nothing and means nothing; every operation works as if it were not there.
"""

from __future__ import annotations

import pytest
from moto.backends import get_backend

from mooring.errors import MooringError
from mooring.identifiers import ROOT
from mooring.namespace.states import Exists, NotFound
from mooring.store.scripted import ScriptedStore
from tests.lakes import table_id
from tests.servers import BUCKET

T = table_id("t")
pytestmark = pytest.mark.s3


class Patience:
    """Ends an operation that goes on and on."""

    def __init__(self, calls: int) -> None:
        self._left = calls

    def before(self, call):
        self._left -= 1
        assert self._left > 0, f"no end in sight: {call}"

    def after(self, call, result):
        pass


@pytest.fixture
def make_folder(moto, prefix):
    def make(path: str) -> None:
        (account,) = get_backend("s3").values()
        account["aws"].put_object(BUCKET, f"{prefix}/{path}", b"")

    return make


def test_a_folder_for_the_root_is_an_empty_catalog(moto_lake, make_folder):
    make_folder("")
    assert moto_lake.names() == []
    moto_lake.create("t")
    assert moto_lake.open().settings.adopted
    assert moto_lake.names() == ["t"]


def test_a_folder_named_like_a_table_is_listed_where_it_exists(moto_lake, make_folder):
    moto_lake.create("other")
    make_folder("t.lance/")
    exists = moto_lake.backend.table_status(T) == Exists()
    assert exists == ("t" in moto_lake.names())
    moto_lake.create("t", [1])
    assert moto_lake.values("t") == [1]


@pytest.mark.parametrize("folder", ["t.lance/", "t.lance/data/", "t.lance/_versions/"])
def test_a_folder_inside_a_table_keeps_no_purge_from_its_end(moto_lake, make_folder, folder):
    moto_lake.create("t", [1])
    make_folder(folder)
    assert moto_lake.names() == ["t"]
    moto_lake.drop("t")
    backend = moto_lake.open(store=ScriptedStore(moto_lake.store, Patience(100)))
    backend.purge_table(T)
    assert backend.table_status(T) == NotFound()
    assert backend.list_tables(ROOT) == []
    assert moto_lake.create("t", [2]).version == 2
    assert moto_lake.values("t") == [2]


@pytest.mark.parametrize("key", ["../x", "./x", "a\x7fb"], ids=ascii)
def test_a_key_that_is_no_path_is_named_and_not_tried_again(moto_lake, make_folder, key):
    """The store did answer: somebody has to remove the object."""
    moto_lake.create("t")
    make_folder(key)
    with pytest.raises(MooringError, match="path") as caught:
        moto_lake.open().list_tables(ROOT)
    assert not caught.value.retryable
