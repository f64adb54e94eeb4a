"""What is ingested: files found by path, directory or pattern, and tables of Lance."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from mooring.errors import InvalidInputError, NotFoundError
from mooring.identifiers import quote
from mooring.ingest.filesystems import locate, open_filesystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mooring.jobs.address import TableAddress

__all__ = ["Kind", "SourceFile", "TextOptions", "find_sources", "parse_kind"]


class Kind(StrEnum):
    """The format of a source."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ORC = "orc"
    LANCE = "lance"


_SUFFIXES = {
    "parquet": Kind.PARQUET,
    "pq": Kind.PARQUET,
    "csv": Kind.CSV,
    "tsv": Kind.CSV,
    "json": Kind.JSON,
    "jsonl": Kind.JSON,
    "ndjson": Kind.JSON,
    "orc": Kind.ORC,
    "lance": Kind.LANCE,
}
_PACKED = {"gz", "bz2", "zst", "lz4"}
_HIDDEN = ("_", ".")
_WILD = re.compile(r"[*?\[]")
_PARTITION = re.compile(r"([^=/]+)=([^=/]*)")
# How Hive writes the directory of a column that is null.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class TextOptions:
    """How CSV is written.

    Attributes:
        delimiter: What stands between values; a comma, or a tab in `.tsv` files, unless given.
        has_header: Whether the first line names the columns.
        null_values: Texts that mean null where they are not in quotes.
    """

    delimiter: str | None = None
    has_header: bool = True
    null_values: tuple[str, ...] = ("",)

    def __post_init__(self) -> None:
        """Refuse what cannot stand between values."""
        if self.delimiter is not None and len(self.delimiter.encode()) != 1:
            msg = f"a delimiter is one character of ASCII, not {quote(self.delimiter)}"
            raise InvalidInputError(msg)


@dataclass(frozen=True)
class SourceFile:
    """A file, or a table of Lance, to read.

    Attributes:
        uri: What people know it as.
        kind: Its format.
        scheme: Of the service it lies in; empty for the disk.
        path: Its path, as Arrow takes it, or its location, as Lance does.
        size_bytes: How large it is; of a table of Lance it is not known yet.
        constants: Columns that its directories tell, as in `year=2024/`: name and text.
        table: A table of a catalog.
        version: Which version of a table of Lance; the newest unless given.
        options: Storage options.
    """

    uri: str
    kind: Kind
    scheme: str
    path: str
    size_bytes: int = 0
    constants: tuple[tuple[str, str | None], ...] = ()
    table: TableAddress | None = None
    version: int | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # it holds secrets

    @property
    def filesystem(self) -> pafs.FileSystem:
        """Arrow's file system for it."""
        return open_filesystem(self.scheme, self.options)


def parse_kind(text: str | None) -> Kind | None:
    """Read the name of a format.

    Raises:
        InvalidInputError: there is no such format.
    """
    if text is None:
        return None
    if text.lower() not in _SUFFIXES:
        msg = f"{quote(text)} is no format that can be read: use one of {', '.join(Kind)}"
        raise InvalidInputError(msg)
    return _SUFFIXES[text.lower()]


def find_sources(
    sources: Sequence[str], kind: Kind | None, options: Mapping[str, str]
) -> list[SourceFile]:
    """Find the files that paths, directories and patterns name, in order.

    What begins with a dot or an underscore in a directory is left out.

    Args:
        sources: Paths or URIs.
        kind: Their format; told by their suffixes unless given.
        options: Storage options of the service they lie in.

    Raises:
        NotFoundError: there is no such file, or none in a directory.
        InvalidInputError: no suffix tells the format.
    """
    found = [file for uri in sources for file in _find(uri, kind, options)]
    if not found:
        msg = "name at least one source: a file, a directory, a pattern or a URI"
        raise InvalidInputError(msg)
    return found


