"""The program as a process: its terminal, its pipes, its imports, and the shell's completion."""

import json
import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pytest

import mooring
from mooring.changes import create_change_table
from tests.cli.terminal import MOORING, on_terminal

HEAVY = {"lance", "lance_namespace", "numpy", "obstore", "pyarrow", "rich"}
# Runs the program in a fresh interpreter and names the heavy modules it has imported.
SPY = """
import sys
from mooring.cli.app import main
try:
    main()
finally:
    print(*sorted(set(sys.modules) & set({heavy})), file=sys.stderr)
"""


def _process(*args, **options):
    return subprocess.run([MOORING, *args], capture_output=True, text=True, check=False, **options)


def test_a_process_ends_with_the_code_of_its_failure(lake):
    missing = _process("table", "describe", "nothing", "-c", str(lake), "-o", "json")
    assert missing.returncode == 3
    assert json.loads(missing.stderr)["error"]["type"] == "TableNotFoundError"
    assert _process("ls", str(lake)).stdout.splitlines()[0] == "-dash"


def test_a_pipe_that_closes_is_silent(tmp_path):
    for number in range(20_000):
        (tmp_path / "big" / f"{number:06d}.lance").mkdir(parents=True)
    line = f"'{MOORING}' ls big | head -1"
    result = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert (result.stdout, result.stderr) == ("000000\n", "")


def test_purge_asks_on_a_terminal(lake):
    purge = ["trash", "purge", "old", "-c", str(lake)]
    code, shown = on_terminal(purge, "n\n")
    assert code == 5
    assert "about to purge 1 table for good" in shown
    assert "go on? [y/N]" in shown
    code, shown = on_terminal(purge, "y\n")
    assert code == 0
    assert "purged 'old'" in shown


def test_borders_and_colours_are_for_terminals(lake):
    _, shown = on_terminal(["ls", "-a", "-c", str(lake)])
    assert "│" in shown
    _, shown = on_terminal(["ls", "./x"])
    assert "\033[1;31merror:" in shown
    _, shown = on_terminal(["ls", "./x"], NO_COLOR="1")
    assert "\033[" not in shown
    _, shown = on_terminal(["ls", "-c", str(lake), "-o", "json"])
    assert {"name": "flights"} in json.loads(shown)


def test_a_tree_is_indented_on_a_terminal(tree):
    _, shown = on_terminal(["namespace", "tree", "sales", "-c", str(tree)])
    assert shown.splitlines() == ["sales/", "  eu/", "    orders", "  us/", "  orders"]


def test_a_drop_of_a_namespace_asks_on_a_terminal(tree):
    drop = ["namespace", "drop", "sales", "--cascade", "-c", str(tree)]
    code, shown = on_terminal(drop, "n\n")
    assert code == 5
    assert "about to drop namespace 'sales' with 2 tables and 2 namespaces" in shown
    code, shown = on_terminal(drop, "y\n")
    assert code == 0
    assert "dropped namespace 'sales'" in shown


def test_the_progress_of_an_import_is_shown_on_a_terminal(tree, tmp_path):
    names = str(tmp_path / "names.jsonl")
    _process("export", names, "-c", str(tree))
    shutil.rmtree(tree / "__manifest")
    code, shown = on_terminal(["import", names, "-c", str(tree)])
    assert code == 0
    assert "9 of 9" in shown
    assert "imported: " in shown


def test_an_export_goes_through_a_pipe(tree, tmp_path):
    """Neither messages nor colours get between the lines."""
    line = f"'{MOORING}' export - -c tree | '{MOORING}' import - -c tree -o json"
    result = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert {row["result"] for row in json.loads(result.stdout)} == {"unchanged"}


