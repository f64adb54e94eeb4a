"""POSIX files, made durable before anything is acknowledged.

A put writes a temporary file, syncs it, links or renames it to its name and syncs the directory,
so a crash leaves either the whole object under its name or nothing there. Creation uses a hard
link, which refuses an existing name atomically on every POSIX file system.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING

from mooring.errors import (
    InvalidInputError,
    PermissionDeniedError,
    ServiceUnavailableError,
    StoreUnsafeError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.store.api import Capabilities, Listing, ObjectMeta, ObjectTag, StoredObject
from mooring.store.passing import TEMPORARY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["LocalStore"]

_ATTEMPTS = 5
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EXDEV}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_ABSENT = (FileNotFoundError, NotADirectoryError)


class LocalStore:
    """A directory of the file system as a store."""

    def __init__(self, root: str | os.PathLike[str], *, durable: bool = True) -> None:
        """Open a directory, which need not exist yet.

        Args:
            root: The directory; ``~`` is the home directory.
            durable: Sync to disk before a put returns. Turning it off is for tests.
        """
        try:
            self._root = str(Path(root).expanduser().absolute())
        except RuntimeError as exc:
            msg = f"'{root}' is not a path: {exc}"
            raise InvalidInputError(msg) from exc
        self._durable = durable
        self._synced: set[str] = set()
        self._capabilities: Capabilities | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What this directory can do; whether case matters is looked at once."""
        if self._capabilities is None:
            self._capabilities = Capabilities(
                compare_and_swap=False, case_sensitive=_tells_case_apart(self._root)
            )
        return self._capabilities

    @property
    def options(self) -> Mapping[str, str]:
        """Lance needs no options for a path."""
        return {}

    def location(self, path: str) -> str:
        """Return the absolute path."""
        return self._resolve(path) if path else self._root

    def get(self, path: str) -> bytes | None:
        """Return the file's content."""
        with _translated(path):
            try:
                with open(self._resolve(path), "rb") as file:  # noqa: PTH123  # half the cost
                    return file.read()
            except (*_ABSENT, IsADirectoryError):
                return None

    def read(self, path: str) -> StoredObject | None:
        """Return content, size, time and tag of a file, of one moment."""
        with _translated(path):
            try:
                with open(self._resolve(path), "rb") as file:  # noqa: PTH123  # half the cost
                    # In this order what somebody writes in place meanwhile looks older, not newer.
                    meta = _meta(path, os.fstat(file.fileno()))
                    return StoredObject(file.read(), meta)
            except (*_ABSENT, IsADirectoryError):
                return None

    def head(self, path: str) -> ObjectMeta | None:
        """Return size, time and tag of a file."""
        with _translated(path):
            try:
                stat = os.stat(self._resolve(path))  # noqa: PTH116  # half the cost
            except _ABSENT:
                return None
            return None if _is_directory(stat) else _meta(path, stat)

    def existing(self, paths: Sequence[str]) -> set[str]:
        """Look for each file: a microsecond or two apiece."""
        with _translated(""):
            try:
                root = os.open(self._root, os.O_RDONLY)
            except _ABSENT:
                return set()
            # Not os.path.exists: for an absent file it raises and catches an error inside.
            try:
                return {path for path in paths if os.access(path, os.F_OK, dir_fd=root)}
            finally:
                os.close(root)

    def list_dir(self, path: str) -> Listing:
        """Scan one directory, without a call per entry; a link counts as a file.

        Raises:
            UnsupportedError: the directory is itself a link.
        """
        directories: list[str] = []
        files: list[str] = []
        top = self._resolve_inside(path) if path else self._root
        with _translated(path):
            try:
                with os.scandir(top) as entries:
                    for entry in entries:
                        is_dir = entry.is_dir(follow_symlinks=False)
                        (directories if is_dir else files).append(entry.name)
            except _ABSENT:
                return Listing(directories, files, exists=False)
        return Listing(directories, files, exists=True)

    def list_prefix(self, path: str) -> list[ObjectMeta]:
        """Walk a directory without following links out of it.

        Raises:
            UnsupportedError: the directory is itself a link.
        """
        top = self._resolve_inside(path) if path else self._root
        with _translated(path):
            return list(_walk(top, path))

    def iter_dir(self, path: str, *, after: str = "") -> Iterator[ObjectMeta]:
        """Scan a directory once, and look at its files one by one as they are wanted."""
        top = self._resolve_inside(path)
        for name in sorted(name for name in self.list_dir(path).files if name > after):
            with _translated(path), suppress(*_ABSENT):
                yield _meta(f"{path}/{name}", os.lstat(os.path.join(top, name)))  # noqa: PTH118

    def prune(self, path: str) -> None:
        """Remove a directory, and those below it, as far as they are empty."""
        for directory, _, _ in os.walk(self._resolve(path), topdown=False):
            with suppress(OSError):
                os.rmdir(directory)  # noqa: PTH106

    def sync(self, paths: Iterable[str]) -> None:
        """Sync files that were written without it, and the names that lead to them."""
        directories = set()
        for path in paths:
            with _translated(path), suppress(*_ABSENT):
                self._sync(self._resolve(path))
            parents = path.split("/")[:-1]
            directories |= {"/".join(parents[:depth]) for depth in range(len(parents) + 1)}
        for directory in directories:
            with _translated(directory):
                self._sync(self._resolve(directory) if directory else self._root)

    def put_new(self, path: str, body: bytes) -> bool:
        """Create a file by linking a complete one to its name."""
        return self._place(path, body, os.link)

    def put_if(self, path: str, body: bytes, tag: ObjectTag) -> bool:
        """Refuse: POSIX cannot compare and swap a file.

        Raises:
            UnsupportedError: always.
        """
        del body, tag
        msg = f"cannot replace '{path}' conditionally: files have no compare-and-swap"
        raise UnsupportedError(msg)

    def put(self, path: str, body: bytes, *, derived: bool = False) -> None:
        """Replace a file by renaming a complete one over it; a derived one is not synced."""
        self._place(path, body, os.replace, durable=not derived)

    def copy(self, source: str, target: str) -> bool:
        """Link a file, which is never changed in place, to another name as well."""
        resolved, place = self._resolve(source), self._resolve(target)
        try:
            with _translated(target), suppress(FileExistsError):
                self._move(os.link, resolved, place)
        except ServiceUnavailableError:
            if os.path.exists(resolved):  # noqa: PTH110
                raise
            return False
        # Lance does not sync what it writes.
        self.sync([source])
        self._make_durable(target, place)
        return True

    def delete(self, paths: Iterable[str]) -> None:
        """Unlink files."""
        for path in paths:
            with _translated(path), suppress(*_ABSENT):
                os.unlink(self._resolve(path))  # noqa: PTH108

    def delete_prefix(self, path: str) -> int:
        """Unlink every file below a directory, then the directories that are empty."""
        self._resolve(path)  # never the root itself
        objects = self.list_prefix(path)
        self.delete(found.path for found in objects)
        self.prune(path)
        return len(objects)

    def _resolve(self, path: str) -> str:
        segments = path.split("/")
        if any(segment in {"", ".", ".."} or "\0" in segment for segment in segments):
            msg = f"{path!a} is not a path below the catalog's root"
            raise InvalidInputError(msg)
        return os.path.join(self._root, *segments)  # noqa: PTH118

    def _resolve_inside(self, path: str) -> str:
        """Resolve a directory, which must not lead out of the catalog."""
        resolved = self._resolve(path)
        if os.path.islink(resolved):  # noqa: PTH114
            msg = f"'{path}' is a symbolic link: what lies behind it is outside the catalog"
            raise UnsupportedError(msg)
        return resolved

    def _place(self, path: str, body: bytes, move: _Move, *, durable: bool = True) -> bool:
        target = self._resolve(path)
        # In the root, where neither a purge of a table nor a pruning finds it.
        temporary = f"{self._root}/{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        with _translated(path):
            self._make_directory(self._root)
            try:
                self._write(temporary, body, durable=durable)
                self._move(move, temporary, target)
            except FileExistsError:
                return False
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)  # noqa: PTH108
        if durable:
            self._make_durable(path, target)
        return True

    def _make_durable(self, path: str, target: str) -> None:
        """Sync the name of a file that is in its place: a failure leaves it there, unsure."""
        try:
            with _translated(path):
                self._sync(os.path.dirname(target))  # noqa: PTH120
            self._sync_parents_once(path)
        except ServiceUnavailableError as exc:
            msg = f"'{path}' was written, but may not outlast a power cut: {exc}"
            raise UnknownOutcomeError(msg) from exc

    def _sync_parents_once(self, path: str) -> None:
        """Sync the names of directories that somebody else made and may not have synced."""
        directory = path.rpartition("/")[0]
        if directory and self._resolve(directory) not in self._synced:
            self.sync([directory])
            self._synced.add(self._resolve(directory))

    def _write(self, path: str, body: bytes, *, durable: bool) -> None:
        with open(path, "xb") as file:  # noqa: PTH123
            file.write(body)
            file.flush()
            if durable and self._durable:
                os.fsync(file.fileno())

    def _move(self, move: _Move, temporary: str, target: str) -> None:
        directory = os.path.dirname(target)  # noqa: PTH120
        for attempt in range(_ATTEMPTS):
            self._make_directory(directory)
            try:
                return move(temporary, target)
            except FileNotFoundError:
                # Somebody pruned the empty directory in between.
                if attempt + 1 == _ATTEMPTS:
                    raise
            except OSError as exc:
                if move is not os.link or exc.errno not in _NO_LINKS:
                    raise
                msg = (
                    f"the file system of '{directory}' has no hard links, so a file cannot be"
                    f" created exactly once ({exc.strerror}): keep the catalog on another disk"
                )
                raise StoreUnsafeError(msg) from exc
        return None

    def _make_directory(self, directory: str) -> None:
        """Create missing directories and sync the names of those that are new."""
        missing = []
        while not os.path.isdir(directory):  # noqa: PTH112
            missing.append(directory)
            directory = os.path.dirname(directory)  # noqa: PTH120
        for new in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(new)  # noqa: PTH102
                self._synced.add(new)
            self._sync(os.path.dirname(new))  # noqa: PTH120

    def _sync(self, resolved: str) -> None:
        """Sync a file or directory; one that is gone needs no keeping."""
        if not self._durable:
            return
        try:
            descriptor = os.open(resolved, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


if TYPE_CHECKING:
    from collections.abc import Callable

    _Move = Callable[[str, str], None]


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Turn the operating system's refusals into errors of ours."""
    try:
        yield
    except OSError as exc:
        if exc.errno in _DENIED:
            msg = f"no permission for '{path}': {exc.strerror}"
            raise PermissionDeniedError(msg) from exc
        msg = f"the file system failed on '{path}': {exc.strerror}"
        raise ServiceUnavailableError(msg) from exc


def _is_directory(stat: os.stat_result) -> bool:
    return S_ISDIR(stat.st_mode)


def _meta(path: str, stat: os.stat_result) -> ObjectMeta:
    etag = f"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{stat.st_size:x}"
    return ObjectMeta(path, stat.st_size, stat.st_mtime_ns // 1_000_000, ObjectTag(etag=etag))


def _walk(directory: str, path: str) -> Iterator[ObjectMeta]:
    try:
        entries = list(os.scandir(directory))
    except _ABSENT:
        return
    for entry in entries:
        below = f"{path}/{entry.name}" if path else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, below)
            continue
        with suppress(*_ABSENT):
            yield _meta(below, entry.stat(follow_symlinks=False))


def _tells_case_apart(root: str) -> bool:
    """Look whether the disk under ``root`` keeps names that differ by case apart."""
    existing = root
    # The nearest directory that exists and whose name has letters to change the case of.
    while existing != "/":
        parent, name = os.path.split(existing)
        if name.swapcase() != name and os.path.isdir(existing):  # noqa: PTH112
            return not _are_same(existing, os.path.join(parent, name.swapcase()))  # noqa: PTH118
        existing = parent
    return True


def _are_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:
        return False
