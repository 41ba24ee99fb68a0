"""Nothing that Spark's JSON reader bends or nulls is called clean: each value that is known, and more."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from burler.lake import CleanCheck

INTEGER = {"type": "integer"}
BIG = {"type": "integer", "minimum": 0, "maximum": 10**30}
NUMBER = {"type": "number"}
DECIMAL = {"type": "number", "multipleOf": 1e-9}
STRING = {"type": "string"}
BOOLEAN = {"type": "boolean"}
TIME = {"type": "string", "format": "date-time"}
DATE = {"type": "string", "format": "date"}
BINARY = {"type": "string", "contentEncoding": "base64"}
ANY: dict[str, Any] = {}
STRUCT = {"type": "object", "properties": {"a": INTEGER}}
MAP = {"type": "object", "additionalProperties": INTEGER}


def line(record: str | bytes, *, time: str = "2024-01-02T12:00:00.000000Z", more: str = "") -> bytes:
    text = record if isinstance(record, bytes) else record.encode("utf-8", "surrogatepass")
    return b'{"type":"RECORD","stream":"s","record":' + text + f',"time_extracted":"{time}"{more}}}\n'.encode()


def is_clean(schema: Any, value: str | bytes) -> bool:
    check = CleanCheck({"type": "object", "properties": {"x": schema}})
    text = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    found = check.page(line(b'{"x":' + text + b"}"))
    # The answer is the same beside other rows, in any order of pages, and with spaces, which take another path.
    good = line(b"{}")
    assert check.page(good + line(b'{"x":' + text + b"}") + good) == found
    assert check.page(line(b'{"x": ' + text + b"}")) == found
    assert check.page([line(b'{"x":' + text + b"}")[:-1]]) == found
    return found


CLEAN = [
    (INTEGER, "0"),
    (INTEGER, "-0"),
    (INTEGER, "9223372036854775807"),
    (INTEGER, "-9223372036854775808"),
    ({"type": "integer", "maximum": 9223372036854775807, "exclusiveMaximum": 2**63}, "5"),
    (BIG, "99999999999999999999999999999999999999"),
    (NUMBER, "1"),
    (NUMBER, "1.5e3"),
    (NUMBER, "0.1"),
    (NUMBER, "-1e-300"),
    (NUMBER, "12345678901234567890.123"),
    (DECIMAL, "12345678901234567890.123456789"),
    (DECIMAL, "1.5000000000000000000"),
    (DECIMAL, "1e3"),
    (DECIMAL, "99999999999999999999999999999"),
    ({"type": "string", "format": "singer.decimal"}, '"12345.000000000000000001"'),
    ({"type": "number", "format": "singer.decimal", "scale": 2}, "-1.25"),
    (BOOLEAN, "true"),
    (STRING, '""'),
    (STRING, '"é😀\\u00e9\\ud83d\\ude00\\u0000\\n"'),
    (STRING, '"not \\": a key"'),
    (STRING, '":"'),
    (TIME, '"2024-02-29T23:59:59Z"'),
    (TIME, '"2024-01-01T00:00:00.1Z"'),
    (TIME, '"2024-01-01T00:00:00.123456+02:00"'),
    (TIME, '"0001-01-01T00:00:00Z"'),
    (TIME, '"9999-12-31T23:59:59.999999Z"'),
    (DATE, '"2000-02-29"'),
    (BINARY, '"aGk="'),
    (BINARY, '""'),
    (STRUCT, '{"a":1}'),
    (STRUCT, "{}"),
    (MAP, '{"a":1,"A":2,"":3}'),
    (ANY, '{"a":[1,{"b":null}],"c":1.10}'),
    (ANY, "null"),
    ({"type": ["string", "number"]}, "1.10"),
    ({"type": ["string", "number"]}, '"x"'),
    ({"type": ["null", "integer"]}, "null"),
    ({"type": "null"}, "null"),
    ({"type": "array", "items": TIME}, '["2024-01-01T00:00:00Z"]'),
    ({"type": "array", "items": {"type": ["null", "integer"]}}, "[1,null]"),
    ({"type": "array"}, '[1,"a",{}]'),
    ({"anyOf": [TIME, {"type": "null"}]}, '"2024-01-01T00:00:00Z"'),
    ({"anyOf": [TIME, {"type": "null"}]}, "null"),
    ({"type": ["null", "array"], "items": DECIMAL}, "null"),
    ({"type": ["null", "number"], "multipleOf": 0.01}, "null"),
]

NOT_CLEAN = [
    # what Spark's reader bends or nulls
    (INTEGER, "1.0"),
    (INTEGER, "1e3"),
    (INTEGER, '"5"'),
    (INTEGER, "1.5"),
    (INTEGER, "9223372036854775808"),
    (INTEGER, "-9223372036854775809"),
    (BIG, "1" + "0" * 38),
    (BIG, "1.0"),
    (BIG, "1e3"),
    (BIG, '"5"'),
    (DECIMAL, "0.1234567891"),
    (DECIMAL, "12345678901234567890.1234567890123"),
    (DECIMAL, "1" + "0" * 29),
    (DECIMAL, "1e29"),
    (DECIMAL, "1e400"),
    (DECIMAL, "1e-400"),
    (DECIMAL, '"3.14"'),
    (DECIMAL, "null"),
    (DECIMAL, '{"a":1}'),
    ({"type": "string", "format": "singer.decimal"}, '"1.0000000000000000001"'),
    ({"type": "string", "format": "singer.decimal"}, '"1e3"'),
    ({"type": "string", "format": "singer.decimal"}, '" 1"'),
    ({"type": "string", "format": "singer.decimal"}, '"NaN"'),
    ({"type": "string", "format": "singer.decimal"}, '"1\\n"'),
    ({"type": "number", "format": "singer.decimal", "scale": 2}, "1.255"),
    (NUMBER, "1e400"),
    (NUMBER, "-1e400"),
    (NUMBER, "1" + "0" * 400),
    (NUMBER, '"1.5"'),
    (NUMBER, '"NaN"'),
    (NUMBER, "NaN"),
    (NUMBER, "Infinity"),
    (NUMBER, "true"),
    (ANY, "1e400"),
    (STRING, "5"),
    (STRING, "{}"),
    (TIME, '"2024-01-01T00:00:00.1234567Z"'),
    (TIME, '"2024-01-01T00:00:00.123456789Z"'),
    (TIME, '"2024-01-01T00:00:00+0200"'),
    (TIME, '"2024-01-01 00:00:00Z"'),
    (TIME, '"2024-01-01t00:00:00Z"'),
    (TIME, '"2024-01-01T00:00:00z"'),
    (TIME, '"2024-01-01"'),
    (TIME, '"2024-01-01T00:00:00"'),
    (TIME, '"20240101T000000Z"'),
    (TIME, '"2024-01-01T00:00Z"'),
    (TIME, '"2024-01-01T00:00:60Z"'),
    (TIME, '"2024-01-01T24:00:00Z"'),
    (TIME, '"2024-02-30T00:00:00Z"'),
    (TIME, '"2023-02-29T00:00:00Z"'),
    (TIME, '"1900-02-29T00:00:00Z"'),
    (TIME, '"2024-13-01T00:00:00Z"'),
    (TIME, '"2024-00-01T00:00:00Z"'),
    (TIME, '"2024-01-01T00:00:00.Z"'),
    (TIME, '"2024-01-01T00:00:00Z\\n"'),
    (TIME, '"Mon, 01 Jan 2024 00:00:00 GMT"'),
    (TIME, '""'),
    (TIME, "1700000000"),
    (TIME, "1700000000000"),
    (TIME, "1700000000.5"),
    (TIME, '"0000-01-01T00:00:00Z"'),
    (TIME, '"10000-01-01T00:00:00Z"'),
    (TIME, '"0001-01-01T00:00:00+02:00"'),
    (TIME, '"9999-12-31T23:59:59-02:00"'),
    (TIME, '"2024-01-01T00:00:00+19:00"'),
    (TIME, '"2024-01-01T00:00:00+24:00"'),
    (TIME, '"٢٠٢٤-01-01T00:00:00Z"'),
    (DATE, '"2024-01-01T00:00:00Z"'),
    (DATE, '"2024-01-01T24:00:00Z"'),
    (DATE, '"2024-02-30"'),
    (DATE, '"20240101"'),
    (DATE, '"2024-1-1"'),
    (DATE, "19000"),
    (DATE, '"0000-01-01"'),
    (BINARY, '"not base64!"'),
    (BINARY, '"aGk"'),
    (BINARY, '"aG k="'),
    (MAP, '{"a":1,"b":"x"}'),
    (MAP, '{"a":1.0}'),
    (MAP, '{"a":1,"a":2}'),
    (STRUCT, '{"a":1,"a":2}'),
    (STRUCT, '{"a":1,"b":2}'),
    (STRUCT, '{"A":1}'),
    (STRUCT, '{"a":1,"\\u0061":2}'),
    (ANY, '{"a":1,"a":2}'),
    (ANY, '{"a":{"b":[{"c":1,"c":1}]}}'),
    (STRING, '"\\ud800"'),
    (STRING, '"\\ude00\\ud83d"'),
    (ANY, '"\\ud800"'),
    (ANY, '{"\\ud800":1}'),
    (STRING, b'"\xff\xfe"'),
    (STRING, b'"\xed\xa0\x80"'),
    (ANY, b'{"a":"\xff"}'),
    (STRING, '"tab\there"'),
    (STRING, '"' + "x" * 20_000_001 + '"'),
    (ANY, "[" * 1000 + "]" * 1000),
    (ANY, '{"a":' * 1000 + "1" + "}" * 1000),
    (NUMBER, "0." + "1" * 1000),
    (ANY, "1" * 1001),
    (ANY, '{"' + "k" * 50_001 + '":1}'),
    (MAP, '{"' + "k" * 50_001 + '":1}'),
    # types, nulls, unions
    (BOOLEAN, '"yes"'),
    (BOOLEAN, "1"),
    (INTEGER, "null"),
    (INTEGER, "true"),
    ({"type": "array", "items": INTEGER}, "[1,null]"),
    ({"type": "array", "items": INTEGER}, "[1.0]"),
    ({"type": "array", "items": DECIMAL}, "[1.5,0.12345678912]"),
    ({"type": "object", "additionalProperties": DECIMAL}, '{"a":0.12345678912}'),
    ({"type": "array", "items": TIME}, '["2024-01-01T00:00:00.1234567Z"]'),
    ({"type": "array", "items": INTEGER}, "1"),
    ({"type": ["string", "number"]}, "[1]"),
    ({"type": ["string", "integer"], "format": "date-time"}, "1700000000000"),
    ({"type": "null"}, "0"),
    ({"anyOf": [TIME, {"type": "null"}]}, '"yesterday"'),
    ({"anyOf": [STRING, {"type": "null"}], "format": "date-time"}, '"yesterday"'),
    # schemas that can't be told for certain: never clean
    ({"anyOf": [INTEGER, STRING]}, "1"),
    ({"oneOf": [INTEGER, STRING, {"type": "null"}]}, "1"),
    ({"allOf": [INTEGER]}, "1"),
    ({"$ref": "#/x"}, "1"),
    ({"enum": [1, 2]}, "1"),
    ({"const": 1}, "1"),
    ({"type": "text"}, '"x"'),
    ({"type": "object", "patternProperties": {"a": INTEGER}}, "{}"),
    ({"type": "object", "properties": {"a": INTEGER, "A": INTEGER}}, '{"a":1}'),
    ({"type": "object", "properties": {"ß": INTEGER, "SS": INTEGER}}, "{}"),
    ({"type": "number", "format": "singer.decimal", "scale": 39}, "1"),
    ({"type": ["string", "number"], "format": "singer.decimal"}, "1"),
    (False, "1"),
    (None, "1"),
    ("integer", "1"),
]


def test_clean() -> None:
    for schema, value in CLEAN:
        assert is_clean(schema, value), (schema, value[:40])


def test_not_clean() -> None:
    for schema, value in NOT_CLEAN:
        assert not is_clean(schema, value), (schema, value[:40])


USERS = {"type": "object", "properties": {"id": INTEGER, "name": STRING}}
GOOD = b'{"id":1,"name":"a"}'


CLEAN_PAGES = [
    b"",
    line(GOOD),
    line(GOOD) * 3,
    line(GOOD, more=',"version":5'),
    line(b"{}"),
    line(b'{"name":"a","id":1}'),
    line(b'{ "name" :"a", "id": 1 }'.replace(b'" :', b'":')),
    line(b'{"id":1,"name":"' + b"x" * 2000 + b'"}'),
    line(b'{"id":1,"name":"' + b"1 " * 2000 + b'"}'),
]


def test_clean_pages() -> None:
    for page in CLEAN_PAGES:
        assert CleanCheck(USERS).page(page), page[:80]
        assert CleanCheck(USERS).page(bytearray(page)), page[:80]


PAGES_NOT_CLEAN = [
    line(b'{"id":1,"name":"a","more":1}'),
    line(b'{"ID":1}'),
    line(b'{"id":1,"id":1}'),
    line(b'{"id":1,"id" :1}'),
    line(b'{"id":1,"id"\t:1,"name":"\\":"}'),
    line(b'{"id":1,"name":"\\u0022:","id":1}'),
    line(b'{"id":1,"name":"\\"\\u003a","id":1}'),
    line(b"{}")[:-1] + b" " + line(b"{}"),
    line(b"{}")[:-1] + line(b"{}"),
    line(b"{}")[:-1] + b"garbage\n",
    line(b"{}") + b"\n",
    b"\n" + line(b"{}"),
    b"\xef\xbb\xbf" + line(b"{}"),
    line(b"{}")[:-1] + b"\r\n",
    line(b'{"id":1,\r"name":"a"}'),
    line(b"{}")[:-1],
    b"[" + line(b"{}")[:-1] + b"]\n",
    b"null\n",
    b'"str"\n',
    line(b"null"),
    line(b"[]"),
    line(b'{"id":1,"name":"' + b"1" * 2000 + b'"}'),
    b'{"type":"RECORD","stream":"s","time_extracted":"2024-01-02T12:00:00.000000Z"}\n',
    b'{"type":"RECORD","stream":"s","record":{}}\n',
    line(b"{}").replace(b"RECORD", b"record"),
    line(b"{}").replace(b'"type"', b'"Type"'),
    line(b"{}", more=',"extra":1'),
    line(b"{}", more=',"version":1.0'),
    line(b"{}", more=',"version":9223372036854775808'),
    line(b"{}", more=',"stream":"s"'),
    line(b"{}", time="2024-01-02T12:00:00Z"),
    line(b"{}", time="2024-01-02T12:00:00.000000000Z"),
    line(b"{}", time="2024-02-30T12:00:00.000000Z"),
    line(b"{}", time="2024-01-02T12:00:00.000000+00:00"),
    line(b"{}", time=""),
]


def test_pages_not_clean() -> None:
    for page in PAGES_NOT_CLEAN:
        assert not CleanCheck(USERS).page(page), page[:80]
        assert not CleanCheck(USERS).page(line(GOOD) + page), page[:80]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"id": INTEGER, "ID": INTEGER}},
        {"properties": {"o": {"type": "object", "properties": {"a": INTEGER, "A": INTEGER}}}},
        {"anyOf": [USERS]},
        {"allOf": [USERS]},
        {"$ref": "#/definitions/x"},
        {"properties": ["id"]},
        {"properties": {"a" * 20_000: INTEGER}},
    ],
)
def test_schemas_that_are_never_clean_say_why(schema: dict[str, Any]) -> None:
    check = CleanCheck(schema)
    assert check.never
    assert not check.page(line(b"{}"))


def test_a_record_of_no_columns() -> None:
    assert CleanCheck({}).page(line(b"{}"))
    assert not CleanCheck({}).page(line(b'{"a":1}'))
    assert not CleanCheck({"additionalProperties": True}).page(line(b'{"a":1}'))


def test_the_schema_is_not_changed() -> None:
    schema = {"properties": {"a": {"type": ["null", "string"]}, "b": {"anyOf": [TIME, {"type": "null"}]}}}
    before = json.dumps(schema)
    CleanCheck(schema).page(line(b"{}"))
    assert json.dumps(schema) == before


def test_pages_that_take_the_long_way_do_not_bend_later_answers() -> None:
    check = CleanCheck({"properties": {"x": TIME}})
    odd, even = line(b'{"x":"2024-01-01T00:00:00+02:00"}'), line(b'{"x":"2024-01-01T00:00:00Z"}')
    bad = line(b'{"x":"2024-01-01T00:00:00.1234567Z"}')
    for _ in range(30):
        assert check.page(odd)
        assert check.page(odd)
        assert check.page(even)
        assert not check.page(bad)


def is_rfc3339(text: str) -> bool:
    """The same rule written the slow way."""
    if len(text) < 20 or text[10] != "T" or not text.isascii() or text[4] + text[7] + text[13] + text[16] != "--::":
        return False
    body, zone = (text[:-1], "+00:00") if text[-1] == "Z" else (text[:-6], text[-6:])
    clock, _, fraction = body.partition(".")
    digits = clock[:4] + clock[5:7] + clock[8:10] + clock[11:13] + clock[14:16] + clock[17:]
    if len(clock) != 19 or not digits.isdigit() or ("." in body and not (fraction.isdigit() and len(fraction) <= 6)):
        return False
    if zone[0] not in "+-" or zone[3] != ":" or not (zone[1:3] + zone[4:]).isdigit() or zone[4] > "5":
        return False
    if int(zone[1:3]) * 60 + int(zone[4:]) > 18 * 60:
        return False
    try:
        return dt.datetime.fromisoformat(clock + zone).astimezone(dt.UTC) is not None
    except (ValueError, OverflowError):
        return False


parts = st.tuples(
    st.integers(0, 10001),
    st.integers(0, 13),
    st.integers(0, 32),
    st.integers(0, 24),
    st.integers(0, 60),
    st.integers(0, 61),
)


@given(
    parts | st.dates(dt.date(2, 1, 2), dt.date(9998, 1, 1)).map(lambda day: (*day.timetuple()[:3], 23, 59, 59)),
    st.sampled_from(["", ".", ".1", ".123456", ".1234567"]),
    st.sampled_from(["Z", "z", "", "+00:00", "-02:30", "+18:00", "+18:01", "+17:59", "-19:00", "+02", "+0200"]),
)
@example((2024, 2, 29, 23, 59, 59), "", "Z")
@example((2100, 2, 29, 23, 59, 59), "", "Z")
def test_date_times_against_the_calendar(when: tuple[int, ...], fraction: str, zone: str) -> None:
    text = "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}".format(*when) + fraction + zone
    found = CleanCheck({"properties": {"x": TIME}}).page(line(f'{{"x":"{text}"}}'))
    if when[0] in (1, 9999) and zone != "Z":
        assert not found or is_rfc3339(text)  # the edge years are left out whole where a zone may move them
    else:
        assert found == is_rfc3339(text)


@given(st.dates(dt.date(1, 1, 1)) | st.just(dt.date(2000, 2, 29)))
def test_every_day_is_a_clean_date(day: dt.date) -> None:
    assert is_clean(DATE, f'"{day.isoformat()}"')


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 38))
def test_decimals_against_decimal(number: Decimal, scale: int) -> None:
    with localcontext(prec=1000):  # the default of 28 digits would round the oracle itself
        shifted = number.scaleb(scale) if abs(number.adjusted()) < 200 else Decimal("0.5") if number else Decimal(0)
    fits = shifted == shifted.to_integral_value() and abs(shifted) < Decimal(10) ** 38
    found = is_clean({"type": "number", "multipleOf": Decimal(10) ** -scale}, str(number))
    assert found == (fits and len(str(number)) <= 100)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


def fits(schema: Any, value: Any) -> bool:
    """The types of ``burler.records.columns`` the slow way, for the schemas below."""
    kind = schema.get("type")
    if kind == "integer":
        return type(value) is int and -(2**63) <= value < 2**63
    if kind == "number":
        return type(value) in (int, float)
    if kind == "string":
        return type(value) is str
    if kind == "boolean":
        return type(value) is bool
    if kind == "array":
        return type(value) is list and all(fits(schema["items"], item) for item in value)
    if kind == "object" and "properties" in schema:
        known = schema["properties"]
        return type(value) is dict and set(value) <= set(known) and all(fits(known[key], value[key]) for key in value)
    if kind == "object":
        return type(value) is dict and all(fits(schema["additionalProperties"], item) for item in value.values())
    return True


schemas = st.recursive(
    st.sampled_from([INTEGER, NUMBER, STRING, BOOLEAN, ANY]),
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda more: {"type": "object", "additionalProperties": more}),
        st.dictionaries(st.sampled_from(["", "a", "b c", "é"]), inner, min_size=1).map(
            lambda known: {"type": "object", "properties": known}
        ),
    ),
    max_leaves=4,
)


@given(schemas, values, st.booleans(), st.booleans())
def test_any_value_against_any_type(schema: Any, value: Any, spaces: bool, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped, separators=None if spaces else (",", ":"))
    found = is_clean(schema, text)
    if found:
        assert fits(schema, value)
    elif fits(schema, value):
        # Only what may hide a second key of one name is refused without need.
        assert '"' in text
