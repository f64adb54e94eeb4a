"""Shells complete what is typed: bash for real, and the others as far as this machine has them."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

import mooring
from mooring.cli.shell_scripts import write_script
from tests.cli.terminal import MOORING

# Completes a line as bash does when the Tab key is pressed at its end.
ASK = r"""
source ./script
COMP_LINE=$2 COMP_POINT=${#2}
complete -p mooring >&2
_mooring_completion "$1" 2>&1
printf '%s\n' "${COMPREPLY[@]}"
"""


def _complete(line, **environ):
    Path("script").write_text(write_script("bash"))
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK, "bash", MOORING, line],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MOORING_COMPLETION_SECONDS": "60", **environ},
    )
    assert done.returncode == 0
    assert done.stderr == "complete -o default -F _mooring_completion mooring\n"
    return done.stdout.split()


def test_bash_completes_verbs_options_and_names(plain):
    assert _complete("mooring tab") == ["table"]
    assert _complete("mooring table drop --dry") == ["--dry-run"]
    assert _complete("mooring -c plain --no-manifest table drop fl") == ["flights"]


@pytest.mark.interop
def test_bash_completes_whatever_the_line_holds(lake, run):
    at = {"MOORING_CATALOG": str(lake)}
    assert _complete(f"mooring -c file://{lake} table drop g") == ["guarded"]
    assert _complete(f"mooring ls -c file://{lake} --prof") == ["--profile"]
    assert _complete("mooring table drop a", **at) == ["a\\$b"]
    assert _complete("mooring table drop 'a", **at) == ["a$b"]
    assert _complete("mooring table undrop ", **at) == ["old", "older"]
    mooring.connect(lake).table("flights").tags.create("census", 1)
    assert _complete("mooring table query flights --tag ", **at) == ["census"]
    run("profile", "set", "prod", "s3://b")
    assert _complete("mooring ls --profile p") == ["prod"]
    mooring.connect(lake, manifest_enabled=False).create_table("by:day", [{"n": 1}])
    assert _complete("mooring --no-manifest table drop by:d", **at) == ["day"]


def test_a_store_that_does_not_answer_is_not_waited_for(monkeypatch, run):
    """The server takes the connection and says nothing."""
    monkeypatch.setenv("MOORING_COMPLETION_SECONDS", "0.2")
    monkeypatch.setenv("_MOORING_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_CWORD", "-1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        uri = f"lance+http://127.0.0.1:{server.getsockname()[1]}/lance"
        monkeypatch.setenv("COMP_WORDS", f"mooring -c {uri} table drop f")
        done = run()
    assert (done.exit_code, done.stdout.strip(), done.stderr) == (0, "", "")


def test_completion_writes_nothing(plain, monkeypatch, run):
    before = sorted(path.name for path in plain.rglob("*"))
    monkeypatch.setenv("_MOORING_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_CWORD", "-1")
    monkeypatch.setenv("COMP_WORDS", "mooring -c plain table drop fl")
    assert run().stdout.split() == ["flights"]
    assert sorted(path.name for path in plain.rglob("*")) == before


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_the_program_and_are_valid(run, tmp_path, shell):
    done = run("completion", shell)
    assert done.exit_code == 0
    assert f"complete_{shell}" in done.stdout
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} is on this machine to check the script's syntax")
    script = tmp_path / "script"
    script.write_text(done.stdout)
    assert subprocess.run([program, "-n", str(script)], check=False).returncode == 0


def test_an_unknown_shell_is_told_the_known_ones(run):
    done = run("completion", "tcsh")
    assert done.exit_code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr
