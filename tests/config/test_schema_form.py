"""A JSON Schema as config_spec: told from an example, checked in words, defaults at every depth, secrets marked."""

from __future__ import annotations

import copy
import json

import jsonschema
import pytest

from burler.config import parse_spec
from burler.errors import ConfigError, DeclarationError

SECRET = "canary-s3cr3t-config-0123456789abcdef"  # not a new one each time: it is part of names of tests
NEW = hasattr(jsonschema, "Draft202012Validator")

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["url", "key", "db"],
    "properties": {
        "url": {"type": "string", "minLength": 1, "description": "Where the API is."},
        "key": {"type": "string", "secret": True},
        "since": {"type": "string", "format": "date-time"},
        "pages": {"type": "integer", "minimum": 1, "maximum": 500, "default": 100},
        "rate": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.1},
        "mode": {"enum": ["fast", "slow"], "default": "fast"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": True},
        "db": {
            "type": "object",
            "required": ["host"],
            "properties": {
                "host": {"type": "string"},
                "port": {"type": "integer", "default": 5432},
                "pin": {"type": "string", "writeOnly": True},
                "tls": {"type": "object", "properties": {"check": {"type": "boolean", "default": True}}},
            },
        },
        "accounts": {"type": "array", "items": {"$ref": "#/$defs/account"}},
    },
    "$defs": {
        "account": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "phrase": {"type": "string", "format": "password"},
                "depth": {"type": "integer", "default": 1},
            },
        }
    },
}
GOOD = {"url": "https://x", "key": SECRET, "db": {"host": "h"}}


def form(schema, **more):
    return parse_spec(schema, place="tap_x.py:3", folder=None, **more)


def check(schema, config):
    return form(schema).check(config, tap_name="tap-x")


def refused(schema, config):
    with pytest.raises(ConfigError) as caught:
        check(schema, config)
    return str(caught.value)


# ---- schema or example ----------------------------------------------------------------------------

