"""Spans of OpenTelemetry."""

from __future__ import annotations

import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from starlette.testclient import TestClient

import mooring
from mooring.server.app import create_app
from mooring.server.tracing import Traced, can_trace
from tests.lakes import rows
from tests.server.gated import Failing

_TRACE, _PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def spans():
    return InMemorySpanExporter()


@pytest.fixture
def traced(spans):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return lambda app: TestClient(Traced(app, provider))


def test_request_is_a_span_below_that_of_its_client(tmp_path, spans, traced):
    lake = mooring.connect(tmp_path / "lake")
    lake.create_table("t", rows([1]))
    with traced(create_app(lake)) as client:
        client.post(
            "/lance/v1/table/t/describe?secret=x",
            json={},
            headers={"traceparent": f"00-{_TRACE}-{_PARENT}-01", "x-request-id": "abc"},
        )
    (span,) = spans.get_finished_spans()
    assert span.name == "POST /lance/v1/table/{id}/describe"
    assert span.kind is SpanKind.SERVER
    assert format(span.context.trace_id, "032x") == _TRACE
    assert format(span.parent.span_id, "016x") == _PARENT
    assert span.attributes["http.request.method"] == "POST"
    assert span.attributes["http.route"] == "/lance/v1/table/{id}/describe"
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["mooring.dialect"] == "lance"
    assert span.attributes["mooring.operation"] == "DescribeTable"
    assert span.status.status_code is StatusCode.UNSET
    assert "secret" not in str(span.to_json())


def test_failure_of_the_server_is_one_of_the_span(spans, traced):
    with traced(create_app(Failing(ZeroDivisionError()))) as client:
        assert client.post("/lance/v1/namespace/a/create", json={}).status_code == 500
        assert client.get("/elsewhere").status_code == 404
    failed, absent = spans.get_finished_spans()
    assert failed.status.status_code is StatusCode.ERROR
    assert absent.status.status_code is StatusCode.UNSET
    assert absent.name == "GET"


def test_server_works_without_opentelemetry(tmp_path, monkeypatch):
    assert can_trace()
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert not can_trace()
    with TestClient(create_app(mooring.connect(tmp_path / "lake"))) as client:
        assert client.get("/health/live").status_code == 200
