"""Shape, case by case: what each type takes, what an error says, what is counted, what is dropped."""

from __future__ import annotations

import base64
import copy
import datetime as dt
import enum
import json
import logging
import uuid
from collections import OrderedDict
from decimal import Decimal

import msgspec
import pyarrow as pa
import pytest

import burler
from burler.errors import BadRecordError
from burler.singer import deselected, prune
from burler.testing import run_tap
from support.internals import shape
from support.shaping import dropped_by

UTC = dt.UTC
REFUSED = object()
NAIVE = dt.datetime(2024, 1, 2)  # noqa: DTZ001


def lines(schema, rows, *, exact=False, **options):
    """(output lines, page, shaper)"""
    shaper = shape.Shaper("s", schema, **options)
    if exact:
        shaper.fast.compiled = None
    buffer = bytearray()
    page = shaper.shape(rows, shape.Output(buffer, b"<", b">\n"))
    return [line[1:-1].decode() for line in bytes(buffer).split(b"\n") if line], page, shaper


def one(schema, value, *, exact):
    got, page, _ = lines({"properties": {"a": schema}}, [{"a": value}], exact=exact)
    return REFUSED if page.error else got[0].removeprefix('{"a":').removesuffix("}")


def field(schema, error_of):
    """The error text for one bad value."""
    _, page, _ = lines({"properties": {"a": schema}}, [{"a": error_of}])
    return str(page.error)


def crumb(*names):
    out = []
    for name in names:
        out += ["items"] if name == "[]" else ["properties", name]
    return tuple(out)


class Colour(enum.Enum):
    RED = "red"
    TWO = 2


class Loud(str):
    def __str__(self):
        return "loud"


INTEGER, NUMBER, STRING, BOOLEAN = ({"type": name} for name in ("integer", "number", "string", "boolean"))
TIME, DATE = {"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}

TABLE = [
    (
        INTEGER,
        [(5, "5"), (1.0, "1"), (-0.0, "0"), (Decimal("7.00"), "7"), ("12", "12"), ("1e3", "1000"), (2**70, str(2**70))],
    ),
    (INTEGER, [(Colour.TWO, "2"), (10**400, "1" + "0" * 400)]),
    (
        INTEGER,
        [(bad, REFUSED) for bad in (None, 1.9, True, "x", "1.5", " 1", "1_0", "٣", "", float("nan"), float("inf"))],
    ),
    (
        INTEGER,
        [(bad, REFUSED) for bad in ([], {}, Decimal("1.5"), Decimal("NaN"), Decimal("1E+999999"), 10**5000, "1e5000")],
    ),
    (NUMBER, [(5, "5"), (1.5, "1.5"), (1.0, "1.0"), ("1.50", "1.50"), (Decimal("1.10"), "1.10"), ("-0", "-0")]),
    (NUMBER, [(Decimal("12345678901234567890.123"), "12345678901234567890.123"), (Decimal("1E+400"), "1E+400")]),
    (
        NUMBER,
        [(bad, REFUSED) for bad in (None, True, "no", "NaN", "Infinity", float("nan"), float("-inf"), Decimal("sNaN"))],
    ),
    (
        STRING,
        [("é", '"é"'), ("", '""'), ("nul\0", '"nul\\u0000"'), (Loud("x"), '"x"'), (Colour.RED, '"red"'), (5, '"5"')],
    ),
    (STRING, [(Decimal("1E+2"), '"100"'), (Decimal("1.50"), '"1.50"'), (uuid.UUID(int=5), f'"{uuid.UUID(int=5)}"')]),
    (STRING, [(dt.date(2024, 1, 2), '"2024-01-02"'), (NAIVE, '"2024-01-02T00:00:00"'), (dt.time(1), '"01:00:00"')]),
    (STRING, [(bad, REFUSED) for bad in (None, True, 1.5, b"x", [], {}, "\ud800", Decimal("NaN"), object(), 10**5000)]),
    ({"type": "string", "contentEncoding": "base64"}, [(b"\0\xff", json.dumps(base64.b64encode(b"\0\xff").decode()))]),
    (BOOLEAN, [(True, "true"), (False, "false"), *((bad, REFUSED) for bad in (None, 0, 1, "true", "", []))]),
    (
        TIME,
        [
            ("2024-01-02T03:04:05+02:00", '"2024-01-02T01:04:05Z"'),
            ("2024-01-02t03:04:05.50z", '"2024-01-02T03:04:05.500000Z"'),
        ],
    ),
    (TIME, [("2024-01-02T03:04:05.1234567Z", '"2024-01-02T03:04:05.1234567Z"')]),
    (TIME, [(dt.datetime(2024, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=1))), '"2024-01-02T02:00:00Z"')]),
    (TIME, [(dt.datetime(2024, 1, 2, 3, 0, 0, 5, UTC), '"2024-01-02T03:00:00.000005Z"')]),
    (
        TIME,
        [
            (bad, REFUSED)
            for bad in (None, "", "2024-01-02", "2024-01-02T03:04:05", NAIVE, 1704164645, dt.date(2024, 1, 2))
        ],
    ),
    (DATE, [("2024-01-02", '"2024-01-02"'), (dt.date(2024, 1, 2), '"2024-01-02"')]),
    (
        DATE,
        [
            (bad, REFUSED)
            for bad in (
                None,
                "20240102",
                "2024-W01-1",
                "2024-02-30",
                "2024-01-02T00:00:00Z",
                dt.datetime(2024, 1, 2, tzinfo=UTC),
            )
        ],
    ),
    ({"type": "null"}, [(None, "null"), (0, REFUSED), ("", REFUSED)]),
    ({"type": ["null", "integer"]}, [(None, "null"), (1, "1"), ("x", REFUSED)]),
    ({"type": "array", "items": INTEGER}, [([1, "2"], "[1,2]"), ((1,), "[1]"), (frozenset([1]), "[1]"), ([], "[]")]),
    ({"type": "array", "items": INTEGER}, [(bad, REFUSED) for bad in (None, "x", {}, [None], ["x"], iter([1]))]),
    ({"type": "array"}, [([1, "x", None, {"a": [1.5]}], '[1,"x",null,{"a":[1.5]}]'), ([float("nan")], REFUSED)]),
    ({"type": "object"}, [({"b": 1, "c": {"d": None}}, '{"b":1,"c":{"d":null}}'), ({5: 1}, REFUSED), ([], REFUSED)]),
    ({"type": "object"}, [({"\ud800": 1}, REFUSED), ({"b": {"\ud800": 1}}, REFUSED)]),
    (
        {},
        [
            (None, "null"),
            (Decimal("1.10"), "1.10"),
            ([{"x": NAIVE}], REFUSED),
            ((1, {2}), "[1,[2]]"),
            (Loud("x"), '"x"'),
        ],
    ),
    (True, [({"a": Colour.RED}, '{"a":"red"}'), (dt.datetime(2024, 1, 2, tzinfo=UTC), '"2024-01-02T00:00:00Z"')]),
    (
        {"type": ["integer", "string"]},
        [("12", '"12"'), (12, "12"), ("x", '"x"'), (1.0, "1"), (1.5, REFUSED), (True, REFUSED)],
    ),
    ({"type": ["string", "number"]}, [("12", '"12"'), (12, "12"), (1.5, "1.5")]),
    (
        {"type": ["object", "array", "null"], "properties": {"b": INTEGER}},
        [({"b": "1"}, '{"b":1}'), ([1], "[1]"), (None, "null")],
    ),
]


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
@pytest.mark.parametrize(("schema", "values"), TABLE)
def test_what_each_type_takes(schema, values, exact):
    for value, wanted in values:
        assert one(schema, value, exact=exact) == wanted, (schema, value)