SCHEMAS = [
    {"$schema": "http://json-schema.org/draft-07/schema#"},
    {"type": "object", "properties": {}},
    {"type": ["object", "null"], "properties": {"a": {"type": "integer"}}, "made-by": "somebody"},
    {"type": "object"},
    {"type": "object", "required": ["a"], "x-note": 1},
    {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
    {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
]
EXAMPLES = [
    {},
    {"url": "x"},
    {"type": "postgres", "host": "h"},
    {"type": "object", "bucket": "b"},
    {"properties": "file.properties"},
    {"properties": ["id"]},
    {"properties": {"a": {"x": 1}}, "url": "x"},
    {"title": "x", "required": ["a"]},
    {"anyOf": ["a"]},
]


@pytest.mark.parametrize("spec", SCHEMAS, ids=json.dumps)
def test_what_is_a_schema(spec):
    assert type(form(spec)).__name__ == "SchemaForm"


@pytest.mark.parametrize("spec", EXAMPLES, ids=json.dumps)
def test_what_is_an_example(spec):
    assert type(form(spec)).__name__ == "ExampleForm"
    check(spec, spec)


# ---- problems in words ----------------------------------------------------------------------------


def test_a_good_config_passes_and_nothing_is_changed():
    schema, config = copy.deepcopy(SCHEMA), copy.deepcopy(GOOD)
    got = check(schema, config)
    assert (schema, config) == (SCHEMA, GOOD)
    got["db"]["host"] = "changed"
    assert config == GOOD


def test_everything_at_once_and_no_value():
    config = {
        "url": "", "since": "2024-01-01T00:00:00", "pages": 0, "rate": 0, "mode": SECRET,
        "tags": [SECRET, 5, SECRET], "db": {"port": SECRET, "tls": SECRET}, "accounts": [{}, {"name": 1}],
    }  # fmt: skip
    assert refused(SCHEMA, config).splitlines() == [
        "tap-x: config lacks 'key', 'accounts.0.name', 'db.host'. Put it into the --config file or set TAP_X_KEY, "
        "TAP_X_DB__HOST",
        "  config 'accounts.1.name' must be text, not a whole number",
        "  config 'db.port' must be a whole number, not text",
        "  config 'db.tls' must be an object, not text",
        '  config \'mode\' must be one of "fast", "slow"',
        "  config 'pages' must be at least 1",
        "  config 'rate' must be above 0",
        "  config 'since' must be an RFC 3339 date-time with a zone, like 2024-01-31T00:00:00Z",
        "  config 'tags' must have at most 2 values",
        "  config 'tags' must not hold a value twice",
        "  config 'tags.1' must be text, not a whole number",
        "  config 'url' must not be empty",
    ]


def test_a_missing_object_is_named_by_the_keys_that_must_be_in_it():
    text = refused(SCHEMA, {"url": "x", "key": "x"})
    assert text == "tap-x: config lacks 'db.host'. Put it into the --config file or set TAP_X_DB__HOST"


@pytest.mark.parametrize(
    ("part", "value", "says"),
    [
        ({"type": ["integer", "null"]}, "x", "must be a whole number or null, not text"),
        ({"type": "boolean"}, 1, "must be true or false, not a whole number"),
        ({"type": "integer"}, True, "must be a whole number, not true or false"),
        ({"type": "integer"}, 1.5, "must be a whole number, not a number"),
        ({"const": 5}, SECRET, "must be 5"),
        ({"exclusiveMaximum": 9}, 9, "must be below 9"),
        ({"minimum": 1, "exclusiveMinimum": True}, 1, "must be above 1"),
        ({"maximum": 1}, 2, "must be at most 1"),
        ({"multipleOf": 0.1}, 0.35, "must be a multiple of 0.1"),
        ({"maxLength": 3}, SECRET, "must have at most 3 characters"),
        ({"minLength": 50}, SECRET, "must have at least 50 characters"),
        ({"pattern": "^[0-9]+$"}, SECRET, "must match the pattern ^[0-9]+$"),
        ({"format": "date"}, "2024-02-30", "must be a date like 2024-01-31"),
        ({"format": "date-time"}, "2024-W01-1T00:00:00Z", "must be an RFC 3339 date-time"),
        ({"minItems": 1}, [], "must not be empty"),
        ({"minProperties": 1}, {}, "must have at least 1 keys"),
        ({"contains": {"const": 1}}, [2, SECRET], "holds no value of the kind that must be among them"),
        ({"not": {"type": "string"}}, SECRET, "is of a form that the schema rules out"),
        ({"not": True}, 1, "is of a form that the schema rules out"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, [], "must be text or a whole number, not a list"),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 5, "fits more than one of the forms"),
        ({"if": {"minimum": 5}, "then": {"maximum": 9}, "else": {"minimum": 3}}, 10, "must be at most 9"),
        ({"if": {"minimum": 5}, "then": {"maximum": 9}, "else": {"minimum": 3}}, 2, "must be at least 3"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "lacks 'k.b', which 'a' asks for"),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, "lacks 'k.b'"),
        ({"propertyNames": {"maxLength": 2}}, {"abc": 1}, "must have at most 2 characters"),
        ({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, ["x", 1], "'k.0' must be a whole number"),
        ({"additionalProperties": False, "properties": {"host": {}}}, {"hots": 1}, "'k.hots' is not known. Did you me"),
        ({"$ref": "#/$defs/n", "maximum": 5}, 6, "must be at most 5"),
        ({"$ref": "#/$defs/n"}, "x", "must be a whole number, not text"),
        ({"allOf": [{"type": "integer"}, {"minimum": 5}]}, 1, "must be at least 5"),
    ],
)  # fmt: skip
def test_each_rule_in_words(part, value, says):
    schema = {"type": "object", "properties": {"k": part}, "$defs": {"n": {"type": "integer"}}}
    text = refused(schema, {"k": value})
    assert says in text
    assert SECRET not in text and "hunter" not in text


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"type": "integer"}, 5.0), ({"multipleOf": 0.1}, 0.3), ({"format": "date-time"}, "2024-01-01T00:00:00+02:00"),
        ({"format": "date-time"}, "2024-01-01t00:00:00.123456789z"), ({"format": "uri"}, "any text"),
        ({"type": ["string", "null"]}, None), (True, 5), ({"enum": ["5", 5]}, 5), ({"minimum": 5}, "text"),
        ({"exclusiveMinimum": 4}, 5), ({"const": {"a": [1]}}, {"a": [1]}), ({"oneOf": [{"minimum": 1}, False]}, 5),
        ({"if": True, "then": {"minimum": 1}}, 1), ({"items": [{"type": "string"}]}, ["a", 5]), ({"contains": {}}, [1]),
    ],
)  # fmt: skip
def test_what_fits(part, value):
    assert check({"type": "object", "properties": {"k": part}}, {"k": value}) == {"k": value}


