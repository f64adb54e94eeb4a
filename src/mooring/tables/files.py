"""Which files the versions of a table name, and whether those of a version are whole.

Data files and deletion files are named by a version with their paths, an index by its directory.
Paths are told below the table's own directory; what lies elsewhere, as the files of a table that
another was cloned from, is left out.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from lance.file import LanceFileReader

from mooring.tables.opening import open_at
from mooring.tables.versions import BRANCHES_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lance import LanceDataset

    from mooring.tables.place import Place

__all__ = [
    "DELETIONS_DIR",
    "IndexFiles",
    "Named",
    "Opened",
    "Site",
    "find_damaged",
    "named_by",
    "named_by_all",
    "open_version",
]

Opened: TypeAlias = "LanceDataset"
DELETIONS_DIR = "_deletions"
_INDEXES_DIR = "_indices"
_DATA_DIR = "data"
_ARROW = b"ARROW1"
# A bitmap says what it is in its first word, and how many parts follow in the second.
_BITMAP_BYTES = 8
_LEGACY = "0.1"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a table lies, as the store and as Lance name it.

    Attributes:
        place: The directory in its store.
        location: The same for Lance.
        options: Storage options of Lance.
    """

    place: Place
    location: str
    options: Mapping[str, str] = field(repr=False)  # it holds secrets


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """An index as a version names it.

    Attributes:
        name: The index.
        size_bytes: What its files take together, where that was noted.
    """

    name: str
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class Named:
    """What one version names.

    Attributes:
        version: The version.
        files: Its data and deletion files, with the size that was noted, if any was.
        indexes: Its indexes, by their directories.
    """

    version: int
    files: Mapping[str, int | None]
    indexes: Mapping[str, IndexFiles]


def open_version(site: Site, version: int, branch: str | None = None) -> LanceDataset:
    """Open a version where it lies, also where a newer one cannot be opened.

    Raises:
        MooringError: it cannot be opened either.
    """
    location = f"{site.location}/{BRANCHES_DIR}/{branch}" if branch else site.location
    return open_at(location, site.options, version)


def named_by(dataset: LanceDataset, site: Site, branch: str | None = None) -> Named:
    """Tell what an open version names; no other is looked at."""
    bases = _bases_of(dataset, site, branch)
    files: dict[str, int | None] = {}
    for fragment in dataset.get_fragments():
        found = fragment.metadata
        for file in found.files:
            if file.base_id in bases:
                files[f"{bases[file.base_id].data}{file.path}"] = file.file_size_bytes
        deletion = found.deletion_file
        if deletion is not None and deletion.base_id in bases:
            files[f"{bases[deletion.base_id].above}{deletion.path(found.id)}"] = None
    indexes = {
        f"{bases[segment.base_id].above}{_INDEXES_DIR}/{segment.uuid}": IndexFiles(
            index.name, segment.size_bytes
        )
        for index in dataset.describe_indices()
        for segment in index.segments
        if segment.base_id in bases
    }
    return Named(int(dataset.version), files, indexes)


@dataclass(frozen=True, slots=True)
class _Base:
    """A directory that a version keeps files in, below the table's own: with its slash, or none."""

    above: str
    data: str


def _bases_of(dataset: LanceDataset, site: Site, branch: str | None) -> dict[int | None, _Base]:
    """Return the directories of a version that lie in the table's own, by their numbers."""
    own = f"{BRANCHES_DIR}/{branch}/" if branch else ""
    bases: dict[int | None, _Base] = {None: _Base(own, f"{own}{_DATA_DIR}/")}
    root = f"{site.location.rstrip('/')}/"
    for number, base in dataset.base_paths().items():
        path = f"{base.path.rstrip('/')}/"
        if path.startswith(root):
            above = path.removeprefix(root)
            bases[number] = _Base(above, f"{above}{_DATA_DIR}/" if base.is_dataset_root else above)
    return bases


def named_by_all(dataset: LanceDataset, branch: str | None = None) -> dict[int, set[str]]:
    """Tell what each version of a branch names: all files of theirs, their own included.

    Of an index they are the files that are there.
    """
    versions: defaultdict[int, set[str]] = defaultdict(set)
    found = dataset.tracked_files().read_all().to_pylist()
    own = next((row["base_uri"] for row in found if row["type"] == "manifest"), "")
    root = own.removesuffix(f"/{BRANCHES_DIR}/{branch}" if branch else "").rstrip("/") + "/"
    for row in found:
        path = f"{row['base_uri'].rstrip('/')}/{row['path']}"
        if path.startswith(root):
            versions[int(row["version"])].add(path.removeprefix(root))
    return dict(versions)


def find_damaged(dataset: LanceDataset, site: Site, named: Named) -> dict[str, str]:
    """Read the end of each data file of a version, and its deletion files; tell what is damaged.

    The files must be there.

    Returns:
        Why, by path.
    """
    deletions = [path for path in named.files if DELETIONS_DIR in path.split("/")]
    damaged = _damaged_deletions(site.place, deletions)
    if dataset.data_storage_version == _LEGACY:
        return damaged  # such files end otherwise
    try:
        dataset.stats.data_stats()  # reads the end of every data file, many at once
    except (ValueError, OSError, RuntimeError):
        for path in sorted(named.files.keys() - set(deletions)):
            why = _why_unreadable(f"{site.location}/{path}", site.options)
            if why is not None:
                damaged[path] = why
    return damaged


def _why_unreadable(location: str, options: Mapping[str, str]) -> str | None:
    try:
        LanceFileReader(location, storage_options=dict(options) or None).metadata()
    except (ValueError, OSError, RuntimeError) as exc:
        return str(exc).partition(", /")[0]
    return None


def _damaged_deletions(place: Place, paths: Iterable[str]) -> dict[str, str]:
    wanted = list(paths)
    bodies = place.read_all([place.path(path) for path in wanted])
    return {
        path: "it is no list of deleted rows"
        for path, body in zip(wanted, bodies, strict=True)
        if body is not None and not _is_deletion(path, body)
    }


def _is_deletion(path: str, body: bytes) -> bool:
    if path.endswith(".arrow"):
        return body.startswith(_ARROW) and body.endswith(_ARROW)
    return len(body) >= _BITMAP_BYTES