@pytest.mark.parametrize(
    ("union", "value", "wanted"),
    [
        # The branch that needs no cast comes first, wherever it stands.
        ([INTEGER, STRING], "12", '"12"'),
        ([STRING, INTEGER], 12, "12"),
        ([INTEGER, NUMBER], 1.5, "1.5"),
        ([INTEGER, BOOLEAN], "5", "5"),
        # Where several take a value as it is, their order decides.
        ([TIME, STRING], "2024-01-02T03:04:05+02:00", '"2024-01-02T01:04:05Z"'),
        ([STRING, TIME], "2024-01-02T03:04:05+02:00", '"2024-01-02T03:04:05+02:00"'),
        ([TIME, STRING], "yesterday", '"yesterday"'),
        ([TIME, {"type": "null"}], None, "null"),
        ([{"type": "null"}, INTEGER], "7", "7"),
        ([INTEGER, {"type": "null"}], "x", REFUSED),
        ([INTEGER, BOOLEAN], "x", REFUSED),
        # The branch that keeps all fields.
        (
            [
                {"type": "object", "properties": {"b": INTEGER}},
                {"type": "object", "properties": {"b": INTEGER, "c": {}}},
            ],
            {"b": 1, "c": 2},
            '{"b":1,"c":2}',
        ),
        (
            [{"type": "object", "properties": {"b": INTEGER}}, {"type": "object", "properties": {"b": STRING}}],
            {"b": "1"},
            '{"b":"1"}',
        ),
        ([{"type": "array", "items": INTEGER}, {"type": "array", "items": STRING}], ["1"], '["1"]'),
        # enum and const decide between branches.
        (
            [
                {"type": "object", "properties": {"k": {"const": "x"}, "v": INTEGER}},
                {"type": "object", "properties": {"k": {"enum": ["y"]}, "v": STRING}},
            ],
            {"k": "y", "v": "1"},
            '{"k":"y","v":"1"}',
        ),
        ([{"const": 1}, {"const": 2}], 3, REFUSED),
    ],
)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_unions(keyword, union, value, wanted):
    for exact in (False, True):
        assert one({keyword: union}, value, exact=exact) == wanted


def test_enums_are_held_unless_the_rules_say_types_only():
    for exact in (False, True):
        for schema, value, text in [({"type": "string", "enum": ["a"]}, "b", '"b"'), ({"const": 1}, 2, "2")]:
            assert one(schema, value, exact=exact) == REFUSED
            got, page, _ = lines(
                {"properties": {"a": schema}},
                [{"a": value}],
                exact=exact,
                rules=shape.Rules(check_constraints=False),
            )
            assert got == [f'{{"a":{text}}}'] and page.error is None


