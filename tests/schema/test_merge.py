"""Two schemas as one: what both ask for, and what stays apart. jsonschema, which is not ours, is the judge."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
from jsonschema import Draft4Validator

import burler
from burler.schema import resolve_refs
from burler.testing import run_tap

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}


def merged(*parts, **node):
    schema = {"allOf": list(parts), **node}
    before = copy.deepcopy(schema)
    out = resolve_refs(schema, source="x")
    assert schema == before
    assert resolve_refs(out, source="x") == out, "merging again changes nothing"
    return out


@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        ({"type": "string"}, {"type": "string"}, {"type": "string"}),
        ({"type": ["null", "string"]}, {"type": "string"}, {"type": "string"}),
        ({"type": ["null", "string"]}, {"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": ["null", "string", "object"]}, {"type": ["object", "null"]}, {"type": ["object", "null"]}),
        ({"type": "number"}, {"type": "integer"}, {"type": "integer"}),
        ({"type": ["integer", "string"]}, {"type": "number"}, {"type": "integer"}),
        ({"enum": ["a", "b", 1]}, {"enum": ["b", "c", 1.0]}, {"enum": ["b", 1]}),
        ({"minLength": 2}, {"minLength": 3, "maxLength": 5}, {"minLength": 3, "maxLength": 5}),
        ({"maxItems": 2, "minItems": 1}, {"maxItems": 3, "minItems": 0}, {"maxItems": 2, "minItems": 1}),
        ({"minimum": 1, "maximum": 5.5}, {"minimum": 1.5, "maximum": 9}, {"minimum": 1.5, "maximum": 5.5}),
        ({"minimum": 1}, {"exclusiveMinimum": 1}, {"minimum": 1, "exclusiveMinimum": 1}),
        (
            {"minimum": 1, "exclusiveMinimum": True},
            {"minimum": 1},
            {"minimum": 1, "exclusiveMinimum": True},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"minimum": 2}, {"minimum": 2}),
        ({"maximum": 1, "exclusiveMaximum": True}, {"maximum": 2}, {"maximum": 1, "exclusiveMaximum": True}),
        ({"multipleOf": 4}, {"multipleOf": 6}, {"multipleOf": 12}),
        ({"multipleOf": 0.01}, {"multipleOf": 0.1}, {"multipleOf": 0.1}),
        ({"multipleOf": 2.5}, {"multipleOf": 2}, {"multipleOf": 10}),
        ({"uniqueItems": True}, {"uniqueItems": False}, {"uniqueItems": True}),
        ({"required": ["a", "b"]}, {"required": ["c", "a"]}, {"required": ["a", "b", "c"]}),
        ({"pattern": "a"}, {"pattern": "a"}, {"pattern": "a"}),
        ({"const": {"a": 1}}, {"const": {"a": 1.0}}, {"const": {"a": 1}}),
        ({"propertyNames": TEXT}, {"propertyNames": {"minLength": 1}}, {"propertyNames": {**TEXT, "minLength": 1}}),
        ({"items": TEXT}, {"items": {"minLength": 1}}, {"items": {**TEXT, "minLength": 1}}),
        (
            {"format": "date", "title": "1"},
            {"format": "date-time", "title": "2"},
            {"format": "date-time", "title": "2"},
        ),
        (
            {"dependencies": {"a": ["b"], "c": TEXT}},
            {"dependencies": {"a": ["d", "b"], "c": {"minLength": 1}}},
            {"dependencies": {"a": ["b", "d"], "c": {**TEXT, "minLength": 1}}},
        ),
        ({"patternProperties": {"^a": TEXT}}, {"patternProperties": {"^b": TEXT}}, None),
        ({"anyOf": [TEXT]}, {"oneOf": [NUMBER]}, {"anyOf": [TEXT], "oneOf": [NUMBER]}),
        ({"additionalProperties": TEXT}, {"additionalProperties": {"minLength": 1}}, None),
        (True, TEXT, TEXT),
        ({}, TEXT, TEXT),
    ],
)
def test_what_one_schema_can_say(one, two, both):
    out = merged(one, two)
    assert "allOf" not in out
    if both is not None:
        assert out == both
    for keyword, value in (both or {}).items():
        assert type(out[keyword]) is type(value) or isinstance(value, float | int)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"type": "string"}, {"type": "integer"}),
        ({"pattern": "a"}, {"pattern": "b"}),
        ({"const": 1}, {"const": True}),
        ({"enum": [1]}, {"enum": [True]}),
        ({"anyOf": [TEXT, NUMBER]}, {"anyOf": [{"minLength": 1}]}),
        ({"oneOf": [TEXT, NUMBER]}, {"oneOf": [{"minLength": 1}]}),
        ({"not": TEXT}, {"not": NUMBER}),
        ({"if": TEXT, "then": {"minLength": 1}}, {"if": NUMBER, "else": TEXT}),
        ({"contains": TEXT}, {"contains": NUMBER, "minContains": 2}),
        ({"contains": TEXT, "minContains": 2, "maxContains": 3}, {"contains": NUMBER}),
        ({"items": [TEXT]}, {"items": NUMBER}),
        ({"items": [TEXT], "additionalItems": False}, {"items": [TEXT, TEXT]}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 2}),
        ({"minimum": "1"}, {"minimum": 2}),
        ({"multipleOf": 0.4}, {"multipleOf": 0.6}),
        ({"multipleOf": 10**300 + 1}, {"multipleOf": 10**300 + 3}),
        ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": TEXT}}),
        ({"contentEncoding": "base64"}, {"contentEncoding": "hex"}),
        ({"type": [{"type": "string"}]}, {"type": "string"}),
    ],
)
def test_what_it_can_not_is_left_standing(one, two):
    out = merged({"title": "x", **one}, {"minProperties": 1, **two})
    assert out == {"title": "x", "minProperties": 1, **two, "allOf": [one]}
    assert merged(one, **two) == {**two, "allOf": [one]}


def test_three_that_differ():
    out = merged({"pattern": "a"}, {"pattern": "b"}, pattern="c")
    assert out == {"pattern": "c", "allOf": [{"pattern": "a"}, {"pattern": "b"}]}
    assert merged(out, out, {"pattern": "c"}) == out
    # What is left over is itself as few schemas as can be.
    out = merged({"pattern": "a"}, {"not": TEXT}, {"const": 1}, pattern="b", const=2, **{"not": NUMBER})
    assert out == {"pattern": "b", "const": 2, "not": NUMBER, "allOf": [{"pattern": "a", "not": TEXT, "const": 1}]}


def test_nothing_fits_false():
    assert merged(False, TEXT) is False
    assert merged(TEXT, additionalProperties={"allOf": [False, {}]}) == {**TEXT, "additionalProperties": False}


def test_what_is_no_schema_is_left_standing():
    assert merged({"properties": {"a": TEXT}}, properties=5) == {
        "properties": 5,
        "allOf": [{"properties": {"a": TEXT}}],
    }
    assert resolve_refs({"allOf": {"a": 1}}, source="x") == {"allOf": {"a": 1}}
    assert resolve_refs({"allOf": []}, source="x") == {}


def test_inheritance():
    """Base, extension, own: the columns come in this order, and the node's own words win."""
    base = {"type": "object", "title": "Base", "properties": {"id": INTEGER, "x": {"type": ["null", "number"]}}}
    more = {"properties": {"b": TEXT, "x": {"type": ["integer", "null"]}}, "required": ["b"]}
    out = merged(base, more, title="Own", properties={"c": TEXT}, required=["id"])
    assert out == {
        "type": "object",
        "title": "Own",
        "properties": {"id": INTEGER, "x": {"type": ["integer", "null"]}, "b": TEXT, "c": TEXT},
        "required": ["b", "id"],
    }
    assert list(out["properties"]) == ["id", "x", "b", "c"]


