"""Several steps taken in one transaction: all of them or none."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mooring.errors import MooringError, UnknownOutcomeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.metastore.making import Step
    from mooring.metastore.metastore import Metastore
    from mooring.metastore.transaction import Transaction
    from mooring.namespace.table_operations import Outcome

__all__ = ["take_steps"]


def take_steps(metastore: Metastore, steps: Sequence[Step]) -> list[Outcome]:
    """Prepare steps, do all of them in one transaction, and finish them."""

    def plan(txn: Transaction) -> None:
        for step in steps:
            step.plan(txn)

    with _abandoning(steps):
        for step in steps:
            step.prepare(metastore.begin())
        metastore.run(plan, message="; ".join(step.message for step in steps))
    return [step.finish() for step in steps]


@contextmanager
def _abandoning(steps: Sequence[Step]) -> Iterator[None]:
    """Leave nothing of steps that certainly were not taken."""
    try:
        yield
    except UnknownOutcomeError:
        for step in steps:
            step.unsettle()
        raise
    except MooringError:
        for step in steps:
            step.abandon()
        raise
