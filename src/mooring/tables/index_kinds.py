"""Kinds of indexes, and which parameters each of them takes.

Spec: lance-rest-openapi, CreateTableIndex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PARAMETERS", "IndexKind", "IndexParameters"]

_SCALAR = (
    "BTREE",
    "BITMAP",
    "LABEL_LIST",
    "NGRAM",
    "ZONEMAP",
    "BLOOMFILTER",
    "RTREE",
    "INVERTED",
)
_VECTOR = (
    "IVF_FLAT",
    "IVF_PQ",
    "IVF_SQ",
    "IVF_RQ",
    "IVF_HNSW_FLAT",
    "IVF_HNSW_PQ",
    "IVF_HNSW_SQ",
)
_OTHER_NAMES = {"FTS": "INVERTED", "SCALAR": "BTREE", "VECTOR": "IVF_PQ"}
_DISTANCES = ("l2", "cosine", "dot", "hamming")
_SUB_VECTORS = 16
_SQ_BITS = 8
_LARGEST = 2**31 - 1


class IndexParameters(TypedDict, total=False):
    """What can be told about an index to build; what is not, Lance decides."""

    distance_type: str | None
    num_partitions: int | None
    target_partition_size: int | None
    sample_rate: int | None
    max_iterations: int | None
    num_sub_vectors: int | None
    num_bits: int | None
    m: int | None
    ef_construction: int | None
    with_position: bool | None
    base_tokenizer: str | None
    language: str | None
    max_token_length: int | None
    lower_case: bool | None
    stem: bool | None
    remove_stop_words: bool | None
    ascii_folding: bool | None


_IVF = ("distance_type", "num_partitions", "target_partition_size", "sample_rate", "max_iterations")
_TEXT = (
    "with_position",
    "base_tokenizer",
    "language",
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "ascii_folding",
)
PARAMETERS = (*_IVF, "num_sub_vectors", "num_bits", "m", "ef_construction", *_TEXT)


class IndexKind:
    """One kind of index."""

    def __init__(self, name: str) -> None:
        """Take a kind by the name that Lance builds it by."""
        self.name = name

    @classmethod
    def parse(cls, text: str) -> IndexKind:
        """Read a kind in any case, with or without its underscores.

        Raises:
            InvalidInputError: there is no such kind.
        """
        folded = _fold(text)
        for name in (*_SCALAR, *_VECTOR, *_OTHER_NAMES):
            if _fold(name) == folded:
                return cls(_OTHER_NAMES.get(name, name))
        known = ", ".join((*_SCALAR, "FTS", *_VECTOR))
        msg = f"'{text}' is not a type of index: use one of {known}"
        raise InvalidInputError(msg)

    @property
    def is_vector(self) -> bool:
        """Whether it finds the nearest vectors."""
        return self.name in _VECTOR

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that mean something to it."""
        if self.name == "INVERTED":
            return _TEXT
        if not self.is_vector:
            return ()
        return (
            *_IVF,
            *(("num_sub_vectors",) if self._has_sub_vectors else ()),
            *(() if self.name.endswith("FLAT") else ("num_bits",)),
            *(("m", "ef_construction") if "HNSW" in self.name else ()),
        )

    def read(self, given: Mapping[str, Any], column: pa.DataType) -> dict[str, Any]:
        """Turn parameters into those of Lance.

        Args:
            given: By their names in the specification; None is not given.
            column: The type of the column to index.

        Raises:
            InvalidInputError: one means nothing to this kind, or its value makes no sense.
        """
        wanted = {name: value for name, value in given.items() if value is not None}
        for name, value in wanted.items():
            self._require(name)
            _check_number(name, value)
        if self.name == "INVERTED":
            return {**wanted, **_language(wanted)}
        return self._read_vector(wanted, column) if self.is_vector else wanted

    @property
    def _has_sub_vectors(self) -> bool:
        return self.name.endswith("PQ")

    def _require(self, name: str) -> None:
        if name in self.parameters:
            return
        if name not in PARAMETERS:
            msg = f"'{name}' is not a parameter of an index: these are {', '.join(PARAMETERS)}"
            raise InvalidInputError(msg)
        takes = ", ".join(self.parameters) or "no parameters"
        msg = f"an index of type {self.name} has no '{name}': it takes {takes}"
        raise InvalidInputError(msg)

    def _read_vector(self, wanted: dict[str, Any], column: pa.DataType) -> dict[str, Any]:
        if "num_partitions" in wanted and "target_partition_size" in wanted:
            msg = "num_partitions and target_partition_size say the same: give one of them"
            raise InvalidInputError(msg)
        if self.name.endswith("SQ") and wanted.get("num_bits", _SQ_BITS) != _SQ_BITS:
            msg = f"an index of type {self.name} has {_SQ_BITS} bits, not {wanted['num_bits']}"
            raise InvalidInputError(msg)
        read = {
            "metric": _distance(wanted.pop("distance_type", _DISTANCES[0])),
            "max_iters": wanted.pop("max_iterations", None),
            **wanted,
        }
        if self._has_sub_vectors:
            read.setdefault("num_sub_vectors", _sub_vectors(column))
        return {name: value for name, value in read.items() if value is not None}


def _check_number(name: str, value: object) -> None:
    least = int(name != "max_token_length")
    if type(value) is int and not least <= value <= _LARGEST:
        msg = f"{name} is {value}: it must be from {least} to {_LARGEST}"
        raise InvalidInputError(msg)


def _fold(text: str) -> str:
    return text.strip().replace("_", "").upper()


def _distance(text: str) -> str:
    chosen = text.lower()
    if chosen not in {*_DISTANCES, "euclidean"}:
        msg = f"'{text}' is not a distance: use one of {', '.join(_DISTANCES)}"
        raise InvalidInputError(msg)
    return chosen


def _language(wanted: Mapping[str, Any]) -> dict[str, str]:
    # Lance knows languages by their capitalised names only.
    return {"language": wanted["language"].capitalize()} if "language" in wanted else {}


def _sub_vectors(column: pa.DataType) -> int:
    """Choose a number of sub-vectors: it divides the dimension, and is 16 where that does."""
    if pa.types.is_list(column):
        column = column.value_type
    dimension = column.list_size if pa.types.is_fixed_size_list(column) else _SUB_VECTORS
    return max(n for n in range(1, _SUB_VECTORS + 1) if dimension % n == 0)
