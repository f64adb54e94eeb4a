"""Names of objects that pass: they lie in a root for a moment and belong to no catalog."""

__all__ = ["PROBE_PREFIX", "TEMPORARY_PREFIX", "is_passing"]

TEMPORARY_PREFIX = ".mooring-tmp-"
PROBE_PREFIX = "_mooring-probe."


def is_passing(name: str) -> bool:
    """Whether a file in a root is such an object, or what a crash left of one."""
    return name.startswith((PROBE_PREFIX, TEMPORARY_PREFIX))
