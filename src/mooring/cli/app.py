"""The program: its nouns, its options, and the one place where failures end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mooring.cli.commands import (
    adopt,
    audit,
    catalog,
    changes,
    changes_rows,
    compact,
    completion,
    doctor,
    exchange,
    ingest,
    inventory,
    lifecycle,
    migrate,
    namespace,
    namespace_lifecycle,
    profile,
    publish,
    run,
    runs,
    serve,
    spark_conf,
    sweep,
    table,
    table_columns,
    table_indexes,
    table_objects,
    table_query,
    table_refs,
    table_rows,
    table_upkeep,
    table_versions,
    token,
    tour,
    trash,
    txn,
    ui,
    vacuum,
    watch,
)
from mooring.cli.failures import Invocation
from mooring.cli.grouped_help import GroupedHelp
from mooring.cli.options import group
from mooring.cli.shell_scripts import prepare_answer

__all__ = ["app", "main"]

_INTERRUPTED = 130


class Program(TyperGroup):
    """The program as a group of commands that ends in an exit code, never in a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,  # noqa: ANN401  # as the class above has it
    ) -> Any:  # noqa: ANN401  # as the class above has it
        """Run a command line and exit."""
        del standalone_mode
        prepare_answer()
        words = list(sys.argv[1:] if args is None else args)
        invocation = Invocation(words)
        try:
            code = super().main(
                words,
                prog_name or "mooring",
                complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                obj=invocation,
                **extra,
            )
            sys.stdout.flush()
        except KeyboardInterrupt:
            code = _INTERRUPTED
        except BrokenPipeError:
            _forget_stdout()
            code = 1
        except Exception as exc:  # noqa: BLE001  # nobody above could tell it better
            code = invocation.tell(exc)
        sys.exit(code or 0)


# Help with borders takes rich, and with it three times as long.
app = typer.Typer(cls=Program, name="mooring", rich_markup_mode=None, add_completion=False)
app.command("init")(catalog.init_command)
app.command("ls")(catalog.list_command)
app.command("doctor")(doctor.doctor_command)
app.command("migrate")(migrate.migrate_command)
app.command("adopt")(adopt.adopt_command)
app.command("vacuum")(vacuum.vacuum_command)
app.command("compact")(compact.compact_command)
app.command("publish")(publish.publish_command)
app.command("audit")(audit.audit_command)
app.command("inventory")(inventory.inventory_command)
app.command("ingest")(ingest.ingest_command)
app.command("run")(run.run_command)
app.command("export")(exchange.export_command)
app.command("import")(exchange.import_command)
app.command("serve", cls=GroupedHelp)(serve.serve_command)
app.command("ui")(ui.ui_command)
app.command("watch")(watch.watch_command)
app.command("tour")(tour.tour_command)
app.command("completion")(completion.completion_command)
app.command("spark-conf")(spark_conf.spark_conf_command)
app.add_typer(namespace.app, name="namespace")
app.add_typer(table.app, name="table")
app.add_typer(changes.app, name="changes")
app.add_typer(trash.app, name="trash")
app.add_typer(txn.app, name="txn")
app.add_typer(runs.app, name="runs")
app.add_typer(profile.app, name="profile")
app.add_typer(token.app, name="token")
changes_rows.add_to(changes.app)
lifecycle.add_to(table.app)
table_query.add_to(table.app)
table_rows.add_to(table.app)
table_versions.add_to(table.app)
table_upkeep.add_to(table.app)
table_objects.add_to(table.app)
table.app.add_typer(table_refs.tag_app, name="tag")
table.app.add_typer(table_refs.branch_app, name="branch")
table.app.add_typer(table_columns.app, name="column")
table.app.add_typer(table_indexes.app, name="index")
namespace_lifecycle.add_to(namespace.app)
sweep.add_to(trash.app)


def _show_version(ctx: typer.Context, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from mooring import __version__

    typer.echo(f"mooring {__version__}")
    if ctx.obj.is_verbose:
        _show_surroundings()
    raise typer.Exit


def _show_surroundings() -> None:
    """Tell what a report of a fault needs to say."""
    import platform

    from mooring.cli.versions import installed, working_versions

    others = {name: found for name, found in working_versions().items() if name != "mooring"}
    spark = installed("pyspark") or "not installed"
    for name, found in {**others, "pyspark": spark, "platform": platform.platform()}.items():
        typer.echo(f"{name} {found}")


@app.callback(invoke_without_command=True)
@group
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_show_version,
            help="Show the version; with -v also those of Lance, Python and the platform.",
        ),
    ] = False,
) -> None:
    """Tie names to Lance tables in object storage.

    A catalog is a directory of tables: on disk, in S3, Google Cloud Storage or Azure; with
    metastore+ before it, a metastore; iceberg+http://HOST is an Iceberg REST catalog,
    lance+http://HOST/lance what a server of Mooring's or another Lance REST server keeps. Name it
    with --catalog, MOORING_CATALOG or a profile. A table t in a namespace a is named a$t, which a
    shell takes in single quotes. Options may stand before or after the verb.

    Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 5 refused or not confirmed.
    """
    del version


def main() -> None:
    """Run the program."""
    # Lance warns on stderr about commits that lose a race, which are answered properly here.
    os.environ.setdefault("LANCE_LOG", "error")
    app()


def _forget_stdout() -> None:
    """Keep the interpreter from flushing into a pipe that nobody reads."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
