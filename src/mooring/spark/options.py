"""The options of the data source, read and checked in one place."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.catalog import Catalog
from mooring.config import Layer, parse_flag, resolve
from mooring.errors import InvalidInputError, NamespaceNotFoundError, NotFoundError
from mooring.identifiers import DELIMITER, ObjectId, quote
from mooring.jobs.address import CatalogAddress
from mooring.opening import METASTORE_SCHEME

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["STREAM_OPTIONS", "Name", "SourceOptions", "options_of", "parse_time"]

Name = str | list[str] | tuple[str, ...] | ObjectId

_STORAGE = "storage."
_CATALOG_SETTINGS = ("catalog", "profile", "user", "manifest_enabled", "dir_listing_enabled")
_OPENING_FLAGS = ("managed_versioning", "beside_others")
_SELECTION = ("version", "tag", "as_of", "branch", "columns", "filter", "pushdown")
# Of change tables.
_CHANGES = ("position", "txn", "change", "changes", "fromPosition", "toPosition")
_READ_SIZES = ("batch_rows", "batch_bytes", "tasks")
_WRITING = ("run", "vectors", "create_only", "rows_a_file")
# What the streaming reader and writer take besides.
STREAM_OPTIONS = (
    "query",
    "driver",
    "startingVersion",
    "skipChangeCommits",
    "startingPosition",
    "skipReplacements",
)
# What Spark adds of its own accord.
_SPARKS_OWN = {
    "path",
    "provider",
    "checkpointlocation",
    "queryname",
    "outputmode",
    "serialization.format",
    "header",
}


@dataclass(frozen=True)
class SourceOptions:
    """What a reader or writer was told.

    Attributes:
        catalog: Where the catalog is, and how it is opened.
        table: The table's name.
        values: All other options, by name.
    """

    catalog: CatalogAddress
    table: str
    values: Mapping[str, str] = field(repr=False, default_factory=dict)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Read options; settings that are missing come from the environment and the profile.

        Raises:
            InvalidInputError: one is unknown, or no table or catalog is named.
            NotFoundError: the profile that was named does not exist.
        """
        given = {key.lower(): value for key, value in options.items()}
        _check_known(given)
        table = given.get("table") or given.get("path")
        if not table:
            msg = "no table is named: give it with the option 'table', as t or ns$t"
            raise InvalidInputError(msg)
        return cls(_find_catalog(given), table, given)

    def get(self, name: str) -> str | None:
        """Return an option; None where it is missing or empty."""
        return self.values.get(name) or None

    def flag(self, name: str) -> bool:
        """Return an option that is true or false.

        Raises:
            InvalidInputError: it is neither.
        """
        return parse_flag(self.get(name) or "false", f"option '{name}'")

    def number(self, name: str) -> int | None:
        """Return an option that is a positive number.

        Raises:
            InvalidInputError: it is not.
        """
        text = self.get(name)
        if text is None:
            return None
        if not text.isdecimal() or int(text) < 1:
            msg = f"option '{name}' is a number above zero, not {quote(text)}"
            raise InvalidInputError(msg)
        return int(text)

    def open(self, *, must_exist: bool) -> Catalog:
        """Open the catalog.

        Args:
            must_exist: Whether a directory that is not there is an error, as to readers.

        Raises:
            NamespaceNotFoundError: a catalog on disk does not exist.
        """
        if must_exist:
            _require_directory(self.catalog.uri)
        return self.catalog.open()

    def refuse(self, names: tuple[str, ...], why: str) -> None:
        """Refuse options that mean nothing here.

        Raises:
            InvalidInputError: one of them is given.
        """
        found = next((name for name in names if self.get(name) is not None), None)
        if found is not None:
            raise InvalidInputError(f"option '{found}' {why}")


def options_of(
    catalog: Catalog | str | None, name: Name, options: Mapping[str, object] | None = None
) -> dict[str, str]:
    """Write options as Spark takes them.

    Args:
        catalog: The catalog, opened as it shall be opened by Spark, or its path or URI; the one
            of the settings unless given.
        name: The table.
        options: Others; those without a value are left out.
    """
    table = DELIMITER.join(name) if isinstance(name, list | tuple) else str(name)
    return {**_catalog_options(catalog), "table": table, **_texts(options or {})}


def parse_time(text: str) -> int:
    """Read a time, in milliseconds since 1970 or as ISO 8601 writes it; without a zone it is UTC.

    Raises:
        InvalidInputError: it is neither.
    """
    if text.isdecimal():
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as exc:
        msg = f"{quote(text)} is no time: write 2026-01-31T12:00:00Z, or milliseconds since 1970"
        raise InvalidInputError(msg) from exc
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _check_known(given: Mapping[str, str]) -> None:
    known = {
        "table",
        "dialect",
        "read_only",
        *_CATALOG_SETTINGS,
        *_OPENING_FLAGS,
        *_SELECTION,
        *_READ_SIZES,
        *_WRITING,
        *(name.lower() for name in (*STREAM_OPTIONS, *_CHANGES)),
    }
    for name in given:
        if name in known or name in _SPARKS_OWN or name.startswith(_STORAGE):
            continue
        listed = ", ".join(sorted(known))
        msg = f"{quote(name)} is no option of 'mooring'; known are {listed} and {_STORAGE}KEY"
        raise InvalidInputError(msg)


def _find_catalog(given: Mapping[str, str]) -> CatalogAddress:
    named = {name: given[name] for name in _CATALOG_SETTINGS if given.get(name)}
    storage = {
        key.removeprefix(_STORAGE): value
        for key, value in given.items()
        if key.startswith(_STORAGE)
    }
    config = resolve(Layer("option", named, storage), os.environ)
    if config.missing_profile:
        raise NotFoundError(config.missing_profile)
    uri = config.value("catalog")
    if not uri:
        msg = (
            "no catalog is named: give it with the option 'catalog', set MOORING_CATALOG where the"
            ' driver runs, or keep one in a profile with "mooring profile set default URI"'
        )
        raise InvalidInputError(msg)
    return CatalogAddress.at(
        uri,
        read_only=parse_flag(given.get("read_only") or "false", "option 'read_only'"),
        author=config.value("user"),
        storage_options=config.storage_options,
        manifest_enabled=_enabled(config.value("manifest_enabled"), "manifest_enabled"),
        dir_listing_enabled=_enabled(config.value("dir_listing_enabled"), "dir_listing_enabled"),
        dialect=given.get("dialect") or None,
        **{
            name: parse_flag(given.get(name) or "false", f"option '{name}'")
            for name in _OPENING_FLAGS
        },
    )


def _enabled(value: str | None, name: str) -> bool:
    return parse_flag(value or "true", name)


def _require_directory(uri: str) -> None:
    place = uri.removeprefix(METASTORE_SCHEME).removeprefix("file://")
    if "://" not in place and not Path(place).expanduser().is_dir():
        msg = f"no catalog at '{uri}': create it with \"mooring init {uri}\""
        raise NamespaceNotFoundError(msg)


def _catalog_options(catalog: Catalog | str | None) -> dict[str, str]:
    if catalog is None:
        return {}
    if not isinstance(catalog, Catalog):
        return {"catalog": CatalogAddress.at(str(catalog)).uri}
    known = dict(catalog.options)
    storage = known.pop("storage_options", None) or {}
    user = known.pop("author", None)
    return {
        "catalog": CatalogAddress.of(catalog).uri,
        **_texts({"user": user, **known}),
        **{f"{_STORAGE}{key}": str(value) for key, value in storage.items()},
    }


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    return {name: _text(value) for name, value in options.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
