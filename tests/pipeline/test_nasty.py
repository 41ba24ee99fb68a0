"""Nasty strings and numbers, as rows and as bytes: every line parses, holds the very same value, and validates."""

from __future__ import annotations

import json
import math
import re
import tempfile
import unicodedata
from decimal import Decimal
from pathlib import Path

import pytest
from jsonschema import Draft4Validator

import burler
from support.shaping import slow
from support.taps import command

STRINGS = [
    "", " ", "  ", "\t", "\n", "\r", "\r\n", "\0", "a\0b", "\x01\x02\x1f", "\x7f", "\x80\x9f", "\x85", "\u2028",
    "\u2029", '"', '""', "'", "\\", "\\\\", '\\"', "\\n", "\\u0000", "\\ud800", "/", "</script>", "{", "}", "[", "]",
    ",", ":", "`", '{"type": "STATE", "value": {}}', '"}\n{"type":"STATE"}', "null", "true", "NaN", "-0", "1e400",
    "0x10", "%s%n", "{}", "${x}", "$(x)", "'; DROP TABLE users; --", "../../etc/passwd", "=1+1", "\ufeff", "\ufeffx",
    "\u200b", "\u200d", "\u00ad", "\u202eabc", "\u2066abc\u2069", "שלום", "العربية", "é", "e\u0301", "Å", "\u212b",
    "A\u030a", "ﬁ", "ß", "İ", "ı", "\uac00", "\u1100\u1161", "日本語", "😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "\U0001f1e9\U0001f1ea",
    "\U0010ffff", "\U00010000", "\ufffd", "\ufffe", "\uffff", "\ue000", "Z\u0351\u036b\u0343" * 20, "\u0f40\u0f90" * 50,
    "a" * 1_000_000, "😀" * 100_000, '\\"\n\0' * 10_000, "é" * 65_537, "x" * 48 * 1024, "\x1b[31mred\x1b[0m",
    "\b\f\v\a", "2024-02-30", "1_000", "１２",
]  # fmt: skip

HALVES = ["\ud800", "\udfff", "a\ud83d", "\ude00\ud83d", "\udc80", "ok \udbff ok"]

BROKEN_UTF8 = [b'"\xed\xa0\x80"', b'"\xff"', b'"\xc0\xaf"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"']

INTEGERS = [
    sign * (power + by)
    for power in (0, 2**7, 2**15, 2**31, 2**32, 2**53, 2**62, 2**63, 2**64, 2**127, 2**128, 10**18, 10**19, 10**400)
    for by in (-1, 0, 1)
    for sign in (1, -1)
] + [10**4299, 10**4300 - 1, -(10**4299 - 1)]
TOO_LONG = [10**4300, -(10**5000)]  # more digits than Python reads

FLOATS = [
    0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, 0.1,
    0.1 + 0.2, 1 / 3, 2 / 3, 1e15, 1e16, 1e17, 1e21, 1e22, 1e23, 1e-5, 1e-7, 123456789.123456789, 4.35, 1.005, 2.5e-8,
    math.pi, float(2**53), float(2**53 + 2), float(2**63), float(2**64), 9007199254740993.0, 0.1**20, 1.0, -1.0, 100.0,
    1e100,
]  # fmt: skip

DECIMALS = [
    "0", "-0", "0.0", "-0.00", "0E+3", "1", "1.0", "1.10", "100", "1E+2", "1e2", "1.5E-7", "1E-38", "-1E+38",
    "1234567890123456789012345678901234567890", "0.1234567890123456789012345678901234567890",
    "12345678901234567890.12345678901234567890", "-99999999999999999999999999999999999999.99", "1E+400", "1E-400",
    "9.999999999999999999999999999999999999999E+96", "9007199254740993", "18446744073709551616.5", "1E+999", "123E-999",
    "0.30000000000000004441", "1.7976931348623159E+308", "5E-325",
]  # fmt: skip

