"""A newcomer at a terminal: an empty home, one shell, and the Python that is started from it."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.docs.documents import ROOT
from tests.docs.sessions import mask
from tests.interop.peer import Peer

if TYPE_CHECKING:
    from tests.docs.documents import Block

__all__ = ["Newcomer", "build_wheel"]

_TYPIST = Path(__file__).with_name("typist.py")
# Of this process' environment a newcomer has the way to programs, Java and packages, not more.
_KEPT = ("PATH", "JAVA_HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
_KEPT_PREFIXES = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY")


def build_wheel(into: Path) -> None:
    """Build the package from the tree as it is."""
    uv = shutil.which("uv", path=Path(sys.executable).parent) or "uv"
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", into, ROOT], check=True)


class Newcomer:
    """Types what a page says."""

    def __init__(self, home: Path, wheels: Path) -> None:
        """Sit down.

        Args:
            home: An empty directory.
            wheels: Where the package lies: it takes the place of the package index for it.
        """
        self._home = home
        self._environ = _environment(home, wheels)
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=home,
            env=self._environ,
        )
        self._python: Peer | None = None

    def type(self, line: str) -> tuple[list[str], int]:
        """Run a line in the shell; return what it printed, masked, and its exit code."""
        printed, code = self._run(line)
        return mask(printed, str(self._home)), code

    def _run(self, line: str) -> tuple[str, int]:
        end = f"end-{secrets.token_hex(8)}"
        self._shell.stdin.write(f"{line}\nprintf '\\n%s %s\\n' {end} $?\n")
        self._shell.stdin.flush()
        printed = ""
        for one in self._shell.stdout:
            if one.startswith(end):
                return printed.removesuffix("\n"), int(one.split()[1])
            printed += one
        msg = f"the shell ended at {line!r}: {printed}"
        raise AssertionError(msg)

    def type_python(self, block: Block, path: Path) -> None:
        """Run a block in the Python of the shell, which stays open."""
        if self._python is None:
            python, path_of_shell = self._ask("command -v python"), self._ask('echo "$PATH"')
            environ = {**self._environ, "PATH": path_of_shell}
            self._python = _Python(python, environ, self._home)
        self._python("run", text=block.text, line=block.line, path=str(path))

    def _ask(self, line: str) -> str:
        """Return what a line prints, as it is."""
        printed, code = self._run(line)
        assert code == 0, (line, printed)
        return printed.strip()

    def leave(self) -> None:
        """End what was started."""
        if self._python is not None:
            self._python.close()
        with suppress(BrokenPipeError):
            self._shell.stdin.close()
        self._shell.wait()
        self._shell.stdout.close()


class _Python(Peer):
    """An interpreter that has the shell's variables, and no others."""

    def __init__(self, python: str, environ: dict[str, str], home: Path) -> None:
        self._process = subprocess.Popen(
            [python, _TYPIST],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=home,
            env=environ,
        )


def _environment(home: Path, wheels: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    # The interpreter of this process, and not its environment, is what `python3` names.
    programs = home.with_name("programs")
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys._base_executable).resolve())
    own = str(Path(sys.executable).parent)
    path = [str(programs), *(one for one in kept["PATH"].split(":") if one != own)]
    return {
        **kept,
        "HOME": str(home),
        "USER": "ada",
        "LOGNAME": "ada",
        "PATH": ":".join(path),
        "PIP_FIND_LINKS": f"{kept.get('PIP_FIND_LINKS', '')} {wheels}".strip(),
        "PIP_PROGRESS_BAR": "off",
        # A terminal shows lines as they come; a pipe would keep those of one kind back.
        "PYTHONUNBUFFERED": "1",
    }
