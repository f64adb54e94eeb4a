"""The tour shows commands of this program, runs them, and leaves nothing behind."""

import os
import re
import shlex
import signal
from pathlib import Path

import pytest
from typer.core import TyperGroup

import mooring
from mooring.cli.tour.story import FILES, NEXT, STEPS
from tests.cli.terminal import on_terminal
from tests.program import PROGRAM

LINES = [line.text for step in STEPS for line in step.lines]


def left_in(folder):
    """Name what is there, but the turns of writers, which all processes of a user share."""
    return [path.name for path in folder.iterdir() if path.suffix != ".turn"]


@pytest.fixture
def temporary(monkeypatch, tmp_path):
    """Where temporary folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.mark.parametrize("line", [*LINES, *(line for line, _ in NEXT)])
def test_every_line_is_one_of_the_programs(line):
    name, *words = shlex.split(line)
    assert name == "mooring"
    command = PROGRAM
    while isinstance(command, TyperGroup):
        context = command.make_context(name, list(words), resilient_parsing=True)
        words = [*context._protected_args, *context.args]
        if not words:
            assert "--help" in line
            return
        name, command, words = command.resolve_command(context, words)
        assert command is not None, line
    if "--help" not in line:
        command.make_context(name, list(words))


def test_the_tour_runs_whole_and_can_be_kept(run, temporary, monkeypatch):
    """Neither a catalog that is set nor a format gets in its way."""
    monkeypatch.setenv("MOORING_CATALOG", "s3://nobody/has/this")
    monkeypatch.setenv("MOORING_OUTPUT", "json")
    place = Path.cwd()
    done = run("tour", "--keep", "kept/here")
    assert done.exit_code == 0, done.output
    assert os.environ["MOORING_OUTPUT"] == "json"
    assert Path.cwd() == place
    told = done.stdout
    assert [line for line in LINES if f"{line}\n" not in told.replace(" &\n", "\n")] == []
    assert re.findall(r"^exit code (\d)$", told, re.MULTILINE) == ["3", "5"]
    assert sorted(re.findall(r"^\w+, exit code (\d):$", told, re.MULTILINE)) == ["0", "4"]
    assert "0 problems" in told
    assert "\033[" not in told
    kept = mooring.connect("kept/here/lake", read_only=True)
    assert [str(table) for table in kept.list_all_tables()] == ["cities", "geo$places", "prize"]
    assert left_in(temporary) == []


def test_the_tour_waits_on_a_terminal_and_q_leaves(temporary):
    code, shown = on_terminal(["tour"], "\nq\n", COLUMNS="40", NO_COLOR="1")
    assert code == 0
    assert f"1 of {len(STEPS)}. {STEPS[0].heading}" in shown
    assert "is ready; dropped tables stay" in shown
    assert STEPS[1].heading not in shown
    assert "nothing of it is left" in " ".join(shown.split())
    assert "\033[" not in shown
    # A path that is longer than a line stays whole, by itself.
    prose = [line for line in shown.splitlines() if " " in line and line[0] not in "$ c"]
    assert max(map(len, prose)) <= 40
    assert left_in(temporary) == []


def test_an_interrupt_leaves_the_tour_cleanly(temporary):
    code, shown = on_terminal(
        ["tour", "--keep", "kept"],
        when_shown=("q leaves", lambda process: process.send_signal(signal.SIGINT)),
    )
    assert code == 130
    # Lines are folded where the place has a long name.
    assert f"Everything stays in {Path('kept').absolute()}:" in " ".join(shown.split())
    assert sorted(path.name for path in Path("kept").iterdir()) == sorted(FILES)
    assert left_in(temporary) == []


def test_the_end_of_the_input_leaves_the_tour(temporary):
    code, shown = on_terminal(["tour"], "\x04")
    assert code == 0
    assert "Until another time" in shown
    assert left_in(temporary) == []


@pytest.mark.parametrize("place", ["full", "file"])
def test_a_directory_that_is_not_new_is_not_kept_in(run, place):
    Path("full").mkdir()
    Path("full/precious").touch()
    Path("file").touch()
    done = run("tour", "--keep", place)
    assert done.exit_code == 4
    assert "name a new" in done.stderr
    assert [path.name for path in Path("full").iterdir()] == ["precious"]