ENDLESS = [float("nan"), float("inf"), -float("inf"), *map(Decimal, ("NaN", "sNaN", "Infinity", "-Infinity", "NaN123"))]

# ---- through a tap ---------------------------------------------------------------------------------


def through_a_tap(schema, pages, config=None):
    """The RECORD lines of pages that a sync function yields, and the errors."""
    return streams_of(schema, [pages], config)[0]


def streams_of(schema, streams, config=None):
    """The same of several streams of one schema, each with its pages."""
    tap = burler.tap("tap-nasty")
    for number, pages in enumerate(streams):
        tap.sync(f"nasty-{number}", schema=schema)(lambda pages=pages: iter(pages))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config or {}))
        done = command(tap, "run", "--config", path, BURLER_LOG_LEVEL="ERROR")
    found = [([], []) for _ in streams]
    for line in done.stdout.split(b"\n"):
        if b'"type":"RECORD"' in line[:20]:
            found[int(re.match(rb'{"type":"RECORD","stream":"nasty-(\d+)"', line)[1])][0].append(line)
    for number, error in re.findall(r"^CRITICAL nasty-(\d+): (.*)", done.stderr, re.MULTILINE):
        found[int(number)][1].append(error)
    return found


def once(pairs):
    """An object whose names are all different."""
    made = dict(pairs)
    assert len(made) == len(pairs), "a name stands twice in one object"
    return made


def whole(text):
    """An integer; the zero below zero keeps its sign."""
    return Decimal(text) if text == "-0" else int(text)


def no_constant(text):
    raise AssertionError(f"{text} is no JSON")


def read(line):
    """A line's record: strictly read, numbers with a fraction or an exponent as Decimals."""
    assert b"\n" not in line and b"\r" not in line
    text = line.decode("utf-8", "strict")
    message = json.loads(text, parse_float=Decimal, parse_int=whole, parse_constant=no_constant, object_pairs_hook=once)
    assert message["type"] == "RECORD" and message["stream"].startswith("nasty")
    return message["record"]


def records_of(schema, pages, config=None):
    """What a tap makes of pages that all fit."""
    lines, errors = through_a_tap(schema, pages, config)
    assert errors == []
    records = [read(line) for line in lines]
    validator = Draft4Validator(schema)
    for record in records:
        assert not list(validator.iter_errors(record))
    return records


def refused(schema, rows, on_nan="error"):
    """Which rows are refused, each looked at behind a good one; slowly as fast."""
    out = []
    for row, (lines, errors) in zip(
        rows, streams_of(schema, [[[{}, row]] for row in rows], {"on_nan": on_nan}), strict=True
    ):
        assert len(lines) == (1 if errors else 2), row
        assert (slow(schema, [[{}, row]], on_nan=on_nan).error is None) == (not errors)
        if errors:
            out.append(row)
    return out


def fields(**schemas):
    return {"type": "object", "properties": schemas}


STRING, INTEGER, NUMBER = ({"type": name} for name in ("string", "integer", "number"))
PLACES = {
    "plain": lambda node: (fields(a=node), lambda value: {"a": value}),
    "nullable": lambda node: (fields(a={**node, "type": ["null", node["type"]]}), lambda value: {"a": value}),
    "open": lambda _: (fields(a={}), lambda value: {"a": value}),
    "open, deep": lambda _: (fields(a={"type": "object"}), lambda value: {"a": {"b": [value, {"c": value}]}}),
    "array": lambda node: (fields(a={"type": "array", "items": node}), lambda value: {"a": [value, value]}),
    "object": lambda node: (fields(a=fields(b=node)), lambda value: {"a": {"b": value}}),
    "objects": lambda node: (fields(a={"type": "array", "items": fields(b=node)}), lambda value: {"a": [{"b": value}]}),
    "map": lambda node: (fields(a={"type": "object", "additionalProperties": node}), lambda value: {"a": {"k": value}}),
    "further": lambda node: ({**fields(b=STRING), "additionalProperties": node}, lambda value: {"a": value, "b": ""}),
    "union": lambda node: (fields(a={"anyOf": [{"type": "boolean"}, node]}), lambda value: {"a": value}),
    "types": lambda node: (fields(a={"type": ["boolean", node["type"]]}), lambda value: {"a": value}),
    "pattern": lambda node: (
        fields(a={"type": "object", "patternProperties": {"^p": node}}),
        lambda v: {"a": {"p1": v}},
    ),
    "tuple": lambda node: (fields(a={"type": "array", "items": [node, node]}), lambda value: {"a": [value, value]}),
}


