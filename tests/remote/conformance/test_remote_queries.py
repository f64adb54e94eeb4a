"""The conformance suite's `test_queries`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_queries import *  # noqa: F403  # all that the other has
