"""What the documents show is what happens."""

import itertools
import re
import shlex
from dataclasses import replace

import pytest

import mooring
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.docs.documents import DOCS, ROOT, blocks_of, run
from tests.docs.sessions import follow_session, matches
from tests.own_irc import run_own
from tests.own_server import run_server
from tests.program import invoke

S3_GUIDE = DOCS / "how-to" / "s3-and-credentials.md"
ICEBERG_GUIDE = DOCS / "how-to" / "iceberg-catalogs.md"
REMOTE_GUIDE = DOCS / "how-to" / "remote-catalogs.md"
# Begins with another program's work: tests/docs/test_lancedb_guide.py.
LANCEDB_GUIDE = DOCS / "how-to" / "move-from-lancedb.md"
_ELSEWHERE = [S3_GUIDE, ICEBERG_GUIDE, REMOTE_GUIDE, LANCEDB_GUIDE]
# The servers that the guides speak of.
_IRC = "https://irc.example.com/iceberg"
_LANCE_REST = "https://lake.example.com/lance"
# After assignments of variables or the times of a crontab, up to a redirection.
_COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ |[\d* ]+ )?\s*(mooring [^>|\n]+)", re.MULTILINE)
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(path for path in DOCS.rglob("*.md") if path not in _ELSEWHERE and blocks_of(path)),
]


def follow(path, shell, place="", instead=""):
    """Run the blocks of a document, one after the other; somewhere else than it says, if wanted."""
    names = {"__name__": "document"}
    for shown in blocks_of(path, "python", "console"):
        block = replace(shown, text=shown.text.replace(place, instead)) if place else shown
        if block.language == "python":
            run(block, path, names)
        else:
            # another place has another width
            follow_session(block, shell, _narrow if place else list)


def _narrow(lines):
    return [" ".join(line.split()) for line in lines]


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if blocks_of(path, "python", "console")],
    ids=lambda path: path.stem,
)
def test_examples_come_true(path, shell):
    follow(path, shell)


@pytest.mark.s3
def test_examples_on_s3_come_true(moto, shell, monkeypatch):
    """The server takes the place of Amazon's."""
    monkeypatch.setenv("AWS_ENDPOINT", moto.endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    follow(S3_GUIDE, shell)


def test_examples_on_an_iceberg_catalog_come_true(shell, tmp_path):
    """Mooring's own server takes the place of somebody else's."""
    catalog = mooring.connect(tmp_path / "served", managed_versioning=True)
    client = Client.of("ada", "top-secret", Grant(Role.WRITER))
    with run_own(catalog, ServerSettings(clients=(client,))) as address:
        follow(ICEBERG_GUIDE, shell, _IRC, address)


def test_examples_on_a_remote_catalog_come_true(shell, tmp_path):
    """A server of this machine takes the place of the team's."""
    catalog = mooring.connect(tmp_path / "served")
    client = Client.of("ada", "top-secret", Grant(Role.WRITER))
    with run_server(catalog, ServerSettings(clients=(client,))) as address:
        follow(REMOTE_GUIDE, shell, _LANCE_REST, f"{address}/lance")


def test_command_lines_are_understood():
    """Lines that are only shown have the program's verbs and options."""
    shown = [
        line
        for path in [*DOCUMENTS, *_ELSEWHERE]
        for block in blocks_of(path, "sh", "")
        for line in _COMMAND.findall(block.text)
    ]
    assert shown
    for line in shown:
        words = shlex.split(line, comments=True)[1:]
        end = words.index("--") if "--" in words else len(words)
        done = invoke(*words[:end], "--help")
        assert done.exit_code == 0, (line, done.output)


def test_ellipsis_stands_for_any_lines():
    assert matches(["a", "b", "c"], ["a", "...", "c"])
    assert matches(["a", "c"], ["a", "...", "c"])
    assert not matches(["a", "b"], ["a", "...", "c"])
    assert all(matches([*lines], ["..."]) for lines in itertools.permutations("ab"))