def test_branches_say_what_each_of_them_wants():
    schema = {
        "type": "object",
        "properties": {
            "auth": {
                "oneOf": [
                    {"type": "object", "required": ["token"], "properties": {"token": {"type": "string"}}},
                    {"type": "object", "required": ["user", "password"]},
                ]
            }
        },
    }
    check(schema, {"auth": {"token": "x"}})
    assert refused(schema, {"auth": {"token": 5, "user": SECRET}}) == (
        "tap-x: config 'auth' fits none of the 2 forms that the schema gives: (1) 'auth.token' must be text, not a "
        "whole number (2) lacks 'auth.password'"
    )


def test_many_problems_are_cut():
    schema = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}
    lines = refused(schema, {"n": ["x"] * 1000}).splitlines()
    assert len(lines) == 31 and lines[-1] == "  ... and 970 more"


# ---- defaults -------------------------------------------------------------------------------------


def test_defaults_at_every_depth():
    got = check(SCHEMA, {**GOOD, "accounts": [{"name": "a"}, {"name": "b", "depth": 5}], "more": 1})
    assert got == {
        **GOOD,
        "pages": 100,
        "mode": "fast",
        "db": {"host": "h", "port": 5432, "tls": {"check": True}},
        "accounts": [{"name": "a", "depth": 1}, {"name": "b", "depth": 5}],
        "more": 1,
    }


def test_a_default_is_a_copy_each_time():
    schema = {"type": "object", "properties": {"list": {"type": "array", "default": []}}}
    one = form(schema)
    one.check({}, tap_name="t")["list"].append(1)
    assert one.check({}, tap_name="t") == {"list": []}
    assert schema["properties"]["list"]["default"] == []


def test_null_counts_as_missing_unless_it_is_allowed():
    properties = {
        "a": {"type": "integer", "default": 1},
        "b": {"type": ["integer", "null"], "default": 1},
        "c": {"type": "string"},
        "d": {},
    }
    schema = {"type": "object", "properties": properties}
    assert check(schema, dict.fromkeys("abcde")) == {"a": 1, "b": None, "d": None, "e": None}
    assert "lacks 'c'" in refused({**schema, "required": ["c"]}, {"c": None})


def test_an_absent_object_is_made_only_of_what_suffices():
    inner = {"type": "object", "properties": {"host": {"type": "string"}, "port": {"default": 1}}}
    assert check({"type": "object", "properties": {"db": inner}}, {}) == {"db": {"port": 1}}
    needs = {"type": "object", "properties": {"db": {**inner, "required": ["host"]}}}
    assert check(needs, {}) == {}
    assert check(needs, {"db": {"host": "h"}}) == {"db": {"host": "h", "port": 1}}


def test_defaults_behind_references_and_all_of():
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/definitions/part"},
            "b": {"allOf": [{"$ref": "#/definitions/part"}, {"properties": {"m": {"default": 2}}}]},
            "c": {"$ref": "#/definitions/part", "default": {"n": 9}},
            "e~f/g": {"$ref": "#/properties/a"},
        },
        "definitions": {"part": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
    }
    assert check(schema, {}) == {"a": {"n": 1}, "b": {"n": 1, "m": 2}, "c": {"n": 9}, "e~f/g": {"n": 1}}
    escaped = {"type": "object", "properties": {"x/y": {"default": 1}, "z": {"$ref": "#/properties/x~1y"}}}
    assert check(escaped, {}) == {"x/y": 1, "z": 1}


def test_a_schema_that_refers_to_itself_ends():
    schema = {
        "type": "object",
        "properties": {"name": {"default": "n"}, "key": {"secret": True}, "below": {"$ref": "#"}},
    }
    one = form(schema)
    assert one.check({"below": {"below": {}}}, tap_name="t")["below"]["below"]["name"] == "n"
    assert ("key",) in one.secret_paths


def test_defaults_are_checked_too():
    assert "'n' must be a whole number" in refused(
        {"type": "object", "properties": {"n": {"type": "integer", "default": "x"}}}, {}
    )


def test_settings_pass_a_closed_schema():
    schema = {"type": "object", "additionalProperties": False, "properties": {"tap_id": {"type": "integer"}, "a": {}}}
    assert check(schema, {"page_max_rows": 5, "tap_id": 1}) == {"page_max_rows": 5, "tap_id": 1}
    assert "'page_max_row' is not known" in refused(schema, {"page_max_row": 5})
    assert "'tap_id' must be a whole number" in refused(schema, {"tap_id": "x"})


