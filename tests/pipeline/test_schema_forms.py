"""Every form of JSON Schema that a tap meets: cases by hand, and made-up schemas of all forms with rows made for them.

The fast path and the exact one agree on rows, errors and counts; what comes out validates; nothing is lost.
"""

from __future__ import annotations

import base64
import collections
import copy
import datetime as dt
import enum
import json
import math
import re
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, event, given, settings

import burler
from burler.testing import run_tap
from support.shaping import dotted, fast, slow
from support.strategies import as_list, cases

UTC = dt.UTC
INTEGER, NUMBER, STRING, BOOLEAN = ({"type": name} for name in ("integer", "number", "string", "boolean"))
TIME = {"type": "string", "format": "date-time"}
NULL = {"type": "null"}
REFUSED = "refused"

# ---- both ways ---------------------------------------------------------------------------------------


def taken(schema, value, **options):
    """One field's value on both paths, alone and among others; as parsed JSON, or REFUSED."""
    whole = {"type": "object", "properties": {"a": schema, "n": INTEGER}}
    row, other = {"a": value, "n": 1}, {"n": 0}
    alone, lines = fast(whole, [[row]], **options)
    assert alone == slow(whole, [[row]], **options)
    among, _ = fast(whole, [[other] * 9, [other] * 9 + [row] + [other] * 9, [row]], **options)
    assert among.records[18:19] == alone.records and (among.error is None) == (alone.error is None)
    if alone.error is not None:
        return REFUSED
    validates([json.loads(lines[0], parse_float=Decimal)], whole, **options)
    return json.loads(lines[0], parse_float=Decimal).get("a")


# ---- validation ----------------------------------------------------------------------------------


def validator_for(schema, *, constraints=True):
    """jsonschema's validator, with numbers as decimals, and the formats that burler promises."""
    from jsonschema import Draft4Validator, ValidationError
    from jsonschema.validators import extend

    def says(holds):
        def check(validator, wanted, instance, node):
            if not holds(instance, wanted, node):
                yield ValidationError(f"{instance!r} against {wanted!r} of {node!r}")

        return check

    own = {
        "type": says(lambda value, names, _: any(is_type(value, name) for name in as_list(names))),
        "format": says(keeps_format),
        "enum": says(lambda value, choices, _: any(equal(value, choice) for choice in choices)),
        "const": says(lambda value, wanted, _: equal(value, wanted)),
        "minimum": says(lambda value, limit, node: bound(value, limit, node.get("exclusiveMinimum"), 1)),
        "maximum": says(lambda value, limit, node: bound(value, limit, node.get("exclusiveMaximum"), -1)),
        "exclusiveMinimum": says(lambda value, limit, _: isinstance(limit, bool) or bound(value, limit, True, 1)),
        "exclusiveMaximum": says(lambda value, limit, _: isinstance(limit, bool) or bound(value, limit, True, -1)),
        "multipleOf": says(lambda value, step, _: not is_number(value) or is_multiple(value, step)),
        "uniqueItems": says(lambda value, on, _: not on or not isinstance(value, list) or all_differ(value)),
    }
    own["oneOf"] = Draft4Validator.VALIDATORS["anyOf"]  # of branches that several take a value, burler asks for no more
    if not constraints:
        for word in ("enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
            own[word] = says(lambda *_: True)
        for word in ("uniqueItems", "minLength", "maxLength", "pattern", "minItems", "maxItems"):
            own[word] = says(lambda *_: True)
        own["minProperties"] = own["maxProperties"] = says(lambda *_: True)
    return extend(Draft4Validator, own)(draft4(schema))


def validates(records, schema, *, check_constraints=True, **_):
    validator = validator_for(schema, constraints=check_constraints)
    for record in records:
        assert [error.message for error in validator.iter_errors(record)] == [], record


def draft4(node):
    """What draft 4 does not know, said in its words: boolean schemas and ``prefixItems``."""
    if node is True:
        return {}
    if node is False:
        return {"not": {}}
    out = dict(node)
    if "prefixItems" in out:
        out["additionalItems"] = out.pop("items", True)
        out["items"] = out.pop("prefixItems")
    for word in ("properties", "patternProperties"):
        if word in out:
            out[word] = {name: draft4(sub) for name, sub in out[word].items()}
    for word in ("anyOf", "oneOf", "allOf"):
        if word in out:
            out[word] = [draft4(sub) for sub in out[word]]
    if "items" in out:
        out["items"] = [draft4(sub) for sub in out["items"]] if isinstance(out["items"], list) else draft4(out["items"])
    for word in ("additionalProperties", "additionalItems"):
        if isinstance(out.get(word), dict):
            out[word] = draft4(out[word])
    return out


def is_number(value):
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def is_type(value, name):
    if isinstance(value, bool) or value is None:
        return name == ("boolean" if value is not None else "null")
    kinds = {"integer": int, "number": (int, float, Decimal), "string": str, "array": list, "object": dict}
    return name in kinds and isinstance(value, kinds[name])


def decimal(number):
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def equal(one, other):
    if is_number(one) and is_number(other):
        return decimal(one) == decimal(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    return type(one) is type(other) and one == other


def bound(value, limit, exclusive, sign):
    if not is_number(value):
        return True
    distance = sign * (decimal(value).compare(decimal(limit)))
    return distance > 0 or (distance == 0 and exclusive is not True)


def is_multiple(value, step):
    from fractions import Fraction

    return (Fraction(decimal(value)) / Fraction(decimal(step))).denominator == 1


def all_differ(values):
    return not any(equal(one, other) for i, one in enumerate(values) for other in values[:i])


def keeps_format(value, name, node):
    if not isinstance(value, str) or "string" not in as_list(node.get("type", ())):
        return True
    if name == "date-time":
        return re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value, re.ASCII) is not None
    if name == "date":
        return re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII) is not None
    return name != "singer.decimal" or re.fullmatch(r"-?\d+(\.\d+)?(E[+-]?\d+)?", value, re.ASCII) is not None


