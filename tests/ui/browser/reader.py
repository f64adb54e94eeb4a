"""Somebody who looks at pages with a browser, and notices whatever goes wrong there."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Response

__all__ = ["DESK", "PHONE", "SCREENS", "Reader", "looking"]

DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
SCREENS = Path(__file__).parents[3] / "build" / "screens"
_LOUD = {"error", "warning"}
# A page that says what went wrong is an answer, which the browser notes as an error.
_ANSWERED = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")


class Reader:
    """A window of the browser at the pages of a server.

    Attributes:
        page: The window.
        base: The server's address.
        catalog: The name of the catalog that is looked at.
        troubles: What went wrong so far.
    """

    def __init__(self, page: Page, base: str, catalog: str = "default") -> None:
        """Look, and listen."""
        self.page = page
        self.base = base
        self.catalog = catalog
        self.troubles: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("dialog", self._refuse)
        page.on("response", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in _LOUD and not _ANSWERED.match(message.text):
            self.troubles.append(f"console: {message.text}")

    def _refuse(self, dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _see(self, response: Response) -> None:
        is_page = response.request.resource_type == "document"
        if response.status >= 500 or (response.status >= 400 and not is_page):
            self.troubles.append(f"{response.status}: {response.url}")

    # -- going -------------------------------------------------------------------------------------

    def go(self, path: str, *, status: int = 200) -> Reader:
        """Go to a page, below the catalog unless its path begins with a slash."""
        whole = path if path.startswith("/") else f"/catalogs/{self.catalog}/{path}"
        response = self.page.goto(f"{self.base}{whole}")
        assert response is not None
        assert response.status == status, (response.status, path, self.text)
        return self

    def log_in(self, token: str) -> Reader:
        """Show a token at the door."""
        self.go("/login")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Log in").click()
        return self

    def click(self, name: str, role: str = "link") -> Reader:
        """Press a link or a button that has a name."""
        self.main.get_by_role(role, name=name, exact=True).first.click()
        return self

    def fill(self, label: str, text: str) -> Reader:
        """Write into a field of the content."""
        self.main.get_by_label(label, exact=True).fill(text)
        return self

    # -- seeing ------------------------------------------------------------------------------------

    @property
    def at(self) -> str:
        """The path of the page, below the catalog."""
        return self.page.url.removeprefix(f"{self.base}/catalogs/{self.catalog}/")

    @property
    def main(self) -> Locator:
        """The content."""
        return self.page.locator("main")

    @property
    def text(self) -> str:
        """What the content says."""
        return self.main.inner_text()

    @property
    def heading(self) -> str:
        """What the page is about."""
        return self.page.locator("h1").inner_text()

    @property
    def notice(self) -> str:
        """What was just done."""
        return self.page.get_by_role("status").inner_text()

    @property
    def focused(self) -> str:
        """What has the focus, by its text or id."""
        return self.page.evaluate(
            "(document.activeElement.innerText || document.activeElement.id || '').trim()"
        )

    @property
    def scrolls_sideways(self) -> bool:
        """Whether the page is wider than its window."""
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return self.page.evaluate(wide)

    def keep(self, name: str) -> None:
        """Keep a picture of the page."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENS / f"{name}.png", full_page=True)


@contextmanager
def looking(browser: Browser, base: str, catalog: str = "default", **how) -> Iterator[Reader]:
    """Look at pages in a browser that remembers nothing; whatever goes wrong fails the test.

    Args:
        browser: The browser.
        base: The server's address.
        catalog: The catalog that is looked at.
        how: How the window is, in Playwright's words.
    """
    context = browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **how})
    context.set_default_timeout(10_000)
    try:
        reader = Reader(context.new_page(), base, catalog)
        yield reader
        assert not reader.troubles
    finally:
        context.close()
