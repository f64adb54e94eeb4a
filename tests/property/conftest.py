"""Settings of hypothesis: a busy machine is no failure, and a failure can be repeated."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("mooring", deadline=None, print_blob=True)
settings.load_profile("mooring")