def test_nested_all_of():
    deep = {"allOf": [{"allOf": [{"properties": {"a": {"allOf": [TEXT, {"minLength": 1}]}}}]}, {"type": "object"}]}
    assert merged(deep) == {"type": "object", "properties": {"a": {**TEXT, "minLength": 1}}}


# ---- closed objects ------------------------------------------------------------------------------


def test_a_closed_part_closes_what_both_declare():
    """By the letter, no object with field b fits the closed part: such a schema would be good for nothing."""
    closed = {"properties": {"a": TEXT}, "additionalProperties": False}
    fields = {"properties": {"a": TEXT, "b": NUMBER}, "additionalProperties": False}
    for parts in ([closed, {"properties": {"b": NUMBER}}], [{"properties": {"b": NUMBER}}, closed]):
        out = merged(*parts)
        assert out == fields
        assert Draft4Validator(out).is_valid({"a": "x", "b": 1})
        assert not Draft4Validator(out).is_valid({"c": 1})
    open_part = {"properties": {"b": NUMBER}, "additionalProperties": True}
    assert merged(closed, open_part) == fields
    assert (
        resolve_refs({"$ref": "#/definitions/c", "properties": {"b": NUMBER}, "definitions": {"c": closed}}, source="x")
        == fields
    )


def test_no_field_of_a_closed_part_is_lost_in_a_run():
    tap = burler.tap("tap-x")
    tap.schema(
        "a",
        {
            "allOf": [{"$ref": "#/$defs/base"}, {"type": "object", "properties": {"b": NUMBER}}],
            "$defs": {"base": {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False}},
        },
    )

    @tap.sync("a")
    def rows():
        yield {"a": "x", "b": 1, "unknown": 2}

    run = run_tap(tap)
    assert run.records("a") == [{"a": "x", "b": 1}]
    [schema] = [message["schema"] for message in run.messages if message["type"] == "SCHEMA"]
    assert list(schema["properties"]) == ["a", "b"] and "allOf" not in schema


