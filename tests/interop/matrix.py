"""The peers' matrix: who does what with ours, and what we do with theirs, as tests found it.

A test says by ``@pytest.mark.peer(name, they=..., we=..., on=...)`` which peer of the roster it
exercises (`Claim`); `gathering` turns outcomes into results, which are kept in one file, each with
its day and the peer's version. ``python -m tests.interop.matrix`` writes the page of the reference
from that file. What did not run is never shown as passed.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop.roster import ROSTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "CAPABILITIES",
    "KEPT",
    "SIDES",
    "Claim",
    "Notes",
    "Result",
    "read_kept",
    "render_lines",
    "render_page",
    "take_over",
    "write_kept",
]

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "interop" / "matrix.json"
PAGE = ROOT / "docs" / "reference" / "interop.md"

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
SIDES = ("they", "we")
# What each word stands for, in the order of the columns.
CAPABILITIES = {
    "list": "sees the tables and what they are called",
    "describe": "sees schemas, properties and versions",
    "read": "reads rows",
    "write": "makes tables, adds and changes rows",
    "commit": "commits beside others who do so, and nothing that was acknowledged is lost",
    "namespaces": "makes, lists and drops namespaces",
    "drop": "drops tables",
    "harmless": "what it cannot do fails, says why, and leaves every byte as it was",
}
# Of a published document there is one thing to say.
FITS = "fits"
_HEADINGS = {
    "they": "What peers do with ours",
    "we": "What Mooring does with theirs",
}
_ON = {"they": "over", "we": "their"}
_ADDRESS = re.compile(r" ?\(?https?://[^\s)]+\)?")
_PATH = re.compile(r"(?<![\w/])/(?:[\w.@+-]+/)+[\w.@+-]*")
_NEVER = "\N{EN DASH}"
_FUNCTION = re.compile(r"::(\w+)")


@dataclass(frozen=True)
class Claim:
    """What a test shows about a peer when it passes.

    Attributes:
        peer: Its key in the roster.
        side: Who does it: `they` with ours, or `we` with theirs.
        on: Over which of the two's things.
        does: Which of `CAPABILITIES`.
    """

    peer: str
    side: str
    on: str
    does: tuple[str, ...]

    @classmethod
    def read(
        cls, params: Mapping[str, object], peer: str, *, on: str, **said: object
    ) -> list[Claim]:
        """Return what a marker says.

        Args:
            params: The test's own, which names may hold: ``{name}``.
            peer: A key of the roster.
            on: Over what.
            said: ``they`` and ``we``, words apart by spaces; ``where``, parameters that the claim
                holds for.

        Raises:
            ValueError: a word is none that there is.
        """
        where = said.pop("where", {})
        if any(str(params.get(key)) != value for key, value in where.items()):
            return []
        name = peer.format_map(params)
        if name not in ROSTER:
            msg = f"the roster has no peer {name!r}"
            raise ValueError(msg)
        claims = [
            cls(name, side, on.format_map(params), tuple(str(words).split()))
            for side, words in said.items()
        ]
        for claim in claims:
            unknown = {claim.side} - set(SIDES) | set(claim.does) - {*CAPABILITIES, FITS}
            if unknown:
                msg = f"a peer's marker has no {sorted(unknown)}"
                raise ValueError(msg)
        return claims


@dataclass(frozen=True)
class Result:
    """What a test found about a claim.

    Attributes:
        test: Its node.
        claim: What it shows.
        outcome: Passed, failed or not run.
        day: When.
        version: Of the peer, where it was used.
        reason: Why it did not run.
    """

    test: str
    claim: Claim
    outcome: str
    day: str
    version: str | None = None
    reason: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Which result it takes the place of."""
        return (self.test, self.claim.peer, self.claim.side, self.claim.on)

    @property
    def plain_reason(self) -> str:
        """Why it did not run, without what is of one machine or of one test alone."""
        said = re.sub(r"\x1b\[\d*m", "", self.reason.replace("\n", " "))
        said = re.sub(r"^(Skipped: )?(not run[:,] *)?", "", said)
        said = re.sub(r"^the time is over:.*", "the time was over", said)
        # Maven says what it did before what is missing, and where it looked after that.
        said = re.sub(r"^mvn failed: .* on project [\w-]+: ", "Maven: ", said)
        said = re.sub(r" in (central )?\(?https?://.*", "", said)
        return _PATH.sub("…", _ADDRESS.sub("", said)).strip()