# ---- secrets and broken schemas -------------------------------------------------------------------


def test_marked_keys():
    assert form(SCHEMA).secret_paths == {("key",), ("db", "pin"), ("accounts", "*", "phrase")}
    wild = {
        "type": "object",
        "properties": {"a": {"oneOf": [{"properties": {"x": {"secret": True}}}, {"type": "string", "secret": True}]}},
        "additionalProperties": {"secret": True},
    }
    assert form(wild).secret_paths == {("*",), ("a",), ("a", "x")}


def test_a_value_never_shows_whatever_it_breaks():
    schema = {"type": "object", "properties": {"plain": {"type": "string", "pattern": "^x", "secret": True}}}
    assert refused(schema, {"plain": SECRET}) == "tap-x: config 'plain' must match the pattern ^x"


def test_what_depends_on_a_key_may_be_a_list_of_keys():
    schema = {"type": "object", "properties": {"user": {}, "key": {}}, "dependencies": {"user": ["key"]}}
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    assert check(schema, {"user": "u", "key": "k"}) == {"user": "u", "key": "k"}
    assert "key" in refused(schema, {"user": "u"})


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object", "properties": {"a": "string"}}, "at '#/properties/a': a schema is a dict, not str"),
        ({"type": "object", "properties": {"a": ["string"]}}, "at '#/properties/a': a schema is a dict, not list"),
        ({"type": "object", "properties": {"a": {"type": "strnig"}}}, "type 'strnig' is unknown. Known: string"),
        ({"type": "object", "allOf": ({"type": "strnig"},)}, "at '#/allOf/0': type 'strnig' is unknown"),
        ({"type": "object", "properties": {"a": {"required": True}}}, "'required' must be a list of keys"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}}}, "'#/$defs/no' leads nowhere"),
        ({"type": "object", "properties": {"a": {"$ref": "http://x.invalid/y"}}}, "may refer to its own parts only"),
        ({"type": "object", "properties": {"a": {"$ref": "other.json#/x"}}}, "may refer to its own parts only"),
        ({"type": "object", "properties": {"a": {"$id": "b.json"}}}, "an inner '$id' is not supported"),
        ({"type": "object", "properties": {}, "$defs": []}, "'$defs' must be a dict of schemas, not list"),
    ],
)  # fmt: skip
def test_broken_schemas_are_refused_when_declared(schema, says):
    with pytest.raises(DeclarationError) as caught:
        form(schema)
    assert str(caught.value).startswith("tap_x.py:3: config_spec") and says in str(caught.value)


@pytest.mark.parametrize(
    "part", [{"minimum": "x"}, {"pattern": "("}, {"minLength": -1}, {"patternProperties": {"[": {}}}, {"enum": 5}]
)
def test_other_faults_of_a_schema_are_found_when_it_is_used(part):
    with pytest.raises(DeclarationError, match=r"^tap_x\.py:3: config_spec is no valid JSON Schema: "):
        check({"type": "object", "properties": {"a": part}}, {})


def test_a_keyword_that_the_installed_package_does_not_know_is_never_passed_over():
    schema = {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}
    if NEW:
        assert "config" in refused(schema, {"b": 1})
    else:
        with pytest.raises(DeclarationError, match=r"does not know 'unevaluatedProperties'.*jsonschema>=4"):
            check(schema, {"a": 1})


def test_a_property_named_like_a_keyword():
    schema = {
        "type": "object",
        "$id": "https://x.invalid/config",
        "properties": {
            "$ref": {"type": "string"}, "id": {"type": "string"}, "type": {"type": "string"},
            "required": {"type": "boolean"},
            "properties": {"type": "object", "properties": {"default": {"default": 1}}},
        },
    }  # fmt: skip
    config = {"$ref": "x", "id": "http://y.invalid", "type": "z", "required": True}
    assert check(schema, config) == {**config, "properties": {"default": 1}}
    assert "'id' must be text" in refused(schema, {"id": 5})


def test_a_reference_that_never_ends():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}]}},
    }
    with pytest.raises(DeclarationError, match="refers to itself without end"):
        check(schema, {"a": 1})
    assert form(schema).json_schema()["$defs"]
