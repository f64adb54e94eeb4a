"""The conformance suite's `test_nested_tables`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_nested_tables import *  # noqa: F403  # all that the other has
