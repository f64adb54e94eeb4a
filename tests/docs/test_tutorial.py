"""The tutorial, as a newcomer types it: nothing installed, nothing set, an empty home."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.documents import DOCS, blocks_of, lines_of
from tests.docs.newcomer import Newcomer, build_wheel
from tests.docs.sessions import follow_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TUTORIAL = DOCS / "tutorial" / "first-catalog.md"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    home = tmp_path / "home"
    home.mkdir()
    build_wheel(tmp_path / "wheels")
    arrived = Newcomer(home, tmp_path / "wheels")
    yield arrived
    arrived.leave()


@pytest.mark.interop
def test_the_tutorial_comes_true_from_installation_on(newcomer):
    blocks = blocks_of(TUTORIAL)
    assert {block.language for block in blocks} == {"sh", "console", "python", "py"}
    for block in blocks:
        match block.language:
            case "sh":
                for line in lines_of(block):
                    printed, code = newcomer.type(line)
                    assert code == 0, (line, printed)
            case "console":
                follow_session(block, newcomer.type)
            case _:
                newcomer.type_python(block, TUTORIAL)
