"""The plan of a publication: what has to be done so that a Lance table holds a position."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from mooring.changes.changed_rows import BucketChange, find_changed, is_replaced
from mooring.changes.plan import plan_read
from mooring.errors import ConflictError, InvalidTableStateError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from mooring.changes.plan import Moment
    from mooring.changes.published_shape import Shape
    from mooring.tables.publications import PublishedVersion, Standing

__all__ = ["Action", "Demand", "PublishPlan", "plan_publish", "source_of"]


class Action(StrEnum):
    """What becomes of the Lance table."""

    CREATE = "create"
    UPDATE = "update"
    APPEND = "append"
    OVERWRITE = "overwrite"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Demand:
    """What is wanted.

    Attributes:
        into: The Lance table, for messages.
        full: Whether to write all rows anew.
        force: Whether to go on although somebody else changed the Lance table.
    """

    into: str
    full: bool = False
    force: bool = False


@dataclass(frozen=True)
class PublishPlan:
    """What is to be done.

    Attributes:
        action: What becomes of the Lance table.
        why: Why all rows are written anew, where they are.
        moment: The change table at the position.
        since: The position that is published; None where none is.
        changes: The buckets to look at.
        buckets: How many there are.
        standing: How far the Lance table has come; None where there is none.
    """

    action: Action
    moment: Moment
    changes: tuple[BucketChange, ...] = ()
    buckets: int = 0
    why: str | None = None
    since: int | None = None
    standing: Standing | None = None

    @property
    def rows(self) -> int:
        """How many rows of files tell what changed."""
        return sum(change.rows for change in self.changes)

    @property
    def published(self) -> PublishedVersion | None:
        """The newest version that a publication made."""
        return None if self.standing is None else self.standing.published


def plan_publish(
    moment: Moment, shape: Shape, standing: Standing | None, demand: Demand
) -> PublishPlan:
    """Plan how a Lance table gets to a position.

    Raises:
        ConflictError: the Lance table is no publication of this table.
        InvalidTableStateError: somebody else changed it.
    """
    published = None if standing is None else standing.published
    plan = PublishPlan(
        Action.NOTHING,
        moment,
        buckets=len(plan_read(moment).buckets),
        since=None if published is None else published.mark.position,
        standing=standing,
    )
    if standing is None:
        return _whole(plan, Action.CREATE, None)
    if demand.full:
        return _whole(plan, Action.OVERWRITE, "it was asked for")
    _require_own(plan, demand)
    since = plan.since or 0
    if moment.position < since:
        return plan  # it holds more already
    why = _why_anew(plan, shape, demand)
    if why is not None:
        return _whole(plan, Action.OVERWRITE, why)
    if moment.position == since:
        return plan
    action = Action.UPDATE if moment.table.definition.is_keyed else Action.APPEND
    return replace(plan, action=action, changes=tuple(find_changed(moment, since)))


def source_of(moment: Moment) -> str:
    """Return an id of a change table that no other has, whatever it is called."""
    return moment.table.lasting_id


def _require_own(plan: PublishPlan, demand: Demand) -> None:
    published, what = plan.published, plan.moment.table.what
    if published is None:
        msg = (
            f"table {quote(demand.into)} is there, and no publication of {what}: choose another"
            " name, or replace its rows with --full"
        )
        raise ConflictError(msg)
    if published.mark.source != source_of(plan.moment):
        msg = (
            f"table {quote(demand.into)} was published from another table than {what}, or from one"
            " that had its name before: replace its rows with --full"
        )
        raise ConflictError(msg)
    foreign = plan.standing.foreign if plan.standing else None
    if foreign is not None and not demand.force:
        msg = (
            f"table {quote(demand.into)} was changed since position {plan.since} was published:"
            f" {foreign}; go on and leave that with --force, or write all rows anew with --full"
        )
        raise InvalidTableStateError(msg)


def _why_anew(plan: PublishPlan, shape: Shape, demand: Demand) -> str | None:
    """Say why rows that changed are not enough; None where they are."""
    table, since, published = plan.moment.table, plan.since or 0, plan.published
    if published is not None and published.mark.settings != shape.digest(table.definition):
        return "columns or vectors are others than before"
    if plan.moment.position == since:
        return None
    if since < table.horizon:
        return f"changes before position {table.horizon} are tidied away"
    if is_replaced(plan.moment, since):
        return f"rows were replaced after position {since}"
    foreign = plan.standing.foreign if plan.standing else None
    if foreign is not None and demand.force and not table.definition.is_keyed:
        return "without merge keys nobody can tell which rows are there"
    return None


def _whole(plan: PublishPlan, action: Action, why: str | None) -> PublishPlan:
    reads = plan_read(plan.moment).buckets
    changes = tuple(BucketChange(read, read.pieces) for read in reads)
    return replace(plan, action=action, why=why, changes=changes)