@pytest.fixture(params=PLACES)
def place(request):
    return PLACES[request.param]


def json_text(value, escaped):
    """JSON text of a row, in which Decimals and integers are spelled as they are."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(k, escaped)}:{json_text(v, escaped)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(json_text(part, escaped) for part in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=escaped)
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def byte_pages(rows):
    """The rows as JSON lines, as an array, and as a pretty array with escapes."""
    yield "\n".join(json_text(row, False) for row in rows).encode()
    yield ("[" + ",".join(json_text(row, True) for row in rows) + "]").encode()
    spread = " ,\r\n\t".join(json_text(row, True) for row in rows)
    yield f"\r\n [ {spread}\n ] \n".encode()


# ---- strings --------------------------------------------------------------------------------------


def test_strings_stay_as_they_are(place):
    schema, make = place(STRING)
    rows = [make(text) for text in STRINGS]
    assert records_of(schema, [rows]) == rows
    assert records_of(schema, rows) == rows


def test_strings_in_bytes_stay_as_they_are(place):
    schema, make = place(STRING)
    rows = [make(text) for text in STRINGS if len(text) < 50_000]
    for page in byte_pages(rows):
        assert records_of(schema, [page]) == rows
    long = [make(text) for text in STRINGS if len(text) >= 50_000]
    assert records_of(schema, [json.dumps(long).encode()]) == long


def test_strings_as_names_of_fields():
    names = [text for text in STRINGS if len(text) < 50_000]
    assert len(set(names)) == len(names)
    row = {name: name for name in names}
    known = fields(**dict.fromkeys(names, STRING))
    inside = fields(a=known, b={"type": "array", "items": known}, c={"type": "object"}, d={})
    nested = {"a": row, "b": [row, row], "c": row, "d": [row]}
    assert records_of(known, [[row] * 1, {**row}]) == [row, row]
    assert records_of(inside, [[nested]]) == [nested]
    for page in byte_pages([nested, nested]):
        assert records_of(inside, [page]) == [nested, nested]
    for page in byte_pages([row, row]):
        assert records_of(known, [page]) == [row, row]
        assert records_of({"type": "object", "additionalProperties": STRING, "properties": {}}, [page]) == [row, row]


def test_no_normalisation_joins_or_changes_names_and_values():
    forms = {unicodedata.normalize(form, "Å ﬁ \uac00 e\u0301") for form in ("NFC", "NFD", "NFKC", "NFKD")}
    row = {form: form for form in sorted(forms)}
    assert len(row) == 4
    assert records_of(fields(**dict.fromkeys(row, STRING)), [[row], json.dumps(row).encode()]) == [row, row]


def test_halves_of_surrogate_pairs_are_refused(place):
    schema, make = place(STRING)
    rows = [make(text) for text in HALVES]
    assert refused(schema, rows) == rows
    for lines, errors in streams_of(schema, [[make("before"), row, make("after")] for row in rows]):
        assert [read(line) for line in lines] == [make("before")] and len(errors) == 1
        errors[0].__str__().encode()  # what goes to stderr can be written there


def test_halves_of_surrogate_pairs_in_bytes_are_refused(place):
    schema, make = place(STRING)
    pages = []
    for half in (b'"\\ud800"', b'"a\\ud83dx"', b'"\\ude00\\ud83d"', *BROKEN_UTF8):
        bad = json.dumps(make("HERE")).encode().replace(b'"HERE"', half)
        pages.append(b"\n".join([json.dumps(make("before")).encode(), bad, json.dumps(make("after")).encode()]))
    for lines, errors in streams_of(schema, [[page] for page in pages]):
        assert len(errors) == 1
        assert [read(line) for line in lines] in ([make("before")], [])


def test_names_that_are_no_text_are_refused():
    names = [5, None, 1.5, True, b"x", ("a",), "\ud800", "a\udfff"]
    for schema, make in [
        (fields(a=STRING), lambda name: {name: 1}),
        (fields(a={}), lambda name: {"a": {name: 1}}),
        (fields(a={"type": "object"}), lambda name: {"a": {"b": [{name: 1}]}}),
        (fields(a=fields(b=STRING)), lambda name: {"a": {name: 1}}),
        (fields(a={"type": "array", "items": fields(b=STRING)}), lambda name: {"a": [{"b": "x"}, {name: 1}]}),
        ({**fields(a=STRING), "additionalProperties": True}, lambda name: {name: 1}),
    ]:
        rows = [make(name) for name in names]
        assert refused(schema, rows) == rows


# ---- numbers --------------------------------------------------------------------------------------


def same_digits(one, other):
    """Equal to the last digit, sign of zero and zeros at the end included."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_digits(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_digits, one, other))
    if isinstance(one, int | float | Decimal) and not isinstance(one, bool):
        mine = Decimal(repr(one)) if isinstance(one, float) else Decimal(one)
        if isinstance(other, bool) or not isinstance(other, int | Decimal):
            return False
        if isinstance(one, float):
            return mine == other and float(other) == one and mine.is_signed() == Decimal(other).is_signed()
        return mine.as_tuple() == Decimal(other).as_tuple()
    return one == other


