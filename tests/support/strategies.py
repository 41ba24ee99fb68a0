"""The one generator of schemas and of rows for them: valid, nearly valid and hostile ones.

    from support.strategies import rows_for, schemas

    @given(st.data())
    def test_it(data):
        schema = data.draw(schemas())
        rows = data.draw(rows_for(schema))

``schemas`` has every keyword that burler shapes by, ``plain_schemas`` few. Most values of ``rows_for`` fit, some nearly
do, and now and then one is of another world (``BENT``); of the world ``HELD``, columns can hold what fits. ``cases``
draws what a stream is made of: schema, pages of rows, rules, deselected fields and keys. ``json_values`` are values of
any shape, whatever the schema. ``spelled`` is a row as JSON text with every digit, and ``json_page`` several of them as
a page of bytes.
"""

from __future__ import annotations

import collections
import copy
import datetime as dt
import enum
import json
import math
import string
import uuid
from decimal import Decimal
from typing import NamedTuple

from hypothesis import strategies as st

UTC = dt.UTC
INTEGER, NUMBER, STRING, BOOLEAN = ({"type": name} for name in ("integer", "number", "string", "boolean"))
NULL = {"type": "null"}


def as_list(names):
    return [names] if isinstance(names, str) else names


# ---- schemas ---------------------------------------------------------------------------------------

FIELDS = ("a", "b", "id", "é", "class", "", 'q"', "x.y", "at", "xa")
PATTERNS = {"^[ab]+$": st.text("ab", min_size=1, max_size=4), "x": st.sampled_from(["x", "axb"]), "^é?$": st.just("é")}
FORMATS = ("date-time", "date", "time", "uuid", "singer.decimal", "email", "date-time", "date-time")
STEPS = (1, 3, 0.01, 0.1, 1e-38, 2.5)
KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")


def maybe(draw, one_in):
    return draw(st.integers(1, one_in)) == 1


def some(draw, items, most):
    return draw(st.lists(st.sampled_from(items), unique=True, min_size=1, max_size=most))


def node(draw, depth):
    """A schema of any form."""
    form = draw(st.integers(0, 19 if depth else 11))
    if form < 10:
        return typed(draw, [draw(st.sampled_from(KINDS[1:5]))], depth)
    if form == 10:
        return draw(st.sampled_from([{}, True, {"title": "anything"}]))
    if form == 11:
        return typed(draw, some(draw, KINDS, 4), depth)
    if form < 15:
        return typed(draw, ["object"], depth)
    if form < 17:
        return typed(draw, ["array"], depth)
    if form == 17:
        return {"anyOf": [node(draw, depth - 1), NULL][:: draw(st.sampled_from([1, -1]))]}
    word = draw(st.sampled_from(["anyOf", "anyOf", "oneOf", "allOf"]))
    if word == "allOf":
        kinds = [draw(st.sampled_from(KINDS[1:]))]
        return {"allOf": [typed(draw, kinds, depth - 1), beside(draw, kinds)]}
    union = {word: [node(draw, depth - 1) for _ in range(draw(st.integers(1, 3)))]}
    return {**union, **beside(draw, KINDS)} if maybe(draw, 5) else union


def typed(draw, kinds, depth):
    out = {"type": kinds[0] if len(kinds) == 1 else list(kinds)}
    if maybe(draw, 3) and "null" not in kinds:
        out["type"] = draw(st.permutations([*kinds, "null"]))
    if "object" in kinds:
        out |= object_words(draw, depth)
    if "array" in kinds:
        out |= array_words(draw, depth)
    if "string" in kinds and maybe(draw, 2):
        out["format"] = draw(st.sampled_from(FORMATS))
    elif "string" in kinds and maybe(draw, 12):
        out["contentEncoding"] = "base64"
    if maybe(draw, 5):
        out |= beside(draw, kinds)
    return out


