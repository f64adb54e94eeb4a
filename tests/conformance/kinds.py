"""Which kinds of catalogs a test runs on."""

from __future__ import annotations

import pytest

from tests.lakes import COMPAT_MOTO, KINDS, MANIFEST_MOTO, Kind

__all__ = ["BY_DIRECTORY", "every_kind", "on_s3_too", "params", "without_a_manifest"]


def params(*kinds: Kind) -> list[object]:
    """Return kinds as parameters of a fixture."""
    return [pytest.param(kind, id=kind.name, marks=_marks(kind)) for kind in kinds]


def _marks(kind: Kind) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.s3] if kind.server else []
    return [*marks, pytest.mark.interop] if kind.server == "seaweedfs" else marks


def _on(*kinds: Kind) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("lake", params(*kinds), indirect=True)


# A manifest is the same table on every store: what holds without one on S3 and with one on disk
# is tried with one on S3 only where commits meet, or files move. `make interop` tries everything.
_MOSTLY = [kind for kind in KINDS if kind not in {COMPAT_MOTO, MANIFEST_MOTO}]
BY_DIRECTORY = [kind for kind in _MOSTLY if kind.listing]
every_kind = _on(*_MOSTLY)
without_a_manifest = _on(*(kind for kind in KINDS if not kind.manifest))
on_s3_too = _on(*(kind for kind in KINDS if kind.listing))
