"""``mooring adopt``: a catalog of deltacat becomes a metastore of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.listing import metastore_of
from mooring.cli.options import DryRun, command
from mooring.cli.session import Session
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from mooring.metastore.deltacat.adoption import Adoption

__all__ = ["adopt_command"]

_SCHEME = "metastore+"


@command
def adopt_command(
    session: Session,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="The catalog to take over: a path or URI; it is only read."
        ),
    ],
    dry_run: DryRun = False,
) -> None:
    """Take a catalog of deltacat's over into a new metastore, by one commit.

    All that is alive in it comes along with its ids, names, schemas and manifests. Data files stay
    where they are, and the new objects refer to them there. Name the new catalog with --catalog.
    """
    from mooring.metastore.deltacat.adoption import adopt
    from mooring.opening import connect

    root = source.removeprefix(_SCHEME)
    if root == session.uri.removeprefix(_SCHEME):
        msg = f"'{source}' cannot be taken over into itself: name another root with --catalog"
        raise InvalidInputError(msg)
    old = connect(
        f"{_SCHEME}{root}", read_only=True, storage_options=session.config.storage_options
    )
    new = metastore_of(session.open_catalog(may_create=True))
    found = adopt(old.metastore, new.store, author=new.author, dry_run=dry_run)
    if not dry_run:
        new.initialize()
    _tell(session, source, found)


def _tell(session: Session, source: str, found: Adoption) -> None:
    is_done = found.seq is not None
    counts = {f"{kind.value}s": count for kind, count in sorted(found.objects.items())}
    record: dict[str, object] = {
        "source": source,
        "result": "adopted" if is_done else "dry run",
        **counts,
        "data_files": found.data_files,
        "data_bytes": found.data_bytes,
    }
    told = ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "nothing"
    sentence = f"adopted {told}" if is_done else f"dry run: would adopt {told}; nothing was changed"
    session.output.change(record, sentence)
