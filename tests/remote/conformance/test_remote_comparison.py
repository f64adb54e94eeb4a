"""The conformance suite's `test_comparison`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_comparison import *  # noqa: F403  # all that the other has
