"""The other side of `bench.metastore`: deltacat's own calls, in an environment of its own.

It reads one JSON command a line and answers each with a line: ``["time", operation, times]`` with
the seconds of every call, ``["count", operation]`` with the calls of its file system. Nothing here
imports Mooring.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

from deltacat.catalog import CatalogProperties
from deltacat.exceptions import ConcurrentModificationError
from deltacat.storage import (
    Delta,
    DeltaLocator,
    DeltaType,
    EntryType,
    Manifest,
    ManifestEntry,
    ManifestEntryList,
    ManifestMeta,
)
from deltacat.storage.main import impl
from deltacat.storage.model.metafile import MetafileRevisionInfo
from pyarrow.fs import FileSystemHandler, LocalFileSystem, PyFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable

NAMESPACE = "ns"
TABLE = "t"


def _go_on(check: Callable[..., None]) -> Callable[..., None]:
    """Let changes pass that are refused for the length of an object's history alone.

    The released library looks for conflicts on a page of a thousand revisions, and takes a full
    page for a thousand conflicts: it refuses the thousandth change of any object. What it does
    until then is left as it is, and takes the time that it takes.
    """

    def checked(*args: object, **kwargs: object) -> None:
        try:
            check(*args, **kwargs)
        except ConcurrentModificationError as exc:
            if "excessive" not in str(exc):
                raise

    return checked


MetafileRevisionInfo.check_for_concurrent_txn_conflict = staticmethod(
    _go_on(MetafileRevisionInfo.check_for_concurrent_txn_conflict)
)


class Peer:
    """A catalog of deltacat."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._inner = {"inner": CatalogProperties(root=root)}
        impl.create_namespace(NAMESPACE, **self._inner)
        _, _, stream = impl.create_table_version(NAMESPACE, TABLE, **self._inner)
        staged = impl.stage_partition(stream, **self._inner)
        self._partition = impl.commit_partition(staged, **self._inner)
        self._made = 0

    def time(self, operation: str, times: int) -> dict[str, object]:
        """Time calls of an operation."""
        seconds, found = [], 0
        for _ in range(times):
            started = time.perf_counter()
            found = getattr(self, operation)()
            seconds.append(time.perf_counter() - started)
        return {"seconds": seconds, "found": found}

    def count(self, operation: str) -> dict[str, int]:
        """Count what one call of an operation asks of the file system."""
        counting = Counting()
        before, self._inner = (
            self._inner,
            {"inner": CatalogProperties(root=self._root, filesystem=PyFileSystem(counting))},
        )
        counting.counts.clear()
        getattr(self, operation)()
        self._inner = before
        return dict(counting.counts)

    def _next(self) -> int:
        self._made += 1
        return self._made

    def create_table(self) -> int:
        impl.create_table_version(NAMESPACE, f"t{self._next():04d}", **self._inner)
        return 1

    def update_table(self) -> int:
        properties = {"count": str(self._next())}
        impl.update_table(NAMESPACE, TABLE, properties=properties, **self._inner)
        return 1

    def get_table(self) -> int:
        found = impl.get_table(NAMESPACE, TABLE, **self._inner)
        return int(found.table_name == TABLE)

    def append_delta(self) -> int:
        meta = ManifestMeta.of(
            10, 1000, "application/parquet", "identity", entry_type=EntryType.DATA
        )
        entry = ManifestEntry.of(url=f"data/{self._next()}.parquet", meta=meta)
        manifest = Manifest.of(entries=ManifestEntryList.of([entry]))
        delta = Delta.of(
            locator=DeltaLocator.of(self._partition.locator, None),
            delta_type=DeltaType.APPEND,
            meta=meta,
            properties=None,
            manifest=manifest,
            previous_stream_position=None,
        )
        impl.commit_delta(delta, **self._inner)
        return 1

    def list_tables(self) -> int:
        return len(impl.list_tables(NAMESPACE, **self._inner).all_items())

    def list_deltas(self) -> int:
        found = impl.list_deltas(NAMESPACE, TABLE, table_version="1", **self._inner)
        return len(found.all_items())


class Counting(FileSystemHandler):
    """Counts what is asked of the local file system."""

    def __init__(self) -> None:
        self._disk = LocalFileSystem()
        self.counts: Counter[str] = Counter()

    def get_type_name(self) -> str:
        return "local"

    def normalize_path(self, path):  # noqa: ANN001, ANN201
        return self._disk.normalize_path(path)

    def get_file_info(self, paths):  # noqa: ANN001, ANN201
        self.counts["head"] += len(paths)
        return self._disk.get_file_info(paths)

    def get_file_info_selector(self, selector):  # noqa: ANN001, ANN201
        self.counts["list"] += 1
        return self._disk.get_file_info(selector)

    def create_dir(self, path, recursive) -> None:  # noqa: ANN001
        self._disk.create_dir(path, recursive=recursive)

    def delete_dir(self, path) -> None:  # noqa: ANN001
        self.counts["delete"] += 1
        self._disk.delete_dir(path)

    def delete_dir_contents(self, path, missing_dir_ok=False) -> None:  # noqa: ANN001, FBT002
        self.counts["delete"] += 1
        self._disk.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path) -> None:  # noqa: ANN001
        self.counts["delete"] += 1
        self._disk.delete_file(path)

    def move(self, src, dest) -> None:  # noqa: ANN001
        self.counts["move"] += 1
        self._disk.move(src, dest)

    def copy_file(self, src, dest) -> None:  # noqa: ANN001
        self.counts["copy"] += 1
        self._disk.copy_file(src, dest)

    def open_input_stream(self, path):  # noqa: ANN001, ANN201
        self.counts["get"] += 1
        return self._disk.open_input_stream(path)

    def open_input_file(self, path):  # noqa: ANN001, ANN201
        self.counts["get"] += 1
        return self._disk.open_input_file(path)

    def open_output_stream(self, path, metadata):  # noqa: ANN001, ANN201
        self.counts["put"] += 1
        return self._disk.open_output_stream(path, metadata=metadata)

    def open_append_stream(self, path, metadata):  # noqa: ANN001, ANN201
        self.counts["put"] += 1
        return self._disk.open_append_stream(path, metadata=metadata)


def main(root: str) -> None:
    """Answer commands until there are no more."""
    peer = Peer(root)
    _tell({"version": version("deltacat")})
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        _tell(getattr(peer, verb)(*arguments))


def _tell(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
