"""Which kinds of catalogs a test runs on."""

from __future__ import annotations

import pytest

from tests.lakes import KINDS, MANIFEST_MOTO, Kind

__all__ = ["every_kind", "params", "without_a_manifest"]


def params(*kinds: Kind, fast: bool = False) -> list[object]:
    """Return kinds as parameters of a fixture; those in buckets are left to `make interop`.

    Args:
        kinds: The kinds.
        fast: Whether moto belongs to the fast tests, for what only S3 can show.
    """
    return [pytest.param(kind, id=kind.name, marks=_marks(kind, fast=fast)) for kind in kinds]


def _marks(kind: Kind, *, fast: bool) -> list[pytest.MarkDecorator]:
    if kind.server is None:
        return []
    is_fast = fast and kind.server == "moto" and not kind.metastore
    return [pytest.mark.s3] if is_fast else [pytest.mark.s3, pytest.mark.interop]


def _on(*kinds: Kind) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("lake", params(*kinds), indirect=True)


# What holds with and without directories of names holds on S3 if it does for one of them.
every_kind = _on(*(kind for kind in KINDS if kind is not MANIFEST_MOTO))
without_a_manifest = _on(*(kind for kind in KINDS if not kind.manifest))
