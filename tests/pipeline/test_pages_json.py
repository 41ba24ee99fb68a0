"""A page of bytes gives what its rows as dicts give, by hypothesis; and clean pages never become dicts."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import burler
from burler.singer.messages import Records, State
from support.internals import other_pages, removed, runtime_run

# ---- a run that is looked at as bytes -------------------------------------------------------------


class Sink:
    """Keeps the rows as they were written, and the last STATE."""

    def __init__(self):
        self.rows, self.state = [], None

    def write(self, message):
        if isinstance(message, Records):
            for line in bytes(message.lines).split(b"\n")[:-1]:
                row = line[line.index(b'"record":') + len(b'"record":') :]
                self.rows.append(row[: row.rindex(b',"time_extracted":')])
        elif isinstance(message, State):
            self.state = message.to_wire()

    def flush(self): ...

    def tick(self): ...

    def tell_states(self, told): ...

    def close(self, *, complete): ...


def exact(text):
    """JSON with every number as a Decimal, so that 1.0, 1 and 1e0 are the same and nothing else is."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def seen(schema, pages, options):
    """What comes of pages: rows, bookmarks, error, unknown fields."""
    tap = burler.tap("t")

    def rows():
        yield from pages

    tap.sync("rows", schema=schema, **options)(rows)
    sink, unknown = Sink(), []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(removed, "report", lambda name, found, count: unknown.append((found.counts, count)))
        result = runtime_run.run(tap, {}, sink)
    errors = {name: _plain(str(error)) for name, error in result.errors.items()}
    return [exact(row) for row in sink.rows], sink.state, errors, unknown


def _plain(error):
    """An error without the spelling of numbers, which Python and JSON write differently."""
    return error.splitlines()[0].split(" is ")[0]


# ---- schemas and rows -----------------------------------------------------------------------------

NAMES = ("a", "b", "x.y", "é", "$", "f0", 'q"')
SCALARS = st.sampled_from(
    [
        {"type": "integer"},
        {"type": ["null", "integer"]},
        {"type": "number"},
        {"type": ["null", "number"]},
        {"type": ["null", "string"]},
        {"type": "string"},
        {"type": "boolean"},
        {"type": ["null", "string"], "format": "date-time"},
        {"type": "string", "format": "date"},
        {"type": "string", "format": "singer.decimal"},
        {"type": ["integer", "string"]},
        {"type": ["number", "string", "null"]},
        {"type": "integer", "minimum": 0},
        {"type": "number", "multipleOf": 0.01},
        {"enum": ["x", 1, None]},
        {"type": "object"},
        {"type": "array"},
        {"type": "array", "items": {"type": "number"}},
        {},
    ]
)


def objects(inner):
    return st.builds(
        lambda properties, more: {"type": ["null", "object"], "properties": properties, **more},
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        st.sampled_from([{}, {}, {"additionalProperties": True}, {"additionalProperties": {"type": "integer"}}]),
    )


NODES = st.recursive(
    SCALARS,
    lambda inner: objects(inner) | st.builds(lambda node: {"type": "array", "items": node}, inner),
    max_leaves=5,
)
SCHEMAS = st.builds(
    lambda properties, more: {"type": "object", "properties": {"id": {"type": "integer"}, **properties}, **more},
    st.dictionaries(st.sampled_from(NAMES), NODES, max_size=5),
    st.sampled_from([{}, {}, {}, {"additionalProperties": True}]),
)

TIMES = st.sampled_from(
    [
        "2024-01-02T03:04:05Z",
        "2024-01-02T03:04:05.1+02:00",
        "2024-01-02 03:04:05.123456789Z",
        "2024-01-02T03:04:05",
        "0001-01-01T00:00:00+05:00",
        "2024-01-02",
    ]
)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**53 + 1, 2**63, 2**64, -(2**70), 10**39, 1.5, -0.0, 1e22, 0.07, 1e-7]),
    st.sampled_from(["1.0", "1E5", "0.10", "1e30", "0.1234567890123456789012345678901234567890"]).map(Decimal),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.text(st.characters(codec="utf-8"), max_size=5),
    TIMES,
    st.sampled_from(["1", "1.50", "x", "", "2024-01-02"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from((*NAMES, "new")), inner, max_size=3),
    max_leaves=4,
)


