"""Schemas in a catalog that targets refuse, or make no columns of."""

import json

import pytest
from catalog_streams import TEXT, codes, contacts, of_field, one

from burler.spec import check_catalog


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        [],
        "object",
        {},
        {"type": "object"},
        {"type": "string"},
        {"type": "array", "items": TEXT},
        {"type": "object", "properties": {}},
        {"anyOf": [{"type": "object", "properties": {"id": TEXT}}]},
    ],
    ids=json.dumps,
)
def test_no_object(schema):
    assert codes(contacts(schema=schema, metadata=[])) == ["C107"]


@pytest.mark.parametrize(
    "change", [{"type": ["null", "object"]}, {"additionalProperties": False}, {"definitions": {"a": {"type": "int"}}}]
)
def test_an_object(change):
    stream = contacts()
    stream["schema"].update(change)
    assert codes(stream) == []
    del stream["schema"]["type"]
    assert codes(stream) == []


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("#/definitions/a", "is left in the schema"),
        ("#/definitions/b", "points to nothing"),
        ("#mark", "is left in the schema"),
        ("#none", "points to nothing"),
        ("#/definitions/list/items/0", "is left in the schema"),
        ("#/definitions/list/items/1", "points to nothing"),
        ("shared.json#/a", "points to another document"),
        ("https://example.org/a.json", "points to another document"),
    ],
)
def test_references_that_are_left(reference, words):
    stream = contacts(fields={"field": {"type": "array", "items": {"$ref": reference}}})
    stream["schema"]["definitions"] = {"a": {"$id": "#mark", **TEXT}, "list": {"items": [TEXT]}}
    finding = one(stream)
    assert (finding.code, finding.path) == ("C108", "field[]")
    assert words in finding.message


@pytest.mark.parametrize("reference", ["#", "#/properties/field", "#/definitions/a", "#/definitions/b"])
def test_references_that_lead_round(reference):
    stream = contacts(fields={"field": {"$ref": reference}})
    round_ = {"type": "object", "properties": {"c": {"$ref": "#/definitions/a"}}}
    stream["schema"]["definitions"] = {"a": {"type": "array", "items": {"$ref": "#/definitions/b"}}, "b": round_}
    assert codes(stream) == ["C109"]


def test_a_field_called_ref_is_a_field():
    assert of_field({"type": "object", "properties": {"$ref": TEXT, "type": TEXT, "items": TEXT}}) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("int", "'integer'"),
        ("datetime", '"format": "date-time"'),
        ("String", "'string'"),
        (["null", "float"], "'number'"),
        ("any", "anything"),
        ([], "empty"),
        (None, "not null"),
        (5, "not the number 5"),
        ({"type": "string"}, "not an object"),
        ("x" * 1000, "there is no type"),
    ],
    ids=lambda given: json.dumps(given)[:20],
)
def test_types_that_do_not_exist(given, words):
    finding = one(contacts(fields={"field": {"type": given}}))
    assert (finding.code, finding.path) == ("C123", "field")
    assert words in finding.message and len(finding.message) < 200


HARD = [
    {},
    {"description": "anything"},
    {"enum": ["a"]},
    True,
    {"type": "null"},
    {"type": ["string", "object"]},
    {"type": ["null", "integer", "string"]},
    {"type": "array"},
    {"type": "array", "items": [TEXT, TEXT]},
    {"type": "array", "prefixItems": [TEXT]},
    {"type": "object", "patternProperties": {"^x": TEXT}},
    {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    {"oneOf": [{"type": "string"}, {}]},
    {"anyOf": [{"type": "object", "properties": {"a": TEXT}}, {"type": "object", "properties": {"b": TEXT}}]},
    {"allOf": [{"type": "string"}]},
]


@pytest.mark.parametrize("node", HARD, ids=json.dumps)
def test_what_targets_make_no_column_of(node):
    assert of_field(node) == [("C124", "field")]
    assert of_field({"type": "array", "items": node}) == [("C124", "field[]")]
    assert of_field({"type": "object", "properties": {"a": node}}) == [("C124", "field.a")]


@pytest.mark.parametrize("node", HARD, ids=json.dumps)
def test_fields_that_never_come_are_left_alone(node):
    """A tap of a database publishes columns of odd types so."""
    assert of_field(node, said={"field": {"inclusion": "unsupported"}}) == []
    if node is not True:
        assert of_field({**node, "inclusion": "unsupported"}, said={"field": {}}) == []


@pytest.mark.parametrize(
    "node",
    [
        {"type": ["null", "integer", "number"]},
        {"anyOf": [{"type": "string", "format": "date-time"}, {"type": ["string", "null"]}]},
        {"anyOf": [{"type": "object", "properties": {"a": TEXT}}, {"type": "null"}]},
        {"oneOf": [{"type": "null"}, {"type": "array", "items": TEXT}]},
        {"anyOf": [{"type": "integer"}, {"type": "number"}]},
        {"type": "object", "properties": {"a": TEXT}, "anyOf": [{"required": ["a"]}, {"minProperties": 1}]},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "string", "not": {"enum": [""]}},
        {"type": "string", "maxLength": 5, "minLength": 0, "pattern": "^a", "title": "A", "enum": ["a"], "default": 1},
        {"type": "number", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 0.01},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1e300},
        {"type": "array", "items": TEXT, "uniqueItems": True, "minItems": 1.0},
        {"type": "string", "format": "uri"},
        {"type": "integer", "format": "int64"},
        {"type": "string", "format": "time"},
    ],
    ids=json.dumps,
)
def test_what_targets_take(node):
    assert of_field(node) == []


INVALID = [
    ({"type": ["string", "string"]}, "names a type twice"),
    ({"type": "string", "pattern": "("}, "does not compile"),
    ({"type": "string", "pattern": "a{99999999999}"}, "does not compile"),
    ({"type": "string", "pattern": None}, "null"),
    ({"type": "object", "required": True}, "draft 3"),
    ({"type": "object", "required": "id"}, "a list of names"),
    ({"type": "object", "properties": {"a": TEXT}, "required": ["a", "a"]}, "twice"),
    ({"type": "object", "properties": []}, "an object of names"),
    ({"type": "string", "enum": "a"}, "a list of values"),
    ({"type": "string", "enum": []}, "no value fits"),
    ({"type": "number", "minimum": "0"}, "a number"),
    ({"type": "number", "maximum": True}, "a number"),
    ({"type": "number", "multipleOf": 0}, "above 0"),
    ({"type": "number", "exclusiveMinimum": None}, "a number, or true or false"),
    ({"type": "string", "maxLength": -1}, "0 or more"),
    ({"type": "string", "maxLength": 1.5}, "0 or more"),
    ({"type": "array", "items": TEXT, "uniqueItems": "yes"}, "true or false"),
    ({"type": "string", "format": None}, "text"),
    ({"type": "string", "$ref": 5}, "text"),
    ({"type": "string", "anyOf": {}}, "one schema or more"),
    ({"type": "string", "dependencies": []}, "names and schemas"),
    ("string", "should be"),
    (None, "should be"),
]


@pytest.mark.parametrize(("node", "words"), INVALID, ids=lambda given: json.dumps(given)[:60])
def test_keywords_with_wrong_values(node, words):
    finding = one(contacts(fields={"field": {"type": "object", "properties": {"a": node}}}))
    assert (finding.code, finding.path) == ("C125", "field.a")
    assert words in finding.message


def test_keywords_are_looked_at_inside_conditions_too():
    assert of_field({"type": "string", "not": {"minLength": "1"}}) == [("C125", "field")]
    assert of_field({"type": "object", "patternProperties": {"(": TEXT}}) == [("C125", "field"), ("C124", "field")]


def test_a_schema_of_too_many_levels():
    node = TEXT
    for _ in range(120):
        node = {"type": "array", "items": node}
    assert {finding.code for finding in check_catalog({"streams": [contacts(fields={"field": node})]})} == {"C125"}


@pytest.mark.parametrize(
    "more",
    [{"additionalProperties": True}, {"patternProperties": {}}, {"anyOf": [{"required": ["a"]}]}],
    ids=json.dumps,
)
def test_required_fields_that_may_come_all_the_same(more):
    assert of_field({"type": "object", "properties": {}, "required": ["b"]}) == [("C131", "field")]
    assert of_field({"type": "object", "properties": {}, "required": ["b"], **more}) == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("datetime", "date-time"),
        ("Date-Time", "date-time"),
        ("singer_decimal", "singer.decimal"),
        ("ISO8601", "date-time"),
    ],
)
def test_formats_that_are_meant_for_others(given, meant):
    finding = one(contacts(fields={"field": {"type": "string", "format": given}}))
    assert finding.code == "C132" and f"'{meant}'" in finding.message
