"""Bringing the content of an older version back, as the newest one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.server.ui.formats import count
from mooring.server.ui.versions.chosen import chosen_branch, where
from mooring.server.ui.view import Done, Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.server.ui.visit import Visit
    from mooring.tables.comparison import VersionDiff

__all__ = ["ask_restore", "restore"]

_NAMED = 12


def ask_restore(visit: Visit) -> Question:
    """Say what restoring a version does, and how it differs from the newest.

    Raises:
        TableVersionNotFoundError: there is no such version.
        InvalidInputError: none is named.
    """
    from mooring.tables.comparison import compare
    from mooring.tables.handle import At

    branch, version = chosen_branch(visit), _chosen(visit)
    handle = visit.open_table().handle
    found = compare(handle, At(branch=branch), At(version, branch=branch))
    words = ["table", "restore", *([f"--branch={branch}"] if branch else [])]
    return Question(
        cli=visit.cli(*words, names=[str(visit.table), str(version)]),
        title=f"Restore version {version} of {visit.table.name}?",
        explanation=[
            f"The content of version {version}{where(branch)} becomes version {found.old + 1}.",
            f"Nothing is lost: version {found.old} and all others stay; restore it to undo this.",
            *_tell(found),
        ],
        submit=f"Restore version {version}",
        back=visit.links.table(visit.table, "versions", branch=branch),
    )


def restore(visit: Visit, _: Mapping[str, str]) -> Done:
    """Restore a version.

    Raises:
        TableVersionNotFoundError: it is not there any more.
        ConcurrentModificationError: another change came first.
    """
    branch, version = chosen_branch(visit), _chosen(visit)
    done = visit.open_table().restore(version, branch=branch)
    return Done(
        visit.links.table(visit.table, "versions", branch=branch),
        f"Restored version {version}{where(branch)}: it is the newest now, as version"
        f" {done.version}. To undo this, restore version {done.version - 1}.",
    )


def _chosen(visit: Visit) -> int:
    version = visit.number("version", least=1)
    if version is None:
        raise InvalidInputError("name the version to restore: open it from the list of versions")
    return version


def _tell(found: VersionDiff) -> list[str]:
    """Say how the content changes: from the newest to the one that is restored."""
    rows = (
        f"The table has {count(found.rows_before)} rows now and will have {count(found.rows_after)}"
    )
    if _is_same(found):
        return ["Its content is that of the newest version: nothing changes but the number."]
    lines = [f"{rows}."]
    # Where manifests do not tell which rows are the same, numbers of them would mislead.
    if found.rows.updated is not None:
        gone, came = count(found.rows.deleted), count(found.rows.added)
        lines = [f"{rows}: {gone} go and {came} come back."]
    if found.rows.updated:
        lines.append(f"{count(found.rows.updated)} rows get back their earlier values.")
    if not found.schema:
        return [*lines, "The columns stay what they are."]
    changes = ", ".join(f"{one.path or 'the schema'} ({one.kind})" for one in found.schema[:12])
    more = f" and {len(found.schema) - _NAMED} more" if len(found.schema) > _NAMED else ""
    return [*lines, f"Columns that change: {changes}{more}."]


def _is_same(found: VersionDiff) -> bool:
    """Whether two versions have the same files and as many rows in them."""
    return not (found.schema or found.added or found.removed) and (
        found.rows_before == found.rows_after
    )
