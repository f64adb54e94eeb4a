"""What a look at a table finds: a sentence each, with what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.amounts import how_many
from mooring.server.roles import Role
from mooring.server.ui.formats import count, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.server.ui.table.subject import Subject
    from mooring.tables.compaction import Compacted

__all__ = ["Finding", "find_all"]

_MUCH_DELETED = 0.1  # above this part Lance's compaction writes a fragment anew


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a table that one may want to know.

    Attributes:
        topic: What it is about, in a word or two.
        tone: ``good``, ``warn`` or nothing: how much it matters.
        text: The finding.
        next: What can be done about it; empty where nothing has to be.
        cli: The command that does it.
        href: The page that does it, for those who may.
        label: What the button says.
        part: What is drawn beside it, from 0 to 1; None where nothing is.
        part_label: What the drawing says.
    """

    topic: str
    tone: str
    text: str
    next: str = ""
    cli: str = ""
    href: str = ""
    label: str = ""
    part: float | None = None
    part_label: str = ""


def find_all(subject: Subject, plan: Compacted, held_bytes: int | None, runs: int) -> list[Finding]:
    """Say what is to be said about a table.

    Args:
        subject: The table.
        plan: What a compaction would do.
        held_bytes: What only old versions need; None where nobody knows.
        runs: How many writes have not been ended.
    """
    return [
        *_fragments(subject, plan),
        *_deletions(subject),
        *_indexes(subject),
        *_versions(subject, held_bytes),
        *_runs(subject, runs),
    ]


def _compaction(subject: Subject) -> dict[str, str]:
    visit, branch = subject.visit, subject.portrait.at.branch
    on = [f"--branch={branch}"] if branch else []
    cli = visit.cli("table", "compact", *on, names=[subject.name])
    if not visit.may(Role.WRITER, visit.table) or branch:
        return {"cli": cli}
    href = visit.links.table(visit.table, "compact")
    return {"cli": cli, "href": href, "label": "Compact…"}


def _fragments(subject: Subject, plan: Compacted) -> Iterator[Finding]:
    fragments = len(subject.portrait.shape.pieces)
    if not plan.fragments_removed:
        text = f"{how_many(fragments, 'fragment')}: a compaction would find nothing to merge."
        yield Finding(topic="Small files", tone="good", text=text)
        return
    yield Finding(
        topic="Small files",
        tone="warn",
        text=f"{count(plan.fragments_removed)} of {how_many(fragments, 'fragment')}"
        f" {'is' if plan.fragments_removed == 1 else 'are'} small or full of deleted rows: each"
        " costs a request, or several, whenever the table is read.",
        next=f"A compaction would make about {count(plan.fragments_added)} of"
        f" {count(plan.fragments_removed)}; queries find the same.",
        part=plan.fragments_removed / fragments if fragments else 0.0,
        part_label=f"{count(plan.fragments_removed)} of {count(fragments)} fragments",
        **_compaction(subject),
    )


def _deletions(subject: Subject) -> Iterator[Finding]:
    shape = subject.portrait.shape
    if not shape.deleted:
        yield Finding(topic="Deletions", tone="good", text="No deleted rows are left in files.")
        return
    written = shape.rows + shape.deleted
    part = shape.deleted / written
    yield Finding(
        topic="Deletions",
        tone="warn" if part > _MUCH_DELETED else "",
        text=f"{how_many(shape.deleted, 'row')} of {count(written)} ({part:.1%})"
        f" {'is' if shape.deleted == 1 else 'are'} deleted and still in files: readers skip"
        f" {'it' if shape.deleted == 1 else 'them'}.",
        next="A compaction drops them from fragments in which more than a tenth is deleted, and"
        " from those that it merges.",
        part=part,
        part_label=f"{part:.1%} of the rows are deleted",
        **_compaction(subject),
    )


def _indexes(subject: Subject) -> Iterator[Finding]:
    portrait, visit = subject.portrait, subject.visit
    lagging = [index for index in portrait.indexes if index.rows_unindexed]
    href = visit.links.table(
        visit.table,
        "indexes",
        version=visit.query.get("version") or None,
        branch=portrait.at.branch,
    )
    if not lagging:
        has = bool(portrait.indexes)
        text = "Every index covers every row." if has else "There are no indexes."
        yield Finding(topic="Indexes", tone="good" if has else "", text=text)
        return
    most = max(index.rows_unindexed for index in lagging)
    part = most / (portrait.shape.rows or 1)
    names = ", ".join(index.name for index in lagging[:3]) + (", …" if len(lagging) > 3 else "")  # noqa: PLR2004  # a few examples
    yield Finding(
        topic="Unindexed rows",
        tone="warn",
        text=f"{how_many(len(lagging), 'index', 'indexes')} ({names}) cover"
        f"{'s' if len(lagging) == 1 else ''} not all rows: up to {how_many(most, 'row')}"
        f" ({part:.1%}) are looked through one by one by each query.",
        next="The page of the indexes has the line for each.",
        href=href,
        label="Indexes",
        part=part,
        part_label=f"{part:.1%} of the rows are not covered",
    )


def _versions(subject: Subject, held_bytes: int | None) -> Iterator[Finding]:
    portrait = subject.portrait
    old = max(len(portrait.records) - 1, 0)
    if not old:
        yield Finding(topic="Old versions", tone="good", text="There are no old versions.")
        return
    holds = f" and hold {size(held_bytes)} that the newest needs not" if held_bytes else ""
    branch = portrait.at.branch
    on = [f"--branch={branch}"] if branch else []
    yield Finding(
        topic="Old versions",
        tone="",
        text=f"{how_many(old, 'older version')} can be read or restored{holds}.",
        next="A cleanup deletes those older than a week for good; what a tag names, or a branch"
        " comes from, stays.",
        cli=subject.visit.cli("table", "cleanup", "--older-than=7d", *on, names=[subject.name]),
    )


def _runs(subject: Subject, runs: int) -> Iterator[Finding]:
    if not runs:
        return
    yield Finding(
        topic="Unended writes",
        tone="",
        text=f"{how_many(runs, 'write')} {'has' if runs == 1 else 'have'} not been ended: still at"
        " work, or killed.",
        next="A cleanup takes away what killed writes left; a dry run tells what.",
        cli=subject.visit.cli("table", "cleanup", "--dry-run", names=[subject.name]),
    )
