"""Gathers what tests find about peers, on one worker or many, and tells it at the end of a run.

A plugin of pytest, loaded by ``-p tests.interop.gathering``. Workers send what their tests claim
with each report; the process that hands tests out counts, shows the matrix and keeps it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.interop.matrix import (
    FAILED,
    KEPT,
    NOT_RUN,
    PASSED,
    ROOT,
    Claim,
    Result,
    read_kept,
    render_lines,
    render_page,
    take_over,
    write_kept,
)
from tests.interop.roster import ROSTER

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RAN"]

CLAIMS, VERSIONS, RAN = "peer claims", "peer versions", "peers that ran"
_VERSIONS: dict[str, str] = {}


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Gatherer(), "peers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        callspec = getattr(item, "callspec", None)
        params = callspec.params if callspec else {}
        claims = [
            claim
            for mark in item.iter_markers("peer")
            for claim in Claim.read(params, *mark.args, **mark.kwargs)
        ]
        if claims:
            sent = [[one.peer, one.side, one.on, list(one.does)] for one in claims]
            item.user_properties.append((CLAIMS, sent))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[pytest.TestReport]:
    """Send with what was done which versions did it."""
    claims = dict(item.user_properties).get(CLAIMS, ())
    if claims and call.when == "call":
        versions = {peer: _version(peer) for peer, *_ in claims}
        item.user_properties.append((VERSIONS, versions))
    return (yield)


def _version(peer: str) -> str | None:
    """Return the version that this process used, asked once there is one."""
    if peer not in _VERSIONS:
        found = ROSTER[peer].version()
        if found is None:
            return None
        _VERSIONS[peer] = found
    return _VERSIONS[peer]


class Gatherer:
    """What all tests of a run found."""

    def __init__(self) -> None:
        self._sent: dict[str, dict[str, object]] = {}
        self._outcomes: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._sent.setdefault(report.nodeid, {}).update(report.user_properties)
        told = _outcome(report)
        # A failure wins over all, and what did not run over the phases that did.
        if told and self._outcomes.get(report.nodeid, (PASSED,))[0] != FAILED:
            self._outcomes[report.nodeid] = told

    @property
    def results(self) -> list[Result]:
        """What was found about each claim."""
        day = datetime.now(UTC).date().isoformat()
        return [
            _result(test, Claim(peer, side, on, tuple(does)), sent, self._outcomes[test], day)
            for test, sent in self._sent.items()
            for peer, side, on, does in sent.get(CLAIMS, ())
            if test in self._outcomes
        ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        new = self.results
        if not new:
            return
        results = take_over(read_kept(), new)
        write_kept(results)
        KEPT.with_suffix(".md").write_text(render_page(results), encoding="utf-8")
        terminalreporter.section("peers: what was tried with them in this run")
        for line in render_lines(new):
            terminalreporter.line(line)
        terminalreporter.line(f"with earlier runs: {KEPT.with_suffix('.md').relative_to(ROOT)}")


def _outcome(report: pytest.TestReport) -> tuple[str, str] | None:
    """Return what a phase says about its test, and why it did not run."""
    if report.failed:
        return FAILED, ""
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        return NOT_RUN, reason
    return (PASSED, "") if report.when == "call" else None


def _result(
    test: str, claim: Claim, sent: dict[str, object], told: tuple[str, str], day: str
) -> Result:
    outcome, reason = told
    version = sent.get(VERSIONS, {}).get(claim.peer)
    ran = sent.get(RAN)
    if ran is not None and outcome != FAILED:
        # The test has several peers and went on without some of them.
        outcome = PASSED if claim.peer in ran else NOT_RUN
        reason = "" if claim.peer in ran else reason or "another release was taken"
    return Result(test, claim, outcome, day, version, reason if outcome == NOT_RUN else "")
