"""``mooring profile``: catalogs by name, in the configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mooring.cli.completion import complete_profiles
from mooring.cli.options import OptionalUri, command, group
from mooring.cli.session import MODE_NAMES, Session
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

app = typer.Typer()

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
        rows = [row | {"storage": _on_a_line(row["storage"])} for row in rows]
    columns = ["name", "uri", "read_only", *MODE_NAMES, "output", "user", "storage"]
    session.output.rows(columns, rows)


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
        typer.Option("--unset", metavar="KEY", help="Remove a key or a storage option."),
    ] = None,
) -> None:
    """Make a profile, or change what is given of it.

    --catalog, --storage, --read-only, --manifest and --listing say what the profile holds. The
    profile named "default" is used when no other is.
    """
    from mooring.cli.profile_file import write_profile

    path = config_path(session.environ)
    old = load_profiles(path).get(name, Layer(""))
    flags = session.at(uri).flags.layer()
    # --output is about this very command.
    kept = ("catalog", "read_only", *MODE_NAMES)
    given = {key: flags.values[key] for key in kept if key in flags.values}
    values = {**old.values, **given} | ({} if user is None else {"user": user})
    fields = _fields(values, {**old.storage, **flags.storage})
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
    if name not in load_profiles(path):
        msg = f"there is no profile '{name}' in '{path}'"
        raise NotFoundError(msg)
    remove_profile(path, name)
    session.output.change({"name": name, "result": "removed"}, f"removed profile '{name}'")


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
    }


def _read_flag(values: Mapping[str, str], name: str) -> bool | None:
    return parse_flag(values[name], name) if name in values else None


def _on_a_line(storage: object) -> str | None:
    pairs = storage.items() if isinstance(storage, dict) else ()
    return " ".join(f"{key}={value}" for key, value in pairs) or None


def _fields(values: dict[str, str], storage: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        key: values[setting] for key, setting in PROFILE_KEYS.items() if setting in values
    }
    if "uri" in fields and "://" not in fields["uri"]:
        # A relative path would mean another catalog in every directory.
        fields["uri"] = str(Path(fields["uri"]).expanduser().absolute())
    for key in ("read_only", *MODE_NAMES):
        if key in fields:
            fields[key] = parse_flag(fields[key], key)
    if storage:
        fields["storage"] = storage
    return fields


def _remove_keys(fields: dict[str, Any], keys: Sequence[str]) -> None:
    storage = fields.get("storage", {})
    for key in keys:
        if key not in fields and key not in storage:
            msg = f"the profile has no '{key}' to unset"
            raise InvalidInputError(msg)
        fields.pop(key, None)
        storage.pop(key, None)
    if not storage:
        fields.pop("storage", None)
