"""Reports what the races explored, at the end of a test run."""

from __future__ import annotations


def pytest_terminal_summary(terminalreporter):
    rows = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for key, value in getattr(report, "user_properties", [])
        if key == "race" and report.when == "call"
    ]
    if not rows:
        return
    terminalreporter.section("races: states, executions and the schedules they stand for")
    for kind in dict.fromkeys(row[0] for row in rows):
        of_kind = [row for row in rows if row[0] == kind]
        runs, states, schedules = (sum(row[at] for row in of_kind) for at in (2, 3, 4))
        terminalreporter.line(
            f"{kind}: {len(of_kind)} races, {states:,} states, {runs:,} executions,"
            f" {schedules:.3g} schedules"
        )
    if terminalreporter.config.getoption("verbose") > 0:
        for kind, race, runs, states, schedules in rows:
            terminalreporter.line(f"  {kind:16} {race:48} {runs:7,} {states:7,} {schedules:.3g}")
