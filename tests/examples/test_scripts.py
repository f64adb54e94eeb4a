"""Every example runs in an empty folder, says what it should, and leaves nothing behind."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LARGER = {"demo.py", "stage.py"}  # make demo, which tests/docs runs
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in LARGER)
NOTEBOOK = EXAMPLES / "first-catalog.ipynb"
# What proves that the idea of an example came true.
SAYS = {
    "change_table.py": "published: [{'id': 7, 'item': 'item 7', 'price': 10.0}] of 99",
    "first_catalog.py": "restored: ['Oslo', 'Lima', 'Quito']",
    "serve_and_open.py": "undropped through the server: 2 rows",
    "spark_tables.py": "restored: 300",
    "two_tables_at_once.py": "the last transaction: two tables or none",
    "undo_a_drop.py": "purged: NotFound()",
    "vector_search.py": "by the index: [41]",
    "watch_changes.py": "since the beginning: 5 events",
}


@pytest.fixture(autouse=True)
def _empty_folder(monkeypatch, tmp_path):
    for key in [key for key in os.environ if key.startswith("MOORING_")]:
        monkeypatch.delenv(key)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path / "here")


def left_behind(tmp_path):
    """Name what is there, but the turns of writers, which all processes of a user share."""
    found = [*(tmp_path / "temporary").iterdir(), *(tmp_path / "here").iterdir()]
    return [path.name for path in found if path.suffix != ".turn"]


def test_every_script_is_known():
    assert sorted(SAYS) == SCRIPTS


@pytest.mark.parametrize(
    "name",
    [
        # A server is a process that takes its time to begin and to end.
        pytest.param(name, marks=pytest.mark.interop if "serve" in name else ())
        for name in SCRIPTS
        if name != "spark_tables.py"
    ],
)
def test_a_script_does_what_it_says(name, capsys, tmp_path):
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out.splitlines()
    assert left_behind(tmp_path) == []


@pytest.mark.interop
def test_the_script_for_spark_does_what_it_says():
    """In a process of its own: it starts a Java, which would stay in ours."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "spark_tables.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert SAYS["spark_tables.py"] in done.stdout.splitlines()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_and_says_what_it_is_for(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert 30 <= len(text.splitlines()) <= 60
    assert f"python examples/{name}" in ast.get_docstring(ast.parse(text))


def test_all_examples_are_listed():
    listed = set(re.findall(r"\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8")))
    there = {path.name for path in EXAMPLES.iterdir() if not path.name.startswith((".", "__"))}
    assert listed == there - {"README.md"}


# -- the notebook ----------------------------------------------------------------------------------


def test_the_notebook_is_one_of_format_4_5_without_outputs():
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert set(book) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    assert [one for one in ids if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one)] == []
    for cell in book["cells"]:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        assert not cell.get("outputs")


def test_the_cells_of_the_notebook_run(tmp_path):
    """The value of each is kept as a notebook would show it."""
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    names = {}
    shown = {
        cell["id"]: _run("".join(cell["source"]), names)
        for cell in book["cells"]
        if cell["cell_type"] == "code"
    }
    assert shown["connect"] == []
    assert shown["create"] == [{"name": "Oslo"}, {"name": "Lima"}]
    assert shown["ask"] == 2
    assert shown["versions"] == [(3, "Delete", 1), (2, "Append", 4), (1, "Overwrite", 3)]
    assert shown["restore"] == shown["undrop"] == shown["lance"] == 3
    assert shown["drop"] == ["cities"]
    assert shown["namespaces"] == ["cities", "geo$streams"]
    assert left_behind(tmp_path) == []


def _run(text, names):
    *statements, last = ast.parse(text).body
    whole = ast.Module([*statements], [])
    if isinstance(last, ast.Expr):
        exec(compile(whole, "cell", "exec"), names)  # noqa: S102  # the notebook is ours
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    whole.body.append(last)
    exec(compile(whole, "cell", "exec"), names)  # noqa: S102  # the notebook is ours
    return None
