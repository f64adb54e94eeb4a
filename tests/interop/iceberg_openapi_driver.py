"""Sends requests of the published OpenAPI document, and holds the answers against it.

Runs in the clients' environment, told by one line of JSON after the other, and imports nothing of
the project.
"""

from __future__ import annotations

import json
import os
import sys

# What the library prints must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import schemathesis  # noqa: E402  # after its prints are led away
from schemathesis.checks import (  # noqa: E402
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


class Driver:
    def start(self, spec: str, uri: str) -> None:
        self.schema = schemathesis.openapi.from_path(spec)
        self.uri = uri

    def operations(self):
        found = [one.ok() for one in self.schema.get_all_operations()]
        return sorted(f"{one.method.upper()} {one.path}" for one in found)

    def call(self, operation: str, path=None, query=None, body=None, media_type=None):
        """Send a request and return its status and its body; a wrong answer raises."""
        method, _, template = operation.partition(" ")
        given = {"path_parameters": {"prefix": "lake", **(path or {})}, "query": query or {}}
        if body is not None:
            given |= {"body": body, "media_type": media_type or "application/json"}
        case = self.schema[template][method].Case(**given)
        response = case.call(base_url=self.uri)
        case.validate_response(response, checks=CHECKS)
        return [response.status_code, response.json() if response.content else None]


def main() -> None:
    driver = Driver()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": getattr(driver, request.pop("do"))(**request)}
        except BaseException as exc:  # noqa: BLE001  # whoever asked gets it
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
