"""Lines for a shell that do what they say, whatever is in a name."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.server.catalogs import MooringCatalog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.visit import Visit

__all__ = ["catalog_words", "command_line", "direct_flags", "whole_uri"]

_SCHEMES = ("metastore+",)
_FLAGS = {"manifest_enabled": "--no-manifest", "dir_listing_enabled": "--no-listing"}


def catalog_words(visit: Visit) -> list[str]:
    """Return how a command of whoever looks begins: directly where that may be known."""
    direct = visit.direct_uri
    if direct is None:
        return ["mooring", "-c", visit.remote_uri]
    return ["mooring", "-c", whole_uri(direct), *direct_flags(visit)]


def whole_uri(uri: str) -> str:
    """Return how a catalog is opened from any directory: a path is that of this server's."""
    scheme = next((one for one in _SCHEMES if uri.startswith(one)), "")
    rest = uri.removeprefix(scheme)
    return uri if "://" in rest else f"{scheme}{Path(rest).absolute()}"


def direct_flags(visit: Visit) -> list[str]:
    """Return the options with which the catalog is opened as this server has it."""
    served = visit.served
    if not isinstance(served, MooringCatalog):
        return []
    options = served.catalog.options
    return [flag for option, flag in _FLAGS.items() if options.get(option) is False]


def command_line(words: Sequence[str], *arguments: str) -> str:
    """Write a command.

    Args:
        words: The command with its options.
        arguments: What follows them; one that begins with a dash is no option.
    """
    apart = ["--"] if any(one.startswith("-") for one in arguments) else []
    return shlex.join([*words, *apart, *arguments])
