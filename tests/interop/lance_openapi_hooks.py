"""Bodies of rows for Schemathesis, which knows no Arrow: some that fit a table, and some broken.

Runs in the clients' environment, and imports nothing of the project.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.ipc
import schemathesis
from hypothesis import strategies


def _stream(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


PEOPLE = _stream(pa.table({"id": pa.array([7], pa.int32()), "name": ["x"]}))
OTHERS = _stream(pa.table({"word": ["a", None]}))
BODIES = [PEOPLE, OTHERS, PEOPLE[:200], PEOPLE[:-20], b"", b"no rows", b"\xff" * 100]

schemathesis.openapi.media_type(
    "application/vnd.apache.arrow.stream", strategies.sampled_from(BODIES)
)


@schemathesis.check
def has_code(ctx, response, case) -> None:
    """Make sure that every failure says by which of Lance's codes it is one."""
    if response.status_code < 400:
        return
    found = response.json()
    assert found["code"] in range(24), found
    assert found["error"], found
