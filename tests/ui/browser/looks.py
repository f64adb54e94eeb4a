"""How pages are looked at, and what holds for each of them however it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.ui.browser.axe import find_problems
from tests.ui.browser.reader import DESK, PHONE

if TYPE_CHECKING:
    from tests.ui.browser.reader import Reader

__all__ = ["LOOKS", "require_for_everybody"]

LOOKS = {
    "light": {"viewport": DESK, "color_scheme": "light"},
    "dark": {"viewport": DESK, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "is_mobile": True, "has_touch": True},
}


def require_for_everybody(reader: Reader, axe: str, look: str) -> None:
    """Check the page that is shown: one heading, within the window, no barrier, no errors."""
    assert reader.page.locator("h1").count() == 1, look
    assert not reader.scrolls_sideways, look
    assert find_problems(reader.page, axe) == [], look
    assert reader.troubles == [], look
