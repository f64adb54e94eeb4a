"""The conformance suite's `test_stats`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_stats import *  # noqa: F403  # all that the other has