@pytest.mark.parametrize("node", [INTEGER, NUMBER], ids=["integer", "number"])
def test_integers_of_any_size_are_exact(place, node):
    schema, make = place(node)
    rows = [make(number) for number in INTEGERS]
    assert records_of(schema, [rows]) == rows
    for page in byte_pages(rows):
        assert records_of(schema, [page]) == rows
    for number in TOO_LONG:
        assert refused(schema, [make(number)]) == [make(number)]
        text = json.dumps(make("HERE")).replace('"HERE"', f"{Decimal(number):f}")
        lines, errors = through_a_tap(schema, [text.encode()])
        assert lines == [] and len(errors) == 1


def test_integers_spelled_otherwise():
    schema = fields(a=INTEGER)
    rows = [{"a": text} for text in ("5", "-7", "1.0", "1e3", "-0", "1E+2", "10e-1", str(2**64), "1e30")]
    assert records_of(schema, [rows]) == [{"a": n} for n in (5, -7, 1, 1000, 0, 100, 1, 2**64, 10**30)]
    spelled = b'1.0 1e3 -0 -0.0 10e-1 1E+2 1e30 "5" 9007199254740993.0'.split()
    page = b"[" + b",".join(b'{"a":' + text + b"}" for text in spelled) + b"]"
    wanted = [1, 1000, 0, 0, 1, 100, 10**30, 5, 9007199254740993]
    assert records_of(schema, [page]) == [{"a": n} for n in wanted]
    assert all(
        b"." not in line.partition(b'"record":')[2].partition(b"}")[0] for line in through_a_tap(schema, [page])[0]
    )
    bad = [
        {"a": value}
        for value in ("1.5", "1e-1", "", " 1", "1 ", "+1", "0x10", "1_0", "１", "٣", "1e", ".5", "NaN", "∞")
    ]
    assert refused(schema, bad) == bad
    long = [{"a": "9" * 1000}, {"a": Decimal("9" * 4300)}, {"a": Decimal("1E+4299")}]
    assert records_of(schema, [long]) == [{"a": int(row["a"])} for row in long]
    for text in ("1e5000", "9" * 4301, "-" + "9" * 5000, "1e-5000"):
        bad = [{"a": text}, {"a": Decimal(text)}]
        assert refused(schema, bad) == bad


