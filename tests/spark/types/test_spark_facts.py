"""Every value that Spark's own reader nulls, cuts, bends or drops: right in the frame, or quarantined.

All cases stand in one stream, one row and one column each, so one job reads them all: those that the lake's own check
calls clean in one file, all others in another.
"""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

from burler.errors import LakeError
from burler.lake import CleanCheck

BAD = "quarantined"

INTEGER = {"type": "integer"}
BIG = {"type": "integer", "maximum": 10**38 - 1}
NUMBER = {"type": "number"}
DECIMAL = {"type": "number", "multipleOf": 1e-9}
MONEY = {"type": ["null", "string"], "format": "singer.decimal", "scale": 2}
BOOLEAN = {"type": "boolean"}
TEXT = {"type": "string"}
EITHER = {"type": ["string", "number"]}
TIME = {"type": "string", "format": "date-time"}
DATE = {"type": "string", "format": "date"}
CLOCK = {"type": "string", "format": "time"}
BINARY = {"type": "string", "contentEncoding": "base64"}
MAP = {"type": "object", "additionalProperties": INTEGER}
TEXTS = {"type": "object", "additionalProperties": TEXT}
ANY: dict = {}
MIXED = {"type": "array", "items": {}}
ODD = {"type": "object", "properties": {"a.b": INTEGER, "c d": TEXT, "e,f": TEXT, "": TEXT}}
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
DEEP = 400
LONG = 21 << 20
"""Jackson, which Spark parses with, refuses texts of more than 20 MB unless it is told to take them."""