def _find(uri: str, kind: Kind | None, options: Mapping[str, str]) -> list[SourceFile]:
    scheme, path = locate(uri)
    files = open_filesystem(scheme, options if scheme else {})
    seeker = _Seeker(uri, kind, scheme, options if scheme else {}, files)
    try:
        found = sorted(seeker.find(path), key=lambda file: file.path)
    except (OSError, pa.ArrowException) as exc:
        msg = f"the source {quote(uri)} cannot be looked at: {exc}"
        raise NotFoundError(msg) from exc
    if not found:
        msg = f"there is nothing to read in {quote(uri)}: no file is in it, or matches"
        raise NotFoundError(msg)
    return found


@dataclass(frozen=True)
class _Seeker:
    """Looks for the files of one source."""

    uri: str
    kind: Kind | None
    scheme: str
    options: Mapping[str, str]
    files: pafs.FileSystem

    def find(self, path: str) -> Iterable[SourceFile]:
        info = self.files.get_file_info(path)
        if info.type == pafs.FileType.File:
            return [self._file(info, path)]
        if info.type == pafs.FileType.Directory:
            return [self._lance(path)] if self._is_lance(path) else self._below(path)
        if _WILD.search(path):
            return self._matching(path)
        msg = f"there is no source {quote(self.uri)}"
        raise NotFoundError(msg)

    def _is_lance(self, path: str) -> bool:
        if self.kind is not None:
            return self.kind is Kind.LANCE
        versions = self.files.get_file_info(f"{path}/_versions")
        return bool(versions.type == pafs.FileType.Directory)

    def _lance(self, path: str) -> SourceFile:
        location = f"{self.scheme}://{path}" if self.scheme else path
        return SourceFile(self.uri, Kind.LANCE, self.scheme, location, options=self.options)

    def _below(self, top: str) -> Iterator[SourceFile]:
        for info in self.files.get_file_info(pafs.FileSelector(top, recursive=True)):
            if info.type == pafs.FileType.File and not _is_hidden(info.path, top):
                yield self._file(info, top)

    def _matching(self, pattern: str) -> Iterator[SourceFile]:
        top = pattern[: _WILD.search(pattern).start()].rpartition("/")[0]  # type: ignore[union-attr]  # it is wild
        whole = re.compile(_translate(pattern))
        selector = pafs.FileSelector(top or "/", allow_not_found=True, recursive=True)
        for info in self.files.get_file_info(selector):
            if not whole.fullmatch(info.path) or _is_hidden(info.path, top):
                continue
            if info.type == pafs.FileType.Directory:
                yield from [self._lance(info.path)] if self._is_lance(info.path) else ()
            else:
                yield self._file(info, top)

    def _file(self, info: pafs.FileInfo, top: str) -> SourceFile:
        uri = f"{self.scheme}://{info.path}" if self.scheme else info.path
        return SourceFile(
            uri,
            self.kind or _kind_of(uri),
            self.scheme,
            info.path,
            info.size,
            _constants(info.path.removeprefix(top).rpartition("/")[0]),
            options=self.options,
        )


def _is_hidden(path: str, top: str) -> bool:
    below = path.removeprefix(top).strip("/").split("/")
    return any(part.startswith(_HIDDEN) for part in below if "=" not in part)


def _kind_of(uri: str) -> Kind:
    words = uri.rpartition("/")[2].lower().split(".")[1:]
    suffix = words[-2] if len(words) > 1 and words[-1] in _PACKED else words[-1] if words else ""
    if suffix not in _SUFFIXES:
        msg = (
            f"the suffix of {quote(uri)} tells no format: say one of {', '.join(Kind)} with"
            " --format"
        )
        raise InvalidInputError(msg)
    return _SUFFIXES[suffix]


def _constants(directories: str) -> tuple[tuple[str, str | None], ...]:
    pairs = [_PARTITION.fullmatch(part) for part in directories.split("/")]
    return tuple(
        (unquote(pair[1]), None if pair[2] == _NO_VALUE else unquote(pair[2]))
        for pair in pairs
        if pair
    )


def _translate(pattern: str) -> str:
    """Make a pattern a regular expression; only `**` goes through several directories."""
    text = re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".*")
    text = text.replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return re.sub(r"\\\[(.*?)\\\]", r"[\1]", text)
