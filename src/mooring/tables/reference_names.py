"""Names of branches and tags: what can be one, and what would leave the table's directory.

Both name files, so the rules are Lance's, tightened where Lance itself stumbles over what it
accepts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote as percent
from urllib.parse import unquote

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.store import Store

__all__ = [
    "BRANCH_FILES_DIR",
    "MAIN",
    "branch_of",
    "check_branch",
    "check_new_branch",
    "check_tag",
    "list_branches",
    "parse_references",
    "reference_file",
]

MAIN = "main"
BRANCH_FILES_DIR = "_refs/branches"
_SEGMENT = re.compile(r"[\w.-]+")
_TAG = re.compile(r"[\w.-]+", re.ASCII)
# What Lance keeps in the directory of a branch: a branch of that name below it would be taken
# for data of the branch above, and cleaned away.
_INSIDE = frozenset({"_versions", "_transactions", "_deletions", "_indices", "_refs", "data"})
_LONGEST_FILE = 255
_SUFFIX = ".json"


def branch_of(name: str | None) -> str | None:
    """Read the name of a branch; main, by whatever name or none, is None.

    Raises:
        InvalidInputError: no branch can have this name.
    """
    if not name or name == MAIN:
        return None
    check_branch(name)
    return name


def check_branch(name: str) -> None:
    """Refuse the name of a branch that cannot be one.

    Raises:
        InvalidInputError: no branch can have this name.
    """
    segments = name.split("/")
    wrong = (
        "no name, or an empty part between slashes"
        if not all(segments)
        else "'..'"
        if ".." in name
        else "a part '.'"
        if "." in segments
        else "a character other than letters, digits, '.', '-', '_' and '/'"
        if not all(_SEGMENT.fullmatch(part) for part in segments)
        else "'.lock' at its end"
        if name.endswith(".lock")
        else None
    )
    if wrong:
        msg = f"{quote(name)} cannot name a branch: it has {wrong}"
        raise InvalidInputError(msg)
    _check_length(name, "branch")


def check_new_branch(name: str) -> None:
    """Refuse a name that no branch can be given.

    Raises:
        InvalidInputError: no new branch can have this name.
    """
    check_branch(name)
    if name == MAIN:
        msg = "'main' is the branch that every table has: name the new one otherwise"
        raise InvalidInputError(msg)
    taken = _INSIDE.intersection(name.split("/"))
    if taken:
        msg = (
            f"{quote(name)} cannot name a branch: Lance has a directory"
            f" {quote(min(taken))} of its own in that of every branch"
        )
        raise InvalidInputError(msg)


def check_tag(name: str) -> None:
    """Refuse the name of a tag that cannot be one.

    Lance accepts letters of any script and then can list no tag of the table any more, so they
    are refused.

    Raises:
        InvalidInputError: no tag can have this name.
    """
    wrong = (
        "it is empty"
        if not name
        else "it has a character other than a-z, A-Z, 0-9, '.', '-' and '_'"
        if not _TAG.fullmatch(name)
        else "it begins or ends with a dot"
        if name[0] == "." or name[-1] == "."
        else "it has two dots in a row"
        if ".." in name
        else "it ends with '.lock'"
        if name.endswith(".lock")
        else None
    )
    if wrong:
        msg = f"{quote(name)} cannot name a tag: {wrong}"
        raise InvalidInputError(msg)
    _check_length(name, "tag")


def list_branches(store: Store, table_dir: str) -> list[str]:
    """Name the branches of a table, sorted, without opening it."""
    return parse_references(store.list_dir(f"{table_dir}/{BRANCH_FILES_DIR}").files)


def reference_file(name: str) -> str:
    """Name the file in which Lance keeps a branch or tag."""
    return f"{percent(name, safe='')}{_SUFFIX}"


def parse_references(files: Iterable[str]) -> list[str]:
    """Return the names of the branches or tags that files are kept for, sorted."""
    return sorted(unquote(name.removesuffix(_SUFFIX)) for name in files if name.endswith(_SUFFIX))


def _check_length(name: str, what: str) -> None:
    if len(reference_file(name)) > _LONGEST_FILE:
        msg = f"the name of a {what} is too long: {quote(name[:40])}..."
        raise InvalidInputError(msg)
