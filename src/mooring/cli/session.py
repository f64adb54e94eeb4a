"""What a command works with: the settings, the output, and the catalog when it asks for it."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mooring.cli.output import Format, Output
from mooring.clock import SystemClock
from mooring.config import Layer, mask_uris, parse_flag, resolve
from mooring.errors import InvalidInputError, NamespaceNotFoundError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import typer

    from mooring.catalog import Catalog
    from mooring.config import Config, Setting

__all__ = ["MODE_NAMES", "Flags", "Session", "parse_pairs"]

# Both are on by default: a catalog is opened in compatibility mode.
MODE_NAMES = ("manifest_enabled", "dir_listing_enabled")
# What stands before the addresses of servers that keep catalogs.
_KEPT_BY_SERVERS = {"iceberg", "lance"}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Flags:
    """The options that every command takes, wherever they stood; None where one did not."""

    catalog: str | None = None
    profile: str | None = None
    storage: tuple[str, ...] = ()
    read_only: bool | None = None
    manifest: bool | None = None
    listing: bool | None = None
    output: str | None = None
    quiet: bool = False
    verbose: bool = False

    @classmethod
    def collect(cls, ctx: typer.Context) -> Flags:
        """Gather them from the verb up to the program; the one nearest to the verb counts."""
        flags = cls()
        level: Any = ctx
        while level is not None:
            flags = flags._under(level.params)
            level = level.parent
        return flags

    def _under(self, params: Mapping[str, Any]) -> Flags:
        """Add what a level further from the verb says."""
        output, catalog = params.get("output"), params.get("catalog")
        return Flags(
            # A command that takes several reads them itself.
            catalog=_either(self.catalog, catalog if isinstance(catalog, str) else None),
            profile=_either(self.profile, params.get("profile")),
            storage=(*(params.get("storage") or ()), *self.storage),
            read_only=_either(self.read_only, params.get("read_only")),
            manifest=_either(self.manifest, params.get("manifest")),
            listing=_either(self.listing, params.get("listing")),
            output=_either(self.output, None if output is None else str(output)),
            quiet=self.quiet or bool(params.get("quiet")),
            verbose=self.verbose or bool(params.get("verbose")),
        )

    def layer(self) -> Layer:
        """Return the settings among them.

        Raises:
            InvalidInputError: a storage option is not KEY=VALUE.
        """
        values = {
            "catalog": self.catalog,
            "profile": self.profile,
            "read_only": _as_text(self.read_only),
            "manifest_enabled": _as_text(self.manifest),
            "dir_listing_enabled": _as_text(self.listing),
            "output": self.output,
        }
        given = {name: value for name, value in values.items() if value is not None}
        return Layer("flag", given, parse_pairs(self.storage, "storage option"))


class Session:
    """One run of a command."""

    def __init__(self, flags: Flags, environ: Mapping[str, str] | None = None) -> None:
        """Decide the settings.

        Raises:
            InvalidInputError: a setting makes no sense.
        """
        self.flags = flags
        self.environ = os.environ if environ is None else environ
        self.config: Config = resolve(flags.layer(), self.environ)
        self.output = Output(_parse_format(self.config.settings["output"]), quiet=flags.quiet)
        self.clock = SystemClock()

    def at(self, uri: str | None) -> Session:
        """Return the session for the catalog that was given as an argument, if one was.

        Raises:
            InvalidInputError: an option names another catalog.
        """
        if uri is None:
            return self
        if self.flags.catalog not in {None, uri}:
            msg = f"two catalogs are named: '{uri}' and, by --catalog, '{self.flags.catalog}'"
            raise InvalidInputError(msg)
        return Session(replace(self.flags, catalog=uri), self.environ)

    @property
    def uri(self) -> str:
        """Where the catalog is.

        Raises:
            InvalidInputError: no catalog is named anywhere.
            NotFoundError: the profile that was named does not exist.
        """
        if self.config.missing_profile:
            raise NotFoundError(self.config.missing_profile)
        uri = self.config.value("catalog")
        if not uri:
            msg = (
                "no catalog is named: give one with --catalog URI, set MOORING_CATALOG, or keep one"
                ' in a profile with "mooring profile set default URI"'
            )
            raise InvalidInputError(msg)
        return uri

    @property
    def names_catalog(self) -> bool:
        """Whether a flag, the environment or a profile names a catalog, or should."""
        return bool(self.config.missing_profile or self.config.value("catalog"))

    def is_enabled(self, name: str) -> bool:
        """Tell whether a part of the mode is on.

        Raises:
            InvalidInputError: the setting is neither true nor false.
        """
        setting = self.config.settings[name]
        return parse_flag(setting.value or "true", f"{name} ({setting.source})")

    @property
    def program(self) -> str:
        """How a further command line begins: the program, and the catalog named as it was."""
        flags = self.flags
        shared = [] if flags.profile is None else ["--profile", flags.profile]
        shared += [] if flags.catalog is None else ["-c", flags.catalog]
        shared += [] if flags.manifest is None else [_switch("manifest", on=flags.manifest)]
        shared += [] if flags.listing is None else [_switch("listing", on=flags.listing)]
        return shlex.join(["mooring", *shared])

    def suggest(self, verb: str, *words: str, options: Sequence[str] = ()) -> str:
        """Write a command line for the same catalog, which has to be named again as it was.

        Args:
            verb: Noun and verb.
            words: What follows.
            options: Options of the verb.
        """
        separator = ["--"] if any(word.startswith("-") for word in words) else []
        return f"{self.program} {shlex.join([*verb.split(), *options, *separator, *words])}"

    def open_catalog(self, *, may_create: bool = False, dialect: str | None = None) -> Catalog:
        """Open the catalog.

        Args:
            may_create: Whether the command makes a catalog that is not there yet.
            dialect: The layout of a metastore.

        Raises:
            InvalidInputError: no catalog is named, or the name makes no sense.
            NotFoundError: the profile that was named does not exist.
            NamespaceNotFoundError: a catalog on disk does not exist.
        """
        require_directory(self.uri, may_create=may_create)
        from mooring.opening import connect

        return connect(
            self.uri,
            read_only=self.config.is_read_only,
            author=self.config.value("user"),
            storage_options=self.config.storage_options,
            manifest_enabled=self.is_enabled("manifest_enabled"),
            dir_listing_enabled=self.is_enabled("dir_listing_enabled"),
            dialect=dialect,
        )


def require_directory(uri: str, *, may_create: bool = False) -> None:
    """Refuse a catalog on disk that is not there.

    A bucket has no such thing: there, an absent prefix is an empty catalog.

    Args:
        uri: The catalog.
        may_create: Whether an absent one is made; a file is none in any case.

    Raises:
        InvalidInputError: a server is meant, and its address is none.
        NamespaceNotFoundError: nothing is there.
    """
    kind, plus, rest = uri.partition("+")
    if plus and kind in _KEPT_BY_SERVERS and "://" not in rest and not Path(uri).exists():
        where = mask_uris(rest)
        msg = f"'{kind}+{where}' is no address: write {kind}+http://{where}, or https://"
        raise InvalidInputError(msg)
    place = uri.removeprefix("metastore+")
    if "://" in place and not place.startswith("file://"):
        return
    from mooring.store import open_store

    path = Path(open_store(place).location(""))
    if path.is_dir() or (may_create and not path.exists()):
        return
    if path.exists():
        msg = f"no catalog at '{uri}': it is a file, and a catalog is a directory"
    else:
        msg = f"no catalog at '{uri}': create it with \"mooring init {uri}\""
    raise NamespaceNotFoundError(msg)


def parse_pairs(pairs: Iterable[str], what: str) -> dict[str, str]:
    """Read ``KEY=VALUE`` options.

    Raises:
        InvalidInputError: one of them is not that.
    """
    found = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            msg = f"a {what} is KEY=VALUE, not '{pair}'"
            raise InvalidInputError(msg)
        found[key] = value
    return found


def _either(nearer: _T | None, further: _T | None) -> _T | None:
    return further if nearer is None else nearer


def _parse_format(setting: Setting) -> Format:
    try:
        return Format(setting.value or "")
    except ValueError:
        known = ", ".join(Format)
        msg = f"output ({setting.source}) is one of {known}, not '{setting.value}'"
        raise InvalidInputError(msg) from None


def _as_text(flag: bool | None) -> str | None:
    return None if flag is None else str(flag).lower()


def _switch(name: str, *, on: bool) -> str:
    return f"--{name}" if on else f"--no-{name}"
