"""What a server does by itself: the options of ``mooring serve`` about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.clock import parse_ttl
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.server.settings import ServerSettings

__all__ = ["ByItself", "PurgeEvery", "Survey", "WatchEvery", "WebhookSecretFile", "Webhooks"]

_SECRET = "MOORING_WEBHOOK_SECRET"  # noqa: S105  # where it stands, not what it is

# How the help groups them.
_GROUP = "What it does by itself"

Webhooks = Annotated[
    list[str] | None,
    typer.Option(
        "--webhook",
        metavar="URL",
        rich_help_panel=_GROUP,
        help="Send changes of the catalogs to this address; may be repeated.",
    ),
]
WebhookSecretFile = Annotated[
    Path | None,
    typer.Option(
        "--webhook-secret-file",
        metavar="FILE",
        rich_help_panel=_GROUP,
        help=f"A file with what signs them, instead of {_SECRET}.",
    ),
]
WatchEvery = Annotated[
    str,
    typer.Option(
        "--watch-every",
        metavar="DURATION",
        rich_help_panel=_GROUP,
        help="How often to look for changes while somebody listens or they are sent.",
    ),
]
PurgeEvery = Annotated[
    str | None,
    typer.Option(
        "--purge-every",
        metavar="DURATION",
        rich_help_panel=_GROUP,
        help="Purge expired tables so often: 1h; never unless given.",
    ),
]
Survey = Annotated[
    bool,
    typer.Option(
        "--survey/--no-survey",
        rich_help_panel=_GROUP,
        help="Look into all tables, slowly, once somebody looks at pages: columns can be searched.",
    ),
]


@dataclass(frozen=True, slots=True)
class ByItself:
    """What was said about what a server does by itself."""

    webhooks: tuple[str, ...]
    secret_file: Path | None
    watch_every: str
    purge_every: str | None
    survey: bool = True

    def apply(self, settings: ServerSettings, environ: Mapping[str, str]) -> ServerSettings:
        """Return settings with it.

        Raises:
            InvalidInputError: something makes no sense.
        """
        poll_s = _seconds(self.watch_every, "--watch-every")
        known = settings.background
        purge = self.purge_every
        background = replace(
            known,
            webhooks=self.webhooks,
            webhook_secret=self._secret(environ),
            poll_s=poll_s,
            idle_poll_s=max(poll_s, known.idle_poll_s),
            purge_every_s=None if purge is None else _seconds(purge, "--purge-every"),
            survey=self.survey,
        )
        return replace(settings, background=background)

    def _secret(self, environ: Mapping[str, str]) -> str | None:
        if self.secret_file is None:
            return environ.get(_SECRET) or None
        if not self.webhooks:
            raise InvalidInputError("--webhook-secret-file is of no use without --webhook")
        try:
            found = self.secret_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            msg = f"the secret of webhooks '{self.secret_file}' cannot be read: {exc}"
            raise InvalidInputError(msg) from exc
        if not found:
            raise InvalidInputError(f"'{self.secret_file}' is empty: write the secret into it")
        return found


def _seconds(text: str, option: str) -> float:
    duration_ms = parse_ttl(text)
    if not duration_ms:
        raise InvalidInputError(f"{option} is a duration that is not zero, as in 1h: not '{text}'")
    return duration_ms / 1000
