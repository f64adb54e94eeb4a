"""A metastore, files, and pipelines over them."""

import os
import textwrap

import pytest

import mooring

PLAIN = """
    name: shop
    catalog: metastore+lake
    sources:
      orders: {files: orders.csv}
      items: {files: items.csv}
    outputs:
      - {from: orders, table: shop$orders, change: upsert, create: {keys: id, buckets: 2}}
      - {from: items, table: shop$items, change: append, create: {}}
"""


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch, tmp_path):
    for key in [key for key in os.environ if key.startswith("MOORING_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("MOORING_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("MOORING_USER", "tester")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def lake(tmp_path):
    """A metastore with a namespace."""
    catalog = mooring.connect(f"metastore+{tmp_path / 'lake'}", author="tester")
    catalog.create_namespace("shop")
    return catalog


@pytest.fixture
def write(tmp_path):
    """Write a file; indentation that all lines have is not part of it."""

    def write(name, text):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        return path

    return write


@pytest.fixture
def plain(write, lake):
    """A pipeline of two outputs without steps."""
    write("orders.csv", "id,amount\n1,10\n2,20\n")
    write("items.csv", "id,item\n1,tea\n2,rum\n2,gin\n")
    return write("pipeline.yaml", PLAIN)
