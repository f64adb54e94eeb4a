"""The table of transitions in the documentation is what the code does, cell by cell."""

import re

import pytest

import mooring
from mooring.directory.chain import Chain, Chains
from mooring.directory.decisions import State
from mooring.errors import (
    ConcurrentModificationError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from tests.docs.documents import DOCS

NAME = "flights"
ROWS = [{"n": 1}]
FAILURES = {
    "not found": TableNotFoundError,
    "exists": TableAlreadyExistsError,
    "conflict": ConcurrentModificationError,
}
CALLS = {
    "drop": lambda lake: lake.drop_table(NAME),
    "undrop": lambda lake: lake.undrop_table(NAME),
    "create": lambda lake: lake.create_table(NAME, ROWS),
    "purge": lambda lake: lake.purge_table(NAME),
    "deregister": lambda lake: lake.deregister_table(NAME),
    "register": lambda lake: lake.register_table(NAME),
}
# Operations that lead to a state, and the decision a crash leaves behind after them.
WAYS = {
    "live": (("drop", "undrop"), None),
    "deleted": (("drop",), None),
    "reviving": (("drop",), State.REVIVING),
    "undropping": (("drop",), State.UNDROPPING),
    "creating": (("drop", "purge"), State.CREATING),
    "purging": (("drop",), State.PURGING),
    "purged": (("drop", "purge"), None),
    "deregistered": (("deregister",), None),
    "renaming": ((), State.RENAMING),
}


def table_below(heading):
    """Return the rows of the first table below a heading, as dictionaries."""
    text = (DOCS / "explanation/lifecycle.md").read_text(encoding="utf-8")
    table = re.search(rf"^## {heading}$.*?((?:^\|[^\n]*\n)+)", text, re.MULTILINE | re.DOTALL)[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    head, _, *body = rows
    return [dict(zip(head, row, strict=True)) for row in body]


TRANSITIONS = [
    (row["from"].strip("`*"), verb, cell)
    for row in table_below("Transitions")
    for verb, cell in row.items()
    if verb != "from"
]


def bring_to(lake, state):
    """Make a table and bring it into a state."""
    if state == "nothing":
        return
    verbs, cut_off = WAYS[state]
    lake.create_table(NAME, ROWS)
    for verb in verbs:
        CALLS[verb](lake)
    if cut_off:
        end = chains_of(lake).read(NAME)
        times = {"deleted_at_ms": 1, "ttl_ms": 2} if cut_off.in_trash else {}
        chains_of(lake).advance(end, cut_off, action="test", version=1, **times)


def chains_of(lake) -> Chains:
    home = lake.backend.home
    return Chains(home.store, home.clock, home.ids, home.author)


def decided(lake, since: Chain) -> list[str]:
    """Return the states decided after a point of the chain."""
    return [link.state.value for link in chains_of(lake).history(NAME)[since.seq :]]


@pytest.fixture(params=[False, True], ids=["plain", "compatibility"])
def manifest(request) -> bool:
    """Whether the catalog keeps a manifest, too: a root table lives the same life."""
    return request.param


@pytest.mark.parametrize(("state", "verb", "cell"), TRANSITIONS)
def test_transition(tmp_path, manifest, state, verb, cell):
    # Whether a rename is under way its row tells, and this test makes none.
    manifest = manifest and state != "renaming"
    lake = mooring.connect(tmp_path / "lake", manifest_enabled=manifest)
    bring_to(lake, state)
    before = chains_of(lake).read(NAME)
    if cell in FAILURES:
        with pytest.raises(FAILURES[cell]):
            CALLS[verb](lake)
    else:
        CALLS[verb](lake)
    assert decided(lake, before) == re.findall(r"`(\w+)`", cell)


@pytest.mark.parametrize(
    ("verb", "expected"),
    [("drop", "deleted"), ("deregister", "deregistered"), ("create", None), ("purge", None)],
)
def test_a_rename_that_was_taken_back_and_cut_off_is_ended_first(tmp_path, verb, expected):
    lake = mooring.connect(tmp_path / "lake")
    bring_to(lake, "renaming")
    before = chains_of(lake).read(NAME)
    assert lake.table_exists(NAME)
    if expected:
        CALLS[verb](lake)
    else:
        with pytest.raises((TableAlreadyExistsError, TableNotFoundError)):
            CALLS[verb](lake)
    assert decided(lake, before) == ["live", *([expected] if expected else [])]


def test_every_state_has_a_row():
    assert {state for state, _, _ in TRANSITIONS} == {"nothing", *State}


@pytest.mark.parametrize("state", ["nothing", *State])
def test_status_of_a_state(tmp_path, manifest, state):
    told = {
        row["state"].strip("`"): row["`table_status`"].strip("`") for row in table_below("States")
    }
    told["nothing"] = "NotFound"
    manifest = manifest and state != "renaming"
    lake = mooring.connect(tmp_path / "lake", manifest_enabled=manifest)
    bring_to(lake, state)
    assert type(lake.table_status(NAME)).__name__ == told[state]