def test_keywords_beside_a_union_hold_in_each_branch():
    schema = {
        "type": "object",
        "properties": {"b": INTEGER, "at": TIME},
        "anyOf": [{"required": ["b"]}, {"required": ["at"]}],
    }
    assert one(schema, {"b": "1", "zzz": 1}, exact=False) == '{"b":1}'
    assert one(schema, {"at": "2024-01-02T03:04:05+01:00"}, exact=False) == '{"at":"2024-01-02T02:04:05Z"}'
    assert one(schema, {"zzz": 1}, exact=False) is REFUSED


def test_a_union_at_the_top():
    schema = {
        "properties": {"b": INTEGER},
        "anyOf": [{"required": ["b"]}, {"properties": {"c": STRING}, "required": ["c"]}],
    }
    got, page, shaper = lines(schema, [{"b": 1, "x": 1}, {"c": "y", "b": "2"}, {"x": 1}])
    assert got == ['{"b":1}', '{"b":2,"c":"y"}']
    assert page.count == 2 and "one of 2 schemas" in str(page.error)
    assert dropped_by(shaper) == {"x": 1}


def test_all_of_is_one_schema():
    schema = {
        "type": "object",
        "required": ["b"],
        "allOf": [
            {"properties": {"b": {"type": ["number", "null"]}, "at": TIME}, "required": ["at"]},
            {"properties": {"b": {"type": "integer"}}, "allOf": [{"properties": {"deep": STRING}}]},
        ],
    }
    row = {"b": 1.0, "at": "2024-01-02T03:04:05+01:00", "deep": "x", "zzz": 1}
    assert one(schema, row, exact=False) == '{"b":1,"at":"2024-01-02T02:04:05Z","deep":"x"}'
    for missing in ("b", "at"):
        assert one(schema, {key: value for key, value in row.items() if key != missing}, exact=False) is REFUSED
    assert one(schema, {**row, "b": None}, exact=False) is REFUSED
    both = {"allOf": [{"type": ["number", "string"]}, True, {"type": ["integer", "boolean"]}]}
    assert one(both, "5", exact=False) == "5"
    assert [one(both, value, exact=False) for value in (True, 1.5, "x")] == [REFUSED] * 3
    deep = {
        "allOf": [
            {"type": "array", "items": {"type": ["null", "string"]}},
            {"items": {"format": "date-time", "type": "string"}},
        ]
    }
    assert one(deep, ["2024-01-02T03:04:05+01:00"], exact=False) == '["2024-01-02T02:04:05Z"]'
    assert [one(deep, value, exact=False) for value in ([None], ["x"], "x")] == [REFUSED] * 3
    got, page, _ = lines({"properties": {"a": INTEGER}, "allOf": [{"properties": {"a": STRING}}]}, [{"a": 1}])
    assert not got and "the schema wants integer that is also string" in str(page.error)


def test_pattern_and_additional_properties():
    schema = {
        "type": "object",
        "properties": {"id": INTEGER},
        "patternProperties": {"_at$": TIME, "^n": NUMBER},
        "additionalProperties": False,
    }
    row = {"id": 1, "made_at": "2024-01-02T03:04:05+01:00", "n1": "1.5", "x": 1}
    got, _, shaper = lines(schema, [row])
    assert got == ['{"id":1,"made_at":"2024-01-02T02:04:05Z","n1":1.5}']
    assert dropped_by(shaper) == {"x": 1}
    assert lines({**schema, "additionalProperties": True}, [row])[0][0].endswith('"n1":1.5,"x":1}')
    assert lines({**schema, "additionalProperties": INTEGER}, [{"x": "5"}])[0] == ['{"x":5}']
    assert lines({**schema, "additionalProperties": INTEGER}, [{"x": "y"}])[1].error is not None
    # A pattern is searched for, not matched from the start.
    assert lines({"properties": {}, "patternProperties": {"ab": INTEGER}}, [{"xab": "1"}])[0] == ['{"xab":1}']


def test_fields_come_in_the_schemas_order_and_absent_is_not_null():
    schema = {"properties": {"b": {"type": ["null", "integer"]}, "a": STRING, "c": STRING}}
    for exact in (False, True):
        assert lines(schema, [{"a": "x", "b": None}, {}], exact=exact)[0] == ['{"b":null,"a":"x"}', "{}"]


def test_odd_names():
    names = ["", 'q"', "b\\", "t\t", "é", "😀", "a.b", "a[0]", "$ref", "f0", "type"]
    schema = {"properties": dict.fromkeys(names, INTEGER)}
    row = {name: i for i, name in enumerate(names)}
    assert json.loads(lines(schema, [row])[0][0]) == row


# ---- the fast path -------------------------------------------------------------------------------

