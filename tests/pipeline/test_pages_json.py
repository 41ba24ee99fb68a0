"""A page of bytes gives what its rows as dicts give, by hypothesis."""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import burler
from burler.testing import run_tap
from support.strategies import is_clean, rows_for, schemas, spelled
from support.taps import command, exact

# ---- a run that is looked at as bytes -------------------------------------------------------------


def runs(schema, forms, **options):
    """What comes of the pages of several streams: rows, bookmark, error and what was dropped, of each."""
    tap = burler.tap("t")
    for number, pages in enumerate(forms):
        tap.sync(f"s{number}", schema=schema, **options)(lambda pages=pages: iter(pages))
    done = command(tap, "run", BURLER_LOG_LEVEL="WARNING")
    found = [{"rows": [], "state": None, "errors": [], "dropped": []} for _ in forms]
    state = {}
    for line in done.stdout.splitlines():
        message = exact(line)
        if message["type"] == "RECORD":
            found[int(message["stream"][1:])]["rows"].append(plain(message["record"]))
        elif message["type"] == "STATE":
            state = message["value"]
    for number, one in enumerate(found):
        one["state"] = (state.get("bookmarks") or {}).get(f"s{number}")
        # Without the spelling of numbers, which Python and JSON write differently.
        one["errors"] = [text.split(" is ")[0] for text in re.findall(rf"^CRITICAL s{number}: (.*)", done.stderr, re.M)]
        dropped = re.findall(rf"^WARNING stream 's{number}': fields that .* dropped: (.*)", done.stderr, re.M)
        one["dropped"] = [re.sub(rf"\bs{number}\b", "", text) for text in dropped]
        one["errors"] = [re.sub(rf"'s{number}'", "", text) for text in one["errors"]]
    return found


