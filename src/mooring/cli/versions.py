"""The versions of what is at work, read from what is installed; nothing of it is loaded."""

from __future__ import annotations

__all__ = ["installed", "working_versions"]

_PACKAGES = ("mooring", "pylance", "lance-namespace", "obstore", "pyarrow")


def working_versions() -> dict[str, str]:
    """Tell the versions of this program, what it stands on, and Python."""
    import platform

    found = {package: installed(package) or "not installed" for package in _PACKAGES}
    return {**found, "python": platform.python_version()}


def installed(package: str) -> str | None:
    """Tell the version of a package; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None
