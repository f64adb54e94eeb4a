"""A source as a run of an ingestion sees it: what it holds, and the parts it is divided into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.ingest.reading import open_lance
from mooring.ingest.sources import Kind, SourceFile, TextOptions, find_sources, parse_kind
from mooring.ingest.splits import Survey, divide, survey
from mooring.ingest.types import json_schema
from mooring.jobs.address import CatalogAddress, TableAddress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.catalog import Catalog
    from mooring.ingest.task import Readable
    from mooring.jobs.runner import Runner

__all__ = ["FileSource", "Piece", "Plan", "Source"]


@dataclass(frozen=True)
class Piece:
    """A piece of a source that has a schema of its own.

    Attributes:
        label: What people know it as.
        schema: What is read of it.
        natural: The types that a new table gets for it.
        is_typed: Whether the types are the source's own, not a guess from text.
        is_json: Whether the table's types decide how it is read.
    """

    label: str
    schema: pa.Schema
    natural: pa.Schema
    is_typed: bool = True
    is_json: bool = False

    def read_for(self, target: pa.Schema) -> pa.Schema:
        """Return what is read of it for a table."""
        return json_schema(self.schema, target) if self.is_json else self.schema


@dataclass(frozen=True)
class Plan:
    """A source that was looked at.

    Attributes:
        pieces: Its pieces.
        parts: What workers read.
        runner: Who does the parts.
        size_bytes: How many bytes are read, where that is known.
        can_repeat: Whether reading a part again gives the same rows in the same order.
    """

    pieces: Sequence[Piece]
    parts: Sequence[Readable]
    runner: Runner
    size_bytes: int
    can_repeat: bool = True

    def natural(self) -> pa.Schema:
        """Return the schema of a new table for all of it.

        Raises:
            InvalidInputError: the pieces have no common schema, or there are no columns.
        """
        schemas = [piece.natural for piece in self.pieces]
        try:
            found = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowException as exc:
            msg = f"the sources have no common schema: {exc}"
            raise InvalidInputError(msg) from exc
        if not len(found):
            msg = f"{self.pieces[0].label} has no columns: there is no table to make of it"
            raise InvalidInputError(msg)
        return found


class Source(Protocol):
    """Where rows come from."""

    @property
    def options(self) -> TextOptions:
        """How CSV is written."""
        ...

    @property
    def files(self) -> int:
        """How many files there are."""
        ...

    def plan(self, runner: Runner, columns: Sequence[str]) -> Plan:
        """Look at it.

        Args:
            runner: Who does the parts.
            columns: The table's columns, for a source that does not name its own.
        """
        ...


class FileSource:
    """Files, and tables of Lance."""

    def __init__(self, found: Sequence[SourceFile], options: TextOptions | None = None) -> None:
        """Read files that were found."""
        self._found = list(found)
        self.options = options or TextOptions()

    @classmethod
    def find(
        cls,
        sources: str | Sequence[str],
        *,
        kind: str | None = None,
        options: TextOptions | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> FileSource:
        """Find files by paths, directories, patterns and URIs.

        Args:
            sources: One or several.
            kind: Their format; told by their suffixes unless given.
            options: How CSV is written.
            storage_options: Those of the service they lie in.

        Raises:
            NotFoundError: there is no such file, or none in a directory.
            InvalidInputError: no suffix tells the format.
        """
        named = [sources] if isinstance(sources, str) else list(sources)
        return cls(find_sources(named, parse_kind(kind), storage_options or {}), options)

    @classmethod
    def of_table(cls, catalog: Catalog, name: str) -> FileSource:
        """Read a table of a catalog.

        Raises:
            TableNotFoundError: no live table has this name.
        """
        table = catalog.table(name)
        address = TableAddress(CatalogAddress.of(catalog), tuple(table.info.id.names))
        return cls([SourceFile(str(table.info.id), Kind.LANCE, "", table.location, table=address)])

    @property
    def files(self) -> int:
        """How many files there are; a table of Lance is one."""
        return len(self._found)

    @property
    def size_bytes(self) -> int:
        """How many bytes they take."""
        return sum(
            _lance_bytes(file) if file.kind is Kind.LANCE else file.size_bytes
            for file in self._found
        )

    def plan(self, runner: Runner, columns: Sequence[str]) -> Plan:
        """Look at the files.

        Raises:
            InvalidInputError: one of them cannot be read.
        """
        found = survey(self._found, self.options, columns)
        return Plan(
            [_piece(one) for one in found],
            divide(found, runner.workers),
            runner,
            sum(one.size_bytes for one in found),
        )


def _piece(one: Survey) -> Piece:
    is_typed = one.file.kind not in {Kind.CSV, Kind.JSON}
    is_json = one.file.kind is Kind.JSON
    return Piece(quote(one.file.uri), one.schema, one.natural, is_typed, is_json)


def _lance_bytes(file: SourceFile) -> int:
    fragments = open_lance(file).get_fragments()
    files = [one for fragment in fragments for one in fragment.metadata.files]
    return sum(one.file_size_bytes or 0 for one in files)
