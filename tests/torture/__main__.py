"""Runs the torture, with sets in the same order in every process: that is part of a run."""

import os
import sys

if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Before anything is loaded that would have to be loaded again.
        os.execve(  # noqa: S606  # this very program
            sys.executable,
            [sys.executable, "-m", "tests.torture", *sys.argv[1:]],
            os.environ | {"PYTHONHASHSEED": "0"},
        )
    from .command import main

    sys.exit(main())
