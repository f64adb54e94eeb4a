"""The audit's findings: those of the last one, which is not done by looking at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.config import mask_uris
from mooring.errors import UnsupportedError
from mooring.identifiers import ObjectId
from mooring.server.catalogs import MooringCatalog
from mooring.server.mooring.kinds import name_kind
from mooring.server.roles import Role
from mooring.server.ui.activity.runs import took
from mooring.server.ui.activity.signs import Signs
from mooring.server.ui.view import Done, Question, View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.server.ui.atlas.inspector import Inspection
    from mooring.server.ui.visit import Visit
    from mooring.upkeep.findings import Finding

__all__ = ["AuditView", "ask_audit", "follow_audit", "perform_audit", "show_audit"]

# So many tables are looked through while somebody waits.
_FEW_TABLES = 40
_MOST_SHOWN = 200
_WHAT = (
    "Every table is looked through: whether all files are there and can be read, and what was left"
    " behind by what was cut off."
)
_HOW = "Nothing is changed. In a large catalog it takes a while; a page shows how far it is."
_SEVERITIES = (
    ("error", "Errors", "Something cannot be read.", "bad"),
    ("warning", "Warnings", "Something was left behind that should go.", "warn"),
    ("info", "Notes", "Nothing is wrong, but it is worth knowing.", ""),
)


class ShownFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A fault.

    Attributes:
        kind: What kind it is of.
        table: Which table it concerns; empty for the catalog itself.
        href: The table's page.
        path: Where it is.
        message: What it is.
        files: How many files it is about.
        bytes: What they take.
        repair: What is offered; empty where nothing is.
        advice: What else can be done.
        cli: The command that repairs it.
    """

    kind: str
    table: str
    href: str
    path: str
    message: str
    files: int
    bytes: int
    repair: str
    advice: str
    cli: str


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Findings that are equally bad."""

    severity: str
    title: str
    about: str
    tone: str
    total: int
    findings: list[ShownFinding]


class AuditView(View, frozen=True, kw_only=True):
    """The last audit.

    Attributes:
        obstacle: Why the catalog cannot be audited.
        was_done: Whether there was an audit.
        is_clean: Whether nothing was found that is wrong.
        tables: How many tables it looked at.
        ended_at_ms: When it was.
        took: How long it took.
        by: Who asked for it.
        error: Why the last one failed.
        is_running: Whether one goes on.
        began_at_ms: When that began.
        done: How many tables it has looked at.
        total: Of how many; None before that is known.
        groups: What was found.
        start: Where an audit is asked for; empty for those who may not.
        twin: Where a page looks how far it is.
    """

    obstacle: str = ""
    was_done: bool = False
    is_clean: bool = False
    tables: int = 0
    ended_at_ms: int = 0
    took: str = ""
    by: str = ""
    error: str = ""
    is_running: bool = False
    began_at_ms: int = 0
    done: int = 0
    total: int | None = None
    groups: list[Group] = msgspec.field(default_factory=list)
    start: str = ""
    twin: str = ""


def _obstacle(visit: Visit) -> str:
    if visit.kind in {"directory", "metastore"}:
        return ""
    return (
        f"This catalog is {name_kind(visit.kind)}: only one that lies in storage of its own can be"
        " audited."
    )


def show_audit(visit: Visit) -> AuditView:
    """Show what the last audit found."""
    obstacle = _obstacle(visit)
    if obstacle:
        return AuditView(obstacle=obstacle)
    state = visit.atlas.inspector.state
    view = AuditView(
        cli=_cli(visit),
        error=mask_uris(state.error or ""),
        is_running=state.is_running,
        began_at_ms=state.began_at_ms,
        done=state.done,
        total=state.total,
        start=visit.links.to("start-audit") if visit.may(Role.WRITER) else "",
        twin=visit.links.to("audit.json"),
    )
    return _with_found(visit, view, state)


def _with_found(visit: Visit, view: AuditView, state: Inspection) -> AuditView:
    if state.audit is None:
        return view
    return msgspec.structs.replace(
        view,
        was_done=True,
        is_clean=state.audit.is_clean,
        tables=state.audit.tables,
        ended_at_ms=state.ended_at_ms,
        took=took(state.took_ms),
        by=state.by or "",
        groups=_groups(visit, state.audit.findings),
    )


def _groups(visit: Visit, findings: Sequence[Finding]) -> list[Group]:
    groups, signs = [], Signs(visit)
    for severity, title, about, tone in _SEVERITIES:
        found = [one for one in findings if one.severity.value == severity]
        if found:
            groups.append(
                Group(
                    severity=severity,
                    title=title,
                    about=about,
                    tone=tone,
                    total=len(found),
                    findings=[_finding(visit, signs, one) for one in found[:_MOST_SHOWN]],
                )
            )
    return groups


def _finding(visit: Visit, signs: Signs, found: Finding) -> ShownFinding:
    # Where a catalog lies is known to its admins alone.
    is_known = visit.may_know_uri or not ("://" in found.path or found.path.startswith("/"))
    return ShownFinding(
        kind=found.kind.value,
        table=found.table or "",
        href=signs.to(ObjectId(found.names)),
        path=mask_uris(found.path) if is_known else "",
        message=mask_uris(found.message),
        files=found.files,
        bytes=found.bytes,
        repair=found.repair.value if found.repair else "",
        advice=found.advice or "",
        cli=_cli(visit, "--repair", "--kind", found.kind.value) if found.repair else "",
    )


def _cli(visit: Visit, *words: str) -> str:
    """Return a command; an audit needs the storage itself, which only admins know."""
    if visit.direct_uri is not None:
        return visit.cli("audit", *words)
    return " ".join(["mooring audit", *words])


# -- starting one ----------------------------------------------------------------------------------


def ask_audit(visit: Visit) -> Question:
    """Say what an audit does."""
    return Question(
        title=f"Audit {visit.served.name}?",
        explanation=[_WHAT, _HOW],
        submit="Audit",
        obstacle=_obstacle(visit),
        back=visit.links.to("audit"),
        cli=_cli(visit),
    )


def perform_audit(visit: Visit, form: Mapping[str, str]) -> Done:
    """Audit the catalog: a small one at once, a large one while nobody waits.

    Raises:
        ConcurrentModificationError: that goes on already.
        UnsupportedError: the catalog cannot be audited.
    """
    del form
    obstacle = _obstacle(visit)
    if obstacle or not isinstance(visit.served, MooringCatalog):
        raise UnsupportedError(obstacle)
    # As it was opened: its workers open it again, by its address.
    catalog, by = visit.served.catalog, visit.identity.subject
    inspector, href = visit.atlas.inspector, visit.links.to("audit")
    if len(visit.atlas.picture().look.tables) > _FEW_TABLES:
        inspector.begin(catalog, by)
        return Done(href, "The audit has begun: this page shows how far it is.")
    inspector.run(catalog, by)
    return Done(href, "The audit is done.")


def follow_audit(visit: Visit) -> Done:
    """Say where to look for an audit that takes long."""
    return Done(visit.links.to("audit"), "The audit goes on: this page shows how far it is.")
