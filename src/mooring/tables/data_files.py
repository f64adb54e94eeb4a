"""The data files of a table: where they lie, what is beside each, and which versions name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.tables.versions import BRANCHES_DIR, VERSIONS_DIR, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.store import ObjectMeta
    from mooring.tables.place import Place

__all__ = ["DATA_DIR", "delete_files", "find_files", "named_files", "stems_of"]

DATA_DIR = "data"
_MANIFESTS_DIR = "_manifests"  # where a metastore keeps what makes its versions
_AT_ONCE = 64


def find_files(place: Place, names: Iterable[str]) -> list[ObjectMeta]:
    """Find data files and what Lance put beside each."""
    store = place.store
    there: list[ObjectMeta] = []
    for name in names:
        path = place.path(f"{DATA_DIR}/{name}")
        found = [store.head(path), *store.list_prefix(path.removesuffix(".lance"))]
        there += [meta for meta in found if meta is not None]
    return there


def delete_files(place: Place, names: Iterable[str]) -> list[int]:
    """Delete data files and what Lance put beside each; return their sizes."""
    names = list(names)
    there = find_files(place, names)
    place.store.delete(meta.path for meta in there)
    for name in names:
        if name.endswith(".lance"):
            place.store.prune(place.path(f"{DATA_DIR}/{name}").removesuffix(".lance"))
    return [meta.size_bytes for meta in there]


def stems_of(kept: Iterable[str]) -> set[str]:
    """Return the names that belong to kept files: their own, and that of what lies beside."""
    return {name for path in kept for name in (path, path.removesuffix(".lance"))}


def named_files(
    place: Place, names: Iterable[str], *, after: int = 0, staged: bool = True
) -> set[str]:
    """Return those of some data files that a version names, of main or of a branch.

    Args:
        place: The table's directory.
        names: Paths below its `data/`.
        after: Look at versions of main after this one.
        staged: Look also at what may still become a version.
    """
    wanted = {name: name.partition("/")[0].encode() for name in names}
    manifests = _manifests(place, after, staged=staged) if wanted else []
    found: set[str] = set()
    for start in range(0, len(manifests), _AT_ONCE):
        bodies = [body for body in place.read_all(manifests[start : start + _AT_ONCE]) if body]
        found |= {name for name, text in wanted.items() if any(text in body for body in bodies)}
    return found


def _manifests(place: Place, after: int, *, staged: bool) -> list[str]:
    """List whatever may name data files: versions, and if wanted what is about to be one."""
    store, own = place.store, place.path(VERSIONS_DIR)
    names = [meta.path.rpartition("/")[2] for meta in store.list_prefix(own)]
    found = [f"{own}/{name}" for name in names if (parse_manifest(name) or 0) > after]
    if staged:
        found += [f"{own}/{name}" for name in names if parse_manifest(name) is None]
        found += [meta.path for meta in store.list_prefix(place.path(_MANIFESTS_DIR))]
    branches = [meta.path for meta in store.list_prefix(place.path(BRANCHES_DIR))]
    homes = (f"/{VERSIONS_DIR}/", f"/{_MANIFESTS_DIR}/")
    return found + [path for path in branches if any(home in path for home in homes)]
