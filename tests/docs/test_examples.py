"""What the documents show is what happens."""

import itertools
import re
import shlex

import pytest
from typer.testing import CliRunner

from mooring.cli.app import app
from tests.docs.conftest import mask
from tests.docs.documents import DOCS, ROOT, blocks_of, commands_of, run

S3_GUIDE = DOCS / "how-to" / "s3-and-credentials.md"
# After assignments of variables or the times of a crontab, up to a redirection.
_COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ |[\d* ]+ )?\s*(mooring [^>|\n]+)", re.MULTILINE)
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(path for path in DOCS.rglob("*.md") if path != S3_GUIDE and blocks_of(path)),
]


def follow(path, shell):
    """Run the blocks of a document, one after the other."""
    names = {"__name__": "document"}
    for block in blocks_of(path, "python", "console"):
        if block.language == "python":
            run(block, path, names)
            continue
        for command in commands_of(block):
            printed, code = shell(command.line)
            assert code == command.exit_code, (command.line, printed)
            assert matches(printed, mask("\n".join(command.output))), (command, printed)


def matches(printed, expected):
    """Compare lines; ``...`` stands for any number of them."""
    if "..." not in expected:
        return printed == expected
    cut = expected.index("...")
    head, tail = expected[:cut], expected[cut + 1 :]
    rest = printed[cut:]
    return printed[:cut] == head and any(
        matches(rest[start:], tail) for start in range(len(rest) + 1)
    )


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


def test_command_lines_are_understood():
    """Lines that are only shown have the program's verbs and options."""
    shown = [
        line
        for path in [*DOCUMENTS, S3_GUIDE]
        for block in blocks_of(path, "sh", "")
        for line in _COMMAND.findall(block.text)
    ]
    assert shown
    for line in shown:
        words = shlex.split(line, comments=True)[1:]
        end = words.index("--") if "--" in words else len(words)
        done = CliRunner().invoke(app, [*words[:end], "--help"])
        assert done.exit_code == 0, (line, done.output)


def test_ellipsis_stands_for_any_lines():
    assert matches(["a", "b", "c"], ["a", "...", "c"])
    assert matches(["a", "c"], ["a", "...", "c"])
    assert not matches(["a", "b"], ["a", "...", "c"])
    assert all(matches([*lines], ["..."]) for lines in itertools.permutations("ab"))
