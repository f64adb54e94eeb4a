"""Profiles in the configuration file: changed one at a time, all else in it left alone.

The file may hold secrets, so it is replaced atomically and readable by its owner only.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from mooring.errors import InvalidInputError
from mooring.private_file import replace_private

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["remove_profile", "write_profile"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def write_profile(path: Path, name: str, fields: Mapping[str, Any]) -> None:
    """Add a profile or replace it.

    Args:
        path: The configuration file; made where there is none.
        name: The profile.
        fields: Its keys; ``storage`` holds the options of the store, ``spark`` those of Spark.

    Raises:
        InvalidInputError: the file is written in a way that cannot be changed safely.
    """
    _change(path, name, fields)


def remove_profile(path: Path, name: str) -> None:
    """Remove a profile.

    Raises:
        InvalidInputError: the file is written in a way that cannot be changed safely.
    """
    _change(path, name, None)


def _change(path: Path, name: str, fields: Mapping[str, Any] | None) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = _without(text, name)
    if fields is not None:
        changed = f"{changed.rstrip()}\n\n{_format(name, fields)}".lstrip("\n")
    if _profiles(changed) != _expected(text, name, fields):
        msg = f"profile '{name}' cannot be changed safely in '{path}': edit the file by hand"
        raise InvalidInputError(msg)
    _replace(path.resolve(), changed)


def _without(text: str, name: str) -> str:
    """Leave out the tables of a profile, and keep comments and everything else."""
    kept: list[str] = []
    comments: list[str] = []
    keep = True
    for line in text.splitlines(keepends=True):
        start = line.lstrip()[:1]
        if start == "[":
            keep = _header_keys(line)[:2] != ["profiles", name]
        if keep:
            kept += [*comments, line]
        # Comments right before the next table are that table's.
        comments = [] if keep or start != "#" else [*comments, line]
    return "".join([*kept, *comments])


def _header_keys(line: str) -> list[str]:
    try:
        level: object = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return []
    keys = []
    while isinstance(level, dict) and level:
        keys.append(next(iter(level)))
        level = level[keys[-1]]
    return keys


def _profiles(text: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {"": None}  # equals nothing that is expected
    document.setdefault("profiles", {})
    return document


def _expected(text: str, name: str, fields: Mapping[str, Any] | None) -> dict[str, Any]:
    document = _profiles(text)
    document["profiles"].pop(name, None)
    if fields is not None:
        document["profiles"][name] = dict(fields)
    return document


def _format(name: str, fields: Mapping[str, Any]) -> str:
    return _format_table(f"profiles.{_key(name)}", fields)


def _format_table(header: str, fields: Mapping[str, Any]) -> str:
    """Write a table, and after it those that are in it."""
    tables = {key: value for key, value in fields.items() if isinstance(value, dict)}
    plain = {key: value for key, value in fields.items() if key not in tables}
    pairs = "".join(f"{_key(key)} = {_value(value)}\n" for key, value in plain.items())
    inner = [_format_table(f"{header}.{_key(key)}", value) for key, value in tables.items()]
    return "\n".join([f"[{header}]\n{pairs}", *inner])


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    # What JSON escapes TOML escapes likewise, save for the delete character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_private(path, text)
