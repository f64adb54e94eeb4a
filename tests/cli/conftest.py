"""Catalogs with tables in every state, and the program to run on them."""

import os
import shutil

import pytest

import mooring
from tests.program import invoke

ROWS = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Lima"}]


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch, tmp_path):
    for key in [key for key in os.environ if key.startswith("MOORING_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("MOORING_CONFIG", str(tmp_path / "config" / "config.toml"))
    monkeypatch.setenv("MOORING_USER", "tester")
    monkeypatch.chdir(tmp_path)


def fill(catalog):
    """Make tables in every state."""
    for name in ("flights", "guarded", "hidden", "old", "older", "a$b", "quo'te", "漢字", "-dash"):
        catalog.create_table(name, ROWS)
    catalog.protect_table("guarded")
    catalog.deregister_table("hidden")
    catalog.drop_table("old", ttl="never")
    catalog.drop_table("older", ttl="0s")
    catalog.declare_table("soon")


@pytest.fixture(scope="session")
def _template(tmp_path_factory):
    root = tmp_path_factory.mktemp("template") / "lake"
    catalog = mooring.connect(root, author="maker")
    catalog.create_namespace("a")
    fill(catalog)
    catalog.create_namespace("gone", {"owner": "ada"})
    catalog.drop_namespace("gone", ttl="never")
    return root


@pytest.fixture(scope="session")
def _plain_template(tmp_path_factory):
    root = tmp_path_factory.mktemp("template") / "plain"
    fill(mooring.connect(root, author="maker", manifest_enabled=False))
    return root


@pytest.fixture(scope="session")
def _tree_template(tmp_path_factory):
    root = tmp_path_factory.mktemp("template") / "tree"
    catalog = mooring.connect(root, author="maker", dir_listing_enabled=False)
    catalog.create_namespace("sales", {"owner": "ada", "description": "What is sold"})
    catalog.create_namespace("sales$eu", {"mooring.retention": "30d"})
    catalog.create_namespace("sales$us")
    catalog.create_namespace("vault", {"mooring.protected": "true"})
    for name in ("sales$orders", "sales$eu$orders", "vault$gold", "ports"):
        catalog.create_table(name, ROWS)
    catalog.update_table("sales$orders", {"description": "By day"})
    return root


@pytest.fixture
def lake(_template, tmp_path):
    """A catalog in compatibility mode, the default."""
    return shutil.copytree(_template, tmp_path / "lake")


@pytest.fixture
def plain(_plain_template, tmp_path):
    """A plain directory: it has no manifest."""
    return shutil.copytree(_plain_template, tmp_path / "plain")


@pytest.fixture
def tree(_tree_template, tmp_path):
    """A catalog of nested namespaces, which its manifest alone names."""
    return shutil.copytree(_tree_template, tmp_path / "tree")


@pytest.fixture
def rows_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,city\n1,Oslo\n2,Lima\n3,Rome\n")
    return path


@pytest.fixture
def run():
    """Run the program in this process."""
    return invoke


@pytest.fixture
def on(run, lake):
    """Run the program on the lake."""

    def invoke(*args):
        return run("-c", lake, *args)

    return invoke


@pytest.fixture
def on_plain(run, plain):
    """Run the program on the plain directory, by the rules of one."""

    def invoke(*args):
        return run("-c", plain, "--no-manifest", *args)

    return invoke


@pytest.fixture
def on_tree(run, tree):
    """Run the program on the tree."""

    def invoke(*args, **options):
        return run("-c", tree, "--no-listing", *args, **options)

    return invoke
