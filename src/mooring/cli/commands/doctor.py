"""``mooring doctor``: what is set, what is there, and what needs attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.options import OptionalUri, command
from mooring.cli.session import Session

if TYPE_CHECKING:
    from mooring.cli.diagnosis import Finding

__all__ = ["doctor_command"]


@command
def doctor_command(
    session: Session,
    uri: OptionalUri = None,
    write_probe: Annotated[
        bool,
        typer.Option(
            "--write-probe",
            help="Also write and delete an object, to prove the store safe and compare clocks.",
        ),
    ] = False,
    operations: Annotated[
        bool,
        typer.Option(
            "--operations",
            help="Call every operation of the specification on throw-away catalogs of every mode,"
            " and on the reference implementation beside; your catalog is left alone.",
        ),
    ] = False,
) -> None:
    """Check settings, store and catalog; nothing is written without --write-probe.

    Ends with 1 where something is wrong; warnings end with 0.
    """
    if operations:
        _show_operations(session)
        return
    from mooring.cli.diagnosis import PROBLEM, diagnose

    session = session.at(uri)
    findings = diagnose(session, write_probe=write_probe)
    columns = ["section", "name", "status", "value", "note"]
    session.output.rows(columns, [finding.row() for finding in findings])
    _sum_up(session, findings)
    if any(finding.status == PROBLEM for finding in findings):
        raise typer.Exit(1)


def _show_operations(session: Session) -> None:
    from mooring.cli.progress import show_progress
    from mooring.survey import COLUMNS, compare

    with show_progress(session.output) as meter:
        rows = compare(meter)
    session.output.rows(["operation", *COLUMNS, "note"], rows)


def _sum_up(session: Session, findings: list[Finding]) -> None:
    from mooring.cli.diagnosis import PROBLEM, WARNING

    problems = sum(finding.status == PROBLEM for finding in findings)
    warnings = sum(finding.status == WARNING for finding in findings)
    session.output.message(f"{how_many(problems, 'problem')}, {how_many(warnings, 'warning')}")
