"""Schemas as fields in words, and what differs between two of them."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from site_demo import NOW
from site_reading import describe, make_site

from burler.lake import FileStats, LakeWriter, open_store
from burler.singer.messages import Schema, format_time

AT = format_time(NOW)
TYPES = [
    ({"type": "integer"}, "integer"),
    ({"type": ["null", "string"], "format": "date-time"}, "string (date-time) or null"),
    ({"type": ["integer", "string"]}, "integer or string"),
    ({"type": "array", "items": {"type": ["null", "number"]}}, "array of number"),
    ({"type": "array", "items": {"type": "array", "items": {}}}, "array of array"),
    ({"type": "array", "items": [{"type": "string"}]}, "array of fixed length"),
    ({"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}, "string (date) or null"),
    ({"oneOf": [{"type": "integer"}, {"type": "object"}]}, "integer or object"),
    ({"enum": ["a", 1, None]}, "string or integer or null one of a, 1, null"),
    ({"const": True}, "boolean always true"),
    ({"type": "null"}, "null"),
    ({}, "any"),
    (True, "any"),
    (False, "nothing"),
    ({"type": 7}, "any"),
    ({"type": "number", "minimum": 0, "exclusiveMaximum": 10.5, "multipleOf": 0.01, "title": "Count"},
     "number Count at least 0; a multiple of 0.01; less than 10.5"),
    ({"enum": list(range(20))}, "integer one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"),
    ({"const": "x", "default": "x"}, "string always x; default x"),
    ({"type": "integer", "minimum": 1, "exclusiveMinimum": True},
     "integer at least 1; more than its limit, not equal"),
    ({"description": 7, "enum": "no list"}, "any"),
]  # fmt: skip
NESTED = {
    "type": "object",
    "description": "All of it.",
    "required": ["id", "a.b"],
    "properties": {
        "id": {"type": "integer"},
        "a.b": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "grid": {"type": "array", "items": {"type": "array", "items": {"properties": {"x": {"type": "number"}}}}},
        "either": {"anyOf": [{"properties": {"left": {}}}, {"properties": {"right": {}}}, {"type": "null"}]},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "": {"patternProperties": {"^x": {"type": "boolean"}}},
        "home": {"$ref": "#/definitions/place"},
    },
    "definitions": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
PATHS = ["id", '"a.b"', "tags", "tags[].name", "grid", "grid[][].x", "either", "either.left", "either.right"]
PATHS += ["map", "map.*", '""', '""./^x/', "home", "home.city"]


def deep(levels: int) -> dict:
    schema: dict = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


ODD = {
    "nothing": ({}, ""),
    "nulls": ({"properties": None}, ""),
    "values": ({"properties": {"a": None, "b": 3}}, "a any"),
    "a_list": ({"type": "object", "properties": []}, ""),
    "astray": ({"properties": {"home": {"$ref": "#/definitions/none"}}}, "References could not be resolved"),
    "circle": ({"properties": {"a": {"$ref": "#/properties/a"}}}, "References could not be resolved"),
    "wide": ({"properties": {f"f{n}": {"type": "string"} for n in range(5_001)}}, "Only the first 5,000 fields"),
    "deep": (deep(300), "deeper than 30 levels"),
}
OLD = {
    "properties": {
        "id": {"type": "integer"},
        "gone": {"type": "string"},
        "name": {"type": "string", "maxLength": 10},
        "list": {"type": "array", "items": {"properties": {"a": {"type": "string"}}}},
    }
}
NEW = {
    "properties": {
        "id": {"type": ["null", "number"]},
        "name": {"type": "string", "maxLength": 20, "description": "How one is called."},
        "list": {"type": "array", "items": {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}},
        "box": {"type": "object", "properties": {"a": {"properties": {"b": {}}}, "c": {"type": "string"}}},
    }
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A stream for each of these schemas."""
    base = tmp_path_factory.mktemp("fields")
    schemas = {name: [schema] for name, (schema, _) in ODD.items()}
    schemas["types"] = [{"properties": {f"c{n}": node for n, (node, _) in enumerate(TYPES)}}]
    schemas |= {"nested": [NESTED], "changed": [OLD, NEW]}
    for name, versions in schemas.items():
        stats = [FileStats(1, 1, AT, AT, sequence=n) for n in range(len(versions))]
        describe(base / "lake", name, versions, stats, tap="tap-x")
    return make_site(open_store(str(base / "lake")), base / "site")


def test_types_and_limits_are_said_in_words(site):
    text = site.text(site.page_of("types"))
    for number, (node, words) in enumerate(TYPES):
        assert f"c{number} {words} " in text, (node, text[text.index(f"c{number} ") :][:80])


def test_fields_are_listed_with_the_path_that_leads_to_them(site):
    assert "All of it." in site.text(site.page_of("nested"))
    index = site.index()
    names = [stream for _, stream, *_ in index["streams"]]
    found = [path for path, streams, *_ in index["fields"] if "nested" in [names[number] for number in streams]]
    assert sorted(found) == sorted(PATHS)


def test_what_can_not_be_shown_is_said_and_does_no_harm(site):
    assert site.problems == []
    for name, (_, said) in ODD.items():
        assert said in site.text(site.page_of(name)), name


def test_differences_are_told_in_words(site):
    text = site.text(site.page_of("changed"))
    assert "Since v1: 2 added, 1 removed, 2 changed" in text
    for change in (
        "+ added box object, with 3 fields inside",
        "− removed gone string",
        "~ changed id type: was integer, now number; may be null now",
        "~ changed name limits: was at most 10 characters, now at most 20 characters; description is new: “How one",
        "+ added list[].b integer",
    ):
        assert change in text, change


def test_limits_are_said_of_exact_numbers_too(lake, tmp_path):
    """As a lake gives them: numbers with a point are Decimals. Changed keys are told."""
    node = {"exclusiveMinimum": Decimal("0.5"), "multipleOf": Decimal("0.1"), "enum": [{"a": Decimal("1.5")}]}
    for keys in (("n",), ("n", "m")):
        with LakeWriter(lake.store, "tap-x", emit_state=lambda state: None) as writer:
            writer.schema(Schema("s", {"properties": {"n": node, "m": {"default": len(keys)}}}, keys))
    text = make_site(lake.store, tmp_path / "site").text("taps/tap-x/s.html")
    assert json.dumps({"a": 1.5}) in text
    assert "a multiple of 0.1" in text and "more than 0.5" in text
    assert "keys: was n, now n, m" in text