def beside(draw, kinds):
    """Constraints for some of these types."""
    out = {}
    if {"integer", "number"} & set(kinds):
        out |= draw(
            st.sampled_from(
                [{}, {"minimum": -5}, {"maximum": 10}, {"minimum": 0, "exclusiveMinimum": True},
                 {"exclusiveMaximum": 9}, {"minimum": 0.1}, {"maximum": 2**64}, {"minimum": 1, "maximum": 2**40}]
            )
        )  # fmt: skip
        if maybe(draw, 3):
            out["multipleOf"] = draw(st.sampled_from(STEPS))
    if "string" in kinds:
        out |= draw(st.sampled_from([{}, {"minLength": 1}, {"maxLength": 3}, {"minLength": 2, "maxLength": 30}]))
        if maybe(draw, 4):
            out["pattern"] = draw(st.sampled_from(sorted(PATTERNS)))
    if "array" in kinds:
        out |= draw(st.sampled_from([{}, {"minItems": 1}, {"maxItems": 2}, {"uniqueItems": True}]))
    if "object" in kinds:
        out |= draw(st.sampled_from([{}, {}, {"minProperties": 1}, {"maxProperties": 3}]))
    if maybe(draw, 6):
        scalars = {"null": None, "boolean": True, "integer": 3, "number": 0.1, "string": "ab"}
        choices = [scalars[kind] for kind in kinds if kind in scalars] or [None]
        out |= draw(st.sampled_from([{"enum": [*choices, 0]}, {"enum": choices}, {"const": choices[0]}]))
    return out


def object_words(draw, depth, *, top=False):
    out = {}
    names = some(draw, FIELDS, 4)
    if top or not maybe(draw, 4):
        out["properties"] = {name: node(draw, depth - 1) for name in names}
        if maybe(draw, 4):
            out["required"] = some(draw, names, 2)
    if maybe(draw, 3):
        out["additionalProperties"] = draw(st.sampled_from([True, False, None]))
        if out["additionalProperties"] is None:
            out["additionalProperties"] = node(draw, max(depth - 1, 0))
    if maybe(draw, 6):
        out["patternProperties"] = {draw(st.sampled_from(["^x", "a$", "t"])): node(draw, max(depth - 1, 0))}
    return out


def array_words(draw, depth):
    form = draw(st.integers(0, 7))
    if form == 0:
        return {}
    if form > 2:
        return {"items": node(draw, depth - 1) if depth else {}}
    places = [node(draw, depth - 1) if depth else {} for _ in range(draw(st.integers(1, 2)))]
    rest = draw(st.sampled_from([None, True, False, INTEGER]))
    if form == 1:
        return {"items": places, **({} if rest is None else {"additionalItems": rest})}
    return {"prefixItems": places, **({} if rest is None else {"items": rest})}


@st.composite
def schemas(draw):
    """An object of any form."""
    out = {"type": "object", **object_words(draw, 3, top=True)}
    known = set(out["properties"])
    if maybe(draw, 6):
        out["allOf"] = [part(draw, known)]
    if maybe(draw, 8):
        out["anyOf"] = [part(draw, known), {"required": ["a"]}]
    if {"allOf", "anyOf"} & out.keys():  # by the letter it would hold for the fields of the parts: docs/references.md
        out.pop("additionalProperties", None)
    return out


@st.composite
def plain_schemas(draw):
    """An object of nothing but plain fields, of whose rows shaping may say what they hold."""
    return {"type": "object", "properties": plain_fields(draw, 2)}


def plain_fields(draw, depth):
    return {name: plain_node(draw, depth) for name in some(draw, FIELDS, 3)}


def plain_node(draw, depth):
    kind = draw(st.sampled_from([*KINDS[1:5], *KINDS[3:]] if depth else KINDS[1:5]))
    out = {"type": draw(st.sampled_from([kind, [kind, "null"]]))}
    if kind == "string":
        out |= draw(st.sampled_from([{}, {"format": "date-time"}, {"format": "date"}, {"maxLength": 3}]))
    if kind == "integer":
        out |= draw(st.sampled_from([{}, {"minimum": 0}, {"exclusiveMaximum": 100}, {"maximum": 10**6}]))
    if kind == "array":
        out["items"] = plain_node(draw, 0)
    return out | {"properties": plain_fields(draw, depth - 1)} if kind == "object" else out


