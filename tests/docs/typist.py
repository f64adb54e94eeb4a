"""Types blocks of Python that it is told, one line of JSON each, into the Python that runs it.

Runs in environments that have no tests, and imports only what lies beside it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from documents import Block, run

# What blocks print must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def main() -> None:
    names: dict[str, object] = {"__name__": "document"}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            run(Block("", request["text"], request["line"]), Path(request["path"]), names)
            answer = {"result": None}
        except Exception as exc:  # noqa: BLE001  # whoever asked gets it
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