# -- what is kept ----------------------------------------------------------------------------------


def read_kept(path: Path = KEPT) -> list[Result]:
    """Return the results of earlier runs, none where there were none."""
    if not path.exists():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))["results"]
    return [
        Result(**{**one, "claim": Claim(**{**one["claim"], "does": tuple(one["claim"]["does"])})})
        for one in found
    ]


def write_kept(results: Iterable[Result], path: Path = KEPT) -> None:
    """Keep results for later runs and for the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    body = {"results": [asdict(one) for one in sorted(results, key=lambda one: one.key)]}
    path.write_text(json.dumps(body, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def take_over(kept: Iterable[Result], new: Iterable[Result], root: Path = ROOT) -> list[Result]:
    """Return new results, and those kept ones that they leave as they are.

    A kept result goes with its test, and with the version of its peer: it says nothing about
    another. What was not selected this time stays as it was, with its day.
    """
    new = list(new)
    taken = {one.key for one in new}
    tests = {one.test for one in new}
    versions = {one.claim.peer: one.version for one in new if one.version}
    stay = [
        one
        for one in kept
        if one.key not in taken
        and one.test not in tests
        and one.version in {None, versions.get(one.claim.peer, one.version)}
        and _is_there(one.test, root)
    ]
    return [*stay, *new]


def _is_there(test: str, root: Path) -> bool:
    path = root / test.partition("::")[0]
    name = _FUNCTION.search(test)
    return name is not None and path.is_file() and f"def {name[1]}(" in path.read_text("utf-8")


# -- cells -----------------------------------------------------------------------------------------


class Notes:
    """Remarks that cells point at, each told once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of a remark, which is noted where it is new."""
        return self._numbers.setdefault(text, len(self._numbers) + 1)

    def lines(self) -> list[str]:
        """Return them as a numbered list."""
        return [f"{number}. {text}" for text, number in self._numbers.items()]


@dataclass(frozen=True)
class Count:
    """How often what came out of the tests of a cell."""

    passed: int
    failed: int
    not_run: int

    @classmethod
    def of(cls, results: Iterable[Result]) -> Count:
        """Count."""
        outcomes = [one.outcome for one in results]
        return cls(*(outcomes.count(one) for one in (PASSED, FAILED, NOT_RUN)))

    def __str__(self) -> str:
        """Show it: a failure wins, and a tick stands only where all ran and passed."""
        total = self.passed + self.failed + self.not_run
        if self.failed:
            return f"✗ {self.failed} of {total}"
        if self.not_run:
            return f"{self.passed} of {total}" if self.passed else NOT_RUN
        return f"✓ {self.passed}" if self.passed else ""


Row = tuple[str, str]


def _rows(results: Iterable[Result], side: str) -> dict[Row, list[Result]]:
    """Return the results of a side by peer and thing, in the order of the roster."""
    found: dict[Row, list[Result]] = defaultdict(list)
    for one in results:
        if one.claim.side == side and FITS not in one.claim.does:
            found[one.claim.peer, one.claim.on].append(one)
    order = list(ROSTER)
    return dict(sorted(found.items(), key=lambda row: (order.index(row[0][0]), row[0][1])))


def _cell(row: Row, side: str, does: str, results: Iterable[Result], notes: Notes) -> str:
    mine = [one for one in results if does in one.claim.does]
    if not mine:
        why = ROSTER[row[0]].cannot.get(f"{side} {row[1]} {does}")
        return f"{_NEVER} ({notes.number(why)})" if why else "no test"
    told = {one.plain_reason for one in mine if one.outcome == NOT_RUN}
    numbers = ", ".join(str(notes.number(f"not run: {one}")) for one in sorted(told))
    return f"{Count.of(mine)} ({numbers})" if numbers else str(Count.of(mine))


def _versions(results: Iterable[Result]) -> str:
    return ", ".join(sorted({one.version for one in results if one.version})) or "not known"


def _days(results: Iterable[Result]) -> str:
    days = sorted({one.day for one in results})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


# -- as text ---------------------------------------------------------------------------------------


def render_lines(results: Iterable[Result]) -> list[str]:
    """Return the matrix for a terminal: a line for each peer, thing and side."""
    results = list(results)
    lines = []
    for side in SIDES:
        rows = _rows(results, side)
        if rows:
            lines.append(f"{_HEADINGS[side]}:")
        for (peer, on), found in rows.items():
            cells = [
                f"{does} {Count.of(one for one in found if does in one.claim.does)}"
                for does in CAPABILITIES
                if any(does in one.claim.does for one in found)
            ]
            lines.append(f"  {_name(peer)} {_versions(found)}, {on}: {', '.join(cells)}")
    documents = _documents(results)
    if documents:
        lines.append("Answers that fit what is published:")
    for peer, found in documents.items():
        lines.append(f"  {_name(peer)} {_versions(found)}: {Count.of(found)}")
    return lines


def _name(peer: str) -> str:
    return ROSTER[peer].title.replace("`", "")


def _documents(results: Iterable[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = defaultdict(list)
    for one in results:
        if FITS in one.claim.does:
            found[one.claim.peer].append(one)
    return found


def render_page(results: Iterable[Result]) -> str:
    """Write the page of the reference."""
    results, notes = list(results), Notes()
    parts = [_head(results)]
    parts += [_table(results, side, notes) for side in SIDES]
    parts += [_fitting(results, notes), _absent(results)]
    if notes.lines():
        parts.append("\n".join(["## Notes", "", *notes.lines()]))
    parts.append(_limits())
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(results: list[Result]) -> str:
    total, when = Count.of(results), f" of {_days(results)}" if results else ""
    words = "\n".join(f"| {does} | {means} |" for does, means in CAPABILITIES.items())
    return f"""# Peers