def part(draw, known):
    """A further field, or constraints of a known one (two formats of one field contradict each other)."""
    name = draw(st.sampled_from(FIELDS))
    made = beside(draw, KINDS) if name in known else node(draw, 1)
    known.add(name)
    return {"properties": {name: made}}


class Text(str):
    pass


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Level(str, enum.Enum):  # noqa: UP042 - authors write it so
    HIGH = "high"


class Code(enum.IntEnum):
    OK = 200


# ---- rows ------------------------------------------------------------------------------------------

BENT = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]), st.just({}),
    st.sampled_from(["1.50", "1e3", "NaN", "\ud800", "2024-01-02T03:04:05", "2024-01-02", Decimal("NaN"), {5: 1},
                     Decimal("1.10"), Decimal("1E+2"), b"x", (), {1}, object, 10**400, 2**64, {"\ud800": 1}, [[None]],
                     {"extra": [1.5]}, dt.date(2024, 1, 2), dt.timedelta(1), float("inf"), -0.0,
                     5e-324, 1e300, 2**63, -(2**70), 10**5000, Decimal("sNaN"), Decimal("-Infinity"), Decimal("-0"),
                     Decimal("12345678901234567890.123"), Decimal("1E+400"), "12", " 1", "1_0", "-", "٣", "true",
                     "ok\udfff", "nul\0", "line\u2028", "😀", "2024-W01-1", "20240102", bytearray(b"x"), dt.time(1, 2),
                     uuid.UUID(int=5), dt.datetime(2024, 1, 2, tzinfo=UTC), dt.datetime(2024, 1, 2),  # noqa: DTZ001
                     dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))), Text("sub"), Level.HIGH, Code.OK,
                     Colour.RED, Colour.ONE, frozenset(), collections.OrderedDict(a="2024-01-02T03:04:05+02:00"),
                     ({"a": 1.0, "extra": 1},), {"a": {"deep": [float("nan")]}}, 3 + 4j]),
)  # fmt: skip
ZONES = st.sampled_from([dt.timezone(dt.timedelta(hours=hours)) for hours in (-5, 0, 3)])
TIMES = st.one_of(
    st.sampled_from(["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.250000Z", "2024-01-02T03:04:05.5+02:00",
                     "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z"]),
    st.datetimes(timezones=st.just(UTC)),
    st.datetimes(timezones=ZONES),
)  # fmt: skip
TEXTS = {
    "date-time": TIMES | st.just("2024-01-02T03:04:05.123456789Z"),
    "date": st.one_of(st.dates(), st.dates().map(dt.date.isoformat)),
    "time": st.one_of(st.times(), st.just("03:04:05"), st.just(dt.timedelta(hours=3))),
    "uuid": st.one_of(st.uuids(), st.uuids().map(str)),
    "singer.decimal": st.one_of(
        st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.just("1.50"), st.just(Decimal("1E+2"))
    ),
}
NUMBERS = st.one_of(
    st.integers(0, 9),
    st.integers(),
    st.floats(0, 10).map(lambda x: round(x, 2)),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-100, 100, places=2),
    st.integers(0, 500).map(lambda n: f"{n // 100}.{n % 100:02}"),
)


class World(NamedTuple):
    """What values there are, beside plain text."""

    bent: st.SearchStrategy = BENT
    texts: dict[str, st.SearchStrategy] = TEXTS
    integers: st.SearchStrategy = st.integers()
    numbers: st.SearchStrategy = NUMBERS
    is_base64: bool = False

    def __repr__(self):  # hypothesis asks for it, and Python writes no integer of 5,000 digits
        return "World"


