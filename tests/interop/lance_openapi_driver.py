"""Sends requests of the published OpenAPI document, and holds the answers against it.

Runs in the clients' environment, told by one line of JSON after the other, and imports nothing of
the project.
"""

from __future__ import annotations

import base64
import json
import os
import sys

# What the library prints must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import lance_openapi_hooks  # noqa: E402, F401  # makes rows known
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
        self.operations_by_id = {
            one.ok().definition.raw["operationId"]: one.ok()
            for one in self.schema.get_all_operations()
        }

    def operations(self):
        return sorted(self.operations_by_id)

    def call(self, operation: str, path=None, query=None, body=None, rows=None):
        """Send a request and return its status and its body; a wrong answer raises."""
        found = self.operations_by_id[operation]
        given = {"path_parameters": path or {}, "query": query or {}}
        if rows is not None:
            media = "application/vnd.apache.arrow.stream"
            given |= {"body": base64.b64decode(rows), "media_type": media}
        elif body is not None:
            given |= {"body": body, "media_type": "application/json"}
        case = found.Case(**given)
        response = case.call(base_url=self.uri)
        case.validate_response(response, checks=CHECKS)
        if "json" in response.headers.get("content-type", [""])[0]:
            return [response.status_code, response.json()]
        return [response.status_code, base64.b64encode(response.content).decode()]


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
