"""``mooring spark-conf``."""

from __future__ import annotations

import json
import sys

import pytest

from tests.program import invoke


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch, tmp_path):
    monkeypatch.setenv("MOORING_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.delenv("MOORING_CATALOG", raising=False)


def run(*words):
    return invoke("spark-conf", *words)


def test_settings_for_a_directory(tmp_path):
    told = run("-c", str(tmp_path), "--name", "lake").stdout.splitlines()
    assert told == [
        "--conf spark.jars.packages=org.lance:lance-spark-bundle-4.1_2.13:0.7.1",
        "--conf spark.sql.extensions=org.lance.spark.extensions.LanceSparkSessionExtensions",
        "--conf spark.sql.catalog.lake=org.lance.spark.LanceNamespaceSparkCatalog",
        "--conf spark.sql.catalog.lake.impl=dir",
        f"--conf spark.sql.catalog.lake.root={tmp_path}",
    ]


def test_secrets_are_masked_unless_they_are_wanted(tmp_path):
    words = (str(tmp_path), "--storage", "region=x", "--storage", "secret_access_key=hidden")
    masked = run(*words, "-o", "json", "--no-manifest")
    assert "hidden" not in masked.output
    assert "1 secrets are masked" in run(*words).stderr
    found = {row["key"]: row["value"] for row in json.loads(masked.stdout)}
    assert found["spark.sql.catalog.lance.storage.region"] == "x"
    assert found["spark.sql.catalog.lance.storage.secret_access_key"] == "****"
    assert found["spark.sql.catalog.lance.manifest_enabled"] == "false"
    shown = run(*words, "--show-secrets")
    assert "--conf spark.sql.catalog.lance.storage.secret_access_key=hidden" in shown.stdout


def test_a_metastore_needs_a_server(tmp_path):
    told = run(f"metastore+{tmp_path}")
    assert told.exit_code == 5
    assert "REST server" in told.stderr


def test_a_name_that_sql_cannot_use_is_refused(tmp_path):
    told = run(str(tmp_path), "--name", "a.b")
    assert told.exit_code == 2
    assert "'a.b' cannot name a catalog" in told.stderr


def test_spark_is_not_imported(tmp_path):
    before = "pyspark" in sys.modules
    run(str(tmp_path))
    assert ("pyspark" in sys.modules) is before