def test_progress_is_shown_on_a_terminal(lake, rows_file):
    code, shown = on_terminal(["table", "create", "t", "--from", str(rows_file), "-c", str(lake)])
    assert code == 0
    assert "3 rows" in shown
    assert "━" in shown


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["ls"],
        ["ls", "-a"],
        ["trash", "list"],
        ["table", "drop", "flights"],
        ["namespace", "list"],
        ["namespace", "tree", "-o", "csv"],
        ["export", "-"],
        ["--version"],
        ["--version", "-v"],
        ["completion", "bash"],
    ],
)
def test_light_commands_import_nothing_heavy_without_a_manifest(plain, args):
    assert _imported(args, HEAVY, MOORING_CATALOG=str(plain)) == ""


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["completion", "bash"]])
def test_what_opens_no_catalog_imports_none(args):
    assert _imported(args, {"mooring.opening", "mooring.catalog", "msgspec"}) == ""


def _imported(args, heavy, **environ):
    """Run the program; tell what it imported of these modules."""
    result = subprocess.run(
        [sys.executable, "-c", SPY.format(heavy=heavy), *args],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stderr.splitlines()[-1]


def _complete(line, kind="bash", **environ):
    words = line.split(" ")
    asked = (
        {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        if kind == "bash"
        else {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    )
    # A machine with much to do takes longer than somebody would wait.
    calm = {"MOORING_COMPLETION_SECONDS": "60"}
    env = {**os.environ, **calm, "_MOORING_COMPLETE": f"complete_{kind}", **asked, **environ}
    result = subprocess.run([MOORING], env=env, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.split()


@pytest.mark.interop
def test_the_shell_completes_names(lake, run):
    at = {"MOORING_CATALOG": str(lake)}
    assert _complete("mooring table drop fl", **at) == ["flights"]
    assert _complete(f"mooring -c {lake} table drop g") == ["guarded"]
    assert _complete(f"mooring table describe -c {lake} g") == ["guarded"]
    assert _complete("mooring table undrop o", **at) == ["old", "older"]
    assert _complete("mooring table register ", **at) == ["hidden"]
    assert _complete("mooring table drop flights a", **at) == ["a\\$b"]
    assert _complete("mooring table drop a", kind="fish", **at) == ["a$b"]
    run("profile", "set", "prod", "s3://b")
    assert _complete("mooring ls --profile p") == ["prod"]


@pytest.mark.interop
def test_the_shell_completes_names_of_change_tables(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'store'}")
    catalog.create_namespace("shop")
    create_change_table(catalog, "shop$orders", pa.schema([("id", pa.int64())]))
    catalog.create_table("shop$lance", [{"id": 1}])
    at = {"kind": "fish", "MOORING_CATALOG": catalog.uri}
    assert _complete("mooring compact s", **at) == ["shop$orders"]
    assert _complete("mooring publish s", **at) == ["shop$orders"]
    assert _complete("mooring changes read s", **at) == ["shop$orders"]
    assert _complete("mooring table drop s", **at) == ["shop$lance", "shop$orders"]
    assert _complete("mooring table query s", **at) == ["shop$lance"]


@pytest.mark.interop
def test_the_shell_completes_nested_names(tree):
    at = {"MOORING_CATALOG": str(tree)}
    assert _complete("mooring namespace describe s", kind="fish", **at) == [
        "sales",
        "sales$eu",
        "sales$us",
    ]
    assert _complete("mooring namespace drop v", **at) == ["vault"]
    assert _complete("mooring table list sales$e", kind="fish", **at) == ["sales$eu"]
    assert _complete("mooring ls va", **at) == ["vault"]
    assert _complete("mooring table describe vault", kind="fish", **at) == ["vault$gold"]
    assert _complete("mooring namespace undrop ", **at) == []
    catalog = mooring.connect(tree)
    catalog.drop_namespace("sales", cascade=True)
    assert _complete("mooring namespace undrop ", **at) == ["sales"]
    assert _complete("mooring table undrop sales", kind="fish", **at) == [
        "sales$eu$orders",
        "sales$orders",
    ]


def test_completion_of_a_broken_catalog_is_silent():
    assert _complete("mooring table drop f", MOORING_CATALOG="./nothing") == []
    assert _complete("mooring table drop f") == []
