"""axe-core, which finds what keeps people from using a page; from the npm registry, kept once."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.interop.peer import PEERS, NotBuiltError, alone

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["find_axe", "find_problems"]

_PACKAGE = "axe-core@4.14.0"
_SERIOUS = {"serious", "critical"}
_RUN = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations.map(({id, impact, nodes}) =>
        ({id, impact, where: nodes.map(({target, failureSummary}) =>
            `${target.join(" ")}: ${failureSummary}`)}));
}"""


def find_axe() -> str:
    """Return its source, which is brought where it is missing.

    Raises:
        NotBuiltError: it cannot be brought; the message says why.
    """
    home = PEERS / _PACKAGE.replace("@", "-")
    source = home / "node_modules" / "axe-core" / "axe.min.js"
    with alone("axe"):
        if not source.exists():
            _bring(home)
    return source.read_text(encoding="utf-8")


def _bring(home) -> None:
    npm = shutil.which("npm")
    if npm is None:
        msg = f"npm is needed to bring {_PACKAGE}: install it, as with 'apt-get install npm'"
        raise NotBuiltError(msg)
    home.mkdir(parents=True, exist_ok=True)
    options = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
    command = [npm, "install", *options, "--prefix", str(home), _PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=home)
    if done.returncode:
        last = " ".join((done.stderr or done.stdout).split())[-300:]
        msg = f"{_PACKAGE} cannot be brought from the npm registry: {last}"
        raise NotBuiltError(msg)


def find_problems(page: Page, axe: str) -> list[str]:
    """Look for serious problems of the page that is shown: which rule, and where.

    Args:
        page: The page.
        axe: The source.
    """
    # As the browser's own tools do it, which no policy of the page forbids.
    page.evaluate(axe)
    return [
        f"{one['impact']} {one['id']}: {where}"
        for one in page.evaluate(_RUN)
        if one["impact"] in _SERIOUS
        for where in one["where"]
    ]
