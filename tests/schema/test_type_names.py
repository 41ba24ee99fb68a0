"""Types and formats that do not exist are found at discovery, by their place, and nothing else is taken for one."""

from __future__ import annotations

import json
import logging
import time
from decimal import Decimal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.errors import DeclarationError
from burler.schema import check_types

WHERE = "stream 'a' (tap.py:3)"
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


def props(**fields):
    return {"type": "object", "properties": fields}


def refusal(schema):
    with pytest.raises(DeclarationError) as caught:
        check_types(schema, where=WHERE)
    text = str(caught.value)
    assert text.startswith(f"{WHERE}: schema: ") and len(text.splitlines()) <= 3
    return text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("int", "there is no type 'int'. Did you mean 'integer'?"),
        ("str", "Did you mean 'string'?"),
        ("String", "there is no type 'String'. Did you mean 'string'?"),
        ("flot", "Did you mean 'number'?"),
        ("bool", "Did you mean 'boolean'?"),
        ("dict", "Did you mean 'object'?"),
        ("List", "Did you mean 'array'?"),
        ("None", "Did you mean 'null'?"),
        ("datetime", "Did you mean 'string', with \"format\": \"date-time\"?"),
        (["null", "datetime"], "there is no type 'datetime'"),
        ("any", 'Leave out "type"'),
        ("frobnicate", "Known: string, integer, number, boolean, object, array, null."),
        ("", "there is no type ''. Known: "),
        (5, '"type" is 5, which is no text'),
        (None, '"type" is null.'),
        (True, '"type" is true or false.'),
        ({"type": "string"}, '"type" is an object. It is one of string, integer, number, boolean, object, array, null'),
        ([], "the list of types is empty"),
        (["null", {"type": "string"}], 'a type in the list is an object. Each is one of string, integer,'),
        (["string", 5], "a type in the list is 5"),
    ],
)  # fmt: skip
def test_what_is_no_type(given, says):
    text = refusal(props(x={"type": given}))
    assert "field 'x': " in text and says in text


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (props(address=props(city={"type": "str"})), "field 'address.city'"),
        (props(tags={"type": "array", "items": {"type": "str"}}), "field 'tags[]'"),
        (props(rows={"type": "array", "items": props(n={"type": "int"})}), "field 'rows[].n'"),
        (props(m={"type": "object", "additionalProperties": {"type": "int"}}), "field 'm.*'"),
        (props(u={"anyOf": [{"type": "null"}, {"type": "int"}]}), "field 'u'"),
        (props(type={"type": "int"}), "field 'type'"),
        (props(type=props(type={"type": "int"})), "field 'type.type'"),
        (props(items=props(properties={"type": "int"})), "field 'items.properties'"),
        (props(p={"patternProperties": {"^x-": {"type": "int"}}}), "field 'p.^x-'"),
        ({"type": "objct", "properties": {}}, "the top"),
        (props(enum={"type": "int"}), "field 'enum'"),
    ],
)
def test_the_place_is_named(schema, path):
    assert f"schema: {path}: there is no type" in refusal(schema)


def test_all_are_named_but_not_too_many():
    text = refusal(props(**{f"f{i}": {"type": "str"} for i in range(9)}))
    assert text.endswith(
        "field 'f0': there is no type 'str'. Did you mean 'string'?\n"
        "  Wrong as well: field 'f1', field 'f2', field 'f3', field 'f4', field 'f5' and 3 more."
    )


@pytest.mark.parametrize(
    "schema",
    [
        props(x={}, y=True, z={"type": ["null", "string", "integer"]}),
        props(type={"type": "string"}, format={"type": "string"}, items={"type": "string"}, enum={"type": "string"}),
        props(x={"enum": [{"type": "int"}, ["int"]], "default": {"type": "int"}, "examples": [{"type": "int"}]}),
        props(x={"const": {"type": "int", "format": "datetime"}, "description": '"type":"int"'}),
        props(x={"x-ui": {"type": "slider", "properties": {"a": {"type": "knob"}}}}),
        props(x={"enum": [Decimal("1.5"), {1, 2}, object(), {(1, 2): 3}, "\ud800", 1 << 99]}),
        props(x={"type": ("null", "string")}),
        {"properties": {}},
    ],
)
def test_what_is_right_passes(schema, caplog):
    with caplog.at_level(logging.DEBUG):
        check_types(schema, where=WHERE)
    assert caplog.records == []


def test_formats_that_look_like_others_are_one_warning(caplog):
    schema = props(
        a={"type": "string", "format": "datetime"},
        b=props(c={"type": ["null", "string"], "format": "timestamp"}),
        d={"format": "Date"},
        e={"type": "string", "format": "date_time"},
        # not these
        f={"type": "integer", "format": "timestamp"},
        g={"type": "string", "format": "date-time"},
        h={"type": "string", "format": "phone"},
        i={"type": "string", "format": "singer.decimal"},
        j={"type": "string", "format": ["datetime"]},
    )
    check_types(schema, where=WHERE)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        f"{WHERE}: schema: formats that nobody knows are passed over, so that the field is plain text: "
        "field 'a': 'datetime' (did you mean 'date-time'?), field 'b.c': 'timestamp' (did you mean 'date-time'?), "
        "field 'd': 'Date' (did you mean 'date'?), field 'e': 'date_time' (did you mean 'date-time'?)."
    )


NAMES = st.sampled_from([*TYPES, "int", "String", "null ", "", "type"])
KINDS = st.one_of(
    NAMES, st.lists(NAMES, max_size=3, unique=True), st.none(), st.integers(), st.dictionaries(NAMES, NAMES)
)
SCHEMAS = st.recursive(
    st.one_of(st.just({}), st.one_of(st.sampled_from(TYPES), KINDS).map(lambda kind: {"type": kind})),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["a", "type", "enum", "items"]), inner).map(lambda p: {"properties": p}),
        inner.map(lambda one: {"items": one}),
        inner.map(lambda one: {"additionalProperties": one, "type": ["null", "object"]}),
        st.lists(inner, min_size=1, max_size=2).map(lambda some: {"anyOf": some}),
        inner.map(lambda one: {"type": "string", "enum": [one]}),
    ),
    max_leaves=6,
)  # fmt: skip


@given(SCHEMAS)
def test_another_judge_says_the_same(schema):
    """jsonschema checks a schema against the schema of schemas, which is what the types come from."""
    before = json.dumps(schema)
    try:
        jsonschema.Draft4Validator.check_schema(schema)
        right = True
    except jsonschema.SchemaError:
        right = False
    try:
        check_types(schema, where=WHERE)
        accepted = True
    except DeclarationError:
        accepted = False
    assert accepted == right
    assert json.dumps(schema) == before


def test_many_wide_streams_take_next_to_no_time():
    """200 streams of 50 fields; ten times what it takes, so that a busy machine does not fail it."""
    fields = {f"f{i}": {"type": ["null", "string"], "format": "date-time"} for i in range(49)}
    schemas = [json.loads(json.dumps(props(**fields, type={"type": "string"}))) for _ in range(200)]
    seconds = []
    for _ in range(3):
        began = time.process_time()
        for schema in schemas:
            check_types(schema, where=WHERE)
        seconds.append(time.process_time() - began)
    assert min(seconds) < 0.1
