"""What a version's manifest tells about its rows and files, without reading any of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance import LanceDataset
    from lance.fragment import FragmentMetadata

__all__ = ["Piece", "Shape", "shape_of"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A fragment: how many rows it was written with, how many are deleted, its files."""

    rows: int
    deleted: int
    files: Mapping[str, int]

    @property
    def live(self) -> int:
        """How many rows there are to read."""
        return self.rows - self.deleted


@dataclass(frozen=True)
class Shape:
    """The fragments of a version, by their numbers."""

    version: int
    pieces: Mapping[int, Piece]

    @cached_property
    def files(self) -> Mapping[str, int]:
        """The data files with their sizes in bytes."""
        return {path: size for piece in self.pieces.values() for path, size in piece.files.items()}

    @property
    def rows(self) -> int:
        """How many rows there are to read."""
        return sum(piece.live for piece in self.pieces.values())

    @property
    def deleted(self) -> int:
        """How many rows are deleted but still in files."""
        return sum(piece.deleted for piece in self.pieces.values())

    @property
    def size_bytes(self) -> int:
        """The size of the data files, as far as it was noted."""
        return sum(self.files.values())


def shape_of(dataset: LanceDataset) -> Shape:
    """Describe an opened version."""
    found = [fragment.metadata for fragment in dataset.get_fragments()]
    return Shape(dataset.version, {fragment.id: _piece(fragment) for fragment in found})


def _piece(fragment: FragmentMetadata) -> Piece:
    files = {file.path: file.file_size_bytes or 0 for file in fragment.files}
    return Piece(fragment.physical_rows, fragment.num_deletions, files)