CASES = [
    # what it shows, schema, the value's JSON text, what the frame holds
    ("an integer", INTEGER, "7", 7),
    ("an integer as 1.0", INTEGER, "1.0", 1),
    ("an integer as 1e3", INTEGER, "1e3", 1000),
    ("an integer as text", INTEGER, '"5"', BAD),
    ("a fraction for an integer", INTEGER, "1.5", BAD),
    ("the least integer", INTEGER, "-9223372036854775808", -(2**63)),
    ("an integer beyond 64 bits", INTEGER, "9223372036854775808", BAD),
    ("a declared big integer", BIG, "9223372036854775808", Decimal(2**63)),
    ("38 digits", BIG, "9" * 38, Decimal("9" * 38)),
    ("39 digits", BIG, "1" + "0" * 38, BAD),
    ("a decimal", DECIMAL, "12345678901234567890.123456789", Decimal("12345678901234567890.123456789")),
    ("a decimal as text", DECIMAL, '"3.14"', Decimal("3.140000000")),
    ("a decimal that would be rounded", DECIMAL, "0.1234567891", BAD),
    ("a decimal of too many digits", DECIMAL, "1" + "0" * 29, BAD),
    ("a decimal of a text", MONEY, '"12345678901234567890.10"', Decimal("12345678901234567890.10")),
    ("a decimal of a text that would be rounded", MONEY, '"0.125"', BAD),
    ("a double", NUMBER, "0.1", 0.1),
    ("an integer in a double", NUMBER, "3", 3.0),
    ("a double that overflows", NUMBER, "1e400", BAD),
    ("a double as text", NUMBER, '"1.5"', BAD),
    ("NaN as text", NUMBER, '"NaN"', BAD),
    ("a boolean", BOOLEAN, "true", True),
    ("a boolean as a number", BOOLEAN, "1", BAD),
    ("1e400 kept as text", ANY, "1e400", "1e400"),
    ("a number's text", EITHER, "1.10", "1.10"),
    ("a text beside numbers", EITHER, '"1.10"', "1.10"),
    ("an object kept as text", ANY, '{"b": 1.10,"a":[]}', '{"b": 1.10,"a":[]}'),
    ("Z", TIME, '"2024-01-01T12:00:00Z"', NOON),
    ("an offset", TIME, '"2024-01-01T14:00:00+02:00"', NOON),
    ("an offset without colon", TIME, '"2024-01-01T14:00:00+0200"', NOON),
    ("a blank before the offset", TIME, '"2024-01-01T14:00:00 +0200"', NOON),
    ("a date for a date-time", TIME, '"2024-01-01"', NOON.replace(hour=0)),
    ("nine digits", TIME, '"2024-01-01T12:00:00.123456789Z"', NOON.replace(microsecond=123456)),
    ("no offset", TIME, '"2024-01-01T12:00:00"', NOON),
    ("basic format", TIME, '"20240101T120000Z"', NOON),
    ("no seconds", TIME, '"2024-01-01T12:00Z"', NOON),
    ("the first moment", TIME, '"0001-01-01T00:00:00Z"', dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
    ("the last moment", TIME, '"9999-12-31T23:59:59.999999Z"', dt.datetime.max.replace(tzinfo=dt.UTC)),
    ("before the first moment", TIME, '"0001-01-01T00:00:00+01:00"', BAD),
    ("second 60", TIME, '"2024-01-01T12:00:60Z"', BAD),
    ("hour 24", TIME, '"2024-01-01T24:00:00Z"', BAD),
    ("RFC 1123", TIME, '"Mon, 01 Jan 2024 12:00:00 GMT"', BAD),
    ("no text at all", TIME, '""', BAD),
    ("seconds since 1970", TIME, "1700000000", BAD),
    ("milliseconds since 1970", TIME, "1700000000000", BAD),
    ("fractions of seconds since 1970", TIME, "1700000000.5", BAD),
    ("a date", DATE, '"2024-02-29"', dt.date(2024, 2, 29)),
    ("midnight for a date", DATE, '"2024-02-29T00:00:00Z"', dt.date(2024, 2, 29)),
    ("a time in a date", DATE, '"2024-02-29T01:00:00Z"', BAD),
    ("a bad time in a date", DATE, '"2024-02-29T24:00:00Z"', BAD),
    ("a time of day", CLOCK, '"12:34:56Z"', "12:34:56Z"),
    ("base64", BINARY, '"AAEC/w=="', b"\x00\x01\x02\xff"),
    ("no base64", BINARY, '"no base64!"', BAD),
    ("a map", MAP, '{"a":1,"A":2}', [("a", 1), ("A", 2)]),
    ("a bad value in a map", MAP, '{"a":1,"b":"x"}', BAD),
    ("a map of texts", TEXTS, '{"a":"1.10"}', [("a", "1.10")]),
    ("a number in a map of texts", TEXTS, '{"a":1.10}', [("a", "1.10")]),
    ("a mixed array", MIXED, '[1.10,"x",{"y":null}]', ["1.10", "x", '{"y":null}']),
    ("the last of equal keys", ODD, '{"a.b":1,"a.b":2}', {"a.b": 2, "c d": None, "e,f": None, "": None}),
    ("odd names", ODD, '{"c d":"x","":"y"}', {"a.b": None, "c d": "x", "e,f": None, "": "y"}),
    ("half of a surrogate pair", TEXT, r'"\ud800"', BAD),
    ("a whole pair", TEXT, r'"\ud83d\ude00"', "\N{GRINNING FACE}"),
    ("a zero character", TEXT, r'"a\u0000b"', "a\x00b"),
    ("deep nesting", ANY, "[" * DEEP + "]" * DEEP, "[" * DEEP + "]" * DEEP),
    ("1,001 digits", ANY, "1" * 1001, "1" * 1001),
    ("longer than Spark's own limit", TEXT, '"' + "x" * LONG + '"', "x" * LONG),
]
NAMES = {f"x{at:02}": case for at, case in enumerate(CASES)}
SCHEMA = {"type": "object", "properties": {"n": TEXT, **{name: case[1] for name, case in NAMES.items()}}}


def record(name: str, value: str) -> bytes:
    return f'{{"n":"{name}","{name}":{value}}}'.encode()


def is_clean(row: bytes) -> bool:
    line = b'{"type":"RECORD","stream":"s","record":%s,"time_extracted":"2024-01-01T00:00:00.000000Z"}\n' % row
    return CleanCheck(SCHEMA).page(line)


@pytest.fixture
def rows() -> dict[bool, list[bytes]]:
    """The records by whether the lake calls them clean."""
    found: dict[bool, list[bytes]] = {True: [], False: []}
    for name, (_, _, value, _) in NAMES.items():
        row = record(name, value)
        found[is_clean(row)].append(row)
    return found


def test_each_value_is_right_or_its_row_is_quarantined(lake, read_stream, rows):
    lake.commit("s", rows[True], schema=SCHEMA, keys=("n",))
    lake.commit("s", rows[False], schema=SCHEMA, keys=("n",))
    assert [one["clean"] for one in lake.manifest("s")["file_stats"].values()] == [True, False]
    assert len(rows[True]) > 20

    read = read_stream()

    got, said = read.by("n"), {row.field.partition(".")[0]: row for row in read.bad}
    for name, (what, _, value, wanted) in NAMES.items():
        if wanted == BAD:
            assert name not in got, what
            shown = said[name].value
            assert shown in value or shown.startswith('{"type":"RECORD"'), what
        else:
            assert got[name][name] == wanted, what
            assert type(got[name][name]) is type(wanted), what
    (digits,) = [name for name, case in NAMES.items() if case[0] == "nine digits"]
    assert f"field '{digits}': 1 time cut to microseconds" in read.said.notes
    lines = [json.loads(row.record).get("record", json.loads(row.record))["n"] for row in read.bad]
    assert [row.line for row in read.bad] == [2 + rows[False].index(record(n, NAMES[n][2])) for n in lines]
    assert len({row.file for row in read.bad}) == 1


def test_clean_values_are_the_same_through_the_exact_path(lake, read_stream, rows):
    lake.commit("s", rows[True], schema=SCHEMA, keys=("n",), clean=False)

    read = read_stream()

    assert read.bad == []
    for name, row in read.by("n").items():
        assert row[name] == NAMES[name][3], NAMES[name][0]
    assert len(read.rows) == len(rows[True])


@pytest.mark.parametrize("clean", [True, False])
def test_what_is_nested_deeper_than_spark_goes_by_itself_is_right_or_quarantined(lake, read_stream, clean):
    """Spark stops at 1,000 levels unless it is told not to; Python's own parser near there, too."""
    deep = "[" * 1_100 + "]" * 1_100
    schema = {"properties": {"n": TEXT, "x": ANY}}
    lake.commit("s", [b'{"n":"a"}', b'{"n":"b","x":%s}' % deep.encode()], schema=schema, keys=("n",), clean=clean)

    read = read_stream()

    assert read.by("n")["a"]["x"] is None
    if "b" in read.by("n"):
        assert read.by("n")["b"]["x"] == deep
    else:
        assert [row.line for row in read.bad] == [3]


LINE = b'{"type":"RECORD","stream":"s","record":{"n":"b"},"time_extracted":"2024-01-01T00:02:00.000000Z"}'
LINES = [
    # what a line is behind the manifest's back, whether its row is right (None: it is no row)
    ("a second object on the line", LINE + b" " + LINE, False),
    ("text behind the object", LINE + b"garbage", False),
    ("bare NaN", LINE.replace(b'"b"', b'"b","x20":NaN'), False),
    ("bytes that are no text", LINE.replace(b'"b"', b'"\xff\xfe"'), False),
    ("an array of two", b"[" + LINE + b"," + LINE + b"]", False),
    ("null", b"null", False),
    ("a text", b'"str"', False),
    ("a RECORD without a record", b'{"type":"RECORD","stream":"s"}', False),
    ("a blank line", b"   ", None),
    ("a carriage return", LINE + b"\r", True),
    ("a byte order mark", b"\xef\xbb\xbf" + LINE, False),
    ("a time that is none", LINE.replace(b"2024-01-01T00:02", b"yesterday"), False),
]


def test_lines_that_spark_takes_for_others_are_quarantined(lake, read_stream, rewrite):
    schema = {"properties": {"n": TEXT, "x20": NUMBER}}
    marks = [b"m%02d" % at for at in range(len(LINES))]
    path = lake.commit("s", [b'{"n":"%s"}' % mark for mark in marks], schema=schema, keys=())
    for mark, (_, line, _) in zip(marks, LINES, strict=True):
        old = LINE.replace(b'"b"', b'"%s"' % mark).replace(b"00:02", b"00:01")
        rewrite(path, old, line.replace(b'"n":"b"', b'"n":"%s"' % mark))
    lake.manifest_path("s").unlink()  # nothing knows what these lines are

    read = read_stream()

    right = [mark.decode() for mark, case in zip(marks, LINES, strict=True) if case[2]]
    assert sorted(read.by("n")) == right
    wrong = [at + 2 for at, case in enumerate(LINES) if case[2] is False]
    assert [row.line for row in read.bad] == wrong


def test_what_spark_flags_in_a_clean_file_is_read_again(lake, read_stream):
    odd = [b'{"id":1.0}', b'{"id":2}', b'{"id":"x"}']
    schema = {"properties": {"id": INTEGER}}
    lake.commit("s", [b'{"id":5}'], schema=schema)
    lake.commit("s", odd, schema=schema, clean=True)
    lake.commit("s", [b'{"id":6}'], schema=schema)

    read = read_stream()

    assert sorted(read.by("id")) == [1, 2, 5, 6]
    assert [(row.line, row.field, row.value) for row in read.bad] == [(4, "id", '"x"')]
    assert read.said.repaired == 1


def test_a_file_of_other_rows_than_its_manifest_says_is_an_error(lake, read_stream, rewrite):
    path = lake.commit("s", [b'{"id":5}', b'{"id":6}'])
    rewrite(path, b'"record":{"id":6}', b'"nothing":{"id":6}')

    with pytest.raises(LakeError, match=r"rows|Singer"):
        read_stream()

    document = lake.manifest("s")
    for stats in document["file_stats"].values():
        stats["clean"] = False
        stats["records"] = 3
    lake.save("s", document)
    with pytest.raises(LakeError, match=r"holds 2 rows, its manifest says 3"):
        read_stream()


def test_a_torn_file_is_an_error_and_not_fewer_rows(lake, read_stream):
    path = lake.commit("s", [{"id": at} for at in range(5_000)], clean=False)
    path.write_bytes(path.read_bytes()[:-500])

    with pytest.raises(LakeError, match=r"stream 's': .*truncated or corrupt"):
        read_stream()
