"""Shape, by hypothesis: the fast path equals the exact path, what comes out is JSON that fits its schema, and
nothing is lost on the way."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import json
import uuid
from collections import OrderedDict
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support import internals
from support.internals import bookmark

UTC = dt.UTC
PREFIX, SUFFIX = b'{"record":', b"}\n"
NAMES = (
    "id",
    "a",
    "b",
    "é",
    "x.y",
    "",
    'q"uo',
    "back\\slash",
    "tab\t",
    "a[0]",
    "$ref",
    "properties",
    "😀",
    "items",
    " ",
)
UNKNOWN = ("extra", "extra2", 'un"known', "é2")


class Text(str):
    pass


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Level(str, enum.Enum):  # noqa: UP042 - authors write it so
    HIGH = "high"


class Code(enum.IntEnum):
    OK = 200


# ---- schemas -------------------------------------------------------------------------------------

SCALARS = [
    {"type": "integer"},
    {"type": "number"},
    {"type": "string"},
    {"type": "boolean"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": ["integer", "number"]},
    {"type": ["integer", "string"]},
    {"type": ["number", "boolean", "string"]},
    {"type": "null"},
    {},
]


@st.composite
def nullable(draw, inner):
    schema = dict(draw(inner))
    if isinstance(schema.get("type"), str) and draw(st.booleans()):
        schema["type"] = draw(st.sampled_from([["null", schema["type"]], [schema["type"], "null"]]))
    return schema


@st.composite
def objects(draw, inner, top=False):
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=5, min_size=1))
    schema = {"type": "object", "properties": {name: draw(inner) for name in names}}
    if draw(st.integers(0, 4)) == 0:
        schema["required"] = draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
    extra = draw(st.integers(0, 9))
    if extra < 3:
        schema["additionalProperties"] = [False, True, {"type": ["integer", "null"]}][extra]
    elif extra == 3:
        schema["patternProperties"] = {"xtra": {"type": ["string", "null"]}}
    if top and draw(st.booleans()):
        del schema["type"]
    return schema


# Parts of allOf: two that contradict each other ("additionalProperties": false in one) fit no row.
PARTS = st.builds(
    lambda properties, required: (
        {"properties": properties, "required": required} if required else {"properties": properties}
    ),
    st.dictionaries(st.sampled_from(NAMES[:4]), nullable(st.sampled_from([*SCALARS[:4], {}])), min_size=1, max_size=3),
    st.lists(st.sampled_from(NAMES[:2]), unique=True, max_size=1),
)


def deeper(inner):
    return st.one_of(
        nullable(objects(inner)),
        nullable(st.builds(lambda items: {"type": "array", "items": items}, inner)),
        st.just({"type": "array"}),
        st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner),
        st.builds(lambda one: {"anyOf": [one, {"type": "null"}]}, inner),
        st.builds(lambda one, two: {"type": "object", "allOf": [one, two]}, PARTS, PARTS),
    )


NODES = st.recursive(nullable(st.sampled_from(SCALARS)), deeper, max_leaves=6)
# Half of all schemas keep to what the fast path takes.
PLAIN = st.recursive(
    nullable(st.sampled_from(SCALARS[:8])),
    lambda inner: st.one_of(
        nullable(
            st.dictionaries(st.sampled_from(NAMES[:5]), inner, max_size=3).map(
                lambda properties: {"type": "object", "properties": properties}
            )
        ),
        nullable(st.builds(lambda items: {"type": "array", "items": items}, inner)),
    ),
    max_leaves=6,
)
SCHEMAS = st.one_of(
    objects(NODES, top=True),
    st.builds(lambda p: {"properties": p}, st.dictionaries(st.sampled_from(NAMES[:5]), PLAIN, min_size=1, max_size=4)),
)

# ---- values --------------------------------------------------------------------------------------

TIMES = st.sampled_from(
    [
        "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5Z", "2024-01-02T03:04:05.000Z", "2024-01-02T03:04:05.123456Z",
        "2024-01-02T03:04:05.1234567Z", "2024-01-02T03:04:05.0000000Z", "2024-01-02T03:04:05.120000000Z",
        "2024-01-02t03:04:05z", "2024-01-02 03:04:05Z", "2024-01-02T03:04:05+02:00", "2024-01-02T03:04:05.25-05:30",
        "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+01:00", "2024-01-02T24:00:00Z",
        "2024-01-02T23:59:60Z", "2024-01-02T03:04:05", "2024-01-02T03:04Z", "2024-01-02", "2024-02-30T00:00:00Z",
        "2024-01-02T03:04:05.Z", "2024-01-02T03:04:05+01:75", "", "0000-01-01T00:00:00Z", "20240102T030405Z",
        "2024-01-02T03:04:05 Z", "2024-W01-2T03:04:05Z", "2024-01-02T03:04:05-00:00",
    ]
)  # fmt: skip
NAIVE = dt.datetime(2024, 1, 2)  # noqa: DTZ001
ODD = st.sampled_from(
    [
        None, True, False, 0, -1, 1.0, 1.5, -0.0, 1e300, 5e-324, float("nan"), float("inf"), -float("inf"),
        2**63, 2**64, -(2**70), 10**400, 10**5000, Decimal("1.10"), Decimal("1E+2"), Decimal("NaN"),
        Decimal("sNaN"), Decimal("-Infinity"), Decimal("12345678901234567890.123"), Decimal("1E+400"),
        Decimal("-0"), Decimal("5"), "12", "1.50", "1e3", " 1", "1_0", "NaN", "-", "٣", "true", "\ud800",
        "ok\udfff", "nul\0", "line\u2028", "😀", "2024-01-02", "2024-W01-1", "20240102", b"bytes",
        bytearray(b"x"), uuid.UUID(int=5), dt.date(2024, 1, 2), dt.time(1, 2), dt.timedelta(1),
        dt.datetime(2024, 1, 2, tzinfo=UTC), dt.datetime(2024, 1, 2, 3, 4, 5, 6,
        dt.timezone(dt.timedelta(hours=-3))), NAIVE, dt.datetime(1, 1, 1,
        tzinfo=dt.timezone(dt.timedelta(hours=2))), Text("sub"), Level.HIGH, Code.OK, Colour.RED, Colour.ONE,
        object, [], {}, (), {1, 2}, frozenset(), [None], [1, "x"], {"a": 1}, {5: 1}, {"\ud800": 1},
        OrderedDict(a="2024-01-02T03:04:05+02:00"), ({"a": 1.0, "extra": 1},), [{"extra": 1}], {"a": {"deep":
        [float("nan")]}}, 3 + 4j,
    ]
)  # fmt: skip


def value_for(draw, schema):
    """A value that may fit a schema, now and then one that may not."""
    if draw(st.integers(0, 11)) == 0:
        return draw(ODD)
    if not isinstance(schema, dict):
        return draw(ODD)
    if "anyOf" in schema:
        return value_for(draw, draw(st.sampled_from(schema["anyOf"])))
    kinds = schema.get("type", "object" if "properties" in schema or "allOf" in schema else None)
    kind = draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds
    if kind == "object":
        properties = dict(schema.get("properties") or {})
        for part in schema.get("allOf") or ():
            properties |= part["properties"]
        row = {name: value_for(draw, sub) for name, sub in properties.items() if draw(st.integers(0, 7))}
        if draw(st.integers(0, 5)) == 0:
            row[draw(st.sampled_from(UNKNOWN))] = draw(st.one_of(st.integers(), ODD))
        return OrderedDict(row) if draw(st.integers(0, 30)) == 0 else row
    if kind == "array":
        items = [value_for(draw, schema.get("items")) for _ in range(draw(st.integers(0, 3)))]
        return tuple(items) if draw(st.integers(0, 15)) == 0 else items
    if kind == "string" and schema.get("format") == "date-time":
        return draw(st.one_of(TIMES, st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.timezones())))
    if kind == "string" and schema.get("format") == "date":
        return draw(st.one_of(st.dates(), st.dates().map(dt.date.isoformat)))
    plain = {
        "string": st.text(max_size=5),
        "integer": st.integers(),
        "number": st.one_of(st.integers(), st.floats(), st.decimals(allow_nan=False, allow_infinity=False)),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return draw(plain.get(kind, ODD))


@st.composite
def cases(draw):
    schema = draw(SCHEMAS)
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        row = value_for(draw, schema)
        rows.append(dict(row) if isinstance(row, dict) else {})
    if draw(st.integers(0, 40)) == 0:
        rows[-1][draw(st.sampled_from([5, "\ud800", None]))] = 1
    return schema, rows


# ---- properties ----------------------------------------------------------------------------------


def shape(schema, rows, *, exact, **options):
    shaper = internals.shape.Shaper("s", schema, **options)
    if exact:
        shaper._compiled = None
    buffer = bytearray(b"before")
    page = shaper.shape(rows, buffer, PREFIX, SUFFIX)
    assert buffer.startswith(b"before")
    return page, bytes(buffer[len(b"before") :]), dict(shaper.unknown.counts)


def no_constant(text):
    raise AssertionError(f"{text} is no JSON")


def parse(lines):
    assert not lines or lines.endswith(b"\n")
    return [
        json.loads(line, parse_constant=no_constant, parse_float=Decimal)["record"]
        for line in lines.split(b"\n")
        if line
    ]


SLOW = settings(suppress_health_check=list(HealthCheck))


@SLOW
@given(case=cases())
@example(case=({"properties": {"n": {"type": "number"}}}, [{"n": Decimal("12345678901234567890.123")}] * 20))
@example(case=({"properties": {"n": {"type": "number"}}}, [{"n": Decimal("NaN")}] * 20))
@example(
    case=({"properties": {"n": {"type": "array", "items": {"type": "number"}}}}, [{"n": [1.5, Decimal("sNaN")]}] * 9)
)
@example(case=({"properties": {'q"': {"type": "integer"}}}, [{'q"': 1}] * 20))
@example(case=({"properties": {"n": {"type": "integer"}}}, [{"n": 10**5000}] * 20))
def test_fast_equals_exact_and_the_output_holds(case):
    schema, rows = case
    before = copy.deepcopy(schema), _frozen(rows)
    key = next((name for name, sub in schema["properties"].items() if sub in SCALARS[:6]), None)
    fast, lines, unknown = shape(schema, rows, exact=False, key=key)
    slow, slow_lines, slow_unknown = shape(schema, rows, exact=True, key=key)
    assert (copy.deepcopy(schema), _frozen(rows)) == before
    assert lines == slow_lines
    assert fast.count == slow.count
    assert unknown == slow_unknown
    assert [_key(value) for value in fast.keys] == [_key(value) for value in slow.keys]
    assert str(fast.error) == str(slow.error)
    records = parse(lines)
    assert len(records) == fast.count == (len(rows) if fast.error is None else fast.count) <= len(rows)
    for row, record in zip(rows, records, strict=False):
        _nothing_lost(row, record, schema)
    _validates(records, schema)


def _key(value):
    """Keys of both paths as they go into the state."""
    got = bookmark.key_text(value)
    return got if not isinstance(got, list | dict) else str(got)


def _frozen(value):
    """A value's shape and identity of leaves: equal before and after if nothing was changed in place."""
    if isinstance(value, dict):
        return ("dict", id(value), [(id(key), _frozen(part)) for key, part in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, id(value), [_frozen(part) for part in value])
    return id(value)


def _validates(records, schema):
    from jsonschema import Draft4Validator

    validator = Draft4Validator(_draft4(schema))
    for record in records:
        plain = _floats(record)
        assert not list(validator.iter_errors(plain)), plain


def _draft4(schema):
    if schema is True:
        return {}
    if isinstance(schema, list):
        return [_draft4(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _draft4(sub) for name, sub in part.items()} if key == "properties" else _draft4(part)
        for key, part in schema.items()
    }


def _floats(value):
    """Decimals as floats: jsonschema 2.6 takes a Decimal for no number."""
    if isinstance(value, dict):
        return {name: _floats(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_floats(part) for part in value]
    return float(value) if isinstance(value, Decimal) else value


def _nothing_lost(value, out, schema):
    """An accepted value stands in the output whole, at every depth that the schema describes."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, dict):
        known = schema.get("properties") if isinstance(schema, dict) else None
        for name, part in value.items():
            if known and name in known and name in out:
                _nothing_lost(part, out[name], known[name])
        if known and not {"anyOf", "allOf"} & set(schema):
            assert {name for name in known if name in value} <= set(out)
    elif isinstance(value, list | tuple):
        assert len(out) == len(value)
        for one, two in zip(value, out, strict=True):
            _nothing_lost(one, two, schema.get("items") if isinstance(schema, dict) else None)
    elif value is None or isinstance(value, bool):
        assert out is value
    elif isinstance(value, int | Decimal | float):
        assert not isinstance(out, bool)
        # A float is what Python writes for it; as an integer it is the whole number that its bits stand for.
        assert Decimal(out) in (Decimal(repr(value)) if isinstance(value, float) else Decimal(value), Decimal(value))
    elif isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            assert out == value.isoformat() or dt.datetime.fromisoformat(out) == value.astimezone(UTC)
    elif isinstance(value, str) and isinstance(out, str):
        if out != value:
            assert _moment(out) == _moment(value)
            assert _digits(out) == _digits(value)
    elif isinstance(value, str):
        assert Decimal(out) == Decimal(value)


def _moment(text):
    return dt.datetime.fromisoformat(text.upper().partition(".")[0].removesuffix("Z") + _zone(text))


def _zone(text):
    return "+00:00" if text[-1] in "Zz" else text[-6:] if "." in text else ""


def _digits(text):
    after = text.upper().partition(".")[2]
    return after.removesuffix("Z").partition("+")[0].partition("-")[0].rstrip("0")


def test_most_plain_schemas_take_the_fast_path():
    """The property above would hold with no fast path at all: it must be there."""
    for schema in SCALARS[:8]:
        assert internals.shape.Shaper("s", {"properties": {"a": schema}})._compiled is not None, schema
    for schema in (
        {"type": ["null", "object"], "properties": {"b": {"type": "integer"}}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "object", "properties": {"b": {"type": ["null", "number"]}}}},
        {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        {"type": "object", "allOf": [{"properties": {"b": {"type": "integer"}}}]},
    ):
        assert internals.shape.Shaper("s", {"properties": {"a": schema}})._compiled is not None, schema


@pytest.mark.parametrize("bad", [0, 1, 7, 8, 9, 40, 98, 99])
def test_one_bad_row_among_many(bad):
    """What comes before it is out, it and the rest are not; wherever the halves fall."""
    schema = {"properties": {"id": {"type": "integer"}, "n": {"type": "number"}}}
    rows = [{"id": i, "n": Decimal(i)} for i in range(100)]
    rows[bad] = {"id": bad, "n": "no number"}
    for exact in (False, True):
        page, lines, _ = shape(schema, rows, exact=exact, key="id", key_properties=("id",))
        assert [record["id"] for record in parse(lines)] == list(range(bad))
        assert page.count == bad and page.keys == list(range(bad))
        assert f"row id={bad}: field 'n' is a string; the schema wants number" in str(page.error)