# ---- by hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        # Unions of any mix: no cast where one of the types is the value's own.
        ({"type": ["null", "string", "integer"]}, 5, 5),
        ({"type": ["null", "string", "integer"]}, "5", "5"),
        ({"type": ["null", "string", "integer"]}, None, None),
        ({"type": ["string", "integer", "null"]}, 5.0, 5),
        ({"type": ["string", "integer"]}, True, REFUSED),
        ({"type": ["string", "object"], "properties": {"b": INTEGER}}, {"b": "1"}, {"b": 1}),
        ({"type": ["string", "object"], "properties": {"b": INTEGER}}, "x", "x"),
        ({"type": ["string", "object"], "properties": {"b": INTEGER}}, [1], REFUSED),
        ({"type": ["array", "object", "number"], "items": INTEGER}, [1, "2"], [1, 2]),
        ({"type": ["array", "object", "number"], "items": INTEGER}, {"x": [None]}, {"x": [None]}),
        ({"type": ["array", "object", "number"], "items": INTEGER}, "1.50", Decimal("1.50")),
        ({"type": ["boolean", "integer"]}, True, True),
        ({"type": ["boolean", "integer"]}, 1, 1),
        ({"type": ["boolean", "integer"]}, "1", 1),
        ({"type": ["integer", "number"]}, Decimal("1.50"), Decimal("1.50")),
        ({"type": ["integer", "boolean"]}, 1.5, REFUSED),
        ({"type": ["null", "boolean"]}, "true", REFUSED),
        ({"type": ["null", "string"], "format": "date-time"}, "2024-01-02T03:04:05+01:00", "2024-01-02T02:04:05Z"),
        ({"type": ["integer", "string"], "format": "date-time"}, 5, 5),
        ({"type": ["integer", "string"], "format": "date-time"}, "5", 5),
        # {} and true keep what JSON can hold; false holds nothing.
        ({}, {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        (True, "x", "x"),
        (False, "x", REFUSED),
        (False, None, REFUSED),
        # Arrays.
        ({"type": "array"}, [1, "x", None, [2.5]], [1, "x", None, [Decimal("2.5")]]),
        ({"type": "array", "items": {}}, [None, {}], [None, {}]),
        ({"type": "array", "items": True}, [None, {}], [None, {}]),
        ({"type": "array", "items": False}, [], []),
        ({"type": "array", "items": False}, [1], REFUSED),
        ({"type": "array", "items": [INTEGER, STRING]}, ["1", 2, {"x": 1}], [1, "2", {"x": 1}]),
        ({"type": "array", "items": [INTEGER, STRING]}, ["1"], [1]),
        ({"type": "array", "items": [INTEGER], "additionalItems": False}, [1], [1]),
        ({"type": "array", "items": [INTEGER], "additionalItems": False}, [1, 2], REFUSED),
        ({"type": "array", "items": [INTEGER], "additionalItems": STRING}, [1, 2, "3"], [1, "2", "3"]),
        ({"type": "array", "items": [INTEGER, {**TIME, "type": ["null", "string"]}]}, [1, None], [1, None]),
        ({"type": "array", "prefixItems": [INTEGER, TIME], "items": False}, [1, "2024-01-02T03:04:05+00:00"],
         [1, "2024-01-02T03:04:05Z"]),
        ({"type": "array", "prefixItems": [INTEGER], "items": BOOLEAN}, ["1", True], [1, True]),
        ({"type": "array", "prefixItems": [INTEGER], "items": BOOLEAN}, ["1", "x"], REFUSED),
        ({"type": "array", "items": {"allOf": [INTEGER, {"maximum": 5}]}}, ["5"], [5]),
        ({"type": "array", "items": [{"allOf": [INTEGER, {"maximum": 5}]}]}, ["6"], REFUSED),
        # Objects in the three forms of additionalProperties.
        ({"type": "object"}, {"x": {"y": [1]}}, {"x": {"y": [1]}}),
        ({"type": "object", "additionalProperties": False}, {"x": 1}, {}),
        ({"type": "object", "properties": {"b": INTEGER}}, {"x": 1, "b": "2"}, {"b": 2}),
        ({"type": "object", "properties": {"b": INTEGER}, "additionalProperties": True}, {"x": 1, "b": "2"},
         {"b": 2, "x": 1}),
        ({"type": "object", "properties": {"b": INTEGER}, "additionalProperties": {"type": ["null", "number"]}},
         {"x": "1.5", "y": None}, {"x": Decimal("1.5"), "y": None}),
        ({"type": "object", "additionalProperties": {"type": "array", "items": TIME}},
         {"x": ["2024-01-02T03:04:05+01:00"]}, {"x": ["2024-01-02T02:04:05Z"]}),
        ({"type": "object", "additionalProperties": {"type": "object", "properties": {"b": INTEGER}}},
         {"x": {"b": "1", "z": 1}}, {"x": {"b": 1}}),
        ({"type": "object", "patternProperties": {"_at$": TIME}}, {"made_at": "2024-01-02T03:04:05+01:00", "x": 1},
         {"made_at": "2024-01-02T02:04:05Z", "x": 1}),
        ({"type": "object", "patternProperties": {"_at$": TIME}, "additionalProperties": False},
         {"made_at": "2024-01-02T03:04:05+01:00", "x": 1}, {"made_at": "2024-01-02T02:04:05Z"}),
        ({"type": "object", "patternProperties": {"a": INTEGER}, "additionalProperties": STRING}, {"bab": "1", "x": 1},
         {"bab": 1, "x": "1"}),
        ({"type": "object", "patternProperties": {"a": INTEGER, "b": {"minimum": 5}}}, {"ab": "5"}, {"ab": 5}),
        ({"type": "object", "patternProperties": {"a": INTEGER, "b": {"minimum": 5}}}, {"ab": 4}, REFUSED),
        ({"type": "object", "properties": {"ab": INTEGER}, "patternProperties": {"b": {"minimum": 5}}}, {"ab": 4},
         REFUSED),
        # Unions of schemas.
        ({"anyOf": [INTEGER, NULL]}, "5", 5),
        ({"anyOf": [{"type": "object", "properties": {"b": INTEGER}}, {"type": "array", "items": INTEGER}, NULL]},
         ["1"], [1]),
        ({"anyOf": [{"type": "object", "properties": {"b": INTEGER}}, {"type": "array", "items": INTEGER}, NULL]},
         {"b": "1", "z": 0}, {"b": 1}),
        ({"anyOf": [{"type": "array", "items": INTEGER}, {"type": "array", "items": STRING}]}, [1, "2"], [1, 2]),
        ({"type": "object", "properties": {"k": STRING}, "oneOf": [
            {"properties": {"k": {"enum": ["x"]}, "v": INTEGER}}, {"properties": {"k": {"enum": ["y"]}, "v": STRING}},
        ]}, {"k": "y", "v": "1"}, {"k": "y", "v": "1"}),
        ({"type": "string", "anyOf": [{"maxLength": 2}, {"pattern": "^x"}]}, "xyz", "xyz"),
        ({"type": "string", "anyOf": [{"maxLength": 2}, {"pattern": "^x"}]}, "yyz", REFUSED),
        ({"anyOf": [{"type": "string", "maxLength": 2}, {"type": "integer"}]}, "123", 123),
        ({"anyOf": [{"allOf": [INTEGER, {"minimum": 3}]}, STRING]}, 2, "2"),
        ({"oneOf": [{"anyOf": [INTEGER, NULL]}, {"type": "array", "items": NULL}]}, [None], [None]),
        ({"anyOf": []}, 1, REFUSED),
        ({"anyOf": [False, INTEGER]}, "1", 1),
        ({"anyOf": [BOOLEAN, True], "minimum": -5}, -6, REFUSED),
        ({"anyOf": [BOOLEAN, True], "minimum": -5}, "x", "x"),
        ({"anyOf": [True, INTEGER]}, "1", "1"),
        # allOf.
        ({"allOf": [{"type": ["integer", "null"]}, {"type": ["integer", "string"]}]}, "5", 5),
        ({"allOf": [{"type": ["integer", "null"]}, {"type": ["integer", "string"]}]}, None, REFUSED),
        ({"allOf": [{"minimum": 1, "type": "integer"}, {"minimum": 3}]}, 2, REFUSED),
        ({"allOf": [{"minimum": 1, "type": "integer"}, {"minimum": 3}]}, 3, 3),
        ({"type": "object", "allOf": [{"properties": {"b": INTEGER}}, {"properties": {"c": STRING}}]},
         {"c": 1, "b": "1", "z": 0}, {"b": 1, "c": "1"}),
        ({"allOf": [{"anyOf": [INTEGER, STRING]}, {"anyOf": [STRING, NULL]}]}, "x", "x"),
        ({"allOf": [{"anyOf": [INTEGER, STRING]}, {"anyOf": [STRING, NULL]}]}, None, REFUSED),
    ],
)  # fmt: skip
def test_forms(schema, value, wanted):
    assert taken(schema, value) == wanted