STANDARD = {
    "properties": {
        "id": INTEGER,
        "name": {"type": ["null", "string"]},
        "n": {"type": ["null", "number"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "on": {"type": ["string", "null"], "format": "date"},
        "o": {"type": ["null", "object"], "properties": {"at": TIME, "n": NUMBER}},
        "l": {"type": ["null", "array"], "items": {"type": "object", "properties": {"at": TIME}}},
        "ns": {"type": ["null", "array"], "items": NUMBER},
        "unwanted": INTEGER,
    }
}


def standard_rows():
    at = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    full = {"id": 1, "name": "x", "n": 1.5, "at": "2024-01-02T03:04:05.5Z", "on": "2024-01-02", "unwanted": 1, "new": 1}
    full |= {
        "o": {"at": "2024-01-02T03:04:05Z", "n": 1, "new": 1},
        "l": [{"at": "2024-01-02T03:04:05Z"}],
        "ns": [1, 1.5],
    }
    nulls = {**dict.fromkeys(STANDARD["properties"]), "id": 2}
    nulls.pop("unwanted")
    objects = {**full, "at": at, "o": {"at": at, "n": Decimal("1.10")}, "l": [], "ns": [], "n": Decimal("-1")}
    return [[full, nulls, {"id": 3}] * 10, [objects, nulls] * 10, [nulls] * 10]


@pytest.mark.parametrize("kind", range(3))
def test_clean_pages_never_leave_the_fast_path(monkeypatch, kind):
    """Whatever the fast path refuses comes out the same, some ten times slower: so look at the path, too."""
    rows = standard_rows()[kind]
    slow = lines(STANDARD, rows, exact=True, deselected=[crumb("unwanted")])

    def left(*_):
        raise AssertionError("left the fast path")

    monkeypatch.setattr(shape.Shaper, "_halve", left)
    monkeypatch.setattr(shape.Shaper, "_one_by_one", left)
    fast = lines(STANDARD, rows, deselected=[crumb("unwanted")])
    assert fast[0] == slow[0]
    assert dropped_by(fast[2]) == dropped_by(slow[2]) == [{"new": 10, "o.new": 10}, {"new": 10}, {}][kind]


@pytest.mark.parametrize("text", ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.500000Z"])
def test_date_times_of_a_class_of_text_never_leave_the_fast_path(monkeypatch, text):
    """As numpy's and markupsafe's are, which no encoder takes as they stand."""

    def left(*args):
        raise AssertionError("left the fast path")

    monkeypatch.setattr(shape.Shaper, "_halve", left)
    assert lines({"properties": {"a": TIME}}, [{"a": Loud(text)}] * 20)[0] == [f'{{"a":"{text}"}}'] * 20


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
@pytest.mark.parametrize("kind", ["string", ["string", "null"], "number", ["number", "null"]])
@pytest.mark.parametrize("before", [0, 3])
def test_a_required_field_given_as_unset_is_missing(kind, exact, before):
    """Among good values too, where a whole column is looked at as one."""
    schema = {"type": kind, "format": "date-time"} if "string" in kind else {"type": kind}
    good = "2024-01-02T03:04:05Z" if "string" in kind else 1.5
    rows = [{"a": good}] * before + [{"a": msgspec.UNSET}]
    got, page, _ = lines({"properties": {"a": schema}, "required": ["a"]}, rows, exact=exact)
    assert len(got) == before and "field 'a' is missing" in str(page.error)


def test_most_plain_schemas_take_the_fast_path():
    """The tests that hold it against the slow one would pass with no fast path at all: it must be there."""
    plain = (
        INTEGER, NUMBER, STRING, BOOLEAN, TIME, DATE, {"type": "string", "format": "uuid"},
        {"type": ["integer", "number"]}, {"type": ["null", "object"], "properties": {"b": INTEGER}},
        {"type": "array", "items": STRING},
        {"type": "array", "items": {"type": "object", "properties": {"b": {"type": ["null", "number"]}}}},
        {"anyOf": [TIME, {"type": "null"}]}, {"type": "object", "allOf": [{"properties": {"b": INTEGER}}]},
    )  # fmt: skip
    for schema in plain:
        assert shape.Shaper("s", {"properties": {"a": schema}}).fast.compiled is not None, schema


@pytest.mark.parametrize("bad", [0, 1, 7, 8, 9, 40, 98, 99])
def test_one_bad_row_among_many(bad):
    """What comes before it is out, it and the rest are not; wherever the halves fall."""
    schema = {"properties": {"id": INTEGER, "n": NUMBER}}
    rows = [{"id": i, "n": Decimal(i)} for i in range(100)]
    rows[bad] = {"id": bad, "n": "no number"}
    for exact in (False, True):
        got, page, _ = lines(schema, rows, exact=exact, key="id", key_properties=("id",))
        assert [json.loads(line)["id"] for line in got] == page.keys == list(range(bad))
        assert f"row id={bad}: field 'n' is a string; the schema wants number" in str(page.error)


def test_one_odd_row_takes_its_neighbours_along_and_no_more(monkeypatch):
    taken = []
    whole = shape.Shaper._one_by_one

    def count(self, rows, *rest):
        taken.append(len(rows))
        return whole(self, rows, *rest)

    monkeypatch.setattr(shape.Shaper, "_one_by_one", count)
    rows = [{"id": i} for i in range(1000)]
    rows[333] = {"id": "333"}
    assert lines(STANDARD, rows)[0] == [f'{{"id":{i}}}' for i in range(1000)]
    assert sum(taken) <= 8


ODD_TIME = "2024-01-02T03:04:05+02:00"


@pytest.mark.parametrize(
    "odd",
    [
        {"at": ODD_TIME},
        {"o": OrderedDict(at=ODD_TIME, n=1)},
        {"o": {"at": ODD_TIME, "n": Decimal("1.5")}},
        {"l": ({"at": ODD_TIME},)},
        {"l": [{"at": "2024-01-02T03:04:05Z"}, OrderedDict(at=ODD_TIME)]},
        {"l": [{"at": ODD_TIME}]},
        {"at": dt.datetime(2024, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2)))},
        {"o": {"n": float("nan")}},
        {"o": {"n": Decimal("NaN")}},
        {"o": "x"},
        {"o": [1]},
        {"l": "x"},
        {"l": {"at": 1}},
        {"l": ["x"]},
        {"l": 5},
        {"ns": "x"},
        {"ns": 5},
        {"ns": {"a": 1}},
        {"ns": (Decimal("1.5"), Decimal("NaN"))},
        {"ns": [Decimal("Infinity")]},
        {"\ud800": 1},
        {"o": {"n": 1, "\ud800": 1}},
        {5: 1},
    ],
    ids=ascii,
)
def test_what_hides_in_a_page_of_clean_rows(odd):
    for rows in standard_rows():
        page = [dict(row) for row in rows]
        page[7] = {**page[7], **odd}
        fast, slow = lines(STANDARD, page), lines(STANDARD, page, exact=True)
        assert fast[0] == slow[0]
        assert str(fast[1].error) == str(slow[1].error)
        assert dropped_by(fast[2]) == dropped_by(slow[2])
        assert "+02:00" not in "".join(fast[0])


# ---- errors --------------------------------------------------------------------------------------


def test_an_error_names_stream_row_path_kind_and_what_was_wanted():
    schema = {
        "properties": {
            "id": INTEGER,
            "k": STRING,
            "list": {
                "type": "array",
                "items": {"type": "object", "properties": {"at": {"type": ["null", "string"], "format": "date-time"}}},
            },
        }
    }
    rows = [{"id": 1, "k": "a"}, {"id": 7, "k": "x" * 100, "list": [{"at": None}, {"at": "noon"}]}]
    got, page, _ = lines(schema, rows, key_properties=("id", "k"))
    assert got == ['{"id":1,"k":"a"}']
    assert isinstance(page.error, BadRecordError) and page.error.stream == "s"
    text = str(page.error)
    assert text.splitlines()[0] == (
        f"stream 's', row id=7, k={repr('x' * 100)[:40]}: field 'list[1].at' is text that is no date-time; "
        "the schema wants string (date-time), such as 2026-03-01T10:00:00+01:00, with a T and a zone."
    )
    assert text.splitlines()[1] == (
        "  For no value, give None. Mend the value in the sync function. --log-values shows the value."
    )
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize("on_bad_record", ["error", "null"])
@pytest.mark.parametrize(
    "page",
    [
        {"id": None, "n": 1},
        [{"id": None, "n": 1}],
        b'[{"id":null,"n":1}]',
        pa.table({"id": pa.array([None], pa.int64()), "n": [1]}),
    ],
    ids=["row", "rows", "bytes", "arrow"],
)
def test_a_null_key_is_told_what_to_do_about_keys(page, on_bad_record):
    tap = burler.tap("tap-keys")

    @tap.sync("s", key_properties="id", schema={"properties": {"id": INTEGER, "n": INTEGER}})
    def s():
        yield page

    said = str(run_tap(tap, {"on_bad_record": on_bad_record}).result.errors["s"])
    assert "row id=None: field 'id' is None" in said and "widen" not in said
    assert "It is a key property, and rows without a key can't be told from each other." in said
    assert "key_properties that every row has" in said and "on_bad_record 'skip'" in said


@pytest.mark.parametrize(
    "value",
    [
        "2026-03-01 10:00:00",
        "2026-03-01",
        "2026-02-30T10:00:00Z",
        "01.03.2026",
        dt.datetime.fromisoformat("2026-03-01"),
    ],
)
def test_a_time_that_does_not_fit_is_not_to_become_text(value):
    """A key that is text is compared as text."""
    _, page, _ = lines({"properties": {"at": {"type": "string", "format": "date-time"}}}, [{"at": value}])
    said = str(page.error)
    assert "Mend the value in the sync function." in said and "widen" not in said
    assert str(value) not in said.replace("such as 2026-03-01T10:00:00+01:00", "")
    assert isinstance(value, dt.datetime) or "such as 2026-03-01T10:00:00+01:00, with a T and a zone." in said


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        (INTEGER, None, "field 'a' is None; the schema wants integer."),
        (INTEGER, True, "field 'a' is a boolean; the schema wants integer."),
        ({"type": ["null", "integer", "number"]}, "x", "is a string; the schema wants integer or number."),
        ({"type": "null"}, 1, "is an integer; the schema wants null."),
        (STRING, b"x", "is bytes; the schema wants string."),
        (INTEGER, 10**5000, "is an integer; the schema wants integer."),
        ({"type": "object", "properties": {"b": INTEGER}}, {"b": "y"}, "field 'a.b' is a string"),
        (
            {"type": "object", "properties": {}, "required": ["b"]},
            {},
            "field 'a.b' is missing; the schema wants a value (the field is required).",
        ),
        ({"type": "array", "items": {"type": "array", "items": INTEGER}}, [[1], [2, None]], "field 'a[1][1]' is None"),
        ({}, {"b": [1, float("nan")]}, "field 'a.b[1]' is a number that is nan; the schema wants a JSON value."),
        ({}, {5: 1}, "field 'a.5' is an integer; the schema wants text as the field's name."),
        ({}, {"\ud800": 1}, "the schema wants a field's name that UTF-8 can hold."),
        ({}, "\ud800", "the schema wants text that UTF-8 can hold."),
        ({"anyOf": [INTEGER, BOOLEAN]}, "x", "is a string; the schema wants integer or boolean."),
        ({"anyOf": [INTEGER, {"const": 1}]}, "x", "is a string; the schema wants one of 2 schemas."),
        ({"type": "any"}, 1, "the schema wants any."),
        (
            {"type": "string", "format": "date"},
            "1 May",
            "field 'a' is text that is no date; the schema wants string (date), such as 2026-03-01.",
        ),
        ({"type": ["string", "integer"], "format": "date-time"}, "", "field 'a' is an empty string; the schema wants"),
        ({"type": "string", "format": "date-time"}, 1.5, "is a number; the schema wants string (date-time)."),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() else type(value).__name__,
)
def test_error_texts(schema, value, says):
    text = field(schema, value)
    assert says in text
    assert "row without key properties" in text
    text.encode()


