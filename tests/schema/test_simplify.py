"""What simplify makes of a schema takes what the schema took: judged by jsonschema."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from burler.errors import DeclarationError
from burler.schema import openapi
from support.strategies import json_values


def component(schema):
    """The schema of a stream that a component of an OpenAPI document stands for."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "api.json"
        whole = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "components": {"schemas": {"X": schema}}}
        path.write_text(json.dumps(whole))
        return openapi(path, "X").load(where="here", config={})


def simplify(schema):
    """What becomes of a schema, as a field of a component."""
    return component({"type": "object", "properties": {"x": schema}})["properties"]["x"]


# 1 is nowhere in an enum: jsonschema takes it for true.
LEAVES = st.sampled_from(
    [
        {},
        {"type": "null"},
        {"type": "string"},
        {"type": "string", "maxLength": 1},
        {"type": "string", "enum": ["a", "b"]},
        {"enum": ["a", 3, None]},
        {"enum": [None]},
        {"type": ["string", "null"]},
        {"type": "integer"},
        {"type": "number", "minimum": 2},
        {"type": "boolean", "description": "d"},
        {"type": "array"},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts, "type": ["string", "null"]}),
        inner.map(lambda items: {"type": "array", "items": items}),
        st.dictionaries(st.sampled_from("ab"), inner).map(lambda p: {"type": "object", "properties": p}),
        inner.map(lambda extra: {"type": "object", "additionalProperties": extra}),
    ),
    max_leaves=6,
)
VALUES = json_values(
    st.sampled_from([None, "a", "b", "long", 1, 3, 2.5, True]),
    st.sampled_from("abc"),
    most=4,
)


@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=5))
def test_the_same_values_are_valid(schema, values):
    simple = simplify(schema)
    for value in values:
        assert jsonschema.Draft4Validator(simple).is_valid(value) == jsonschema.Draft4Validator(schema).is_valid(value)
    assert simplify(simple) == simple


