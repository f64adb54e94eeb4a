"""The Java that Spark runs on: found, or missed in one clear line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mooring.errors import UnsupportedError

__all__ = ["Java", "find_java", "main"]

_LEAST = 17
_VERSION = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')
_HOW = (
    "install it (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install"
    " openjdk@17) or point JAVA_HOME to it"
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is new enough.

    Attributes:
        path: Its program.
        version: As it says itself.
    """

    path: Path
    version: str


def find_java() -> Java:
    """Find a Java that is new enough, where Spark looks for it.

    Raises:
        UnsupportedError: there is none.
    """
    path = _find()
    try:
        said = subprocess.run(  # noqa: S603  # the java that Spark would start
            [path, "-version"], capture_output=True, text=True, check=False
        ).stderr
    except OSError as exc:
        msg = f"'{path}' cannot be run: {exc.strerror}; Spark needs Java {_LEAST} or newer: {_HOW}"
        raise UnsupportedError(msg) from exc
    version = _VERSION.search(said)
    if version is None:
        # That of macOS only says where to get one.
        msg = f"'{path}' is no Java; Spark needs Java {_LEAST} or newer: {_HOW}"
        raise UnsupportedError(msg)
    if int(version[2]) < _LEAST:
        msg = f"Spark needs Java {_LEAST} or newer, and '{path}' is Java {version[2]}: {_HOW}"
        raise UnsupportedError(msg)
    return Java(path, version[1])


def main() -> int:
    """Tell in one line what is missing, for whoever is about to need it."""
    try:
        find_java()
    except UnsupportedError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 1
    return 0


def _find() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if java.exists():
            return java
        msg = f"JAVA_HOME is '{home}', which has no bin/java; Spark needs Java {_LEAST}: {_HOW}"
        raise UnsupportedError(msg)
    found = shutil.which("java")
    if found is None:
        msg = f"Spark needs Java {_LEAST} or newer, and no java is to be found: {_HOW}"
        raise UnsupportedError(msg)
    return Path(found)
