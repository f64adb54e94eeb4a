"""The conformance suite's `test_columns`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_columns import *  # noqa: F403  # all that the other has
