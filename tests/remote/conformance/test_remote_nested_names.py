"""The conformance suite's `test_nested_names`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_nested_names import *  # noqa: F403  # all that the other has