def test_values_are_shown_where_they_are_asked_for(values_in_logs):
    text = field(INTEGER, "x" * 100)
    assert f"field 'a' is str '{'x' * 59}; the schema wants integer." in text
    assert "--log-values" not in text
    assert "is an int of thousands of digits; the schema" in field({"type": "null"}, 10**5000)
    assert "is datetime 2024-01-02T00:00:00 (no zone); the" in field(STRING | {"format": "date-time"}, NAIVE)


def test_an_error_with_keys_that_have_no_text():
    _, page, _ = lines({"properties": {"id": {}}}, [{"id": 10**5000}], key_properties=("id", "gone"))
    assert "row id=int, gone=None: field 'id'" in str(page.error)


def test_required_fields():
    schema = {"properties": {"id": INTEGER, "n": {"type": ["null", "integer"]}}, "required": ["id", "n"]}
    for exact in (False, True):
        assert lines(schema, [{"id": 1, "n": None}], exact=exact)[0] == ['{"id":1,"n":null}']
        for row in ({"id": 1}, {"n": 1}, {}):
            assert "(the field is required)" in str(lines(schema, [row], exact=exact)[1].error)
    # One that must be there and is not described is kept as it is.
    assert lines({"properties": {"id": INTEGER}, "required": ["other"]}, [{"other": [1]}])[0] == ['{"other":[1]}']


