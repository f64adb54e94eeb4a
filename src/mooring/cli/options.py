"""Options that every command takes, before or after its verb.

The program, each noun and each verb declare the same options; `Flags.collect` gathers what was
given at any of these levels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from mooring.cli.completion import (
    complete_any,
    complete_deregistered,
    complete_dropped,
    complete_dropped_namespaces,
    complete_live,
    complete_namespaces,
    complete_profiles,
)
from mooring.cli.output import Format
from mooring.cli.session import Flags, Session

__all__ = [
    "SHARED_NAMES",
    "AnyLiveName",
    "AnyName",
    "DeregisteredName",
    "DroppedName",
    "DroppedNames",
    "DroppedNamespace",
    "DryRun",
    "LiveName",
    "LiveNames",
    "NamespaceName",
    "NewName",
    "NewNamespace",
    "OptionalNamespace",
    "OptionalUri",
    "TimeToLive",
    "Yes",
    "command",
    "group",
]

NewName = Annotated[
    str, typer.Argument(metavar="NAME", help="The table's name: t, or a$t where it lies in a.")
]
AnyName = Annotated[
    str, typer.Argument(metavar="NAME", help="A table, live or not.", autocompletion=complete_any)
]
LiveName = Annotated[
    str, typer.Argument(metavar="NAME", help="A live table.", autocompletion=complete_live)
]
AnyLiveName = Annotated[
    str, typer.Argument(metavar="NAME", help="A live table.", autocompletion=complete_any)
]
LiveNames = Annotated[
    list[str], typer.Argument(metavar="NAME", help="Live tables.", autocompletion=complete_any)
]
DroppedName = Annotated[
    str, typer.Argument(metavar="NAME", help="A dropped table.", autocompletion=complete_dropped)
]
DroppedNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Dropped tables.", autocompletion=complete_dropped),
]
DeregisteredName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A deregistered table, or a new name.",
        autocompletion=complete_deregistered,
    ),
]
NewNamespace = Annotated[
    str, typer.Argument(metavar="NAME", help="The namespace's name: a, or a$b where it lies in a.")
]
NamespaceName = Annotated[
    str, typer.Argument(metavar="NAME", help="A namespace.", autocompletion=complete_namespaces)
]
OptionalNamespace = Annotated[
    str,
    typer.Argument(
        metavar="NAMESPACE",
        help="A namespace; the root unless given.",
        autocompletion=complete_namespaces,
        show_default=False,
    ),
]
DroppedNamespace = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A dropped namespace.", autocompletion=complete_dropped_namespaces
    ),
]
TimeToLive = Annotated[
    str | None,
    typer.Option(
        "--ttl", metavar="DURATION", help="How long to stay in the trash: 7d, 12h, never."
    ),
]
OptionalUri = Annotated[
    str | None, typer.Argument(metavar="URI", help="The catalog, instead of --catalog.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Go on without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen, change nothing.")]


def _shared(
    *,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            "-c",
            metavar="URI",
            help="The catalog: a path, or an s3://, gs:// or az:// URI; a metastore with"
            " metastore+ before it; an Iceberg REST catalog as iceberg+http://HOST; a Lance REST"
            " server as lance+http://HOST/lance.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            autocompletion=complete_profiles,
            help="A profile of the configuration file.",
        ),
    ] = None,
    storage: Annotated[
        list[str] | None,
        typer.Option(
            "--storage",
            metavar="KEY=VALUE",
            help="An option of the store, or of a server, as in iceberg.root=s3://b/t or"
            " lance.token=T; may be repeated.",
        ),
    ] = None,
    read_only: Annotated[
        bool | None,
        typer.Option(
            "--read-only/--no-read-only",
            show_default=False,
            help="Refuse every change.",
        ),
    ] = None,
    manifest: Annotated[
        bool | None,
        typer.Option(
            "--manifest/--no-manifest",
            show_default=False,
            help="Use the catalog's manifest, which namespaces need; so it is by default.",
        ),
    ] = None,
    listing: Annotated[
        bool | None,
        typer.Option(
            "--listing/--no-listing",
            show_default=False,
            help="Find root tables by their directories, too; so it is by default.",
        ),
    ] = None,
    output: Annotated[
        Format | None,
        typer.Option("--output", "-o", help="How to write data."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No messages.")] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Log, and show the traceback of a failure.",
        ),
    ] = False,
) -> None:
    """Declare the options; only the signature is used."""


_SHARED = tuple(inspect.signature(_shared, eval_str=True).parameters.values())
SHARED_NAMES = tuple(parameter.name for parameter in _SHARED)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options, and a session made of them as its first argument."""
    own = tuple(inspect.signature(function, eval_str=True).parameters.values())[1:]

    def run(ctx: typer.Context, **values: object) -> None:
        session = Session(Flags.collect(ctx))
        ctx.obj.enter(session)
        function(session, **{parameter.name: values[parameter.name] for parameter in own})

    return _with_signature(run, function, own)


def group(function: Callable[..., None]) -> Callable[..., None]:
    """Give a noun, or the program, the shared options; without a verb it shows its help."""
    own = tuple(inspect.signature(function, eval_str=True).parameters.values())

    def run(ctx: typer.Context, **values: object) -> None:
        function(**{parameter.name: values[parameter.name] for parameter in own})
        if ctx.invoked_subcommand is None:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2)

    return _with_signature(run, function, own)


def _with_signature(
    run: Callable[..., None], function: Callable[..., None], own: tuple[inspect.Parameter, ...]
) -> Callable[..., None]:
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    # A command may have an option of a shared name, which then is its own.
    taken = {parameter.name for parameter in own}
    shared = [parameter for parameter in _SHARED if parameter.name not in taken]
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (context, *own, *shared)
    ]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # Typer reads the options from here.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # of functions
    return run
