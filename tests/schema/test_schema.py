"""What a stream's schema must be, and that its SCHEMA message is plain."""

from __future__ import annotations

import json

import pytest

import burler
from burler.errors import DeclarationError
from burler.testing import run_tap


def test_the_schema_message_holds_no_reference():
    tap = burler.tap("tap-x")

    @tap.sync("a")
    def rows():
        yield {"at": "2024-01-01T02:00:00+02:00", "by": {"name": "x"}}

    tap.schema(
        "a",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "https://example.com/a",
            "type": "object",
            "properties": {
                "at": {"$ref": "#/definitions/t"},
                "by": {"allOf": [{"$ref": "#/definitions/person"}, {"required": ["name"]}]},
            },
            "definitions": {
                "t": {"type": "string", "format": "date-time"},
                "person": {"type": "object", "properties": {"name": {"type": "string"}}},
            },
        },
    )
    run = run_tap(tap)
    [schema] = [message["schema"] for message in run.messages if message["type"] == "SCHEMA"]
    assert schema["properties"] == {
        "at": {"type": "string", "format": "date-time"},
        "by": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    }
    for word in ("$ref", "definitions", "allOf", "$id", "$schema"):
        assert word not in json.dumps(run.messages)
    assert run.records("a") == [{"at": "2024-01-01T00:00:00Z", "by": {"name": "x"}}]


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": []}])
def test_a_stream_without_properties_is_refused(schema):
    tap = burler.tap("tap-x")
    tap.schema("a", schema)

    @tap.sync("a")
    def rows():
        return []

    with pytest.raises(DeclarationError, match=r"stream 'a' \(.*test_schema\.py:\d+\): its schema must be"):
        run_tap(tap)


def test_a_cycle_names_the_stream():
    tap = burler.tap("tap-x")
    tap.schema("a", {"properties": {"child": {"$ref": "#"}}})

    @tap.sync("a")
    def rows():
        return []

    with pytest.raises(
        DeclarationError, match=r"^stream 'a' \(.*test_schema\.py:\d+\): the schema refers to itself: # -> #"
    ):
        run_tap(tap)
