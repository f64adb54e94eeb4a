"""The conformance suite's `test_transactions`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_transactions import *  # noqa: F403  # all that the other has
