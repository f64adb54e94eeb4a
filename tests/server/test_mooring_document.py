"""The published document of ``/mooring/v1`` is true, and whole."""

from __future__ import annotations

import json

import openapi_spec_validator
from starlette.testclient import TestClient

import mooring
from mooring.server.app import create_app
from mooring.server.mooring.document import encode_document, failures_of, make_document
from mooring.server.mooring.routes import ROUTES, find_route
from tests.docs.documents import DOCS


def test_document_is_one_of_openapi():
    openapi_spec_validator.validate(make_document())


def test_every_route_is_in_it_and_nothing_else():
    told = {
        (method.upper(), path)
        for path, methods in make_document()["paths"].items()
        for method in methods
    }
    beside = {("GET", "/v1/openapi.json"), ("GET", "/v1/changes")}
    assert told == {(route.method, route.path) for route in ROUTES} | beside


def test_addresses_that_are_no_routes_are_served(tmp_path):
    app = create_app(mooring.connect(tmp_path))
    assert "/mooring/v1/changes" in {getattr(one, "path", None) for one in app.routes}
    assert TestClient(app).get("/mooring/v1/openapi.json").json() == make_document()


def test_names_and_addresses_are_of_one_route_each():
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    for route in ROUTES:
        segments = [part.encode() for part in route.path.strip("/").split("/")]
        assert find_route(route.method, segments).route is route


def test_variable_parts_and_bodies_are_told():
    paths = make_document()["paths"]
    for route in ROUTES:
        told = paths[route.path][route.method.lower()]
        inside = {one["name"] for one in told["parameters"] if one["in"] == "path"}
        assert inside == {part.strip("{}") for part in route.segments if part.startswith("{")}
        asked = {one["name"] for one in told["parameters"] if one["in"] == "query"}
        assert set(route.params) <= asked
        assert ("requestBody" in told) == (route.takes is not None)
        assert {str(status) for status in failures_of(route)} < set(told["responses"])


def test_copy_beside_the_reference_is_up_to_date():
    """Bring it up to date with "python docs/generate.py"."""
    text = (DOCS / "reference/mooring-rest.json").read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(encode_document())
