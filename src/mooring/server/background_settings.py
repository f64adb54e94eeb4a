"""What a server does by itself: watch its catalogs, tell others of changes, purge."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mooring.config import mask_uris
from mooring.errors import InvalidInputError

__all__ = ["BackgroundSettings"]

_SCHEMES = {"http", "https"}


@dataclass(frozen=True, slots=True)
class BackgroundSettings:
    """How a server works by itself.

    Attributes:
        poll_s: How often a catalog is looked at while somebody wants to know of changes.
        idle_poll_s: How often at the least where nothing changes.
        heartbeat_s: How often those who listen hear something.
        kept_events: How many events are kept for those who come back.
        most_waiting: How many events may wait for one who listens; more, and it has to begin anew.
        webhooks: Where changes are sent to.
        webhook_secret: What proves that they come from this server; None to sign nothing.
        purge_every_s: How often expired tables are purged; None for never.
        survey: Whether columns, rows and sizes of all tables are found out once somebody looks at
            pages, so that they can be searched for and sorted by.
    """

    poll_s: float = 1.0
    idle_poll_s: float = 5.0
    heartbeat_s: float = 15.0
    kept_events: int = 10_000
    most_waiting: int = 1_000
    webhooks: tuple[str, ...] = field(default=(), repr=False)  # an address may hold a token
    webhook_secret: str | None = field(default=None, repr=False)
    purge_every_s: float | None = None
    survey: bool = True

    def __post_init__(self) -> None:
        """Refuse what makes no sense.

        Raises:
            InvalidInputError: it does not.
        """
        for uri in self.webhooks:
            _check_webhook(uri)
        if self.purge_every_s is not None and self.purge_every_s <= 0:
            raise InvalidInputError("to purge every so often takes a time that is not zero: 1h")


def _check_webhook(uri: str) -> None:
    try:
        found = urlsplit(uri)
        is_fine = found.scheme in _SCHEMES and bool(found.hostname)
        found.port  # noqa: B018  # raises where it is none
    except ValueError:
        is_fine = False
    if not is_fine:
        msg = (
            f"a webhook is an address that begins with http:// or https://, not {mask_uris(uri)!r}"
        )
        raise InvalidInputError(msg)