ANY = World()
HELD = World(  # no 65th bit, no seventh digit of a second, no 39th of a decimal, no base64 that is none
    st.none() | st.booleans() | st.sampled_from([
        [], {}, {5: 1}, (), {1}, frozenset(), object, [[None]], {"extra": [1.5]}, {"n": 10**400}, {"\ud800": 1}, 3 + 4j,
        {"a": {"deep": [float("nan")]}}, float("nan"), Decimal("-Infinity"), dt.date(2024, 1, 2),
        dt.datetime(2024, 1, 2), dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),  # noqa: DTZ001
    ]),
    {**TEXTS, "date-time": TIMES, "singer.decimal": st.decimals(-(10**15), 10**15, places=9)},
    st.integers(-(2**63), 2**63 - 1),
    NUMBERS.filter(lambda number: isinstance(number, str) or abs(number) < 10**30),
    is_base64=True,
)  # fmt: skip


def value_for(draw, schema, depth=6, world=ANY):
    """A value that mostly fits."""
    if not isinstance(schema, dict) or not depth or maybe(draw, 25):
        bent = draw(world.bent)
        is_text = isinstance(bent, dt.date) and isinstance(schema, dict) and "contentEncoding" in schema
        return None if is_text and world.is_base64 else bent
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            chosen = draw(st.sampled_from(schema[word]))
            below = {name: part for name, part in schema.items() if name != word}
            return value_for(draw, {**below, **chosen} if isinstance(chosen, dict) else chosen, depth, world)
    for part in schema.get("allOf", ()):
        properties = {**schema.get("properties", {}), **part.get("properties", {})}
        schema = {**schema, **part, **({"properties": properties} if properties else {})}
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "const" in schema:
        return schema["const"]
    kinds = as_list(schema.get("type", "object" if "properties" in schema else ()))
    kind = draw(st.sampled_from(kinds)) if kinds else None
    made = {
        "null": lambda: None,
        "boolean": lambda: draw(st.booleans()),
        "integer": lambda: draw(
            st.one_of(st.integers(1, 9), st.integers(0, 3).map(str), world.integers, st.sampled_from([3, 3.0]))
        ),
        "number": lambda: draw(world.numbers),
        "string": lambda: text_for(draw, schema, world),
        "array": lambda: array_for(draw, schema, depth, world),
        "object": lambda: object_for(draw, schema, depth, world),
        None: lambda: draw(st.one_of(world.bent, st.just({"a": [1, {"b": None}]}))),
    }
    return made[kind]()


def text_for(draw, schema, world):
    if schema.get("format") in TEXTS:
        return draw(world.texts[schema["format"]])
    if schema.get("contentEncoding") and (world.is_base64 or maybe(draw, 2)):
        return draw(st.binary(max_size=4))
    if "pattern" in schema:
        return draw(PATTERNS[schema["pattern"]])
    if maybe(draw, 8):
        return draw(st.one_of(st.integers(0, 99), st.uuids(), st.decimals(0, 1, places=1)))
    return draw(st.text(string.ascii_letters + 'é😀\n"\\\0\u2028', min_size=schema.get("minLength", 0), max_size=4))


def array_for(draw, schema, depth, world):
    items = schema.get("prefixItems") or schema.get("items", {})
    size = draw(st.integers(schema.get("minItems", 0), min(schema.get("maxItems", 3), 3)))
    if isinstance(items, list):
        out = [value_for(draw, place, depth - 1, world) for place in items[: max(size, 1)]]
        return [*out, 7] if maybe(draw, 5) else out
    out = [value_for(draw, items, depth - 1, world) for _ in range(size)]
    return tuple(out) if maybe(draw, 20) else out


