"""``mooring completion``: what a shell needs to complete command lines of this program."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from mooring.cli.options import command
from mooring.cli.session import Session

__all__ = ["Shell", "completion_command"]


class Shell(StrEnum):
    """The shells that are known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_INSTALL = {
    Shell.BASH: "mooring completion bash > ~/.local/share/bash-completion/completions/mooring",
    Shell.ZSH: "mooring completion zsh > ~/.zfunc/_mooring",
    Shell.FISH: "mooring completion fish > ~/.config/fish/completions/mooring.fish",
}


@command
def completion_command(
    session: Session,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a script with which a shell completes verbs, options and names by the Tab key.

    Names of tables, namespaces, tags, columns and profiles are those of the catalog that the line
    is about, at that moment; nothing is written for it, and a catalog that does not answer soon is
    left out.

    bash: put it into ~/.local/share/bash-completion/completions/mooring, or once for this shell:
    source <(mooring completion bash)

    zsh: put it into ~/.zfunc/_mooring, and into ~/.zshrc: fpath+=~/.zfunc; autoload -Uz compinit;
    compinit

    fish: put it into ~/.config/fish/completions/mooring.fish
    """
    from mooring.cli.shell_scripts import write_script

    sys.stdout.write(write_script(shell))
    if sys.stdout.isatty():
        session.output.message(f"to keep it: {_INSTALL[shell]}")
