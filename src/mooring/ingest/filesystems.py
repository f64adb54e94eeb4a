"""Where sources lie, as Arrow opens it: the disk, or a service reached by storage options."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["locate", "open_filesystem"]

# The names that Lance gives its storage options, and the one that Arrow has for the same.
_S3_OPTIONS = {
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "session_token",
    "region": "region",
    "endpoint": "endpoint_override",
    "endpoint_url": "endpoint_override",
}
_S3_SCHEMES = ("s3", "s3a")


def locate(uri: str) -> tuple[str, str]:
    """Split a source into a scheme, empty for the disk, and a path as Arrow takes it."""
    if "://" not in uri:
        return "", str(Path(uri).absolute())
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return "", unquote(parts.path)
    return parts.scheme, f"{parts.netloc}/{unquote(parts.path).strip('/')}".rstrip("/")


def open_filesystem(scheme: str, options: Mapping[str, str]) -> pafs.FileSystem:
    """Return Arrow's file system for a scheme.

    Raises:
        InvalidInputError: Arrow knows none.
    """
    return _open(scheme, tuple(sorted(options.items())))


@lru_cache(maxsize=16)
def _open(scheme: str, options: tuple[tuple[str, str], ...]) -> pafs.FileSystem:
    if not scheme:
        return pafs.LocalFileSystem()
    if scheme in _S3_SCHEMES:
        return pafs.S3FileSystem(**_s3_arguments(dict(options)))
    try:
        found, _ = pafs.FileSystem.from_uri(f"{scheme}://x/y")
    except (pa.ArrowException, ValueError) as exc:
        msg = f"nothing is known of sources at {quote(scheme + '://')}: {exc}"
        raise InvalidInputError(msg) from exc
    return found


def _s3_arguments(options: Mapping[str, str]) -> dict[str, object]:
    given = {key.lower().removeprefix("aws_"): value for key, value in options.items()}
    found: dict[str, object] = {
        arrow: given[name] for name, arrow in _S3_OPTIONS.items() if name in given
    }
    endpoint = str(found.get("endpoint_override", ""))
    if "://" in endpoint:
        found["scheme"], _, found["endpoint_override"] = endpoint.partition("://")
    return found
