"""The public surface, and what importing it costs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import mooring

LOCKED = [
    "Catalog",
    "DirectoryNamespace",
    "Exists",
    "IcebergNamespace",
    "MetastoreNamespace",
    "NotFound",
    "RemoteNamespace",
    "SoftDeleted",
    "Table",
    "__version__",
    "connect",
    "errors",
]
HEAVY = ["lance", "pyarrow", "lance_namespace", "obstore", "typer", "rich", "pandas", "numpy"]


def _modules_after(code: str) -> set[str]:
    """Run code in a fresh interpreter and tell which top-level modules it pulled in."""
    script = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_the_exports_are_sorted_and_locked():
    assert mooring.__all__ == LOCKED
    assert sorted(LOCKED) == LOCKED


@pytest.mark.parametrize("name", LOCKED)
def test_every_export_is_there(name):
    assert getattr(mooring, name) is not None


def test_no_other_name_is_invented():
    with pytest.raises(AttributeError, match="no attribute 'lake'"):
        _ = mooring.lake


def test_a_bare_import_pulls_in_nothing_heavy():
    """Must show: `import mooring` stays fast."""
    assert not _modules_after("import mooring") & set(HEAVY)


def test_listing_a_directory_pulls_in_no_table_library(tmp_path):
    code = f"import mooring; assert mooring.connect({str(tmp_path)!r}).list_tables() == []"
    assert not _modules_after(code) & {"lance", "lance_namespace", "pyarrow", "obstore", "pandas"}


@pytest.mark.parametrize("first", ["Catalog", "DirectoryNamespace", "errors"])
def test_connect_stays_a_function_whatever_was_used_first(first):
    """A submodule that is imported binds its name in the package, over a lazy export."""
    code = f"import mooring; mooring.{first}; assert callable(mooring.connect)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_package_ships_its_types():
    from importlib.resources import files

    assert files("mooring").joinpath("py.typed").is_file()


def test_the_version_is_the_one_of_the_distribution():
    from importlib.metadata import version

    assert mooring.__version__ == version("mooring")
