"""``mooring profile``: catalogs by name, in the configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mooring.cli.completion import complete_profiles
from mooring.cli.options import OptionalUri, command, group
from mooring.cli.session import MODE_NAMES, Session, parse_pairs
from mooring.cli.spark import Conf, Master
from mooring.config import (
    PROFILE_KEYS,
    Layer,
    config_path,
    load_profiles,
    mask,
    mask_uris,
    parse_flag,
)
from mooring.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["app"]

# Before the path or URI of a metastore.
_METASTORE = "metastore+"

app = typer.Typer()

# Columns that hold options, which people see on one line.
_PAIRS = ("storage", "spark_conf")
ProfileName = Annotated[
    str, typer.Argument(metavar="NAME", help="The profile.", autocompletion=complete_profiles)
]


@app.callback(invoke_without_command=True)
@group
def profile() -> None:
    """Catalogs by name, with the options of their stores."""


@app.command("list")
@command
def list_command(session: Session) -> None:
    """List the profiles, secrets masked."""
    profiles = load_profiles(config_path(session.environ))
    rows = [_row(name, layer) for name, layer in sorted(profiles.items())]
    if session.output.is_for_people:
        rows = [row | {key: _on_a_line(row[key]) for key in _PAIRS} for row in rows]
    columns = ["name", "uri", "read_only", *MODE_NAMES, "output", "user", "storage"]
    session.output.rows([*columns, "spark_master", "spark_conf"], rows)


@app.command("show")
@command
def show_command(session: Session, name: ProfileName) -> None:
    """Show a profile, secrets masked."""
    path = config_path(session.environ)
    row = _row(name, _find(path, name))
    if session.output.is_for_people:
        row |= {key: _on_a_line(row[key]) for key in _PAIRS}
    session.output.record(row)


@app.command("set")
@command
def set_command(
    session: Session,
    name: ProfileName,
    uri: OptionalUri = None,
    user: Annotated[
        str | None, typer.Option("--user", help="In whose name changes are recorded.")
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset",
            metavar="KEY",
            help="Remove a key, an option of the store or a setting of Spark.",
        ),
    ] = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Make a profile, or change what is given of it.

    --catalog, --storage, --read-only, --manifest, --listing, --master and --conf say what the
    profile holds. The profile named "default" is used when no other is.
    """
    from mooring.cli.profile_file import write_profile
    from mooring.spark.session import SparkSettings

    path = config_path(session.environ)
    old = load_profiles(path).get(name, Layer(""))
    flags = session.at(uri).flags.layer()
    # --output is about this very command.
    kept = ("catalog", "read_only", *MODE_NAMES)
    given = {key: flags.values[key] for key in kept if key in flags.values}
    given |= {} if user is None else {"user": user}
    given |= {} if master is None else {"spark_master": master}
    values = {**old.values, **given}
    spark = {**old.spark, **parse_pairs(conf or (), "setting of Spark")}
    SparkSettings(values.get("spark_master"), spark).check()
    fields = _fields(values, {**old.storage, **flags.storage}, spark)
    _remove_keys(fields, unset or ())
    write_profile(path, name, fields)
    row = _row(name, load_profiles(path)[name])
    session.output.change({**row, "result": "set"}, f"profile '{name}' is kept in '{path}'")


@app.command("remove")
@command
def remove_command(session: Session, name: ProfileName) -> None:
    """Remove a profile; the catalog stays as it is."""
    from mooring.cli.profile_file import remove_profile

    path = config_path(session.environ)
    _find(path, name)
    remove_profile(path, name)
    session.output.change({"name": name, "result": "removed"}, f"removed profile '{name}'")


def _find(path: Path, name: str) -> Layer:
    """Read a profile.

    Raises:
        NotFoundError: there is none of this name.
    """
    profiles = load_profiles(path)
    if name not in profiles:
        msg = f"there is no profile '{name}' in '{path}'"
        raise NotFoundError(msg)
    return profiles[name]


def _row(name: str, layer: Layer) -> dict[str, object]:
    values = layer.values
    return {
        "name": name,
        "uri": mask_uris(values["catalog"]) if "catalog" in values else None,
        "read_only": parse_flag(values.get("read_only", "false"), "read_only"),
        **{name: _read_flag(values, name) for name in MODE_NAMES},
        "output": values.get("output"),
        "user": values.get("user"),
        "storage": {key: mask(key, value) for key, value in layer.storage.items()},
        "spark_master": mask_uris(values["spark_master"]) if "spark_master" in values else None,
        "spark_conf": {key: mask(key, value) for key, value in layer.spark.items()},
    }


def _read_flag(values: Mapping[str, str], name: str) -> bool | None:
    return parse_flag(values[name], name) if name in values else None


def _on_a_line(options: object) -> str | None:
    pairs = options.items() if isinstance(options, dict) else ()
    return " ".join(f"{key}={value}" for key, value in pairs) or None


def _fields(
    values: dict[str, str], storage: dict[str, str], conf: dict[str, str]
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        key: values[setting] for key, setting in PROFILE_KEYS.items() if setting in values
    }
    if "uri" in fields and "://" not in fields["uri"]:
        # A relative path would mean another catalog in every directory.
        kind = _METASTORE if fields["uri"].startswith(_METASTORE) else ""
        place = Path(fields["uri"].removeprefix(_METASTORE)).expanduser().absolute()
        fields["uri"] = f"{kind}{place}"
    for key in ("read_only", *MODE_NAMES):
        if key in fields:
            fields[key] = parse_flag(fields[key], key)
    if storage:
        fields["storage"] = storage
    spark: dict[str, Any] = {}
    if "spark_master" in values:
        spark["master"] = values["spark_master"]
    if conf:
        spark["conf"] = conf
    if spark:
        fields["spark"] = spark
    return fields


def _remove_keys(fields: dict[str, Any], keys: Sequence[str]) -> None:
    storage = fields.get("storage", {})
    spark = fields.get("spark", {})
    conf = spark.get("conf", {})
    for key in keys:
        holders = [table for table in (fields, storage, conf) if key in table]
        if key == "spark_master" and "master" in spark:
            holders.append({key: spark.pop("master")})
        if not holders:
            msg = f"the profile has no '{key}' to unset"
            raise InvalidInputError(msg)
        for table in holders:
            del table[key]
    # From the inside out: what has become empty goes.
    for outer, key in ((spark, "conf"), (fields, "spark"), (fields, "storage")):
        if not outer.get(key):
            outer.pop(key, None)