def plain(value):
    """Every number as a Decimal without the zeros at its end: 1.0, 1 and 1e0 are the same, and nothing else is."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


# ---- whatever comes -------------------------------------------------------------------------------

KEYED = {"key_properties": "id", "replication_key": "id", "order": "asc"}


@st.composite
def streams(draw):
    """A schema, its rows with ids that rise, as JSON texts with every digit, and what is done with bad ones."""
    schema = draw(schemas().filter(lambda schema: "anyOf" not in schema))
    schema = {**schema, "properties": {**schema["properties"], "id": {"type": "integer"}}}
    texts = [text for row in draw(rows_for(schema)) if (text := spelled(dict(row))) and is_clean(text)]
    rows = [{**json.loads(text, parse_float=Decimal), "id": number} for number, text in enumerate(texts)]
    return schema, rows, draw(st.sampled_from(["error", "error", "skip", "null"]))


def text_of(value, spaces, ascii_only):
    """JSON of a row, numbers as they are (a Decimal too), with any white space between its parts."""
    if isinstance(value, dict):
        inner = [
            f"{json.dumps(key)}{spaces()}:{spaces()}{text_of(one, spaces, ascii_only)}" for key, one in value.items()
        ]
        return "{" + spaces() + f"{spaces()},{spaces()}".join(inner) + spaces() + "}"
    if isinstance(value, list):
        return "[" + f"{spaces()},{spaces()}".join(text_of(one, spaces, ascii_only) for one in value) + spaces() + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=ascii_only)


def spaces_of(seed, choices):
    chance = random.Random(seed)
    return lambda: chance.choice(choices) if seed else ""


def ids_and(node):
    return {"properties": {"id": {"type": "integer"}, "a": node}}


@settings(suppress_health_check=list(HealthCheck))
@given(streams(), st.integers(0, 3), st.booleans())
@example(
    ({"properties": {"id": {"type": "integer"}, "a": {"type": "number"}}}, [{"id": 1, "a": Decimal("1E5")}], "error"),
    1,
    True,
)
@example(
    ({"properties": {"id": {"type": "integer"}, "a": {}}}, [{"id": 1, "a": {"b": [1, {"c": []}]}}], "error"), 2, False
)
def test_a_page_of_bytes_gives_what_its_rows_give(case, seed, ascii_only):
    schema, rows, on_bad_record = case
    wide = partial(text_of, spaces=spaces_of(seed, ["", " ", "\n", "\r\n  ", "\t"]), ascii_only=ascii_only)
    flat = partial(text_of, spaces=spaces_of(seed, ["", " ", "\t"]), ascii_only=ascii_only)
    document = wide({"x": [1], "r": {"a.b": rows, "z": None}, "y": {}}).encode()
    wanted, *others = runs(
        schema,
        [
            [rows],
            [wide(rows).encode()],
            ["\n".join(map(flat, rows)).encode()],
            [burler.json_page(document, ["r", "a.b"])],
            [flat(row).encode() for row in rows],
        ],
        on_bad_record=on_bad_record,
        **KEYED,
    )
    for other in others:
        assert other == wanted


# ---- ordinary pages ---------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "n": {"type": ["null", "number"]},
        "ns": {"type": "array", "items": {"type": "number"}},
        "text": {"type": ["null", "string"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "in": {"type": "object", "properties": {"x": {"type": "integer"}, "list": {"type": "array", "items": {}}}},
        "kids": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "boolean"}}}},
        "kind": {"enum": ["a", "b", None]},
        "loose": {"type": ["integer", "string"]},
        "open": {},
        "gone": {"type": "object", "properties": {"x": {"type": "integer"}}},
    },
}
ROW = {
    "id": 1,
    "n": 1.5,
    "ns": [1, 2.5],
    "text": 'é \u2028 \x7f "q" \\ \n',
    "at": "2024-01-02T03:04:05Z",
    "day": "2024-01-02",
    "in": {"x": 1, "list": [1, "x", {"y": None}]},
    "kids": [{"x": True}, {}],
    "kind": "a",
    "loose": "x",
    "open": {"any": [1, {"thing": 2.50}]},
    "gone": {"x": 1},
}


def lines_of(*pages, select=None, **options):
    """The rows as they are written."""
    tap = burler.tap("t")
    tap.sync("rows", **{"key_properties": "id", "schema": SCHEMA, **options})(lambda: iter(pages))
    done = command(tap, "run", *(("--select", select) if select else ()), BURLER_LOG_LEVEL="ERROR")
    assert done.code == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(b'{"type":"RECORD"')]
    rows = [line[line.index(b'"record":') + len(b'"record":') :] for line in lines]
    return [row[: row.rindex(b',"time_extracted":')] for row in rows]


def variants():
    """Rows that the fast way has to know: each differs from ``ROW`` in what it says of one field."""
    yield ROW
    yield {"id": 2}
    yield {**ROW, "n": None, "text": None, "at": None, "kind": None}
    yield {**ROW, "id": 2**70, "n": 10**40, "loose": 5}
    yield {**ROW, "at": "2024-01-02T05:04:05.123+02:00"}
    yield {**ROW, "at": "2024-01-02T03:04:05.123456789Z"}
    yield {**ROW, "n": "1.50", "id": "7"}
    yield {**ROW, "open": None}
    yield {**ROW, "open": "text", "ns": [], "kids": []}


def test_pages_of_every_form_hold_the_same_rows():
    rows = list(variants())
    page = json.dumps(rows).encode()
    wanted = [exact(line) for line in lines_of(rows)]
    assert len(wanted) == len(rows)
    pretty = json.dumps(rows, indent=1).encode()
    for form in (
        page,
        pretty,
        burler.json_page(b'{"a":%s}' % page, "a"),
        b"".join(json.dumps(row).encode() for row in rows),
    ):
        assert [exact(line) for line in lines_of(form, replication_key="id")] == wanted
    less = [{name: value for name, value in row.items() if name != "gone"} for row in wanted]
    for row in less:
        row.get("in", {}).pop("list", None)
    assert [exact(line) for line in lines_of(page, select="rows,!rows.gone,!rows.in.list")] == less


@pytest.mark.parametrize("text", [b'{"a":null}', b'{"a":[]}', b'{"a": [ ] ,"b":[{"id":"x"}]}'])
def test_a_document_without_rows(text):
    assert lines_of(burler.json_page(text, "a")) == []


@pytest.mark.parametrize(
    ("learned", "bad"),
    [
        ('"m":"1.5"', '"m":null'),
        ('"m":"1.5"', '"m":true'),
        ('"m":"1.5"', '"m":[1]'),
        ('"n":"1.5"', '"n":"null"'),
        ('"n":"1.5"', '"n":{}'),
        ('"ns":["1"]', '"ns":[1,"x"]'),
        ('"ns":["1"]', '"ns":[null]'),
        ('"ns":["1"]', '"ns":[[1]]'),
        ('"ns":["1"]', '"ns":null'),
        ('"at":1', '"at":"2024"'),
    ],
)
def test_a_field_that_was_learned_of_still_takes_what_fits_only(learned, bad):
    schema = {"properties": {**SCHEMA["properties"], "m": {"type": "number"}}}
    pages = [b'[{"id":%d,%s}]' % (i, part.encode()) for i, part in enumerate([learned, learned, bad, learned])]
    skipping = {"on_bad_record": "skip"} if learned != '"at":1' else {"on_bad_record": "null"}
    wanted, found = runs(schema, [[json.loads(page) for page in pages], pages], **KEYED, **skipping)
    assert found == wanted
    assert len(wanted["rows"]) == (3 if learned != '"at":1' else 4)


def test_fields_that_are_not_selected_are_not_even_read():
    page = b'[{"id":1,"gone":{"x":"no integer","y":[1e999]},"text":"t"}]'
    assert lines_of(page, select="rows,!rows.gone") == [b'{"id":1,"text":"t"}']


def test_numbers_keep_every_digit_of_the_source():
    """Only exponents are spelled one way."""
    spelled = b"[%s]" % b",".join(
        b'{"id":%d,"n":%b}' % (i, number)
        for i, number in enumerate(
            [b"1.0", b"1E5", b"1e+5", b"-0.0", b"0.10", b"1e400", b"0." + b"1" * 40, b"12345678901234567890.5"]
        )
    )
    assert [row.partition(b'"n":')[2][:-1] for row in lines_of(spelled)] == [
        b"1.0",
        b"1E+5",
        b"1E+5",
        b"-0.0",
        b"0.10",
        b"1E+400",
        b"0." + b"1" * 40,
        b"12345678901234567890.5",
    ]


def test_what_no_schema_describes_goes_out_as_it_came():
    (line,) = lines_of(rb'{"id":1,"open":{ "b" : 1.50, "a":"\u00e9\ud83d\ude00\/", "b" :[ ]}}')
    assert line == rb'{"id":1,"open":{ "b" : 1.50, "a":"\u00e9\ud83d\ude00\/", "b" :[ ]}}'


def test_bad_parts_of_a_big_page():
    rows = [{"id": i, "kind": "z" if i % 4000 == 3999 else "a", "text": "x" * 100} for i in range(20_000)]
    tap = burler.tap("t")
    tap.sync("rows", key_properties="id", schema=SCHEMA, on_bad_record="skip")(lambda: json.dumps(rows).encode())
    assert [row["id"] for row in run_tap(tap).records("rows")] == [i for i in range(20_000) if i % 4000 != 3999]
