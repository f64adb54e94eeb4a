"""Spark for a command: its options, and who does the parts of a job."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.progress import show_stages
from mooring.cli.session import Session, parse_pairs
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.jobs.runner import Runner
    from mooring.spark.session import SparkSettings

__all__ = ["Conf", "Master", "UseSpark", "choose_runner", "spark_settings"]

UseSpark = Annotated[
    bool | None,
    typer.Option(
        "--spark/--no-spark",
        show_default=False,
        help="Let Spark do it, or this process; by size unless given.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="The Spark to use: local[4], spark://host:7077, sc://host:15002; local[*] by default.",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
]


@contextmanager
def choose_runner(
    session: Session,
    *,
    spark: bool | None,
    master: str | None,
    conf: list[str] | None,
    fits: bool,
) -> Iterator[Runner]:
    """Say who does the parts of a job: threads of this process, or Spark.

    Spark starts when the job first asks for it, shows how far its stages have come, and is stopped
    at the end, unless it ran before. Its failures are told as ours.

    Args:
        session: The command's.
        spark: Whether to use Spark; None decides by size. A master or a setting asks for it, too.
        master: The Spark to use.
        conf: Settings of Spark, ``KEY=VALUE``.
        fits: Whether the job is small enough for this process.

    Raises:
        InvalidInputError: Spark is refused and its master or settings are given, or one makes no
            sense.
        UnsupportedError: Spark or its Java is not installed, and asked for.
    """
    settings = spark_settings(session, master=master, conf=conf)
    asked = master is not None or bool(conf)
    if spark is False and asked:
        msg = "--no-spark says not to use Spark, and --master or --conf how: leave one out"
        raise InvalidInputError(msg)
    if not (spark or asked or (spark is None and not fits and _is_installed())):
        from mooring.jobs.runner import Threads

        yield Threads()
        return
    from mooring.spark.failures import telling_failures
    from mooring.spark.runner import SparkRunner
    from mooring.spark.session import SessionKeeper

    quiet = not session.flags.verbose
    with ExitStack() as stack:
        meter = stack.enter_context(show_stages(session.output))
        keeper = stack.enter_context(SessionKeeper(settings, quiet=quiet))
        stack.enter_context(telling_failures())
        yield SparkRunner(keeper.session, meter)


def spark_settings(
    session: Session, *, master: str | None = None, conf: list[str] | None = None
) -> SparkSettings:
    """Decide the settings of Spark: flag, else environment, else profile.

    Raises:
        InvalidInputError: one makes no sense.
    """
    from mooring.spark.session import SparkSettings

    given = parse_pairs(conf or (), "setting of Spark")
    return SparkSettings(
        master or session.config.value("spark_master"), {**session.config.spark_conf, **given}
    )


def _is_installed() -> bool:
    return find_spec("pyspark") is not None