# ---- unknown fields ------------------------------------------------------------------------------

DEEP = {
    "properties": {
        "id": INTEGER,
        "o": {"type": ["null", "object"], "properties": {"p": {"type": "object", "properties": {"q": INTEGER}}}},
        "l": {"type": ["null", "array"], "items": {"type": ["null", "object"], "properties": {"m": INTEGER}}},
    }
}


def deep_rows(n):
    return [
        {
            "id": i,
            "x": 1,
            "o": {"y": 1, "p": {"q": 1, "z": 1}} if i % 2 else None,
            "l": [{"m": 1, "w": 1}, None, {"w": 2, "v": 3}] if i % 2 else None,
        }
        for i in range(n)
    ]


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_unknown_fields_are_counted_at_every_depth(exact, odd):
    rows = deep_rows(40)
    if odd:  # a mapping and a list of other types, which the column checks can't see through
        rows[1]["o"] = OrderedDict(rows[1]["o"])
        rows[3]["l"] = tuple(rows[3]["l"])
        rows[5]["l"][0] = OrderedDict(rows[5]["l"][0])
    got, page, shaper = lines(DEEP, rows, exact=exact)
    assert page.error is None and page.count == 40
    assert dropped_by(shaper) == {"x": 40, "o.y": 20, "o.p.z": 20, "l[].w": 40, "l[].v": 20}
    assert json.loads(got[1]) == {"id": 1, "o": {"p": {"q": 1}}, "l": [{"m": 1}, None, {}]}


def test_counts_add_up_over_pages_and_have_an_end():
    shaper = shape.Shaper("s", {"properties": {"id": INTEGER}})
    for page in range(3):
        shaper.shape([{"id": 1, "x": 1, f"only{page}": 1}], shape.Output(bytearray(), b"", b"\n"))
    assert dropped_by(shaper) == {"x": 3, "only0": 1, "only1": 1, "only2": 1}
    for exact in (False, True):
        rows = [{"id": i, f"key{i}": 1} for i in range(3000)]
        unknown = dropped_by(lines({"properties": {"id": INTEGER}}, rows, exact=exact)[2])
        assert len(unknown) == 1001
        assert unknown["(further fields)"] == 2000


