"""Requests about what a table consists of and what was done to it.

Spec: lance-rest-openapi, GetTableStats, DescribeTransaction, AlterTransaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance_namespace as spec
from lance_namespace_urllib3_client.models.fragment_stats import FragmentStats
from lance_namespace_urllib3_client.models.fragment_summary import FragmentSummary

from mooring.errors import InvalidInputError
from mooring.namespace.lance.requests import Requests, choose, worded

if TYPE_CHECKING:
    from lance_namespace_urllib3_client.models.alter_transaction_action import (
        AlterTransactionAction,
    )

    from mooring.tables.transactions import Action, Transaction

__all__ = ["InsightRequests"]

_STATUSES = ("succeeded", "queued", "running", "failed", "canceled")
_IF_PRESENT = ("overwrite", "fail", "skip")
_IF_ABSENT = ("skip", "fail")


class InsightRequests(Requests):
    """Statistics and transactions."""

    @worded
    def get_table_stats(self, request: spec.GetTableStatsRequest) -> spec.GetTableStatsResponse:
        """Gather statistics; deleted rows are no rows of the table."""
        from mooring.tables.stats import gather_stats  # imports lance

        stats = gather_stats(self._locate(request.id), request.branch)
        lengths = stats.lengths
        return spec.GetTableStatsResponse(
            total_bytes=stats.bytes,
            num_rows=stats.rows,
            num_indices=stats.indexes,
            fragment_stats=FragmentStats(
                num_fragments=stats.fragments,
                num_small_fragments=stats.small_fragments,
                lengths=FragmentSummary(
                    min=lengths.min,
                    max=lengths.max,
                    mean=lengths.mean,
                    p25=lengths.p25,
                    p50=lengths.p50,
                    p75=lengths.p75,
                    p99=lengths.p99,
                ),
            ),
        )

    @worded
    def describe_transaction(
        self, request: spec.DescribeTransactionRequest
    ) -> spec.DescribeTransactionResponse:
        """Describe what made a version: the table's names, then a transaction or a version."""
        from mooring.tables.transactions import SUCCEEDED, describe_transaction  # imports lance

        names, key = _split(request.id)
        found = describe_transaction(self._locate(names), key)
        return spec.DescribeTransactionResponse(status=SUCCEEDED, properties=_properties(found))

    @worded
    def alter_transaction(
        self, request: spec.AlterTransactionRequest
    ) -> spec.AlterTransactionResponse:
        """Set and unset properties of a transaction; its status is that it has succeeded."""
        from mooring.tables.transactions import SUCCEEDED, alter_transaction  # imports lance

        names, key = _split(request.id)
        if not request.actions:
            msg = "altering a transaction needs at least one action"
            raise InvalidInputError(msg)
        actions = [_action(one) for one in request.actions]
        found = alter_transaction(self._locate(names), key, actions)
        return spec.AlterTransactionResponse(status=SUCCEEDED, properties=_properties(found))


def _split(names: list[str] | None) -> tuple[list[str], str]:
    """Part the identifier of a transaction into that of its table and its own."""
    if not names or len(names) < 2:  # noqa: PLR2004  # a table's name and its own
        msg = "a transaction is identified by its table's names and its own identifier or version"
        raise InvalidInputError(msg)
    return names[:-1], names[-1]


def _properties(found: Transaction) -> dict[str, str]:
    return {**found.properties, **found.facts}


def _action(action: AlterTransactionAction) -> Action:
    from mooring.tables.transactions import (  # imports lance
        IfAbsent,
        IfPresent,
        SetProperty,
        SetStatus,
        UnsetProperty,
    )

    given = (action.set_status_action, action.set_property_action, action.unset_property_action)
    if sum(one is not None for one in given) != 1:
        msg = "each action sets the status, sets a property or unsets one: one of the three"
        raise InvalidInputError(msg)
    if (status := action.set_status_action) is not None:
        return SetStatus(choose(status.status or "-", _STATUSES, "status"))
    if (change := action.set_property_action) is not None:
        if change.value is None:
            msg = "a property that is set needs a value"
            raise InvalidInputError(msg)
        mode = choose(change.mode, _IF_PRESENT, "mode")
        return SetProperty(change.key or "", change.value, IfPresent(mode))
    if (removal := action.unset_property_action) is not None:
        mode = choose(removal.mode, _IF_ABSENT, "mode")
        return UnsetProperty(removal.key or "", IfAbsent(mode))
    raise AssertionError(action)
