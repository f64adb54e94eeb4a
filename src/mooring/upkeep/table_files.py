"""One listing of a table's directory, and what its paths mean."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mooring.tables.pending import PENDING_DIR, PendingRun
from mooring.tables.place import Place
from mooring.tables.versions import BRANCHES_DIR, VERSIONS_DIR, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mooring.store import ObjectMeta

__all__ = ["TableFiles", "list_files"]

# What versions name lies in these; whatever else is in a table's directory is somebody's.
_NAMED_DIRS = {"data", "_deletions", "_indices", "_transactions"}
_DATA_DIR = "data"
_DATA_SUFFIX = ".lance"
_STAGED = re.compile(r"[0-9]+\.manifest[-#].+")
# What somebody wrote past a metastore is kept beside the version that counts.
_KEPT = "-past-the-catalog"
_REFS = "_refs/branches/"
_COPIES_DIR = "_manifests/"


@dataclass(frozen=True)
class TableFiles:
    """The files of a table, by their paths below its directory."""

    place: Place
    metas: Mapping[str, ObjectMeta]

    @property
    def bytes(self) -> int:
        """What they take together."""
        return self.size_of(self.metas)

    def size_of(self, paths: Iterable[str]) -> int:
        """Return what some of them take."""
        return sum(self.metas[path].size_bytes for path in paths if path in self.metas)

    def newest_ms(self, paths: Iterable[str] | None = None) -> int:
        """Return when the newest of them was written; 0 where there is none."""
        wanted = self.metas if paths is None else paths
        return max((self.metas[path].modified_ms for path in wanted), default=0)

    @cached_property
    def versions(self) -> dict[str | None, dict[int, str]]:
        """The manifest of every version, by branch; None is main."""
        found: defaultdict[str | None, dict[int, str]] = defaultdict(dict)
        for path in self.metas:
            directory, _, name = path.rpartition("/")
            version = parse_manifest(name)
            if version is None or not f"/{directory}".endswith(f"/{VERSIONS_DIR}"):
                continue
            above = directory.removesuffix(VERSIONS_DIR).rstrip("/")
            if not above:
                found[None][version] = path
            elif above.startswith(f"{BRANCHES_DIR}/"):
                found[above.removeprefix(f"{BRANCHES_DIR}/")][version] = path
        return dict(found)

    @cached_property
    def branches(self) -> list[str]:
        """The branches that have versions and are known by name, sorted."""
        return sorted(
            branch
            for branch in self.versions
            if branch is not None and self._ref_of(branch) in self.metas
        )

    def _ref_of(self, branch: str) -> str:
        # A branch may have slashes, which Lance writes otherwise in the name of a file.
        return f"{_REFS}{branch.replace('/', '%2F')}.json"

    @cached_property
    def staged(self) -> list[str]:
        """Manifests that have not become a version, sorted."""
        return sorted(
            path
            for path in self.metas
            if VERSIONS_DIR in path.split("/")[:-1]
            and _STAGED.fullmatch(path.rpartition("/")[2])
            and not path.endswith(_KEPT)
        )

    @cached_property
    def copies(self) -> list[str]:
        """Manifests that a metastore copied before they were to become versions, sorted."""
        return sorted(path for path in self.metas if path.startswith(_COPIES_DIR))

    @cached_property
    def runs(self) -> dict[str, list[str]]:
        """What runs left that have not been ended, by the directory of the run."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.metas:
            parts = path.split("/")
            at = parts.index(PENDING_DIR) if PENDING_DIR in parts else -1
            if at == 0 or (at > 0 and parts[0] == BRANCHES_DIR):
                found["/".join(parts[: at + 2])].append(path)
        return dict(found)

    def noted_by_runs(self) -> set[str]:
        """Name the data files that runs have noted: whoever ends a run sees to them."""
        noted = set()
        for directory in self.runs:
            above, _, run = directory.rpartition(f"{PENDING_DIR}/")
            place = Place(self.place.store, self.place.path(above).rstrip("/"))
            noted |= {f"{above}{_DATA_DIR}/{name}" for name in PendingRun(place, run).files()}
        return noted

    def unnamed(self, named: set[str]) -> list[str]:
        """Return what lies where versions keep their files and is not among these, sorted."""
        stems = {path.removesuffix(_DATA_SUFFIX) for path in named if path.endswith(_DATA_SUFFIX)}
        return sorted(
            path
            for path in self.metas
            if self._is_nameable(path) and path not in named and not _lies_in(path, stems)
        )

    def _is_nameable(self, path: str) -> bool:
        if not path.startswith(f"{BRANCHES_DIR}/"):
            return path.partition("/")[0] in _NAMED_DIRS
        # Of a branch without a name nobody knows what it needs.
        above = next((one for one in self.branches if path.startswith(_tree(one))), None)
        return above is not None and path.removeprefix(_tree(above)).split("/")[0] in _NAMED_DIRS

    def below(self, directory: str) -> list[str]:
        """Return what lies in a directory."""
        return [path for path in self.metas if path.startswith(f"{directory}/")]


def list_files(place: Place) -> TableFiles:
    """List a table's directory."""
    above = f"{place.directory}/"
    found = place.store.list_prefix(place.directory)
    return TableFiles(place, {meta.path.removeprefix(above): meta for meta in found})


def _tree(branch: str) -> str:
    return f"{BRANCHES_DIR}/{branch}/"


def _lies_in(path: str, stems: set[str]) -> bool:
    """Whether a file is what Lance puts beside a data file: its blobs, in a directory."""
    directory = path.rpartition("/")[0]
    return directory in stems
