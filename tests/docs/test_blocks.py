"""Every fenced block of the documents has a treatment, and what is only shown is said to be."""

import ast
import json
import re
import subprocess
import tomllib

import pytest

from mooring import config
from mooring.server.credentials_file import read_credentials
from tests.docs.documents import ROOT, all_documents, blocks_of, lines_of

TREATMENTS = {
    "python": "run by test_examples.py, with the results that stand behind it",
    "console": "run by test_examples.py, with what each command prints",
    "py": "compiled here; run by the test that RUN_BY names, for it needs another program",
    "sh": "read by bash; lines of mooring are read by the program (test_examples.py)",
    "json": "parsed here",
    "toml": "parsed here; profiles are read by the program",
    "sql": "run by lance-spark in the test that RUN_BY names",
    "": "trees of files, signatures, messages; lines of mooring are read by the program",
}
# Who runs blocks that need Spark, lancedb, PyIceberg or a server.
RUN_BY = {
    "README": ["tests/docs/test_server_guides.py", "tests/spark/test_source_guide.py"],
    "changes-on-spark": ["tests/spark/test_changes_document.py"],
    "first-catalog": ["tests/docs/test_tutorial.py"],
    "move-from-lancedb": ["tests/docs/test_lancedb_guide.py"],
    "serve": ["tests/docs/test_server_guides.py"],
    "serve-iceberg": ["tests/docs/test_server_guides.py"],
    "spark": ["tests/spark/test_source_guide.py"],
    "stream": ["tests/spark/test_streaming_document.py"],
    "use-the-server-from-clients": [
        "tests/interop/test_all_clients.py",
        "tests/interop/test_lance_clients.py",
    ],
}
# Of a line in a script, what may come before a command's name.
_PROGRAM = re.compile(r"^(?:[A-Z_]+=\S+ |[\d*/]+ [\d* ]+ )*(\S+)")
PROGRAMS = {".", "curl", "make", "mooring", "pip", "python", "python3"}


def every(*languages):
    """Return all blocks of these languages as cases of a test."""
    return [
        pytest.param(path, block, id=f"{path.stem}-{block.line}")
        for path in all_documents()
        for block in blocks_of(path, *languages)
    ]


def test_every_block_has_a_treatment():
    used = {block.language for path in all_documents() for block in blocks_of(path)}
    assert used == set(TREATMENTS)


def test_every_fence_is_seen():
    """One that is indented, or not closed, would be left out in silence."""
    for path in all_documents():
        fences = re.findall(r"^\s*(?:```|~~~)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks_of(path)), path


@pytest.mark.parametrize(("path", "block"), every("py"))
def test_python_that_is_run_elsewhere_compiles(path, block):
    compile(ast.parse(block.text), str(path), "exec")


def test_what_is_run_elsewhere_is_run():
    pages = {path.stem: path for path in all_documents() if blocks_of(path, "py", "sql")}
    assert set(pages) == set(RUN_BY)
    for page, tests in RUN_BY.items():
        for test in tests:
            assert pages[page].name in (ROOT / test).read_text(encoding="utf-8")


@pytest.mark.parametrize(("path", "block"), every("sh"))
def test_scripts_are_understood_by_the_shell(path, block):
    text = "\n".join(line for line in lines_of(block) if not re.match(r"[\d*]", line))
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    programs = {_PROGRAM.match(line)[1] for line in lines_of(block)}
    assert programs <= PROGRAMS


def test_what_is_installed_can_be():
    """The extras that documents name are there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [
        extra
        for path in all_documents()
        for extras in re.findall(r"mooring\[([\w,]+)\]", path.read_text(encoding="utf-8"))
        for extra in extras.split(",")
    ]
    assert named
    assert set(named) <= set(project["optional-dependencies"])


@pytest.mark.parametrize(("path", "block"), every("json", "toml"))
def test_documents_in_other_languages_parse(path, block):
    parsers = {"json": json.loads, "toml": tomllib.loads}
    assert parsers[block.language](block.text)


def test_profiles_are_read_as_they_are_shown(tmp_path):
    shown = [
        block.text
        for path in all_documents()
        for block in blocks_of(path, "toml")
        if "[profiles." in block.text
    ]
    assert shown
    for text in shown:
        file = tmp_path / "config.toml"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        assert set(config.load_profiles(file)) == set(tomllib.loads(text)["profiles"])


def test_credentials_are_read_as_they_are_shown(tmp_path):
    (shown,) = [
        block.text
        for path in all_documents()
        for block in blocks_of(path, "toml")
        if "[oidc]" in block.text
    ]
    file = tmp_path / "clients.toml"
    file.write_text(shown, encoding="utf-8")
    file.chmod(0o600)
    assert read_credentials(file).oidc.issuer == tomllib.loads(shown)["oidc"]["issuer"]
