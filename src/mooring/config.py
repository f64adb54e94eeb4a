"""Settings of the command line and where each comes from: flag, environment, profile, default.

Reads the profiles of the configuration file; `mooring.cli.profile_file` writes them. What the
settings mean is for their users to say: every value here is text.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "DEFAULT_PROFILE",
    "PROFILE_KEYS",
    "Config",
    "Layer",
    "Setting",
    "config_path",
    "is_secret",
    "load_profiles",
    "mask",
    "mask_uris",
    "parse_flag",
    "resolve",
]

DEFAULT_PROFILE = "default"
# The keys of a profile and the settings they give.
PROFILE_KEYS = {
    "uri": "catalog",
    "user": "user",
    "output": "output",
    "read_only": "read_only",
    "manifest_enabled": "manifest_enabled",
    "dir_listing_enabled": "dir_listing_enabled",
}
# Not keys: tables inside of a profile.
_TABLES = ("storage", "spark")
_NAMES = (
    "catalog",
    "profile",
    "user",
    "output",
    "read_only",
    "manifest_enabled",
    "dir_listing_enabled",
    "spark_master",
)
_DEFAULTS = {
    "profile": DEFAULT_PROFILE,
    "output": "table",
    "read_only": "false",
    "manifest_enabled": "true",
    "dir_listing_enabled": "true",
}
_PREFIX = "MOORING_"
_STORAGE_PREFIX = "MOORING_STORAGE__"
_CONF_PREFIX = "MOORING_SPARK_CONF__"
# Options of catalogs that servers keep are options of the store that begin so; variables have no
# dots. By the beginning of such a catalog's address.
_SERVERS = {
    "iceberg+": ("MOORING_ICEBERG_", "iceberg."),
    "lance+": ("MOORING_LANCE_", "lance."),
}
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_SECRET_WORDS = (
    "secret",
    "token",
    "password",
    "credential",
    "access_key",
    "account_key",
    "sas",
    "api_key",
    "iceberg_header",
    "lance_header",
)
# Settings that may hold a user and a password.
_URIS = ("catalog", "spark_master")
_MASK = "****"
_USER_OF_URI = re.compile(r"(?<=://)[^/\s'\"]+(?=@)")
_SECRET_OF_URI = re.compile(
    r"(?i)([;&?](?:header\.[\w-]+|[\w.-]*(?:token|password|secret|credential|api_key))=)[^;&\s'\"]+"
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and who gave it; None where nobody did."""

    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings, options of the store and settings of Spark that one source gives."""

    source: str
    values: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting, decided.

    Attributes:
        settings: By name.
        storage: The options of the store, by key.
        spark: The settings of Spark, by key.
        missing_profile: What to say where the profile that was named does not exist.
    """

    settings: Mapping[str, Setting]
    storage: Mapping[str, Setting]
    spark: Mapping[str, Setting]
    missing_profile: str | None = None

    def value(self, name: str) -> str | None:
        """Return what a setting is."""
        return self.settings[name].value

    @property
    def is_read_only(self) -> bool:
        """Whether changes are refused."""
        setting = self.settings["read_only"]
        return parse_flag(setting.value or "false", f"read_only ({setting.source})")

    @property
    def storage_options(self) -> dict[str, str]:
        """The options of the store, without their sources."""
        return {key: setting.value or "" for key, setting in self.storage.items()}

    @property
    def spark_conf(self) -> dict[str, str]:
        """The settings of Spark, without their sources."""
        return {key: setting.value or "" for key, setting in self.spark.items()}

    def shown(self) -> Iterator[tuple[str, Setting]]:
        """Go through all settings as they may be shown: secrets masked."""
        for name, setting in self.settings.items():
            masked = name in _URIS and setting.value
            value = mask_uris(setting.value or "") if masked else setting.value
            yield name, Setting(value, setting.source)
        for key, setting in self.storage.items():
            yield f"storage.{key}", Setting(mask(key, setting.value or ""), setting.source)
        for key, setting in self.spark.items():
            yield f"spark_conf.{key}", Setting(mask(key, setting.value or ""), setting.source)


