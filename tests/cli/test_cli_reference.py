"""The reference in the documentation is the program's."""

from pathlib import Path

from mooring.cli.reference import update

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_reference_is_up_to_date():
    """Bring it up to date with "python -m mooring.cli.reference docs/reference/cli.md"."""
    text = REFERENCE.read_text(encoding="utf-8")
    assert text == update(text)