def test_a_union_counts_what_the_branch_it_took_does_not_know():
    schema = {"anyOf": [{"type": "object", "properties": {"b": INTEGER}}, {"type": "string"}]}
    shaper = lines({"properties": {"a": schema}}, [{"a": {"b": 1, "x": 1}}, {"a": "t"}])[2]
    assert dropped_by(shaper) == {"a.x": 1}


# ---- what is not wanted --------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [None, True])
@pytest.mark.parametrize("exact", [False, True])
def test_deselected_fields_are_dropped_and_not_called_unknown(extra, exact):
    inner = {"type": "object", "properties": {"keep": INTEGER, "drop": INTEGER}}
    if extra:
        inner["additionalProperties"] = True
    schema = {
        **copy.deepcopy(inner),
        "properties": {
            "keep": INTEGER,
            "drop": STRING,
            "o": inner,
            "l": {"type": "array", "items": inner},
            "u": {"anyOf": [inner, STRING]},
            "gone": inner,
        },
    }
    metadata = {
        path: {"selected": False}
        for path in (crumb("drop"), crumb("o", "drop"), crumb("l", "[]", "drop"), crumb("u", "drop"), crumb("gone"))
    }
    pruned = prune(schema, metadata, stream="s")
    before = copy.deepcopy(pruned)
    unwanted = deselected(metadata, stream="s")
    leaf = {"keep": 1, "drop": "secret", "x": 1}
    row = {"keep": 1, "drop": "secret", "o": leaf, "l": [leaf], "u": leaf, "gone": leaf}
    got, page, shaper = lines(pruned, [row], exact=exact, deselected=unwanted)
    assert page.error is None
    assert pruned == before
    kept = {"keep": 1, "x": 1} if extra else {"keep": 1}
    assert json.loads(got[0]) == {"keep": 1, "o": kept, "l": [kept], "u": kept}
    assert dropped_by(shaper) == ({} if extra else {"o.x": 1, "l[].x": 1, "u.x": 1})
    assert "secret" not in got[0]


# ---- nothing is changed --------------------------------------------------------------------------


def test_neither_rows_nor_schema_are_changed():
    schema = {**copy.deepcopy(DEEP), "allOf": [{"properties": {"t": {"anyOf": [TIME, {"type": "null"}]}}}]}
    rows = [{**row, "t": "2024-01-02T03:04:05+02:00"} for row in deep_rows(20)]
    before = copy.deepcopy((schema, rows))
    for exact in (False, True):
        assert lines(schema, rows, exact=exact)[1].error is None
    assert (schema, rows) == before


def test_keys_come_back_in_row_order():
    schema = {"properties": {"at": {"type": ["null", "integer"]}}}
    rows = [{"at": n} for n in (3, None, 1)] + [{}, {"at": "5"}]
    for exact in (False, True):
        keys = lines(schema, rows, exact=exact, key="at")[1].keys
        assert [None if key is not None and not isinstance(key, int) else key for key in keys] == [3, None, 1, None, 5]
    assert lines(schema, rows)[1].keys == []


# ---- as a tap ------------------------------------------------------------------------------------


def test_a_bad_row_ends_its_stream_only(caplog):
    tap = burler.tap("tap-x")
    tap.sync("a", key_properties="id")(lambda: iter([{"id": 1}, {"id": 2, "more": 1}, {"id": "x"}, {"id": 4}]))
    tap.sync("b")(lambda: iter([{"id": 9}]))
    for name in ("a", "b"):
        tap.schema(name, {"type": "object", "properties": {"id": INTEGER}})
    with caplog.at_level(logging.WARNING):
        run = run_tap(tap)
    assert run.records("a") == [{"id": 1}, {"id": 2}]
    assert run.records("b") == [{"id": 9}]
    assert "row id='x': field 'id' is a string; the schema wants integer" in str(run.result.errors["a"])
    assert "fields that its schema does not know were dropped: more (1" in caplog.text


def test_a_row_without_its_key_does_not_go_out():
    """A key that is absent is as bad as one that is null: such rows can't be told apart."""
    schema = {"properties": {"id": {"type": ["null", "integer"]}, "n": INTEGER}}
    got, page, _ = lines(schema, [{"id": 1}, {"n": 2}], key_properties=("id",))
    assert got == ['{"id":1}'] and "'id' is missing" in str(page.error)