MORE_LEAVES = st.one_of(
    LEAVES,
    st.sampled_from(
        [
            {"required": ["a"]},
            {"type": "object", "required": ["b"]},
            {"type": ["object", "null"]},
            {"type": ["null", "string"], "minLength": 2},
            {"minLength": 2},
            {"minimum": 2},
            {"type": ["integer", "array"]},
        ]
    ),
)
NOT_ALONE = st.recursive(
    MORE_LEAVES,
    lambda inner: st.one_of(
        st.builds(
            lambda word, parts, beside: {**beside, word: parts},
            st.sampled_from(["anyOf", "oneOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=3),
            st.sampled_from([{}, {}, {"title": "t"}, {"type": ["object", "null"]}, {"type": ["null", "string"]}]),
        ),
        inner.map(lambda part: {"not": part}),
        st.lists(inner, min_size=1, max_size=2).map(lambda items: {"type": "array", "items": items}),
        st.lists(inner, min_size=1, max_size=2).map(lambda items: {"items": items, "additionalItems": False}),
        st.dictionaries(st.sampled_from("ab"), inner).map(lambda p: {"type": "object", "properties": p}),
    ),
    max_leaves=8,
)


@given(NOT_ALONE, st.lists(VALUES, min_size=1, max_size=8))
@example({"not": {"anyOf": [{"oneOf": [{}, {}]}]}}, [None, 1])
def test_no_value_is_lost(schema, values):
    """Where branches are counted (oneOf) or turned round (not), a part that takes more makes the whole take less."""
    simple = jsonschema.Draft4Validator(simplify(schema))
    for value in values:
        assert simple.is_valid(value) or not jsonschema.Draft4Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    "schema",
    [
        {  # a value may fit both schemas of the inner union
            "oneOf": [
                {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]},
                {"type": "array", "items": {"type": "string"}},
            ]
        },
        {
            "anyOf": [
                {"type": ["null", "object"], "oneOf": [{"required": ["k"]}, {"required": ["m"]}]},
                {"type": "null"},
            ]
        },
        {"anyOf": [{"type": ["null", "string"], "not": {"type": "null"}}, {"type": "null"}]},
        {"not": {"type": "array", "items": [{"type": "string"}, {"type": "null"}]}},
        {"oneOf": [{"type": "array", "items": [{"type": "string"}]}, {"type": "array", "maxItems": 0}]},
        {"contains": {"items": [{"type": "string"}]}, "maxContains": 1},
        {  # the first branch says which fields are left over
            "anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object"}],
            "unevaluatedProperties": False,
        },
    ],
)
def test_what_can_not_be_said_shorter(schema):
    assert simplify(schema) == schema


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (  # types tell the branches apart, so one that takes more takes nothing from the other
            {"oneOf": [{"type": "array", "items": [{"type": "string"}]}, {"type": "string", "format": "date"}]},
            {"type": ["array", "string"], "items": {}, "format": "date"},
        ),
        (
            {"not": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            {"not": {"type": ["null", "string"]}},
        ),
        ({"anyOf": [{"enum": [True]}, {"enum": [1]}]}, {"type": ["boolean", "integer"], "enum": [True, 1]}),
        (
            {"oneOf": [{"type": "null"}, {"type": ["null", "string"], "maxLength": 3}]},
            {"type": ["null", "string"], "maxLength": 3},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["null", "string"]}),
        ({"oneOf": [{"type": "null"}, {"enum": ["a"]}]}, {"type": ["null", "string"], "enum": [None, "a"]}),
        ({"anyOf": [{"type": "string", "format": "date"}, {"type": "string"}]}, {"type": "string"}),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, {"type": "number"}),
        (
            {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "maxLength": 2}]},
            {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "maxLength": 2}]},
        ),
        (
            {"anyOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "null"}], "title": "t"},
            {"type": ["null", "string", "integer"], "title": "t"},
        ),
        (  # one keyword can't speak of both
            {"anyOf": [{"type": "string", "format": "date"}, {"type": "number", "format": "singer.decimal"}]},
            {"anyOf": [{"type": "string", "format": "date"}, {"type": "number", "format": "singer.decimal"}]},
        ),
        ({"const": 1}, {"type": "integer", "enum": [1]}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}], "items": False},
            {"type": "array", "items": {"type": ["null", "string"]}},
        ),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, {"type": "array", "items": {}}),
        (
            {"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "integer"}},
            {"type": "array", "items": {"type": ["string", "integer"]}},
        ),
        (
            {"type": "object", "properties": {"anyOf": {"const": "x"}}},
            {"type": "object", "properties": {"anyOf": {"type": "string", "enum": ["x"]}}},
        ),
    ],
)
def test_what_is_made(given, made):
    assert simplify(given) == made


def test_what_is_no_object_of_records():
    for schema in ({}, True, {"type": "string"}, {"type": "object"}, {"type": "object", "properties": {}}):
        with pytest.raises(DeclarationError):
            component(schema)


def test_fields_of_parts_that_could_not_be_merged_are_named():
    a, b = {"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "integer"}}, "not": {}}
    made = component({"allOf": [a, b]})
    assert made["type"] == "object"
    assert made["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}


OBJECTS = st.builds(
    lambda props, required: {"type": "object", "properties": props, "required": sorted(required & set(props)) or ["a"]},
    st.dictionaries(st.sampled_from("ab"), LEAVES, min_size=1),
    st.sets(st.sampled_from("ab")),
)


@given(st.lists(OBJECTS, min_size=1, max_size=3), st.dictionaries(st.sampled_from("ab"), VALUES))
def test_a_union_at_the_top_takes_what_its_branches_take(branches, value):
    union = {"anyOf": branches}
    made = component(union)
    assert made["type"] == "object"
    # A field that a branch does not know is no part of its rows (shaping drops it).
    known = {"anyOf": [{**branch, "additionalProperties": False} for branch in branches]}
    if jsonschema.Draft4Validator(known).is_valid(value):
        jsonschema.Draft4Validator(made).validate(value)
