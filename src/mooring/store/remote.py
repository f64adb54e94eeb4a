"""S3, GCS, Azure and memory, through obstore.

The store's own retries may send a creation twice, so a refusal can be the echo of one's own
success: callers compare content before they believe they lost.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PreconditionError,
    UnknownConfigurationKeyError,
)
from obstore.exceptions import PermissionDeniedError as _Denied
from obstore.exceptions import UnauthenticatedError as _Unauthenticated
from obstore.store import from_url

from mooring.errors import (
    InvalidInputError,
    MooringError,
    PermissionDeniedError,
    ServiceUnavailableError,
    UnauthenticatedError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.store.api import Capabilities, Listing, ObjectMeta, ObjectTag, StoredObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from obstore import ObjectMeta as ObstoreMeta
    from obstore.store import ObjectStore

__all__ = ["RemoteStore"]

# Names that configure the HTTP client; all other options configure the service.
_CLIENT_OPTIONS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "timeout",
    "user_agent",
}
# What only Lance reads: when it asks its catalog for fresh credentials.
_FOR_LANCE = {"expires_at_millis", "refresh_offset_millis"}
# Lance has a word for a token of Google's, obstore takes it from a function alone.
_GOOGLE_TOKEN = "google_storage_token"  # noqa: S105  # the name of an option
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_PAGE = 1000
_DELETE_BATCH = 1000
_STATUS = re.compile(r"status code: (\d{3})")
_HEADS_AT_ONCE = 32


class RemoteStore:
    """A prefix of a bucket or container as a store."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        """Open a URI; nothing is asked of the service yet.

        Args:
            uri: ``s3://bucket/prefix``, ``gs://``, ``az://`` or ``memory://``.
            options: Credentials and settings, named as Lance names its storage options.

        Raises:
            InvalidInputError: an option is unknown or the URI cannot be read.
        """
        self._uri = uri.rstrip("/")
        self._options = dict(options)
        self._store = _connect(uri, options)

    @property
    def capabilities(self) -> Capabilities:
        """Object stores compare and swap."""
        return Capabilities(compare_and_swap=True)

    @property
    def options(self) -> Mapping[str, str]:
        """The options as they were given; Lance uses the same names."""
        return self._options

    def location(self, path: str) -> str:
        """Return a URI, with everything quoted that a URI would read otherwise."""
        return f"{self._uri}/{quote(path, safe='/')}" if path else self._uri

    def get(self, path: str) -> bytes | None:
        """Return the object's content."""
        with _translated(path):
            try:
                return bytes(obstore.get(self._store, path).bytes())
            except (NotFoundError, FileNotFoundError):
                return None

    def read(self, path: str) -> StoredObject | None:
        """Return content, size, time and tag of an object with one get."""
        with _translated(path):
            try:
                found = obstore.get(self._store, path)
                return StoredObject(bytes(found.bytes()), _meta(found.meta))
            except (NotFoundError, FileNotFoundError):
                return None

    def head(self, path: str) -> ObjectMeta | None:
        """Return size, time and tag of an object."""
        with _translated(path):
            try:
                return _meta(obstore.head(self._store, path))
            except (NotFoundError, FileNotFoundError):
                return None

    def existing(self, paths: Sequence[str]) -> set[str]:
        """Head the objects, many at a time."""
        with ThreadPoolExecutor(_HEADS_AT_ONCE) as pool:
            found = pool.map(self.head, paths)
            return {path for path, meta in zip(paths, found, strict=True) if meta is not None}

    def list_dir(self, path: str) -> Listing:
        """List one level: a request per thousand children."""
        with _translated(path):
            found = obstore.list_with_delimiter(self._store, path or None)
        start = len(path) + 1 if path else 0
        directories = [name.rstrip("/")[start:] for name in found["common_prefixes"]]
        files = [entry["path"][start:] for entry in found["objects"]]
        # Some services list a marker of the directory itself, which has no name in it.
        files = [name for name in files if name]
        if files or not path:
            return Listing(directories, files, exists=bool(files or directories))
        return Listing(directories, files, exists=lambda: self._has_object(path))

    def _has_object(self, path: str) -> bool:
        """Ask for an object below a prefix: some services go on listing emptied directories."""
        with _translated(path):
            return any(batch for batch in obstore.list(self._store, path, chunk_size=1))

    def list_prefix(self, path: str) -> list[ObjectMeta]:
        """List everything below a prefix."""
        with _translated(path):
            found = obstore.list(self._store, path or None)
            return [_meta(entry) for batch in found for entry in batch if entry["path"] != path]

    def iter_dir(self, path: str, *, after: str = "") -> Iterator[ObjectMeta]:
        """List one level lazily: a request per thousand objects that are wanted."""
        start = len(path) + 1
        offset = f"{path}/{after}" if after else None
        with _translated(path):
            for batch in obstore.list(self._store, path, offset=offset, chunk_size=_PAGE):
                for entry in batch:
                    name = entry["path"][start:]
                    if name and "/" not in name:
                        yield _meta(entry)

    def prune(self, path: str) -> None:
        """Do nothing: there are no empty directories."""

    def sync(self, paths: Iterable[str]) -> None:
        """Do nothing: a service answers when it has what it was given."""

    def put_new(self, path: str, body: bytes) -> bool:
        """Create an object with a conditional put."""
        with _translated(path, writing=True):
            try:
                obstore.put(self._store, path, body, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    def put_if(self, path: str, body: bytes, tag: ObjectTag) -> bool:
        """Replace an object with a conditional put."""
        # A None inside the mode is refused by obstore, so absent parts stay out of it.
        mode = {"e_tag": tag.etag, "version": tag.generation}
        known = {key: value for key, value in mode.items() if value is not None}
        with _translated(path, writing=True):
            try:
                obstore.put(self._store, path, body, mode=known, use_multipart=False)  # type: ignore[arg-type]  # the stub wants both keys
            except (PreconditionError, AlreadyExistsError, NotFoundError, FileNotFoundError):
                return False
        return True

    def put(self, path: str, body: bytes, *, derived: bool = False) -> None:
        """Create or replace an object; a service keeps what it has acknowledged."""
        del derived
        with _translated(path, writing=True):
            obstore.put(self._store, path, body)

    def copy(self, source: str, target: str) -> bool:
        """Have the service copy an object."""
        with _translated(target):
            try:
                obstore.copy(self._store, source, target)
            except (NotFoundError, FileNotFoundError):
                return False
        return True

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, in bulk where the service can."""
        wanted = list(paths)
        for start in range(0, len(wanted), _DELETE_BATCH):
            batch = wanted[start : start + _DELETE_BATCH]
            with _translated(batch[0]):
                try:
                    obstore.delete(self._store, batch)
                except (NotFoundError, FileNotFoundError):
                    self._delete_each(batch)

    def delete_prefix(self, path: str) -> int:
        """Delete everything below a prefix, which cannot be the root."""
        if not path:
            msg = "the whole store cannot be deleted at once"
            raise InvalidInputError(msg)
        objects = self.list_prefix(path)
        self.delete(found.path for found in objects)
        return len(objects)

    def _delete_each(self, paths: list[str]) -> None:
        for path in paths:
            try:
                obstore.delete(self._store, path)
            except (NotFoundError, FileNotFoundError):
                continue


def _given_token(token: str) -> Callable[[], dict[str, object]]:
    """Return what hands a token of Google's to obstore, which renews none itself."""
    return lambda: {"token": token, "expires_at": None}


def _connect(uri: str, options: Mapping[str, str]) -> ObjectStore:
    config: dict[str, str] = {}
    client: dict[str, object] = {}
    provider: dict[str, object] = {}
    for key, value in options.items():
        if key.lower() in _FOR_LANCE:
            continue
        if key.lower() == _GOOGLE_TOKEN:
            provider["credential_provider"] = _given_token(value)
            continue
        # Lance takes these also with the service's prefix; obstore breaks on that.
        bare = key.lower().removeprefix("aws_").removeprefix("google_").removeprefix("azure_")
        if bare in _CLIENT_OPTIONS:
            client[bare] = _FLAGS.get(value.lower(), value)
        else:
            config[key] = value
    try:
        # Empty client options would hide those of the environment.
        return from_url(uri, config=config, client_options=client or None, **provider)  # type: ignore[call-overload, no-any-return]  # one signature a service
    except UnknownConfigurationKeyError as exc:
        msg = f"unknown storage option for '{uri}': {str(exc).splitlines()[0]}"
        raise InvalidInputError(msg) from exc
    except (BaseError, ValueError) as exc:
        msg = f"'{uri}' cannot be opened as an object store: {str(exc).splitlines()[0]}"
        raise InvalidInputError(msg) from exc


@contextmanager
def _translated(path: str, *, writing: bool = False) -> Iterator[None]:
    """Turn the service's failures into errors of ours."""
    try:
        yield
    except (BaseError, OSError) as exc:
        raise _explain(exc, path, writing=writing) from exc


def _explain(exc: Exception, path: str, *, writing: bool) -> MooringError:
    reason = str(exc).partition("\n")[0]
    # Failures of listings have no class of their own; their text holds the status.
    status = _STATUS.search(reason)
    code = status[1] if status else ""
    if isinstance(exc, _Denied) or code == "403":
        return PermissionDeniedError(
            f"the store refuses access to '{path}': check the credentials and their permissions"
        )
    if isinstance(exc, _Unauthenticated) or code == "401":
        return UnauthenticatedError(f"the store does not accept the credentials (at '{path}')")
    if "invalid path" in reason:
        return UnsupportedError(f"the store holds an object whose key is no path: {reason}")
    if isinstance(exc, NotFoundError | FileNotFoundError) or code == "404":
        return InvalidInputError(
            f"the bucket or container does not exist (asked for '{path}' in it): create it,"
            " or check its name"
        )
    # Only a put can have an outcome that matters and stays unknown.
    kind = UnknownOutcomeError if writing else ServiceUnavailableError
    return kind(f"the store did not answer for '{path}': {reason}")


def _meta(found: ObstoreMeta) -> ObjectMeta:
    modified_ms = int(found["last_modified"].timestamp() * 1000)
    tag = ObjectTag(found["e_tag"], found["version"])
    return ObjectMeta(found["path"], found["size"], modified_ms, tag)