def test_floats_are_their_shortest_text(place):
    schema, make = place(NUMBER)
    rows = [make(number) for number in FLOATS]
    assert same_digits(rows, records_of(schema, [rows]))
    again = [json.loads(line)["record"] for line in through_a_tap(schema, [rows])[0]]
    assert again == rows  # read as floats, they are the same floats
    sources = [json.dumps(row).encode() for row in rows]
    for page in (b"\n".join(sources), b"[" + b",".join(sources) + b"]"):
        assert same_digits(rows, records_of(schema, [page]))


def test_decimals_are_exact_digit_for_digit(place):
    schema, make = place(NUMBER)
    rows = [make(Decimal(text)) for text in DECIMALS]
    records = records_of(schema, [rows])
    assert same_digits(rows, records), next(pair for pair in zip(rows, records, strict=True) if not same_digits(*pair))
    # As text in JSON "-0" is an integer, and those have one zero.
    rows = [make(Decimal(text)) for text in DECIMALS if text != "-0"]
    for page in byte_pages(rows):
        records = records_of(schema, [page])
        assert same_digits(rows, records), next(p for p in zip(rows, records, strict=True) if not same_digits(*p))


def test_numbers_written_as_text_are_exact():
    schema = fields(a=NUMBER)
    rows = [{"a": text} for text in DECIMALS]
    wanted = [{"a": Decimal(text)} for text in DECIMALS]
    assert same_digits(wanted, records_of(schema, [rows]))
    assert same_digits(wanted, records_of(schema, [json.dumps(rows).encode()]))


def test_decimals_as_text():
    schema = fields(a={"type": "string", "format": "singer.decimal"})
    texts = [text for text in DECIMALS if abs(Decimal(text).adjusted()) < 100]
    rows = [{"a": Decimal(text)} for text in texts]
    for pages in ([rows], [[{"a": text} for text in texts]], list(byte_pages(rows))[:1]):
        records = records_of(schema, pages)
        for record, text in zip(records, texts, strict=True):
            assert re.fullmatch(r"-?\d+(\.\d+)?", record["a"], re.ASCII)
            assert Decimal(record["a"]) == Decimal(text)
    floats = records_of(schema, [[{"a": number} for number in FLOATS if 1e-90 < abs(number) < 1e90]])
    assert [float(row["a"]) for row in floats] == [number for number in FLOATS if 1e-90 < abs(number) < 1e90]


def test_what_is_no_number_is_refused_or_null(place):
    schema, make = place(NUMBER)
    rows = [make(number) for number in ENDLESS]
    assert refused(schema, rows) == rows
    lines, errors = through_a_tap(schema, [make(1), rows[0]])
    assert len(lines) == 1 and len(errors) == 1


def test_what_is_no_number_becomes_null_on_request():
    for node in ({"type": ["null", "number"]}, {}, {"anyOf": [NUMBER, {"type": "null"}]}):
        rows = [{"a": number} for number in ENDLESS]
        assert refused(fields(a=node), rows, on_nan="null") == []
        assert records_of(fields(a=node), [rows], {"on_nan": "null"}) == [{"a": None}] * len(rows)
    deep = [{"a": {"b": [1, number, {"c": number}]}} for number in ENDLESS]
    assert records_of(fields(a={}), [deep], {"on_nan": "null"}) == [{"a": {"b": [1, None, {"c": None}]}}] * len(deep)
    rows = [{"a": number} for number in ENDLESS]
    assert refused(fields(a=NUMBER), rows, on_nan="null") == rows
    assert refused(fields(a=INTEGER), rows, on_nan="null") == rows
    lists = [{"a": [1.5, number]} for number in ENDLESS]
    assert refused(fields(a={"type": "array", "items": NUMBER}), lists, on_nan="null") == lists
    nullable = fields(a={"type": "array", "items": {"type": ["number", "null"]}})
    assert records_of(nullable, [lists], {"on_nan": "null"}) == [{"a": [Decimal("1.5"), None]}] * len(lists)