def fitting(draw, schema):
    """Mostly a value that fits, so that pages come through."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if not kinds or draw(st.integers(0, 25)) == 0:
        return draw(VALUES)
    kind = draw(st.sampled_from(kinds))
    if kind == "object" and "properties" in schema:
        names = [name for name in schema["properties"] if draw(st.integers(0, 5))]
        made = {name: fitting(draw, schema["properties"][name]) for name in names}
        return {**made, "new": draw(LEAVES)} if draw(st.integers(0, 12)) == 0 else made
    if kind == "array" and "items" in schema:
        return [fitting(draw, schema["items"]) for _ in range(draw(st.integers(0, 2)))]
    if schema.get("format") == "date-time" and kind == "string":
        return draw(TIMES)
    if schema.get("format") in ("date", "singer.decimal"):
        return "2024-01-02" if schema["format"] == "date" else draw(st.sampled_from(["1", "1.50"]))
    made = {
        "null": st.none(),
        "integer": st.integers(-(2**66), 2**66),
        "number": NUMBERS,
        "string": st.text(st.characters(codec="utf-8"), max_size=5),
        "boolean": st.booleans(),
        "object": st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), LEAVES, max_size=2),
        "array": st.lists(VALUES, max_size=2),
    }
    return draw(made[kind])


KEYED = {"key_properties": "id", "replication_key": "id", "order": "asc"}


@st.composite
def cases(draw):
    schema = draw(SCHEMAS)
    rows = []
    for number in range(draw(st.integers(1, 6))):
        row = {"id": number} if draw(st.integers(0, 40)) else {}
        for name, node in schema["properties"].items():
            if name != "id" and draw(st.integers(0, 5)):
                row[name] = fitting(draw, node)
        if draw(st.integers(0, 12)) == 0:
            row["new"] = draw(VALUES)
        rows.append(row)
    options = dict(KEYED)
    options["on_bad_record"] = draw(st.sampled_from(["error", "error", "skip", "null"]))
    return schema, rows, options


def text_of(value, spaces, indent):
    """JSON of a row, numbers as they are (a Decimal too), with any white space between its parts."""
    if isinstance(value, dict):
        inner = [
            f"{json.dumps(key)}{spaces()}:{spaces()}{text_of(item, spaces, indent)}" for key, item in value.items()
        ]
        return "{" + spaces() + f"{spaces()},{spaces()}".join(inner) + spaces() + "}"
    if isinstance(value, list):
        return "[" + f"{spaces()},{spaces()}".join(text_of(item, spaces, indent) for item in value) + spaces() + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=indent)


def spaces_of(seed, choices):
    chance = random.Random(seed)
    return lambda: chance.choice(choices) if seed else ""


@settings(suppress_health_check=list(HealthCheck))
@given(cases(), st.integers(0, 3), st.booleans())
@example(
    ({"properties": {"id": {"type": "integer"}, "a": {"type": "number"}}}, [{"id": 1, "a": Decimal("1E5")}], KEYED),
    1,
    True,
)
@example(
    ({"properties": {"id": {"type": "integer"}, "a": {}}}, [{"id": 1, "a": {"b": [1, {"c": []}]}}], KEYED), 2, False
)
def test_a_page_of_bytes_gives_what_its_rows_give(case, seed, ascii_only):
    schema, rows, options = case
    wanted = seen(schema, [json.loads(json.dumps(rows, default=_marked), object_hook=_unmarked)], options)
    wide = partial(text_of, spaces=spaces_of(seed, ["", " ", "\n", "\r\n  ", "\t"]), indent=ascii_only)
    flat = partial(text_of, spaces=spaces_of(seed, ["", " ", "\t"]), indent=ascii_only)
    assert seen(schema, [wide(rows).encode()], options) == wanted
    assert seen(schema, ["\n".join(map(flat, rows)).encode()], options) == wanted
    document = wide({"x": [1], "r": {"a.b": rows, "z": None}, "y": {}}).encode()
    assert seen(schema, [burler.json_page(document, ["r", "a.b"])], options) == wanted
    assert seen(schema, [flat(row).encode() for row in rows], options) == wanted


def _marked(value):
    return {"__decimal": str(value)}


def _unmarked(found):
    return Decimal(found["__decimal"]) if "__decimal" in found else found


# ---- the way that a page goes -----------------------------------------------------------------------

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


@pytest.fixture
def no_dicts(monkeypatch):
    def refused(page, *more):
        raise AssertionError("the page became dicts")

    monkeypatch.setattr(other_pages, "rows_of", refused)


def lines_of(*pages, select=None, **options):
    tap = burler.tap("t")
    tap.sync("rows", **{"key_properties": "id", "schema": SCHEMA, **options})(lambda: iter(pages))
    sink = Sink()
    result = runtime_run.run(tap, {}, sink, select=select)
    assert not result.errors, result.errors
    return sink.rows


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


@pytest.mark.parametrize("row", list(variants()))
@pytest.mark.parametrize("indent", [None, 1])
def test_clean_pages_never_become_dicts(no_dicts, row, indent):
    page = json.dumps([row, row], indent=indent).encode()
    forms = [page, burler.json_page(b'{"a":%s}' % page, "a"), json.dumps(row).encode() * 2]
    for form in forms:
        assert len(lines_of(form, replication_key="id")) == 2
        assert len(lines_of(form, select="rows,!rows.gone,!rows.in.list")) == 2


def test_clean_tables_never_become_dicts(no_dicts):
    import pyarrow as pa

    row = {**ROW, "day": dt.date(2024, 1, 2), "in": {"x": 1}, "kids": [{"x": True}]}
    page = pa.Table.from_pylist([{name: row[name] for name in row if name not in ("open", "loose")}] * 3)
    assert len(lines_of(page, page.to_batches()[0], replication_key="id")) == 6
    assert len(lines_of(page, select="rows,!rows.gone")) == 3


@pytest.mark.parametrize("text", [b'{"a":null}', b'{"a":[]}', b'{"a": [ ] ,"b":[{"id":"x"}]}'])
def test_a_document_without_rows_never_becomes_dicts(no_dicts, text):
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
    wanted = seen(schema, [json.loads(page) for page in pages], {**KEYED, **skipping})
    assert seen(schema, pages, {**KEYED, **skipping}) == wanted
    assert len(wanted[0]) == (3 if learned != '"at":1' else 4)


def test_fields_that_are_not_selected_are_not_even_read(no_dicts):
    page = b'[{"id":1,"gone":{"x":"no integer","y":[1e999]},"text":"t"}]'
    assert lines_of(page, select="rows,!rows.gone") == [b'{"id":1,"text":"t"}']


def test_numbers_keep_every_digit_of_the_source(no_dicts):
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


def test_what_no_schema_describes_goes_out_as_it_came(no_dicts):
    (line,) = lines_of(rb'{"id":1,"open":{ "b" : 1.50, "a":"\u00e9\ud83d\ude00\/", "b" :[ ]}}')
    assert line == rb'{"id":1,"open":{ "b" : 1.50, "a":"\u00e9\ud83d\ude00\/", "b" :[ ]}}'


def test_one_bad_part_of_a_big_page_reads_it_once_more_not_once_for_each_part(monkeypatch):
    asked = []
    rows_of = other_pages.rows_of
    monkeypatch.setattr(other_pages, "rows_of", lambda page, *more: asked.append(1) or rows_of(page, *more))
    rows = [{"id": i, "kind": "z" if i % 4000 == 3999 else "a", "text": "x" * 100} for i in range(20_000)]
    tap = burler.tap("t")
    tap.sync("rows", key_properties="id", schema=SCHEMA, on_bad_record="skip")(lambda: json.dumps(rows).encode())
    sink = Sink()
    assert not runtime_run.run(tap, {}, sink).errors
    assert [json.loads(row)["id"] for row in sink.rows] == [i for i in range(20_000) if i % 4000 != 3999]
    assert len(asked) == 1
