"""Files of the package stay small enough to be read at one go."""

from pathlib import Path

import mooring

_MOST_LINES = 500


def test_no_file_has_more_than_500_lines():
    files = list(Path(mooring.__file__).parent.rglob("*.py"))
    assert files
    sizes = {str(file): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {name: lines for name, lines in sizes.items() if lines > _MOST_LINES} == {}