OFF = [("properties", "o", "properties", "ssn"), ("properties", "l", "items", "properties", "ssn")]
ROW = {"id": 1, "o": {"ssn": "TOP", "y": 1}, "l": [{"ssn": "TOP", "z": 1}, 5, None]}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"id": {}, "o": {}, "l": {}}},
        {"properties": {"id": {}, "o": True, "l": {"type": "array"}}},
        {"properties": {"id": {}}, "additionalProperties": True},
        {"properties": {"id": {}}, "additionalProperties": {"type": ["object", "array"], "items": {}}},
        {"properties": {"id": {}}, "patternProperties": {"^[ol]$": {}}},
        {"properties": {"id": {}, "o": {"type": "object", "patternProperties": {"": {}}}, "l": {"type": "array"}}},
        {"properties": {"id": {}, "o": {"anyOf": [{"type": "object"}, {}]}, "l": {"items": {"oneOf": [{}, {}]}}}},
        {"properties": {"id": {}, "o": {"type": "object", "additionalProperties": {}}, "l": {"items": [{}, {}]}}},
    ],
)  # fmt: skip
def test_a_field_that_is_off_does_not_come_back_through_an_open_schema(schema):
    """Also where the schema (a user's catalog may bring another one) does not name it at all."""
    buffer = bytearray()
    page = shape.Shaper("s", {"type": "object", **schema}, deselected=OFF).shape(
        [copy.deepcopy(ROW)], shape.Output(buffer, b"", b"\n")
    )
    assert page.error is None and b"TOP" not in buffer, buffer
    row = json.loads(buffer)
    assert row["o"] == {"y": 1} and row["l"] == [{"z": 1}, 5, None]


# ---- what a page shows must not change what goes out ------------------------------------------------


def test_keys_end_where_the_lines_end():
    """A value without a form in JSON in the middle of a page: the bookmark may not know of the rows behind it."""
    schema = {"properties": {"at": TIME, "note": STRING}}
    rows = [{"at": f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z", "note": "x" * 20_000} for i in range(300)]
    rows[295]["note"] = "\ud800"
    _, page, _ = lines(schema, rows, key="at")
    assert (page.count, len(page.keys)) == (295, 295)
    assert page.error is not None
    _, page, _ = lines(schema, rows, key="at", rules=shape.Rules(on_bad_record="skip"))
    assert (page.count, len(page.keys), page.skipped) == (299, 299, [295])
    assert [key if isinstance(key, str) else key.isoformat() for key in page.keys] == sorted(
        key if isinstance(key, str) else key.isoformat() for key in page.keys
    )


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_true_is_not_one(exact):
    one_only = {"type": ["boolean", "integer"], "enum": [True]}
    got, page, _ = lines({"properties": {"a": one_only}}, [{"a": True}, {"a": 1}], exact=exact)
    assert got == ['{"a":true}'] and "enum" in str(page.error)
    bounded = {"type": ["boolean", "integer"], "minimum": 5}
    got, page, _ = lines({"properties": {"a": bounded}}, [{"a": True}, {"a": 3}, {"a": 10}], exact=exact)
    assert got == ['{"a":true}'] and "minimum" in str(page.error)


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_unknown_fields_below_a_union_are_counted_once(exact):
    field = {"type": ["object", "number"], "properties": {"a": INTEGER, "b": INTEGER}, "additionalProperties": False}
    rows = [{"f": {"a": i, "z": 1}} for i in range(20)]
    _, _, shaper = lines({"properties": {"f": field}}, rows, exact=exact, deselected=[crumb("f", "b")])
    assert dropped_by(shaper) == {"f.z": 20}


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_unset_is_a_field_that_is_not_there(exact):
    schema = {"properties": {"a": INTEGER, "b": {}}, "additionalProperties": True}
    row = {"a": msgspec.UNSET, "b": msgspec.UNSET, "c": msgspec.UNSET}
    got, page, _ = lines(schema, [row] * 20, exact=exact)
    assert got == ["{}"] * 20
    _, page, _ = lines({**schema, "required": ["a"]}, [row], exact=exact)
    assert "field 'a' is missing" in str(page.error)


def test_unknown_fields_are_counted_once_around_a_value_without_a_form():
    schema = {"properties": {"id": INTEGER, "note": STRING}}
    rows = [{"id": i, "note": "x" * 20_000, "new": i} for i in range(60)]
    rows[45]["note"] = "\ud800"
    _, page, shaper = lines(schema, rows, rules=shape.Rules(on_bad_record="skip"))
    assert (page.count, page.skipped) == (59, [45])
    _, _, slow = lines(schema, rows, rules=shape.Rules(on_bad_record="skip"), exact=True)
    assert dropped_by(shaper) == dropped_by(slow)


@pytest.mark.parametrize("bad", [-1, 11])
@pytest.mark.parametrize("kind", ["number", "integer"])
def test_either_bound_is_held_in_a_column(kind, bad):
    rows = [{"a": i} for i in range(11)] + [{"a": bad}]
    got, page, _ = lines({"properties": {"a": {"type": kind, "minimum": 0, "maximum": 10}}}, rows)
    assert len(got) == 11 and page.error is not None


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_what_holds_itself_is_a_bad_row(exact):
    endless: dict = {"x": 1}
    endless["self"] = [endless]
    for schema, row in (
        ({"properties": {"id": INTEGER, "a": {}}}, {"id": 1, "a": endless}),
        ({"properties": {"id": INTEGER}, "additionalProperties": True}, {"id": 1, "more": endless}),
    ):
        got, page, _ = lines(schema, [{"id": 0}, row, {"id": 2}], exact=exact, rules=shape.Rules(on_bad_record="skip"))
        assert got == ['{"id":0}', '{"id":2}'] and page.skipped == [1]
