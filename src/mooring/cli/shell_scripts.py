"""The scripts by which shells ask this program to complete a line, and how it is asked.

Zsh and fish have Typer's scripts. Bash has its own here, because it breaks words at colons: Typer's
would take the line apart wherever a URI of a catalog stands in it.
"""

from __future__ import annotations

import os

__all__ = ["prepare_answer", "write_script"]

_NAME = "mooring"
_VARIABLE = "_MOORING_COMPLETE"

# The whole line up to the cursor is handed over, and -1 says that its last word is asked for.
# Bash replaces what follows the last colon only, so what stands before it is taken off again.
_BASH = """\
_mooring_completion() {
    local line=${COMP_LINE:0:COMP_POINT} word typed before=
    typed=${line##*[[:space:]]}
    [[ $typed == *:* ]] && before=${typed%"${typed##*:}"}
    [[ $line == *[[:space:]] ]] && line+="''"
    COMPREPLY=()
    while IFS= read -r word; do
        [[ -n $word ]] && COMPREPLY+=("${word#"$before"}")
    done < <(COMP_WORDS=$line COMP_CWORD=-1 _MOORING_COMPLETE=complete_bash "$1" 2>/dev/null)
}

complete -o default -F _mooring_completion mooring
"""


def write_script(shell: str) -> str:
    """Write the script of a shell."""
    if shell == "bash":
        return _BASH
    from typer import completion

    script = completion.get_completion_script(  # type: ignore[attr-defined]  # it is there
        prog_name=_NAME, complete_var=_VARIABLE, shell=shell
    )
    return f"{script}\n"


def prepare_answer() -> None:
    """Get ready to answer where a shell asks, and do nothing where none does."""
    if _VARIABLE not in os.environ:
        return
    from typer import completion

    completion.completion_init()  # type: ignore[attr-defined]  # it is there
