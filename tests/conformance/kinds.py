"""Which kinds of catalogs a test runs on."""

from __future__ import annotations

import pytest

from tests.lakes import KINDS, MANIFEST_MOTO, Kind

__all__ = ["every_kind", "params", "without_a_manifest"]


def params(*kinds: Kind) -> list[object]:
    """Return kinds as parameters of a fixture."""
    return [pytest.param(kind, id=kind.name, marks=_marks(kind)) for kind in kinds]


def _marks(kind: Kind) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.s3] if kind.server else []
    return [*marks, pytest.mark.interop] if _is_slow(kind) else marks


def _is_slow(kind: Kind) -> bool:
    """Whether a kind is left to `make interop`; a metastore writes many small objects."""
    return kind.server == "seaweedfs" or (kind.metastore and kind.server is not None)


def _on(*kinds: Kind) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("lake", params(*kinds), indirect=True)


# What holds with and without directories of names holds on S3 if it does for one of them.
every_kind = _on(*(kind for kind in KINDS if kind is not MANIFEST_MOTO))
without_a_manifest = _on(*(kind for kind in KINDS if not kind.manifest))