def test_what_json_does_not_know_breaks_a_page_of_bytes(place):
    schema, make = place(NUMBER)
    constants = (b"NaN", b"Infinity", b"-Infinity", b"nan", b"+1", b"01", b"1.", b".5", b"0x10", b"1e")
    rows = [json.dumps(make("HERE")).encode().replace(b'"HERE"', constant) for constant in constants]
    for lines, errors in streams_of(schema, [[json.dumps(make(1)).encode() + b"\n" + row] for row in rows]):
        assert len(errors) == 1 and [read(line) for line in lines] in ([make(1)], [])


# ---- the page around the values ---------------------------------------------------------------------


def test_values_of_bytes_that_no_schema_describes_come_on_one_line():
    schema = fields(a={}, b={"type": "object"}, c={"type": "array"})
    page = b'[{"a": {\n "x" : [1.10,\r\n 2e1 ] },\n"b":{\r"y"\n:\n"z\\n"},"c":\n[\n]\n},\n{"a":\n"line"}]'
    records = records_of(schema, [page])
    assert records == [{"a": {"x": [Decimal("1.10"), Decimal("2e1")]}, "b": {"y": "z\n"}, "c": []}, {"a": "line"}]


def test_of_a_name_that_stands_twice_the_last_counts():
    """Objects that are described hold it once; in others the source's text is kept, and readers take the last."""
    described = fields(a=INTEGER, d=fields(e=INTEGER), l={"type": "array", "items": fields(e=INTEGER)})
    page = b'{"a":1,"a":2,"d":{"e":1,"e":2},"l":[{"e":1,"e":2}]}'
    assert records_of(described, [page]) == [{"a": 2, "d": {"e": 2}, "l": [{"e": 2}]}]
    lines, errors = through_a_tap(
        fields(b={}, c={"type": "object"}), [b'{"b":{"x":1,"x":2},"c":{"y":[1],"y":[{"z":1}]}}']
    )
    assert not errors and json.loads(lines[0])["record"] == {"b": {"x": 2}, "c": {"y": [{"z": 1}]}}


@pytest.mark.parametrize("kind", ["rows", "bytes"])
def test_depth(kind):
    """A hundred levels pass; what is deeper than the stack is one error of the stream, in either form."""

    def nested(levels):
        return "[" * levels + '{"x":' * levels + "1" + "}" * levels + "]" * levels

    for schema in (fields(a={}), fields(a={"type": "array"}), fields(a={"type": "array", "items": {}})):
        text = '{"a":' + nested(50) + "}"
        page = text.encode() if kind == "bytes" else json.loads(text)
        assert records_of(schema, [page]) == [json.loads(text)]
        value = {"a": []}
        for _ in range(20_000):
            value = {"a": [value]} if kind == "rows" else value
        page = ('{"a":' + "[" * 20_000 + "]" * 20_000 + "}").encode() if kind == "bytes" else value
        lines, errors = through_a_tap(schema, [{"a": []}, page] if kind == "rows" else [b'{"a":[]}', page])
        assert len(lines) == 1 and len(errors) == 1
        while kind == "rows" and value["a"]:  # let it go step by step: so deep an object is freed recursively
            value = value["a"][0]


def test_big_and_small_rows_mixed_keep_their_order():
    schema = fields(id=INTEGER, a=STRING, b={"type": ["null", "array"], "items": NUMBER})
    rows = [{"id": i, "a": "é" * (70_000 if i % 97 == 0 else i % 5), "b": [i, Decimal("0.10")]} for i in range(1200)]
    assert records_of(schema, [rows]) == rows
    assert records_of(schema, [[dict(row) for row in rows[:600]], *rows[600:]]) == rows
    assert records_of(schema, [json_text(rows, False).encode()]) == rows
