"""Inference: the schema of records loses nothing, whatever their order; samples from files."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import gzip
import json
import re
import tempfile
import tracemalloc
import uuid
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import burler
from burler.errors import DataError, DeclarationError
from burler.schema import Inference, infer_schema, inferred
from burler.testing import run_tap
from support.strategies import json_values

WHERE = "stream 'a' (tap.py:3)"


def field(*values, **options):
    """The schema of a field that had these values, one a record."""
    return infer_schema([{"x": value} for value in values], **options)["properties"]["x"]


class Colour(enum.Enum):
    RED = "red"


class Loud(str):
    pass


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        ([1], {"type": "integer"}),
        ([2**70, -1], {"type": "integer"}),
        ([1, 2.5], {"type": "number"}),
        ([1.0], {"type": "number"}),  # who writes 1.0 means no integer
        ([Decimal(3)], {"type": "number"}),
        ([True, False], {"type": "boolean"}),
        ([True, 1], {"type": ["boolean", "integer"]}),
        (["a", 1], {"type": ["integer", "string"]}),
        (["a", 1, 1.5, None], {"type": ["null", "number", "string"]}),
        ([None], {}),
        ([None, "a"], {"type": ["null", "string"]}),
        ([[]], {"type": "array", "items": {}}),
        ([[None]], {"type": "array", "items": {}}),
        ([[], [1, "a"]], {"type": "array", "items": {"type": ["integer", "string"]}}),
        ([(1, 2), {3}], {"type": "array", "items": {"type": "integer"}}),
        ([{}], {"type": "object"}),  # open: what comes later is kept
        ([{}, {"a": 1}], {"type": "object", "properties": {"a": {"type": "integer"}}}),
        ([{"a": 1}, "b"], {"type": ["string", "object"], "properties": {"a": {"type": "integer"}}}),
        (
            [{"a": 1}, [1], None, 5],
            {
                "type": ["null", "integer", "array", "object"],
                "items": {"type": "integer"},
                "properties": {"a": {"type": "integer"}},
            },
        ),
        ([b"a", None], {"type": ["null", "string"], "contentEncoding": "base64"}),
        ([Colour.RED], {"type": "string"}),
        ([Loud("x")], {"type": "string"}),
        ([uuid.UUID(int=1)], {"type": "string"}),
        ([dt.date(2024, 1, 2), "2024-01-03"], {"type": "string", "format": "date"}),
        ([dt.datetime(2024, 1, 2, tzinfo=dt.UTC)], {"type": "string", "format": "date-time"}),
        ([dt.datetime(2024, 1, 2)], {"type": "string"}),  # noqa: DTZ001 - naive on purpose
        ([dt.time(1, 2)], {"type": "string"}),
    ],
)
def test_types(values, schema):
    assert field(*values) == schema
    assert field(*reversed(values)) == schema


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["2024-01-02T03:04:05Z", "2024-01-02t03:04:05.123456789+02:00"], "date-time"),
        (["2024-01-02T03:04:05"], None),  # naive: whose time is it?
        (["2024-01-02T03:04:05Z", "2024-01-02T03:04:05"], None),
        (["2024-01-02T03:04:05Z", ""], None),
        (["2024-01-02T03:04:05Z", "2024-01-02"], None),
        (["2024-01-02"], "date"),
        (["2024-01-02", ""], None),
        (["2024-02-30"], None),
        (["20240102"], None),
        (["٢٠٢٤-01-02"], None),
        (["ann@example.com"], None),
        (["https://example.com"], None),
        (["6f1c0b9e-5d3c-4a7e-9b8e-0a1b2c3d4e5f"], None),
        (["12:30:00Z"], None),
    ],
)
def test_formats_are_found_only_where_every_text_fits(texts, found):
    assert field(*texts).get("format") == found
    assert field(None, *reversed(texts)).get("format") == found


def test_formats_that_are_asked_for():
    ids = ["6f1c0b9e-5d3c-4a7e-9b8e-0a1b2c3d4e5f", uuid.UUID(int=3)]
    assert field(*ids, formats=["uuid"]) == {"type": "string", "format": "uuid"}
    assert field(*ids, "x", formats=["uuid"]) == {"type": "string"}
    assert field("12:30:00Z", formats=["time"])["format"] == "time"
    assert field("2024-01-02", formats=[]) == {"type": "string"}
    with pytest.raises(ValueError, match=r"'emial' is not looked for\. Known: date-time"):
        infer_schema([{}], formats=["emial"])


def test_a_format_among_other_types_is_left_out():
    assert field("2024-01-02T03:04:05Z", 1704164645) == {"type": ["integer", "string"]}


def test_absent_fields_stay_plain_and_nothing_is_required():
    assert infer_schema([{"a": 1}, {"b": [{"c": 1}, {"d": None}]}]) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {
                "type": "array",
                "items": {"type": "object", "properties": {"c": {"type": "integer"}, "d": {}}},
            },
        },
    }


def test_nullable_makes_every_field_nullable_at_every_depth_but_items_stay():
    schema = infer_schema([{"a": 1, "b": {"c": "x"}, "d": [{"e": 1}], "f": None}], nullable=True)
    assert schema == {
        "type": "object",
        "properties": {
            "a": {"type": ["null", "integer"]},
            "b": {"type": ["null", "object"], "properties": {"c": {"type": ["null", "string"]}}},
            "d": {
                "type": ["null", "array"],
                "items": {"type": "object", "properties": {"e": {"type": ["null", "integer"]}}},
            },
            "f": {},
        },
    }


def test_objects_that_are_maps():
    records = [{"rates": {f"day{i}": {"v": i if i % 2 else None, f"k{i % 3}": 1}}} for i in range(201)]
    assert infer_schema(records)["properties"]["rates"] == {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "v": {"type": ["null", "integer"]},
                **{f"k{i}": {"type": "integer"} for i in range(3)},
            },
        },
    }
    assert len(infer_schema(records[:200])["properties"]["rates"]["properties"]) == 200
    assert "additionalProperties" in infer_schema(records[:4], map_keys=3)["properties"]["rates"]
    with pytest.raises(ValueError, match="map_keys is 0"):
        infer_schema(records, map_keys=0)


def test_the_fields_of_the_record_itself_never_become_a_map():
    assert len(infer_schema([{f"f{i}": 1 for i in range(1000)}], map_keys=3)["properties"]) == 1000
    with pytest.raises(DataError, match="record 11: field 'f0-10': records have more than 10,000 different fields"):
        infer_schema({f"f{i}-{j}": 1 for i in range(1000)} for j in range(11))


def test_hostile_names():
    names = [
        "",
        "$ref",
        "properties",
        "type",
        "a.b",
        "a[0]",
        'q"uo',
        "back\\slash",
        "\x00",
        "😀",
        "additionalProperties",
    ]
    record = {name: {name: 1} for name in names}
    schema = infer_schema([record])
    assert list(schema["properties"]) == names
    assert_fits([record], schema)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"a": {"b": [1, float("nan")]}}, r"field 'a\.b\[1\]': nan is no number"),
        ({"a": Decimal("Infinity")}, "field 'a': Infinity is no number"),
        ({"a": "\ud800"}, "field 'a': text that UTF-8 can't hold"),
        ({"a": {"\ud800": 1}}, "field.*a field's name that UTF-8 can't hold"),
        ({"a": {1: 2}}, "a field's name must be text, not int"),
        ({"a": object()}, "field 'a': a value of the type object has no JSON form"),
        ({"a": dt.timedelta(1)}, "the type timedelta"),
        ({"a": 10**5000}, "an integer of more than 3,900 digits"),
        ([1], "a record is an array; it must be an object"),
        (None, "a record is null"),
        ("x", "a record is text"),
    ],
)
def test_what_no_schema_can_be_made_of(record, message):
    with pytest.raises(DataError, match=message) as caught:
        infer_schema([{"a": None}, record])
    assert str(caught.value).startswith("record 2: ")
    assert len(str(caught.value).splitlines()) == 1


def test_bytes_and_text_in_one_place():
    with pytest.raises(DataError, match=r"field 'x\[\]': bytes in some records and text in others"):
        infer_schema([{"x": [b"a"]}, {"x": ["a"]}])


def test_deep_and_endless_nesting():
    def deep(levels):
        return {"a": deep(levels - 1)} if levels else 1

    assert_fits([deep(60)], infer_schema([deep(60)]))
    infer_schema([deep(100)])
    with pytest.raises(DataError, match="nested deeper than 100 levels"):
        infer_schema([deep(101)])
    endless = {}
    endless["me"] = [endless]
    with pytest.raises(DataError, match=r"field 'me\[0\]\.me.*nested deeper than 100 levels"):
        infer_schema([endless])


def test_no_record_at_all():
    with pytest.raises(DataError, match="there is no record"):
        infer_schema([])
    assert infer_schema([{}]) == {"type": "object", "properties": {}}


def test_records_are_not_changed_and_schemas_are_new_each_time():
    record = {"a": [{"b": "2024-01-02"}]}
    before = copy.deepcopy(record)
    inference = Inference()
    inference.add(record)
    inference.schema()["properties"].clear()
    assert (record, list(inference.schema()["properties"])) == (before, ["a"])


def test_untyped_places_are_told():
    inference = Inference(map_keys=1)
    inference.add({"a": None, "b": {"c": None, "d": None}, "e": [], "f": [{"g": None}], "h": 1})
    assert inference.untyped == ["a", "b.*", "e[]", "f[].g"]


def test_memory_does_not_grow_with_the_records():
    def peak(count):
        tracemalloc.start()
        infer_schema({"id": i, "name": f"n{i}", "map": {f"k{i}": i}, "tags": [str(i)]} for i in range(count))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1000)
    assert peak(20_000) < 1.5 * peak(2_000)


# ---- by hypothesis -------------------------------------------------------------------------------

TEXTS = st.one_of(
    st.sampled_from(["", "2024-01-02", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5+02:00", "2024-01-02T03:04:05"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
NUMBERS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False),
)
NAMES = st.sampled_from(["a", "b", "c", "d", "$ref", "", "é"])
VALUES = json_values(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    NAMES,
    most=8,
)
RECORDS = st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=6)


def same_moment(one, two):
    """Equal JSON, date-times by what they mean (shaping writes them in UTC)."""
    if isinstance(one, str) and isinstance(two, str):
        return one == two or moment(one) == moment(two)
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same_moment(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same_moment, one, two))
    return isinstance(one, bool) == isinstance(two, bool) and one == two


def moment(text):
    """A date-time by what it means, with all its digits; any other text as it is."""
    try:
        found = dt.datetime.fromisoformat(text.upper())
    except ValueError:
        return text
    return (found, re.search(r"(\.\d*?)?0*(Z|[+-]\d\d:\d\d)$", text.upper())[1]) if found.tzinfo else text


def in_json(value):
    return float(value) if isinstance(value, Decimal) else str(value)


def shaped(schema, records):
    """What a tap makes of the records."""
    tap = burler.tap("tap-x")
    tap.sync("a", schema=schema)(lambda: [dict(record) for record in records])
    return run_tap(tap)


def assert_fits(records, schema):
    """Shaping takes every record, drops nothing and changes nothing; jsonschema agrees."""
    run = shaped(schema, records)
    assert not run.result.errors
    written = run.records("a")
    expected = [json.loads(json.dumps(record, default=in_json)) for record in records]
    assert all(map(same_moment, written, expected)), (written, expected)
    assert len(written) == len(records)
    validator = jsonschema.Draft4Validator(schema)
    jsonschema.Draft4Validator.check_schema(schema)
    for record in [*records, *written]:
        validator.validate(record)


@given(RECORDS, st.integers(1, 4))
def test_every_record_fits_its_schema(records, map_keys):
    assert_fits(records, infer_schema(records, map_keys=map_keys))


@given(RECORDS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_order_does_not_matter(records, random, map_keys):
    shuffled = list(records)
    random.shuffle(shuffled)
    assert infer_schema(shuffled, map_keys=map_keys) == infer_schema(records, map_keys=map_keys)


@given(RECORDS, RECORDS, st.integers(1, 4))
def test_merging_two_inferences_equals_inferring_both(left, right, map_keys):
    one, two = Inference(map_keys=map_keys), Inference(map_keys=map_keys)
    one.add_all(left)
    two.add_all(right)
    before = two.schema()
    one.merge(two)
    assert one.schema() == infer_schema(left + right, map_keys=map_keys)
    assert one.records == len(left) + len(right)
    assert two.schema() == before


@pytest.mark.parametrize(
    ("left", "right", "schema"),
    [
        ("2024-01-02", "2024-01-03", {"type": "string", "format": "date"}),
        ("2024-01-02", "2024-01-02T03:04:05Z", {"type": "string"}),
        ("x", "2024-01-02", {"type": "string"}),
        (None, "2024-01-02", {"type": ["null", "string"], "format": "date"}),
        (1, "2024-01-02", {"type": ["integer", "string"]}),
        ([], ["2024-01-02"], {"type": "array", "items": {"type": "string", "format": "date"}}),
    ],
)
def test_merging_keeps_a_format_only_if_both_have_it(left, right, schema):
    for one, two in ((left, right), (right, left)):
        inferences = Inference(), Inference()
        for inference, value in zip(inferences, (one, two), strict=True):
            inference.add({"x": value})
        inferences[0].merge(inferences[1])
        assert inferences[0].schema()["properties"]["x"] == schema


def test_inferences_of_other_rules_are_not_merged():
    with pytest.raises(ValueError, match="different map_keys or formats"):
        Inference().merge(Inference(map_keys=3))


# ---- samples -------------------------------------------------------------------------------------


def load(sample, **options):
    return inferred(sample, **options).load(where=WHERE, config={})


ONE = {"type": "object", "properties": {"id": {"type": "integer"}}}


def test_samples_in_memory():
    assert load({"id": 1}) == ONE
    assert load([{"id": 1}, {"id": 2}]) == ONE
    assert load([{"data": {"items": [{"id": 1}]}}], rows="data.items") == ONE
    assert load([{"id": 1}, {"id": "x"}], limit=1) == ONE
    assert load(({"id": i} for i in range(3)), nullable=True)["properties"]["id"]["type"] == ["null", "integer"]


@pytest.mark.parametrize(
    "content",
    [
        '{"id": 1}\n{"id": 2}\n',
        '\ufeff{"id": 1}\r\n\r\n  {"id": 2}',
        '[{"id": 1}, {"id": 2}]',
        '\n [\n {"id": 1},\n {"id": 2}\n]\n',
        '{\n "id": 1\n}\n{\n "id": 2\n}',
        '{"id": 1}',
        '{"type": "RECORD", "stream": "x", "record": {"id": 1}}\n{"type": "STATE", "value": {}}',
        '[]\n[{"id":1}]',
    ],
)
def test_samples_in_files(tmp_path, content):
    for name, data in (("a.json", content.encode()), ("a.jsonl.gz", gzip.compress(content.encode()))):
        (tmp_path / name).write_bytes(data)
        assert load(tmp_path / name) == ONE
        assert load(str(tmp_path / name)) == ONE


def test_a_relative_path_counts_from_the_module_that_calls(tmp_path, monkeypatch):
    (tmp_path / "tap_here.py").write_text("from burler.schema import inferred\nsample = inferred('s.json')\n")
    (tmp_path / "s.json").write_text('{"id": 1}')
    monkeypatch.syspath_prepend(tmp_path)
    import tap_here

    assert tap_here.sample.load(where=WHERE, config={}) == ONE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it holds no record"),
        (b"[]", "it holds no record"),
        (b" \n\n", "it holds no record"),
        (b'{"id": 1}\n{"id": 1 x}\n', "line 2, column 10: not JSON"),
        (b'{"id": 1}\n\n{"id": 2\n', "line 3, column 9: not JSON"),
        (b'{"id": 1}\n{"id": "x', "line 2: the input ends in the middle of this line"),
        (b"id,name\n1,Ann\n", "line 1, column 1: not JSON"),
        (b'[{"id": 1},\n{"id": 2}', "line 2: the input ends in the middle of an array"),
        (b'[{"id": 1},\n{"id": 2', "line 2: the input ends in the middle of a document"),
        (b'[{"id": 1}\n{"id": 2}]', "line 2: ',' or ']' was expected"),
        (b'[{"id": 1},\n{"id" 2}, ' + b" " * 50 + b"]", "line 2: not JSON: Expecting ':'"),
        (b'{"id": 1}\n3\n', "line 2: a record is a number"),
        (b'{"id": NaN}\n', "line 1: NaN is no number"),
        (b'[{"id": NaN}]\n', "line 1: NaN is no number"),
        (b'{"id": "\xff"}\n', "line 1: not UTF-8"),
        (b'[{"id": "\xff"}]\n', "not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000 + b"\n", "line 1: nested too deep"),
        (gzip.compress(b'{"id": 1}\n' * 1000)[:-20], "it is cut off: its gzip data"),
        (b"\x1f\x8bnonsense", "its gzip data can't be unpacked"),
        (b'{"type": "RECORD", "stream": "x", "record": 1}', "line 1: a RECORD needs"),
        (b'{"type": "STATE", "value": 1}\n{"id": 1}', "line 2: no Singer message"),
        (b'{"type": "STATE", "value": 1}\n', "it holds no RECORD"),
    ],
)
def test_broken_samples(tmp_path, content, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(DeclarationError) as caught:
        load(path)
    text = str(caught.value)
    assert text.startswith(f"{WHERE}: sample {path}: ")
    assert message in text
    assert len(text.splitlines()) == 1


def test_missing_samples(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(DeclarationError, match=r"stream 'a' .*Is the path right\?"):
            load(path)


def test_wrong_options(tmp_path):
    with pytest.raises(DeclarationError, match="rows: there is no 'itmes'; found: 'items', 'next'"):
        load({"data": {"items": [], "next": 1}}, rows="data.itmes")
    with pytest.raises(DeclarationError, match="rows: there is no 'b'; found: no object"):
        load({"a": 1}, rows="a.b")
    with pytest.raises(DeclarationError, match=r"rows 'a\.\.b' is no path"):
        load({"a": 1}, rows="a..b")
    with pytest.raises(DeclarationError, match="limit is 0"):
        load({"a": 1}, limit=0)
    with pytest.raises(DeclarationError, match="a stream can't be chosen"):
        load({"a": 1}, stream="x")


def test_streams_in_a_file_of_messages(tmp_path):
    path = tmp_path / "m.singer"
    rows = [("a", {"id": 1}), ("b", {"id": "x"})]
    path.write_text("\n".join(json.dumps({"type": "record", "stream": s, "record": r}) for s, r in rows))
    assert load(path, stream="a") == ONE
    with pytest.raises(DeclarationError, match=r"it holds the streams a, b\. Say which one with stream="):
        load(path)
    with pytest.raises(DeclarationError, match=r"it holds no RECORD of stream 'c'. It has: a, b\."):
        load(path, stream="c")


@given(RECORDS, st.sampled_from(["lines", "array", "pretty", "documents"]), st.booleans())
def test_a_sample_says_the_same_in_every_form(records, form, zipped):
    records = json.loads(json.dumps(records, default=in_json))
    text = {
        "lines": "\n".join(map(json.dumps, records)),
        "array": json.dumps(records),
        "pretty": json.dumps(records, indent=2, ensure_ascii=False),
        "documents": "\n".join(json.dumps(record, indent=1) for record in records),
    }[form]
    assume(form != "documents" or records[0])  # the first line decides: "{}" is a document of one line
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("sample.json.gz" if zipped else "sample.json")
        path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
        assert load(path) == infer_schema(records)


def test_numbers_beyond_what_the_machine_holds(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1e400, "b": 123456789012345678901234567890}\n')
    assert load(path)["properties"] == {"id": {"type": "number"}, "b": {"type": "integer"}}
