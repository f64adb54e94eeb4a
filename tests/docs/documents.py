"""Markdown documents as tests read them: code blocks, shell sessions, links.

Blocks of a document share one state and run in order. What a block says comes true is checked:

- ``python``: an expression followed by ``# => value`` has that ``repr``;
- ``console``: after each line ``$ command`` stands what it prints, times masked; ``# exit N`` after
  a command is its exit code; a line ``...`` stands for any lines;
- ``sh``: lines that begin with ``mooring`` are read by the program and not run.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DOCS",
    "ROOT",
    "Block",
    "Command",
    "all_documents",
    "blocks_of",
    "commands_of",
    "lines_of",
    "run",
]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RESULT = "# => "
_EXIT = re.compile(r"\s+# exit (\d+)$")


@dataclass(frozen=True)
class Block:
    """A fenced block and the line it begins on."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A command of a shell session, and what it should print."""

    line: str
    output: list[str]
    exit_code: int


def all_documents() -> list[Path]:
    """Return every document for users."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def blocks_of(path: Path, *languages: str) -> list[Block]:
    """Return the blocks of a document in these languages, or in any, in order."""
    text = path.read_text(encoding="utf-8")
    found = [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 1)
        for match in _FENCE.finditer(text)
    ]
    return [block for block in found if not languages or block.language in languages]


def lines_of(block: Block) -> list[str]:
    """Return the commands of a script: lines that go on are joined, remarks and blanks left out."""
    lines = block.text.replace("\\\n", "").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def commands_of(block: Block) -> Iterator[Command]:
    """Go through the commands of a shell session."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, *output = part.rstrip("\n").split("\n")
        code = _EXIT.search(line)
        yield Command(_EXIT.sub("", line), output, int(code[1]) if code else 0)


def run(block: Block, path: Path, names: dict[str, object]) -> None:
    """Run a block of Python; expressions with a result must have it."""
    checked = _Checked(block.text.splitlines())
    tree = ast.fix_missing_locations(checked.visit(ast.parse(block.text)))
    ast.increment_lineno(tree, block.line)
    assert checked.count == block.text.count(_RESULT), "a '# =>' belongs after an expression"
    names["_expect"] = _expect
    exec(compile(tree, str(path), "exec"), names)  # noqa: S102  # the documents are ours


def _expect(value: object, text: str) -> None:
    assert repr(value) == text


class _Checked(ast.NodeTransformer):
    """Turns ``expression  # => value`` into a call of ``_expect``."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self.count = 0

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:  # called by name
        _, found, text = self._lines[(node.end_lineno or 1) - 1].partition(_RESULT)
        if not found:
            return node
        self.count += 1
        call = ast.Call(
            ast.Name("_expect", ast.Load()), [node.value, ast.Constant(text.strip())], []
        )
        return ast.copy_location(ast.Expr(call), node)
