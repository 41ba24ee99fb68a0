"""Pages of dicts as columns without shaping: whatever goes that way is what shaping makes of it, value by value."""

from __future__ import annotations

import datetime as dt
import enum
from decimal import Decimal

import pytest

from support.internals import columnar, dicts_direct, shape, shape_lines


class Number(enum.IntEnum):
    """An int to Python, and no plain one."""

    ONE = 1


def nullable(kind, **more):
    return {"type": ["null", kind], **more}


TIMES = {"type": ["null", "string"], "format": "date-time"}
FIELDS = {
    "text": {"type": "string"},
    "text_or_null": nullable("string"),
    "whole": nullable("integer"),
    "number": nullable("number"),
    "truth": nullable("boolean"),
    "at": TIMES,
    "at_must": {"type": "string", "format": "date-time"},
    "object": nullable("object", properties={"x": nullable("integer"), "y": {"type": "string"}}),
    "list": nullable("array", items={"type": "integer"}),
    "list_of_nulls": {"type": "array", "items": nullable("string")},
    "objects": {"type": "array", "items": {"type": "object", "properties": {"at": TIMES}}},
}
NAIVE = dt.datetime(2024, 5, 1)  # noqa: DTZ001  what some client may give
NOON = "2024-05-01T12:00:00Z"
GOOD = {
    "id": 1, "text": "a", "text_or_null": None, "whole": 2**63 - 1, "number": 1, "truth": True, "at": NOON,
    "at_must": "2024-05-01T12:00:00.123456Z", "object": {"x": 1, "y": "b"}, "list": [1, 2],
    "list_of_nulls": [None, "x"], "objects": [{"at": NOON}, {}],
}  # fmt: skip
ODD = [
    None, "", "text", "\u00fc\x00\U0001f600", "\ud800", "5", "1.5", "true", "nan",
    0, -1, 5, 2**63, 2**53 + 1, -(2**63), 10**30, True,
    False, 0.0, -0.0, 1.0, 1.5, 1e300, float("nan"), float("inf"), Decimal("1.10"), Decimal("1e3"), Number.ONE,
    NOON, "2024-05-01T12:00:00.1Z", "2024-05-01T12:00:00.123456789Z", "2024-05-01T14:00:00+02:00", "2024-05-01",
    "2024-05-01T12:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2024-13-01T00:00:00Z",
    "2024-05-01T24:00:00Z", dt.datetime(2024, 5, 1, tzinfo=dt.UTC), NAIVE, dt.date(2024, 5, 1),
    {}, {"x": 1}, {"x": None, "y": "z"}, {"y": None}, {"x": 1.0}, {"x": 1, "z": 2}, {1: 2},
    [], [1], [1, None], ["a", None], [True], [1.0], [[1]], [{}], [{"at": None}], [{"at": "x"}], [{"b": 1}],
    (1, 2), {1, 2},
]  # fmt: skip


def both(schema, rows, *, key=None, deselected=()):
    """What the direct way gives, and what shaping does: columns and key values; None for neither."""
    form = {"key_properties": ("id",), "key": key, "deselected": deselected}
    layout = columnar.ColumnarLayout(schema, "s")
    shaper = shape.Shaper("s", schema, **form)
    direct = dicts_direct.DictsDirect(
        shaper.schema, layout.arrow_schema, key=key, check_constraints=shaper.rules.check_constraints
    )
    output = shape_lines.Output(bytearray(), b"", b"\n")
    page = shaper.shape_to(rows, output)
    shaped = None
    if page.error is None and not shaper.unknown:
        try:
            shaped = columnar.record_batch(layout, output.buffer, output.count), page.keys
        except Exception:
            shaped = None
    return direct.page(rows), shaped


def of(properties, required=()):
    return {"type": "object", "properties": {"id": {"type": "integer"}, **properties}, "required": list(required)}


@pytest.mark.parametrize("name", FIELDS)
def test_odd_values_go_the_usual_way_or_come_out_the_same(name):
    schema, taken = of({name: FIELDS[name]}), 0
    for value in ODD:
        good = {"id": 1, name: GOOD[name]}
        direct, shaped = both(schema, [good, {"id": 2, name: value}, {"id": 3}, dict(good, id=4)])
        if direct is None:
            continue
        taken += 1
        assert shaped is not None, value
        assert direct[0].equals(shaped[0]), value
        assert [str(one) for one in direct[0].to_pylist()] == [str(one) for one in shaped[0].to_pylist()], value
    assert taken or "null" not in FIELDS[name]["type"]  # a field that is absent and may not be null: the usual way


def test_a_usual_page_goes_the_direct_way_whole_with_its_key_values():
    rows = [{**GOOD, "id": n, "at": f"2024-05-01T00:00:{n:02}Z"} for n in range(50)]
    for key in ("id", "at", "whole"):
        direct, shaped = both(of(FIELDS), rows, key=key)
        assert direct is not None
        assert direct[0].equals(shaped[0])
        assert direct[1] == shaped[1]


def test_keys_of_gaps_are_those_of_shaping():
    rows = [{"id": n, "at": None if n % 2 else NOON} for n in range(4)]
    direct, shaped = both(of({"at": TIMES}), rows, key="at")
    assert direct is not None
    assert direct[1] == shaped[1]


@pytest.mark.parametrize(
    ("schema", "row"),
    [
        (of({"a": {"type": "string", "maxLength": 3}}), {"id": 1, "a": "long"}),
        (of({"a": {"type": "string"}}, ["a"]), {"id": 1}),
        (of({"a": nullable("string")}, ["a"]), {"id": 1}),
        (of({"a": {"type": "string"}}), {"a": "b"}),
        (of({"a": {"type": "string"}}), {"id": None, "a": "b"}),
        (of({"a": {"type": "string"}}), {"id": 1, "a": "b", "unknown": 1}),
        (of({"a": {}}), {"id": 1, "a": "b"}),
        (of({"a": {"type": ["integer", "string"]}}), {"id": 1, "a": "b"}),
        (of({"a": {"type": "string", "format": "date"}}), {"id": 1, "a": "2024-05-01"}),
        (of({"a": {"type": "number", "multipleOf": 0.01}}), {"id": 1, "a": 1.25}),
        ({**of({"a": nullable("string")}), "additionalProperties": {"type": "string"}}, {"id": 1, "b": "x"}),
    ],
    ids=[
        "length",
        "required",
        "required-or-null",
        "no-key",
        "null-key",
        "unknown",
        "anything",
        "union",
        "date",
        "decimal",
        "open",
    ],
)
def test_what_shaping_has_to_look_at_it_gets(schema, row):
    assert both(schema, [row])[0] is None


def test_deselected_fields_may_come_and_have_no_column():
    schema = of({"a": nullable("string")})
    direct, shaped = both(schema, [{"id": 1, "a": "x", "off": 5}], deselected=[("properties", "off")])
    assert direct is not None
    assert direct[0].equals(shaped[0])
    assert direct[0].schema.names == ["id", "a"]


def test_a_stream_whose_pages_are_never_plain_is_given_up():
    layout = columnar.ColumnarLayout(of({"a": nullable("integer")}), "s")
    shaper = shape.Shaper("s", of({"a": nullable("integer")}), key_properties=("id",))
    direct = dicts_direct.DictsDirect(shaper.schema, layout.arrow_schema, key=None, check_constraints=True)
    for _ in range(3):
        assert direct.is_of_use
        assert direct.page([{"id": 1, "a": "5"}]) is None
    assert not direct.is_of_use
