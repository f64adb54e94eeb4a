"""The browser of the tests: Debian's Chromium, or whichever is there.

``python -m tests.ui.browser.chromium`` sees to it that there is one, or says what to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

__all__ = ["find_chromium", "run_chromium"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MISSING = (
    "error: the tests of pages need Chromium: install it, as with"
    " 'apt-get install chromium', or name one with MOORING_CHROMIUM=/path/to/chromium"
)


def find_chromium() -> str | None:
    """Return the program; None where there is none."""
    named = os.environ.get("MOORING_CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def run_chromium() -> Iterator[Browser]:
    """Run it until the context ends.

    Raises:
        FileNotFoundError: there is none; the message says what to install.
    """
    program = find_chromium()
    if program is None:
        raise FileNotFoundError(_MISSING)
    # It refuses to run in a sandbox for root, as whom tests run in containers; and there, memory
    # that processes share is little.
    options = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        try:
            yield browser
        finally:
            browser.close()


def main() -> int:
    """See to it that there is one; return the code to end with."""
    if find_chromium() is None:
        _install()
    if find_chromium() is None:
        sys.stderr.write(f"{_MISSING}\n")
        return 1
    return 0


def _install() -> None:
    """Install Debian's, where that is possible."""
    if os.environ.get("MOORING_CHROMIUM") or os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    sys.stderr.write("installing chromium, which the tests of pages need\n")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        done = subprocess.run(["apt-get", "-qq", *words], env=quiet, check=False)
        if done.returncode:
            return


if __name__ == "__main__":
    sys.exit(main())
