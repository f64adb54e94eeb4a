"""Options of the data source."""

from __future__ import annotations

from pathlib import Path

import pytest

import mooring
from mooring.errors import InvalidInputError, NamespaceNotFoundError, NotFoundError
from mooring.spark.options import SourceOptions, options_of, parse_time


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch, tmp_path):
    monkeypatch.setenv("MOORING_CONFIG", str(tmp_path / "config.toml"))
    for name in ("MOORING_CATALOG", "MOORING_PROFILE", "MOORING_USER"):
        monkeypatch.delenv(name, raising=False)


def test_an_unknown_option_is_refused_with_those_that_are_known():
    with pytest.raises(InvalidInputError, match=r"'colums' is no option.*columns.*storage\.KEY"):
        SourceOptions.parse({"catalog": "lake", "table": "t", "colums": "a"})


def test_what_spark_adds_is_let_through():
    given = {"catalog": "lake", "table": "t", "path": "spark-warehouse/t", "queryName": "q"}
    assert SourceOptions.parse(given).table == "t"
    assert SourceOptions.parse({"catalog": "lake", "path": "ns$t"}).table == "ns$t"


def test_a_table_and_a_catalog_must_be_named():
    with pytest.raises(InvalidInputError, match="no table is named"):
        SourceOptions.parse({"catalog": "lake"})
    with pytest.raises(InvalidInputError, match="no catalog is named"):
        SourceOptions.parse({"table": "t"})


def test_the_catalog_comes_from_the_environment_or_a_profile(monkeypatch, tmp_path):
    monkeypatch.setenv("MOORING_CATALOG", "there")
    assert SourceOptions.parse({"table": "t"}).catalog.uri == str(Path("there").absolute())
    (tmp_path / "config.toml").write_text(
        '[profiles.p]\nuri = "here"\nmanifest_enabled = false\n[profiles.p.storage]\nregion = "x"\n'
    )
    monkeypatch.delenv("MOORING_CATALOG")
    found = SourceOptions.parse({"table": "t", "profile": "p", "storage.region": "y"}).catalog
    assert found.uri == str(Path("here").absolute())
    assert '"manifest_enabled":false' in found.options
    assert '"region":"y"' in found.options
    with pytest.raises(NotFoundError, match="no profile 'q'"):
        SourceOptions.parse({"table": "t", "profile": "q"})


def test_secrets_do_not_show():
    given = {"catalog": "lake", "table": "t", "storage.secret_access_key": "hidden"}
    assert "hidden" not in repr(SourceOptions.parse(given))


def test_numbers_and_flags_are_checked():
    options = SourceOptions.parse({"catalog": "lake", "table": "t", "tasks": "0", "pushdown": "x"})
    with pytest.raises(InvalidInputError, match="'tasks' is a number above zero"):
        options.number("tasks")
    with pytest.raises(InvalidInputError, match="'pushdown' is true or false"):
        options.flag("pushdown")


def test_a_catalog_that_is_not_there_is_told(tmp_path):
    for uri in (f"{tmp_path}/no", f"metastore+{tmp_path}/no", f"file://{tmp_path}/no"):
        options = SourceOptions.parse({"catalog": uri, "table": "t"})
        with pytest.raises(NamespaceNotFoundError, match="mooring init"):
            options.open(must_exist=True)


def test_an_open_catalog_is_opened_the_same_way_elsewhere(tmp_path):
    lake = mooring.connect(tmp_path, manifest_enabled=False, author="ada")
    options = options_of(lake, ["t"], {"columns": ["a", "b"], "tag": None, "pushdown": True})
    assert options["columns"] == "a,b"
    assert options["pushdown"] == "true"
    assert "tag" not in options
    opened = SourceOptions.parse(options).open(must_exist=True)
    assert opened.backend.author == "ada"
    assert opened.backend.levels == 1
    assert options_of(None, "t") == {"table": "t"}


def test_times_are_iso_or_milliseconds():
    assert parse_time("1000") == 1000
    assert parse_time("1970-01-01T00:00:01Z") == 1000
    assert parse_time("1970-01-01 01:00:01+01:00") == 1000
    assert parse_time("1970-01-02") == 86_400_000
    with pytest.raises(InvalidInputError, match="'yesterday' is no time"):
        parse_time("yesterday")