def resolve(flags: Layer, environ: Mapping[str, str]) -> Config:
    """Decide every setting: flag, else environment, else profile, else default.

    Raises:
        InvalidInputError: the configuration file makes no sense.
    """
    environment = _read_environment(environ)
    named = flags.values.get("profile") or environment.values.get("profile")
    profiles = load_profiles(config_path(environ))
    profile = profiles.get(named or DEFAULT_PROFILE, Layer("profile"))
    above = flags.values.get("catalog") or environment.values.get("catalog")
    environment = _for_server(environment, above or profile.values.get("catalog") or "")
    if named is None and above is not None:
        profile = _without_catalog(profile, above)
    layers = (flags, environment, profile, Layer("default", _DEFAULTS))
    return Config(
        {name: _first(layers, name) for name in _NAMES},
        _merge(layers, "storage"),
        _merge(layers, "spark"),
        None if named is None or named in profiles else _say_missing(named, profiles),
    )


def config_path(environ: Mapping[str, str]) -> Path:
    """Return the configuration file's path, whether it exists or not."""
    named = environ.get("MOORING_CONFIG")
    if named:
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_config_dir("mooring", appauthor=False)) / "config.toml"


def load_profiles(path: Path) -> dict[str, Layer]:
    """Read the profiles of a configuration file; none where there is no file.

    Raises:
        InvalidInputError: the file cannot be read or has something unknown in it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        msg = f"the configuration '{path}' cannot be read: {exc}"
        raise InvalidInputError(msg) from exc
    import tomllib

    try:
        profiles = tomllib.loads(text).get("profiles", {})
    except tomllib.TOMLDecodeError as exc:
        msg = f"the configuration '{path}' is not valid TOML: {exc}"
        raise InvalidInputError(msg) from exc
    if not isinstance(profiles, dict):
        msg = f"'profiles' in '{path}' must be tables: [profiles.NAME]"
        raise InvalidInputError(msg)
    return {name: _read_profile(path, name, fields) for name, fields in profiles.items()}


def mask(key: str, value: str) -> str:
    """Hide the value of an option that looks like a secret."""
    return _MASK if is_secret(key) else value


def is_secret(key: str) -> bool:
    """Whether an option looks like one that holds a secret."""
    words = key.lower().replace(".", "_")
    return any(word in words for word in _SECRET_WORDS)


def mask_uris(text: str) -> str:
    """Hide user and password of every URI in a text, and tokens among its parameters."""
    return _SECRET_OF_URI.sub(rf"\1{_MASK}", _USER_OF_URI.sub(_MASK, text))


def parse_flag(text: str, name: str) -> bool:
    """Read true or false.

    Raises:
        InvalidInputError: it is neither.
    """
    if text.lower() not in _FLAGS:
        msg = f"{name} is true or false, not '{text}'"
        raise InvalidInputError(msg)
    return _FLAGS[text.lower()]


def _read_environment(environ: Mapping[str, str]) -> Layer:
    values = {name: environ.get(_PREFIX + name.upper()) for name in _NAMES}
    storage = {
        key.removeprefix(_STORAGE_PREFIX).lower(): value
        for key, value in environ.items()
        if key.startswith(_STORAGE_PREFIX)
    }
    storage |= {
        option + key.removeprefix(prefix).lower(): value
        for prefix, option in _SERVERS.values()
        for key, value in environ.items()
        if key.startswith(prefix) and value
    }
    # Names of variables have no dots, and the keys of Spark are full of them.
    spark = {
        key.removeprefix(_CONF_PREFIX).replace("__", "."): value
        for key, value in environ.items()
        if key.startswith(_CONF_PREFIX)
    }
    given = {name: value for name, value in values.items() if value}
    return Layer("environment", given, storage, spark)


def _read_profile(path: Path, name: str, fields: object) -> Layer:
    known = {*PROFILE_KEYS, *_TABLES}
    if not isinstance(fields, dict) or not isinstance(fields.get("storage", {}), dict):
        msg = f"profile '{name}' in '{path}' must be a table, and its storage one too"
        raise InvalidInputError(msg)
    unknown = [key for key in fields if key not in known]
    if unknown:
        listed = ", ".join(sorted(known))
        msg = f"profile '{name}' in '{path}' has the unknown key '{unknown[0]}'; known are {listed}"
        raise InvalidInputError(msg)
    plain = {key: value for key, value in fields.items() if key not in _TABLES}
    values = {PROFILE_KEYS[key]: _text(value) for key, value in plain.items()}
    storage = {key: _text(value) for key, value in fields.get("storage", {}).items()}
    master, conf = _read_spark(path, name, fields.get("spark", {}))
    if master is not None:
        values["spark_master"] = master
    return Layer(f"profile '{name}'", values, storage, conf)


def _read_spark(path: Path, name: str, fields: object) -> tuple[str | None, dict[str, str]]:
    """Read a profile's master and settings of Spark."""
    where = f"[profiles.{name}.spark] in '{path}'"
    if not isinstance(fields, dict) or not isinstance(fields.get("conf", {}), dict):
        msg = f"{where} must be a table, and its conf one too"
        raise InvalidInputError(msg)
    unknown = [key for key in fields if key not in {"master", "conf"}]
    if unknown:
        msg = f"{where} has the unknown key '{unknown[0]}'; known are conf, master"
        raise InvalidInputError(msg)
    master = fields.get("master")
    return None if master is None else _text(master), dict(_flatten(fields.get("conf", {})))


