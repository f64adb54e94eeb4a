"""Vectors as small pictures: a bar for each value, or for the extreme of several neighbours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["Bars", "Vector", "draw", "is_vector", "read_vector", "summarize"]

_MOST_BARS = 64
_LEAST_DIMS = 2
_BFLOAT16 = "lance.bfloat16"
_HEIGHT = 24.0
_BAR, _STEP = 1.6, 2.0
_HAIR = 0.4  # a value of nothing is still a value
_DIGITS = 3


class Vector(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a vector.

    Attributes:
        dims: How many numbers it has.
        norm: Its length; None where a number is none.
        least: The least of them.
        most: The greatest of them.
        levels: The extremes of neighbours, for the picture.
    """

    dims: int
    norm: float | None
    least: float | None
    most: float | None
    levels: list[float]

    @property
    def label(self) -> str:
        """The same in words, for whoever sees no picture."""
        if self.norm is None:
            return f"vector of {self.dims:,} numbers, some of them huge or not finite"
        return (
            f"vector of {self.dims:,} numbers from {self.least:.{_DIGITS}g} to"
            f" {self.most:.{_DIGITS}g}, norm {self.norm:.{_DIGITS}g}"
        )

    @property
    def brief(self) -> str:
        """What stands beside the picture."""
        norm = "" if self.norm is None else f" · norm {self.norm:.{_DIGITS}g}"
        return f"{self.dims:,}{norm}"

    @property
    def bars(self) -> Bars:
        """The picture."""
        return draw(self.levels)


class Bars(msgspec.Struct, frozen=True, kw_only=True):
    """A picture of numbers, as paths of SVG.

    Attributes:
        width: Of the picture.
        height: Of the picture.
        above: The bars of positive numbers.
        below: The bars of negative ones.
    """

    width: float
    height: float
    above: str
    below: str


def is_vector(kind: pa.DataType) -> bool:
    """Whether the values of a type are vectors: lists of one length, of numbers."""
    if not pa.types.is_fixed_size_list(kind) or kind.list_size < _LEAST_DIMS:
        return False
    item = kind.value_type
    return bool(
        pa.types.is_floating(item)
        or pa.types.is_uint8(item)
        or pa.types.is_int8(item)
        or getattr(item, "extension_name", "") == _BFLOAT16
    )


def read_vector(value: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401  # a scalar of a list
    """Return the numbers of a vector; a null among them is not a number."""
    values = value.values
    if isinstance(values.type, pa.BaseExtensionType):
        raw = np.frombuffer(b"".join(values.storage.to_pylist()), "<u2")
        return (raw.astype("<u4") << 16).view("<f4").astype(np.float64)
    return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)


def summarize(numbers: npt.NDArray[np.float64]) -> Vector:
    """Tell what is told of a vector."""
    finite = bool(np.isfinite(numbers).all())
    return Vector(
        dims=len(numbers),
        norm=_norm(numbers) if finite else None,
        least=float(numbers.min()) if finite else None,
        most=float(numbers.max()) if finite else None,
        levels=_levels(np.nan_to_num(numbers, posinf=0.0, neginf=0.0)),
    )


def draw(levels: Sequence[float]) -> Bars:
    """Draw numbers as bars on a common line, scaled to the largest of them."""
    least, most = min(0.0, *levels, 0.0), max(0.0, *levels, 0.0)
    span = most - least or 1.0
    line = most / span * _HEIGHT if most > least else _HEIGHT / 2
    above: list[str] = []
    below: list[str] = []
    for index, level in enumerate(levels):
        height = max(abs(level) / span * _HEIGHT, _HAIR)
        up = level >= 0
        top = max(line - height, 0.0) if up else min(line, _HEIGHT - height)
        path = f"M{index * _STEP:g} {top:.4g}h{_BAR:g}v{height:.4g}h-{_BAR:g}z"
        (above if up else below).append(path)
    return Bars(
        width=len(levels) * _STEP, height=_HEIGHT, above="".join(above), below="".join(below)
    )


def _levels(numbers: npt.NDArray[np.float64]) -> list[float]:
    """Take the extreme of neighbours: their mean would be near nothing for most embeddings."""
    parts = np.array_split(numbers, min(_MOST_BARS, len(numbers)))
    return [float(f"{part[np.abs(part).argmax()]:.4g}") for part in parts]


def _norm(numbers: npt.NDArray[np.float64]) -> float | None:
    """Return the length of a vector; None where no number is as large."""
    with np.errstate(all="ignore"):
        length = float(np.linalg.norm(numbers))
    return length if math.isfinite(length) else None
