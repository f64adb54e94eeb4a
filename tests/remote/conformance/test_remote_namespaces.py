"""The conformance suite's `test_namespaces`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_namespaces import *  # noqa: F403  # all that the other has