def _flatten(table: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    """Read keys with dots in them, which TOML takes for tables where they are not quoted."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{above}{key}.")
        else:
            yield above + key, _text(value)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _say_missing(name: str, profiles: Mapping[str, Layer]) -> str:
    there_are = ", ".join(sorted(profiles)) or "none"
    make = f'make it with "mooring profile set {name} URI"'
    return f"there is no profile '{name}' (there are: {there_are}); {make}"


def _for_server(environment: Layer, catalog: str) -> Layer:
    """Leave out what the environment says about servers of another kind than the catalog's."""
    others = tuple(
        option for scheme, (_, option) in _SERVERS.items() if not catalog.startswith(scheme)
    )
    storage = {
        key: value for key, value in environment.storage.items() if not key.startswith(others)
    }
    return replace(environment, storage=storage)


def _without_catalog(profile: Layer, other: str) -> Layer:
    """Leave out what a profile that nobody named says about a catalog that is not used.

    Credentials for one store are nothing to send to another.
    """
    own = profile.values.get("catalog")
    if own is None or _same_place(own, other):
        return profile
    # Neither is Spark the catalog's: it is where this user computes.
    kept = ("user", "output", "spark_master")
    personal = {name: profile.values[name] for name in kept if name in profile.values}
    return Layer(profile.source, personal, spark=profile.spark)


def _same_place(one: str, other: str) -> bool:
    if "://" in one or "://" in other:
        return one.rstrip("/") == other.rstrip("/")
    return os.path.abspath(one) == os.path.abspath(other)  # noqa: PTH100  # no link is resolved


def _first(layers: tuple[Layer, ...], name: str) -> Setting:
    for layer in layers:
        if name in layer.values:
            return Setting(layer.values[name], layer.source)
    return Setting(None, "default")


def _merge(layers: tuple[Layer, ...], what: Literal["storage", "spark"]) -> dict[str, Setting]:
    merged: dict[str, Setting] = {}
    for layer in reversed(layers):
        pairs: Mapping[str, str] = getattr(layer, what)
        merged |= {key: Setting(value, layer.source) for key, value in pairs.items()}
    return dict(sorted(merged.items()))
