"""Objects changed through a catalog: it is set up, and refuses, as for any other change."""

from __future__ import annotations

import pytest

import mooring
from mooring.errors import InvalidInputError, ReadOnlyError
from mooring.metastore import Locator, Namespace
from mooring.store import open_store

A, B = Locator.of("a"), Locator.of("b")


def make(txn):
    return txn.create(A, Namespace())


def run(catalog):
    catalog.run(make)


def run_beneath(catalog):
    catalog.metastore.run(make)


def commit(catalog):
    with catalog.transaction() as txn:
        make(txn)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "lake"


@pytest.mark.parametrize("change", [run, run_beneath, commit])
@pytest.mark.parametrize("dialect", ["document", "deltacat"])
def test_first_transaction_sets_a_new_root_up(root, change, dialect):
    change(mooring.connect(f"metastore+{root}", dialect=dialect))
    assert (root / "txn/_dialect").read_text() == dialect
    again = mooring.connect(f"metastore+{root}")
    assert again.metastore.dialect.name == dialect
    assert again.list_namespaces() == ["a"]
    with pytest.raises(InvalidInputError, match="is a metastore: open it as"):
        mooring.connect(root)


@pytest.mark.parametrize("change", [run, run_beneath, commit])
def test_store_is_proved_before_the_first_transaction(root, change, monkeypatch):
    probed = []
    monkeypatch.setattr("mooring.namespace.home.probe_store", probed.append)
    change(mooring.connect(f"metastore+{root}"))
    assert len(probed) == 1


@pytest.mark.parametrize(
    "change",
    [
        run,
        run_beneath,
        commit,
        lambda catalog: catalog.metastore.give_up(["x"]),
        lambda catalog: catalog.metastore.vacuum(older_than_ms=-10_000),
    ],
    ids=["run", "run beneath", "commit", "give up", "vacuum"],
)
def test_read_only_catalog_refuses_every_change(root, change):
    mooring.connect(f"metastore+{root}").run(lambda txn: txn.create(B, Namespace()))
    (root / "_data/x").mkdir(parents=True)
    (root / "_data/x/stray").write_bytes(b"1")
    before = {meta.path for meta in open_store(root).list_prefix("")}
    with pytest.raises(ReadOnlyError):
        change(mooring.connect(f"metastore+{root}", read_only=True))
    assert {meta.path for meta in open_store(root).list_prefix("")} == before