def test_a_rule_for_further_fields_holds_for_the_other_sides_fields():
    rule = {"properties": {"a": NUMBER}, "patternProperties": {"^p": NUMBER}, "additionalProperties": {"minLength": 2}}
    out = merged(rule, {"properties": {"a": {"minimum": 1}, "b": TEXT, "p": {"minimum": 1}}})
    assert out["properties"] == {"a": {**NUMBER, "minimum": 1}, "b": {**TEXT, "minLength": 2}, "p": {"minimum": 1}}
    assert out["additionalProperties"] == {"minLength": 2} and "allOf" not in out


@pytest.mark.parametrize("extra", [False, TEXT])
def test_a_rule_for_further_fields_beside_patterns_is_left_standing(extra):
    strict = {"properties": {"a": TEXT}, "additionalProperties": extra}
    loose = {"properties": {"b": NUMBER}, "patternProperties": {"^p": NUMBER}}
    for parts in ([strict, loose], [loose, strict]):
        out = merged(*parts)
        # All fields are named where readers look for columns; what is strict stays as strict as it was.
        assert set(out["properties"]) == {"a", "b"}
        assert out["allOf"] == [parts[0]] and out.get("patternProperties") == parts[1].get("patternProperties")
        assert not Draft4Validator(out).is_valid({"p": 1})


def test_unevaluated_properties():
    """They judge what the keywords around them leave over: the node's see its parts, a part's see that part alone."""
    base = {"properties": {"a": TEXT}}
    assert merged(base, properties={"b": TEXT}, unevaluatedProperties=False) == {
        "properties": {"a": TEXT, "b": TEXT},
        "unevaluatedProperties": False,
    }
    closed = {**base, "unevaluatedProperties": False}
    assert merged(closed, title="T") == {**closed, "title": "T"}
    assert merged(closed, properties={"b": TEXT}) == {"properties": {"a": TEXT, "b": TEXT}, "allOf": [closed]}
    both = {"properties": {"x": {"allOf": [closed, {"properties": {"b": TEXT}}]}}}
    assert merged(both)["properties"]["x"]["allOf"] == [closed]


def test_a_regular_expression_is_not_run_on_names():
    """Fields that a pattern may take from the rule for further ones: both rules stand, and both hold."""
    rule = {"properties": {"a": TEXT}, "patternProperties": {"^p.": NUMBER}, "additionalProperties": TEXT}
    more = {"properties": {"px": {"minimum": 1}, "q": {"minLength": 2}}}
    for parts in ([rule, more], [more, rule]):
        out = merged(*parts)
        assert set(out["properties"]) == {"a", "px", "q"}, "named where readers look for columns"
        both = Draft4Validator({"allOf": parts})
        for value in (3, 0, "x", "xx", None):
            for name in ("a", "px", "q", "r"):
                assert Draft4Validator(out).is_valid({name: value}) == both.is_valid({name: value})
    # What knows all fields needs no look at its patterns.
    assert "allOf" not in merged(rule, {"properties": {"a": {"minLength": 1}}})


SLOW_NAME = "a" * 60 + "!"
HOSTILE = {
    "a pattern that never ends": {
        "allOf": [
            {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": TEXT},
            {"properties": {SLOW_NAME: {}}},
        ]
    },
    "choices": {"allOf": [{"enum": [f"{letter}{n}" for n in range(20_000)]} for letter in "ab"]},
    "patterns": {"allOf": [{"pattern": f"a{n}"} for n in range(2000)]},
    "unions": {"allOf": [{"anyOf": [{"minimum": n}]} for n in range(2000)]},
    "odd patterns": {
        "allOf": [
            {"properties": {f"b{n}": {}}, "patternProperties": {f"({n})": {}}, "additionalProperties": TEXT}
            for n in range(500)
        ]
    },
    "multiples": {"allOf": [{"multipleOf": 10**300 + n} for n in range(1, 60)]},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_small_documents_take_little_time(name):
    """A program of its own, for what hangs in a regular expression can't be stopped otherwise."""
    code = (
        "import json, sys\nfrom burler.schema import resolve_refs\n"
        "json.dump(resolve_refs(json.load(sys.stdin), source='x'), sys.stdout)"
    )
    text = json.dumps(HOSTILE[name])
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) < 3 * len(text)


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [("^p", ["p", "pa", "pp"]), ("p$", ["p", "ap", "pp"]), ("^p$", ["p"]), ("p", ["p", "pa", "ap", "apa", "pp"])],
)
def test_a_pattern_takes_names_from_the_rule_for_further_fields_where_it_is_found(pattern, taken):
    names = ["p", "pa", "ap", "apa", "pp", "q"]
    rule = {"patternProperties": {pattern: {}}, "additionalProperties": {"minLength": 2}}
    out = merged(rule, {"properties": {name: {"type": "string"} for name in names}})
    assert [name for name in names if "minLength" not in out["properties"][name]] == taken
    for name in names:
        assert Draft4Validator({"allOf": [rule]}).is_valid({name: "x"}) is (name in taken), "as a validator has it"
