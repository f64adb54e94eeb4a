"""Help of a command with so many options that they are shown in groups."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from mooring.cli.options import SHARED_NAMES

__all__ = ["GroupedHelp"]

_SHARED = "Options of every command"
_OTHERS = "Options"


class GroupedHelp(TyperCommand):
    """A command whose options are shown under the panels that they name, in their order."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  # no public types
        """Write arguments and options, a section for each group."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(_group_of(parameter), []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


def _group_of(parameter: Any) -> str:  # noqa: ANN401  # no public type
    if parameter.param_type_name == "argument":
        return "Arguments"
    named: str | None = getattr(parameter, "rich_help_panel", None)
    is_shared = parameter.name in SHARED_NAMES or parameter.name == "help"
    return named or (_SHARED if is_shared else _OTHERS)
