"""The program with one more verb, ``job``: parts that a test chooses, done by threads or Spark.

It is run as a process of its own; the parts are functions of the main module, which travel.
"""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from mooring.cli.app import app, main
from mooring.cli.options import command
from mooring.cli.session import Session  # noqa: TC001  # read at run time
from mooring.cli.spark import Conf, Master, UseSpark, choose_runner


def do(part: str) -> str:
    if part == "sleep":
        time.sleep(120)
    if part == "fail":
        msg = "this part cannot be done,\nfor two reasons"
        raise ValueError(msg)
    if part == "crash":
        os._exit(3)
    return part.upper()


@command
def job_command(
    session: Session,
    parts: Annotated[list[str] | None, typer.Argument()] = None,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Do parts."""
    with choose_runner(session, spark=spark, master=master, conf=conf, fits=True) as runner:
        session.output.record({"done": runner.run(do, parts or ["a", "b"], label="shouting")})


if __name__ == "__main__":
    app.command("job")(job_command)
    main()