def object_for(draw, schema, depth, world=ANY):
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    out = {
        name: value_for(draw, sub, depth - 1, world)
        for name, sub in properties.items()
        if not maybe(draw, 40 if name in required else 6)
    }
    extra = schema.get("additionalProperties", {} if "properties" not in schema else None)
    if maybe(draw, 4) and isinstance(extra, dict):
        out[draw(st.sampled_from(["new", "é2", 'n"']))] = value_for(draw, extra, depth - 1, world)
    if maybe(draw, 6):
        out[draw(st.sampled_from(["extra", "xtra", "n\\", *FIELDS[:3]]))] = draw(
            st.one_of(st.integers(0, 9), world.bent)
        )
    for name, sub in schema.get("patternProperties", {}).items():
        if maybe(draw, 2):
            out[{"^x": "xtra", "a$": "extra", "t": "at"}[name]] = value_for(draw, sub, depth - 1, world)
    return collections.OrderedDict(out) if maybe(draw, 40) else out


@st.composite
def rows_for(draw, schema, most=6, world=ANY):
    """Rows of a schema, of which most fit."""
    return [
        object_for(draw, {**schema, **top_union(draw, schema)}, 6, world) for _ in range(draw(st.integers(0, most)))
    ]


# ---- without a schema ------------------------------------------------------------------------------


def json_values(leaves, names, most=8):
    """Lists and objects with some leaves in them, or one leaf; the names are those of fields."""
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=most
    )


# ---- streams ---------------------------------------------------------------------------------------


@st.composite
def cases(draw, forms=None):
    """(schema, pages of rows, rules, deselected fields, key properties). ``forms``: of schemas; else any."""
    schema = draw(schemas() if forms is None else forms)
    names = sorted(schema["properties"])
    pages = []
    for _ in range(draw(st.integers(1, 3))):
        rows = draw(rows_for(schema, 4))
        pages.append([copy.copy(row) for row in rows * draw(st.sampled_from([1, 1, 4]))])
    rules = {
        "on_bad_record": draw(st.sampled_from(["error", "error", "skip", "null"])),
        "max_bad_records": draw(st.sampled_from([0, 1, 3, 100])),
        "on_nan": draw(st.sampled_from(["error", "null"])),
        "check_constraints": not maybe(draw, 5),
    }
    off = [("properties", name) for name in some(draw, [*names, "extra", "new"], 2)] if maybe(draw, 4) else []
    keys = tuple(name for name in names[:1] if ("properties", name) not in off) if maybe(draw, 4) else ()
    return schema, pages, rules, off, keys


def top_union(draw, schema):
    extra = {}
    for part in (*schema.get("allOf", ()), *(draw(st.sampled_from(schema[w])) for w in ("anyOf",) if w in schema)):
        extra |= part.get("properties", {})
    return {"properties": {**schema["properties"], **extra}}


# ---- as JSON ---------------------------------------------------------------------------------------


def spelled(value):
    """A row's JSON text, numbers digit for digit; None if JSON has no form for something in it."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return None
        parts = [(json.dumps(name), spelled(part)) for name, part in value.items()]
        return None if any(part is None for _, part in parts) else "{" + ", ".join(map(": ".join, parts)) + "}"
    if isinstance(value, list | tuple):
        parts = [spelled(part) for part in value]
        return None if None in parts else "[" + ",".join(parts) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=len(value) % 2 == 0) if value.isprintable() else json.dumps(value)
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else None
    if isinstance(value, float):
        return str(value) if math.isfinite(value) else None
    if isinstance(value, int) and abs(value) >= 10**4300:  # Python writes no longer ones
        return None
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    text = getattr(value, "isoformat", lambda: None)()
    return None if text is None else json.dumps(text)


def is_clean(text):
    try:
        json.loads(text)["x"] = json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def json_page(texts, form):
    """Rows as a page of bytes: ``"lines"``, ``"array"``, or ``"document"``, which has them at ``data.rows``."""
    if form == "lines":
        return "\n".join(texts).encode()
    array = "[" + " ,\n".join(texts) + "]"
    return (array if form == "array" else f'{{"n": 1, "data": {{"more": [1], "rows": {array}}}, "z": {{}}}}').encode()
