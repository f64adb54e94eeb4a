"""A catalog with tables in every state, and the program to run on it."""

import os
import shutil

import pytest
from typer.testing import CliRunner

import mooring
from mooring.cli.app import app

ROWS = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Lima"}]


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch, tmp_path):
    for key in [key for key in os.environ if key.startswith("MOORING_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("MOORING_CONFIG", str(tmp_path / "config" / "config.toml"))
    monkeypatch.setenv("MOORING_USER", "tester")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def _template(tmp_path_factory):
    root = tmp_path_factory.mktemp("template") / "lake"
    catalog = mooring.connect(root, author="maker")
    for name in ("flights", "guarded", "hidden", "old", "older", "a$b", "quo'te", "漢字", "-dash"):
        catalog.create_table(name, ROWS)
    catalog.protect_table("guarded")
    catalog.deregister_table("hidden")
    catalog.drop_table("old", ttl="never")
    catalog.drop_table("older", ttl="0s")
    catalog.declare_table("soon")
    return root


@pytest.fixture
def lake(_template, tmp_path):
    # No file of a catalog is ever changed in place, so links do for copies.
    return shutil.copytree(_template, tmp_path / "lake", copy_function=os.link)


@pytest.fixture
def rows_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,city\n1,Oslo\n2,Lima\n3,Rome\n")
    return path


@pytest.fixture
def run():
    """Run the program in this process."""

    def invoke(*args):
        return CliRunner().invoke(app, [str(arg) for arg in args])

    return invoke


@pytest.fixture
def on(run, lake):
    """Run the program on the lake."""

    def invoke(*args):
        return run("-c", lake, *args)

    return invoke
