"""Records held against a SCHEMA by columns: what is reported is what the library jsonschema says no to, row by row."""

import jsonschema
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from burler.spec import check_messages
from support.strategies import json_values

QUICK = settings(suppress_health_check=list(HealthCheck))
NAMES = ["a", "b", "c.d"]
SCALARS = ["null", "boolean", "integer", "number", "string"]
TYPES = [*SCALARS, "array", "object"]
# 1.0 in an integer field is a fault of its own (M218), and so are integers of more than 64 bits (M219).
VALUES = json_values(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-6, 6),
        st.sampled_from([0.5, 2.5, -3.25]),
        st.sampled_from(["", "x", "yy", "zzz"]),
    ),
    st.sampled_from([*NAMES, "more", "x_1"]),
    most=8,
)
WORDS = {
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "minimum": st.integers(-5, 5),
    "maximum": st.integers(-5, 5),
    "exclusiveMinimum": st.booleans(),
    "minLength": st.integers(0, 3),
    "maxLength": st.integers(0, 3),
    "pattern": st.sampled_from(["^x", "z$"]),
    "minItems": st.integers(0, 2),
    "maxItems": st.integers(0, 2),
    "minProperties": st.integers(0, 2),
}


def _nodes(inner):
    plain = st.one_of(st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True))
    objects = {
        "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        "required": st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
        "items": inner,
        "additionalProperties": inner,
        "patternProperties": st.fixed_dictionaries({"^x_": inner}),
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "not": inner,
    }
    return st.one_of(
        st.fixed_dictionaries({"type": plain}, optional={**WORDS, **objects}),
        st.builds(lambda one: {"anyOf": [one, {"type": "null"}]}, inner),
        st.builds(lambda one: {"oneOf": [{"type": "null"}, one]}, inner),
        st.fixed_dictionaries({"$ref": st.just("#/definitions/one")}, optional={"type": plain}),
        st.just({}),
    )


NODES = st.recursive(st.fixed_dictionaries({"type": st.sampled_from(SCALARS)}, optional=WORDS), _nodes, max_leaves=6)
SCHEMAS = st.builds(
    lambda properties, more, one: {"type": "object", "properties": properties, "definitions": {"one": one}, **more},
    st.dictionaries(st.sampled_from(NAMES), NODES, max_size=3),
    st.fixed_dictionaries({}, optional={"required": st.just(["a"]), "minProperties": st.integers(0, 2)}),
    st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional={"minimum": st.integers(-5, 5)}),
)
RECORDS = st.dictionaries(st.sampled_from([*NAMES, "more", "x_1"]), VALUES, max_size=4)


def reported(schema, rows):
    """The places of rows that are told."""
    messages = [{"type": "SCHEMA", "stream": "a", "schema": schema, "key_properties": []}]
    messages += [{"type": "RECORD", "stream": "a", "record": row} for row in rows]
    told = [one for one in check_messages(messages) if one.code == "M205"]
    assert all(one.count >= len(one.places) >= 1 for one in told)
    return {int(place.removeprefix("line ")) - 2 for one in told for place in one.places}


@QUICK
@given(SCHEMAS, st.lists(RECORDS, min_size=1, max_size=3))
@example({"properties": {"a": {"oneOf": [{"type": ["null", "string"]}, {"type": "null"}]}}}, [{"a": None}])
@example({"properties": {"a": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]}}}, [{"a": None}])
@example({"properties": {"a": {"$ref": "#/definitions/one", "type": "null"}}, "definitions": {"one": {}}}, [{"a": 1}])
@example({"properties": {"a": {"required": ["b"]}}}, [{"a": {}}])
def test_rows_are_told_as_the_library_tells_them(schema, rows):
    library = jsonschema.Draft4Validator(schema)
    wrong = {place for place, row in enumerate(rows) if not library.is_valid(row)}
    assert reported(schema, rows) == wrong  # three rows: all places are named
    assert {place for place, row in enumerate(rows) if reported(schema, [row])} == wrong
