"""A terminal of its own for a process, and somebody who types."""

import os
import pty
import subprocess
import sys
from pathlib import Path

__all__ = ["MOORING", "on_terminal"]

MOORING = str(Path(sys.executable).with_name("mooring"))


def on_terminal(args, answer="", *, when_shown=None, **environ):
    """Run the program on a terminal; return the exit code and everything it showed.

    Args:
        args: The arguments of the program.
        answer: What is typed, before anything is asked.
        when_shown: A text, and what is done with the process once it is shown.
        environ: Variables of the environment.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [MOORING, *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", **environ},
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the terminal closes with its last process
            break
        if not chunk:
            break
        shown += chunk
        if when_shown is not None and when_shown[0].encode() in shown:
            when_shown[1](process)
            when_shown = None
    os.close(ours)
    return process.wait(), shown.decode()