<!-- Written by python -m tests.interop.matrix from what make interop kept. -->

Other people's libraries and servers, as tests{when} found them with Mooring: {total.passed} results
passed, {total.failed} failed, {total.not_run} did not run. `make interop REPORT=1` runs the tests
and writes this page; versions are those that really ran.

**✓ 7**: seven tests ran, and all passed. **✗ 1 of 7**: one failed. **5 of 7**: five passed, and two
did not run, for the reason that the number in parentheses points at. **not run**: none did.
**{_NEVER}**: the peer cannot do it, and the number tells why. **no test**: nobody tried.

| column | the one who acts |
|---|---|
{words}"""


def _table(results: list[Result], side: str, notes: Notes) -> str:
    rows = _rows(results, side)
    if not rows:
        return ""
    # A column that no row of this side has says nothing.
    columns = [
        does
        for does in CAPABILITIES
        if any(does in one.claim.does for found in rows.values() for one in found)
    ]
    lines = [
        f"## {_HEADINGS[side]}",
        "",
        f"| peer | version | {_ON[side]} | {' | '.join(columns)} | run |",
        "|---" * (len(columns) + 4) + "|",
    ]
    for row, found in rows.items():
        cells = [_cell(row, side, does, found, notes) for does in columns]
        head = [ROSTER[row[0]].title, _versions(found), row[1]]
        lines.append(f"| {' | '.join([*head, *cells, _days(found)])} |")
    return "\n".join(lines)


def _fitting(results: list[Result], notes: Notes) -> str:
    documents = _documents(results)
    if not documents:
        return ""
    lines = [
        "## Published documents",
        "",
        "What a server may answer is published. Requests that make sense and requests that do not",
        "are made up from the document, and each answer is held against it.",
        "",
        "| document | version | answers fit | run |",
        "|---|---|---|---|",
    ]
    for peer, found in documents.items():
        row = (peer, found[0].claim.on)
        cell = _cell(row, found[0].claim.side, FITS, found, notes)
        lines.append(f"| {ROSTER[peer].title} | {_versions(found)} | {cell} | {_days(found)} |")
    return "\n".join(lines)


def _absent(results: list[Result]) -> str:
    seen = {one.claim.peer for one in results}
    lines = [
        f"| {known.title} | not run: {known.absent or 'not in this report'} |"
        for peer, known in ROSTER.items()
        if peer not in seen
    ]
    if not lines:
        return ""
    return "\n".join(["## Not run at all", "", "| peer | why |", "|---|---|", *lines])


def _limits() -> str:
    lines = [
        f"- **{known.title}** {known.limits}."
        for known in ROSTER.values()
        if known.limits is not None
    ]
    return "\n".join(["## What peers lack", "", *lines])


def main() -> int:
    """Write the page from what earlier runs kept."""
    results = read_kept()
    if not results:
        sys.stderr.write("error: nothing is kept yet; run the tests first: make interop\n")
        return 1
    PAGE.write_text(render_page(results), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