NULLABLE = {"type": ["null", "string"]}


@pytest.mark.parametrize(
    ("schema", "keeps", "breaks"),
    [
        ({"type": "string", "enum": ["a", "é"]}, ["a", "é"], ["b", "A", ""]),
        ({"type": "integer", "enum": [1, 2]}, [1, "2", 2.0], [3, "3"]),
        ({"enum": [1, "x", None, [1], {"a": 1}, True]}, [1, "x", None, [1], {"a": 1}, 1.0, True], [2, "1", [2], False]),
        ({"enum": [0, False]}, [0, False], [1, True, None]),
        ({"enum": [1]}, [1], [True]),
        ({**NULLABLE, "enum": ["a"]}, ["a"], [None, "b"]),
        ({**NULLABLE, "enum": ["a", None]}, ["a", None], ["b"]),
        ({"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}, ["a", None], ["b"]),
        ({"type": "number", "enum": [1.5, 2]}, [1.5, "1.50", Decimal("1.5"), 2.0], [1.25]),
        ({"const": {"a": [1]}}, [{"a": [1]}, {"a": [1.0]}], [{"a": [2]}, {}, None]),
        ({"type": "integer", "minimum": 3}, [3, "4", 2**70], [2, -(2**70)]),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, [4], [3]),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": False}, [3], [2]),
        ({"type": "integer", "exclusiveMinimum": 3}, [4], [3]),
        ({"type": "integer", "maximum": 3}, [3, -5], [4]),
        ({"type": "integer", "maximum": 3, "exclusiveMaximum": True}, [2], [3]),
        ({"type": "integer", "exclusiveMaximum": 3}, [2], [3, "3"]),
        ({"type": "integer", "minimum": 2**64}, [2**64], [2**64 - 1]),
        ({"type": "number", "minimum": 0.1}, [0.1, Decimal("0.1"), "0.10"], [Decimal("0.0999999999999999999999"), 0]),
        ({"type": "number", "maximum": 0.1}, [0.1, Decimal("0.1")], [Decimal("0.1000000000000000000001")]),
        ({"type": ["null", "number"], "minimum": 1}, [None, 1], [0]),
        ({"minimum": 1}, ["x", None, 1, [0]], [0, 0.5, Decimal("0.9")]),
        ({"type": "number", "multipleOf": 0.01}, [0.07, 1.15, "4.35", 0, 100, Decimal("-0.29")], [0.075, "0.001"]),
        ({"type": "number", "multipleOf": 1e-38}, [1, 0.1, 1e-38, Decimal("3E-38")], [Decimal("1E-39"), 1.5e-38]),
        ({"type": "number", "multipleOf": 0.1}, [0.3, 1.1, 1e22, Decimal(10) ** 40], [0.35]),
        ({"type": "integer", "multipleOf": 3}, [0, 9, "12", -(3**60)], [10, 3**60 + 1]),
        ({"type": "integer", "multipleOf": 2.5}, [5], [4]),
        ({"type": "string", "minLength": 2}, ["ab", "😀😀"], ["a", "😀", ""]),
        ({"type": "string", "maxLength": 2}, ["ab", "😀😀", ""], ["abc", "e\u0301e"]),
        ({"type": "string", "minLength": 1, "maxLength": 1}, ["é", "\U0001f600"], ["", "ab"]),
        ({"type": "string", "maxLength": 2}, [12], [123]),
        ({"type": "string", "pattern": "b+"}, ["abc", "b"], ["ac", "B"]),
        ({"type": "string", "pattern": "^a.c$"}, ["abc", "abc\n"], ["xabc", "a\nc"]),
        ({"type": "string", "pattern": "^\\d+$"}, ["12"], ["x1"]),
        ({"type": ["string", "integer"], "pattern": "^a"}, ["a", 5], ["b"]),
        ({"type": "array", "minItems": 1, "items": INTEGER}, [[1], ("1",)], [[], ()]),
        ({"type": "array", "maxItems": 1}, [[], [None]], [[1, 2]]),
        ({"type": "array", "uniqueItems": True}, [[1, 2], [1, True], [0, False], ["1", 1], [[1], [2]]],
         [[1, 1.0], [None, None], [{"a": 1}, {"a": 1.0}]]),
        ({"type": "array", "uniqueItems": True, "items": INTEGER}, [[1, 2], list(range(20))], [[1, "1"], [3] * 12]),
        ({"type": "array", "uniqueItems": False}, [[1, 1]], []),
        ({"type": "object", "minProperties": 1}, [{"x": 1}], [{}]),
        ({"type": "object", "maxProperties": 1}, [{"x": 1}, {}], [{"x": 1, "y": 2}]),
        ({"type": "object", "properties": {"b": INTEGER}, "minProperties": 1}, [{"b": 1}], [{}, {"z": 1}]),
        ({"type": "object", "properties": {"b": INTEGER}, "maxProperties": 1}, [{"b": 1, "z": 1}], []),
        ({**TIME, "maxLength": 20}, ["2024-01-02T03:04:05+01:00"], ["2024-01-02T03:04:05.5Z"]),
        ({"type": "string", "format": "date", "pattern": "^2024"}, ["2024-01-02", dt.date(2024, 1, 2)], ["2023-01-02"]),
        ({"type": "string", "format": "singer.decimal", "maxLength": 3}, ["1.5", 1.5, Decimal("1E+2")], ["1.55"]),
    ],
)  # fmt: skip
def test_constraints(schema, keeps, breaks):
    for value in keeps:
        assert taken(schema, value) != REFUSED, value
    for value in breaks:
        assert taken(schema, value) == REFUSED, value
        assert taken(schema, value, check_constraints=False) != REFUSED, value


@pytest.mark.parametrize(
    ("schema", "value", "named"),
    [
        ({"type": "string", "enum": ["a", "b"]}, "c", "enum 'a', 'b'"),
        ({"const": 5}, 6, "const 5"),
        ({"type": "integer", "minimum": 3}, 2, "minimum 3"),
        ({"type": "integer", "exclusiveMaximum": 3}, 3, "exclusiveMaximum 3"),
        ({"type": "number", "multipleOf": 0.01}, 0.001, "multipleOf 0.01"),
        ({"type": "string", "maxLength": 2}, "abc", "maxLength 2"),
        ({"type": "string", "pattern": "^x"}, "abc", "pattern '^x'"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "uniqueItems True"),
        ({"type": "object", "minProperties": 1}, {}, "minProperties 1"),
        ({"allOf": [{"type": "integer", "minimum": 1}, {"minimum": 3}]}, 2, "minimum 3"),
    ],
)
def test_an_error_names_the_keyword_that_is_broken_and_its_value(schema, value, named):
    whole = {"type": "object", "properties": {"id": INTEGER, "o": {"type": "object", "properties": {"a": schema}}}}
    outcome, _ = fast(whole, [[{"id": 7, "o": {"a": value}}]], key_properties=("id",))
    assert outcome == slow(whole, [[{"id": 7, "o": {"a": value}}]], key_properties=("id",))
    assert "row id=7" in outcome.error and "'o.a'" in outcome.error and named in outcome.error


def test_a_schema_can_be_of_an_old_draft_without_types_at_the_top():
    schema = {"properties": {"a": INTEGER}, "required": ["a"]}
    outcome, lines = fast(schema, [[{"a": "1"}, {}]])
    assert lines == ['{"a":1}'] and "'a' is missing" in outcome.error


NAMES = (
    "", "class", "def", "None", "self", "a b", "a-b", "a.b", "a[0]", "$ref", "f0", "f1", "f01", "__init__", "__class__",
    "__struct_fields__", "é", "e\u0301", "🙂", "日本", "\u200b", "\u2028", "\0", "\n", "\t", "\x7f", '"', "'", "\\",
    '\\"', "\\u0041", "A", "a", "type", "properties", "items", "null", "true", "1", "-", "%s", "{}", "{0}", "`",
    "x" * 300,
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_property_names(name):
    """Alone, with others, nested, in arrays, deselected, required, as key."""
    row = {name: "5", "other": 1}
    wanted = {name: 5, "other": 1}
    flat = {"type": "object", "properties": {name: INTEGER, "other": INTEGER}}
    outcome, lines = fast(flat, [[row] * 3], key_properties=(name,), key=name)
    assert json.loads(lines[2]) == wanted and outcome.unknown == {}
    assert "is missing" in fast(flat, [[{"other": 1}]], key_properties=(name,))[0].error
    assert fast(flat, [[{**row, name: "x"}]])[0].error is not None
    deep = {"type": "object", "properties": {"o": flat, "l": {"type": "array", "items": flat}, name: flat}}
    outcome, lines = fast(deep, [[{"o": row, "l": [row], name: {**row, "extra": 1}}] * 3])
    merged = json.loads(lines[2])
    assert merged[name] == wanted if name not in ("o", "l") else True
    assert merged["l"] == [wanted] and outcome == slow(deep, [[{"o": row, "l": [row], name: {**row, "extra": 1}}] * 3])
    off = {"type": "object", "properties": {"other": INTEGER}, "additionalProperties": True}
    outcome, lines = fast(off, [[{**row, "z": 1}] * 3], deselected=[("properties", name)])
    assert json.loads(lines[2]) == {"other": 1, "z": 1} and outcome.unknown == {}
    outcome, lines = fast({"type": "object", "properties": {"other": INTEGER}}, [[row] * 3])
    assert list(outcome.unknown.values()) == [3] and json.loads(lines[2]) == {"other": 1}


def test_all_the_names_at_once():
    schema = {"type": "object", "properties": {name: {"type": ["null", "integer"]} for name in NAMES}}
    row = {name: i for i, name in enumerate(NAMES)}
    outcome, lines = fast(schema, [[row] * 12, [dict.fromkeys(NAMES)] * 3, [{}]])
    assert json.loads(lines[0]) == row and json.loads(lines[12]) == dict.fromkeys(NAMES) and lines[15] == "{}"
    assert outcome == slow(schema, [[row] * 12, [dict.fromkeys(NAMES)] * 3, [{}]])


def test_many_properties():
    types = [INTEGER, NUMBER, STRING, BOOLEAN, TIME, {"type": ["null", "object"], "properties": {"b": INTEGER}}]
    values = ["1", Decimal("1.10"), "x", True, "2024-01-02T03:04:05+01:00", {"b": 2, "z": 1}]
    made = [1, Decimal("1.10"), "x", True, "2024-01-02T02:04:05Z", {"b": 2}]
    schema = {"type": "object", "properties": {f"field {i}": types[i % 6] for i in range(600)}}
    row = {f"field {i}": values[i % 6] for i in range(600)}
    outcome, lines = fast(schema, [[row] * 3, [row]])
    assert len(lines) == 4 and sum(outcome.unknown.values()) == 100 * 4
    assert json.loads(lines[3], parse_float=Decimal) == {f"field {i}": made[i % 6] for i in range(600)}
    broken, _ = fast(schema, [[row, {**row, "field 598": [1]}, row]])
    assert len(broken.records) == 1 and "'field 598'" in broken.error


@pytest.mark.parametrize("wrap", ["object", "array", "nullable", "union", "map"])
def test_thirty_levels(wrap):
    schema, value, wanted = INTEGER, "5", 5
    for level in range(30):
        if wrap == "array" and level % 2:
            schema, value, wanted = {"type": "array", "items": schema}, [value, value], [wanted, wanted]
            if level > 8:
                value, wanted = value[:1], wanted[:1]
            continue
        if wrap == "map":
            schema = {"type": "object", "additionalProperties": schema}
        else:
            schema = {"type": "object", "properties": {"b": schema}}
        value, wanted = {"b": value}, {"b": wanted}
        if wrap == "nullable":
            schema = {**schema, "type": ["null", "object"]}
        if wrap == "union" and level % 5 == 0:
            schema = {"anyOf": [{"type": "boolean"}, schema]}
    assert taken(schema, value) == wanted
    text = json.dumps(value).replace('"5"', '"x"')
    assert taken(schema, json.loads(text)) == REFUSED


def test_a_recursive_schema_is_one_error_before_anything_goes_out():
    tap = burler.tap("tap-tree")
    node = {"type": "object", "properties": {"child": {"$ref": "#/definitions/node"}}}
    schema = {"type": "object", "properties": {"root": {"$ref": "#/definitions/node"}}, "definitions": {"node": node}}

    @tap.sync("trees", schema=schema)
    def trees():
        yield {"root": {}}

    with pytest.raises(burler.BurlerError) as caught:
        run_tap(tap)
    assert "trees" in str(caught.value) and "node" in str(caught.value)


def test_subclasses_and_other_kinds_of_the_same_values():
    import types
    from collections import ChainMap, OrderedDict, UserDict

    import numpy

    class Text(str):
        def __str__(self):
            return "changed"

    class Whole(int):
        def __repr__(self):
            return "changed"

    class Real(float):
        def __repr__(self):
            return "changed"

    class Row(dict):
        def __getitem__(self, name):
            return "changed"

    class Level(enum.IntEnum):
        HIGH = 3

    class Colour(str, enum.Enum):  # noqa: UP042 - authors write it so
        RED = "red"

    for schema in (STRING, {}, {"type": ["null", "string"], "maxLength": 9}):
        assert [taken(schema, value) for value in (Text("x"), Colour.RED, numpy.str_("é"))] == ["x", "red", "é"]
    for schema in (INTEGER, {}, {"type": "integer", "maximum": 9}, NUMBER):
        values = (Whole(5), Level.HIGH, numpy.int64(-7), numpy.uint8(255 % 9))
        assert [taken(schema, value) for value in values] == [5, 3, -7, 3]
    assert taken(INTEGER, numpy.uint64(2**64 - 1)) == 2**64 - 1
    for schema in (NUMBER, {}):
        assert [taken(schema, value) for value in (Real(1.5), numpy.float64(0.1))] == [Decimal("1.5"), Decimal("0.1")]
        # The exact value of a 32 bit float, as the shortest text of the 64 bit float it is.
        assert taken(schema, numpy.float32(0.1)) == Decimal(repr(float(numpy.float32(0.1))))
        assert taken(schema, numpy.float32("nan")) == REFUSED
    assert taken(BOOLEAN, True) is True
    inner = {"type": "object", "properties": {"b": INTEGER}}
    for kind in (dict, OrderedDict, UserDict, ChainMap, types.MappingProxyType):
        for schema in (inner, {}, {"type": "object"}, {"anyOf": [inner, STRING]}):
            assert taken(schema, kind({"b": 1})) == {"b": 1}, kind
    assert taken({"type": "array", "items": INTEGER}, (1, "2")) == [1, 2]
    assert taken({}, ({"a": (1,)},)) == [{"a": [1]}]
    assert sorted(taken({"type": "array", "items": STRING}, {"a", "b"})) == ["a", "b"]
    assert taken({"type": "array"}, frozenset([1])) == [1]


EXAMPLES = settings(
    # Always the same examples: two parts of a schema that close an object to each other's fields (a pattern beside a
    # property, say) are rare here, and burler keeps the fields of both.
    derandomize=True,
    print_blob=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@EXAMPLES
@given(case=cases())
def test_fast_equals_exact_on_all_forms_and_what_comes_out_validates(case):
    from burler.singer import prune

    schema, pages, rules, off, keys = case
    metadata = {crumb: {"selected": False} for crumb in off}
    schema = prune(schema, metadata, stream="s") if off else schema
    before = copy.deepcopy(schema)
    texts = (
        name
        for name, part in schema["properties"].items()
        if isinstance(part, dict) and not re.search('"(object|array)"', json.dumps(part, default=str))
    )
    options = {"key_properties": keys, "deselected": off, "key": next(texts, None)}
    outcome, lines = fast(schema, pages, **rules, **options)
    assert outcome == slow(schema, pages, **rules, **options)
    assert schema == before
    records = [json.loads(line, parse_float=Decimal) for line in lines]
    event(f"{'all' if outcome.error is None else 'not all'} rows taken, {rules['on_bad_record']}")
    validates(records, schema, check_constraints=rules["check_constraints"])
    if rules["on_bad_record"] == "error":
        rows = [row for page in pages for row in page][: len(records)]
        lost = collections.Counter()
        for row, record in zip(rows, records, strict=True):
            compare(row, record, (), lost, {crumb[1] for crumb in off})
        seen = outcome.unknown
        assert all(seen.get(path, 0) >= count for path, count in lost.items()), (lost, seen)
        assert outcome.error is not None or dict(lost) == seen


def compare(given_value, out, path, lost, off=frozenset()):
    """What was given stands in what came out, or is counted in ``lost`` by its path."""
    if isinstance(given_value, dict):
        assert isinstance(out, dict), (given_value, out)
        assert out.keys() <= given_value.keys()
        for name, part in given_value.items():
            if name in out:
                compare(part, out[name], (*path, name), lost)
            elif path or name not in off:
                lost[dotted((*path, name))] += 1
    elif isinstance(given_value, list | tuple | set | frozenset):
        assert len(given_value) == len(out)
        for one, other in zip(given_value, out, strict=True):
            compare(one, other, (*path, None), lost)
    else:
        assert same_worth(given_value, out), (given_value, out)


def same_worth(value, out):
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return out is value
    if isinstance(value, float) and not math.isfinite(value):
        return out is None
    if isinstance(value, Decimal) and not value.is_finite():
        return out is None
    if isinstance(value, int | float | Decimal):
        worth = decimal(value)
        exact = Decimal(value)  # of a float that became an integer
        return not isinstance(out, bool) and Decimal(out) in (worth, exact)
    if isinstance(value, dt.datetime):
        return value == dt.datetime.fromisoformat(out)
    if isinstance(value, dt.timedelta):
        return out in ("03:00:00", "P1D", "PT10800S")
    if isinstance(value, bytes | bytearray):
        return base64.b64decode(out) == value
    if not isinstance(value, str):
        return str(value) == out or getattr(value, "isoformat", lambda: None)() == out
    if isinstance(out, str) and out != value:
        return moment(out) == moment(value) if ":" in value else Decimal(out) == Decimal(value)
    return out == value if isinstance(out, str) else Decimal(out) == Decimal(value)


def moment(text):
    body, _, rest = text.partition(".")
    digits = re.match(r"\d*", rest)[0].rstrip("0")
    zone = re.search(r"(Z|[+-]\d\d:\d\d)$", text)[0]
    return dt.datetime.fromisoformat(re.sub(r"(Z|[+-]\d\d:\d\d)$", "", body) + zone), digits


# ---- the test of the tests -----------------------------------------------------------------------


def test_the_made_up_rows_are_mostly_good_ones():
    """Else the property above would hold of errors alone."""
    counts = collections.Counter()

    @EXAMPLES
    @given(case=cases())
    def look(case):
        schema, pages, rules, _off, _keys = case
        outcome, _ = fast(schema, pages, **{**rules, "on_bad_record": "skip", "max_bad_records": 10**6})
        counts["good"] += len(outcome.records)
        counts["all"] += sum(map(len, pages))
        counts["unknown"] += bool(outcome.unknown)

    look()
    assert counts["good"] > 0.3 * counts["all"] and counts["unknown"] > 3, counts
