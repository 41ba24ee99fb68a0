"""Arrow pages as a user sees them: what is written for which column, what is refused, what is noted."""

from __future__ import annotations

import json
import re
import tempfile
import uuid
from decimal import Decimal
from pathlib import Path

import pytest

import burler
from burler.testing import run_tap
from support.taps import command, exact

pa = pytest.importorskip("pyarrow")

DATE_TIME = {"type": "string", "format": "date-time"}


def page(**columns):
    return pa.RecordBatch.from_pydict(columns)


def run_of(pages, properties, *, config=None, select=None, options=None, **more):
    """A run of a stream with these pages."""
    tap = burler.tap("tap-x")
    tap.sync("s", schema={"type": "object", "properties": properties, **more}, **(options or {}))(lambda: iter(pages))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config or {}))
        chosen = ("--select", select) if select else ()
        return command(tap, "run", "--config", path, *chosen, BURLER_LOG_LEVEL="WARNING")


def written(done):
    """The records of a run, as they are written."""
    lines = [line for line in done.text.split("\n") if line.startswith('{"type":"RECORD"')]
    rows = [line.partition('"record":')[2].rpartition(',"time_extracted"')[0] for line in lines]
    assert all(exact(row) is not None for row in rows)
    return rows


def texts(batch, properties, **more):
    """The records as they are written."""
    done = run_of([batch], properties, **more)
    assert done.code == 0, done.stderr
    return written(done)


def column(array, node, **more):
    """What is written for the values of one column."""
    return [text[len('{"a":') : -1] for text in texts(pa.RecordBatch.from_arrays([array], ["a"]), {"a": node}, **more)]


def refused(array, node, **more):
    return run_of([pa.RecordBatch.from_arrays([array], ["a"])], {"a": node}, **more).code == 1


def dropped(done):
    """The unknown fields that a run tells of, with their counts."""
    return {name: int(count) for name, count in re.findall(r"[:,] ([\w.\[\]]+) \((\d+)", done.stderr)}


# ---- what is written -----------------------------------------------------------------------------


def test_a_page_is_written_in_the_order_of_the_schema():
    batch = page(b=["x", None], a=[1, 2], tags=[[1, 2], []], home=[{"zip": "9", "no": 1}, {"zip": None, "no": 2}])
    schema = {
        "a": {"type": "integer"},
        "home": {"type": "object", "properties": {"no": {"type": "integer"}, "zip": {"type": ["null", "string"]}}},
        "b": {"type": ["null", "string"]},
        "missing": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "integer"}},
    }
    assert texts(batch, schema) == [
        '{"a":1,"home":{"no":1,"zip":"9"},"b":"x","tags":[1,2]}',
        '{"a":2,"home":{"no":2,"zip":null},"b":null,"tags":[]}',
    ]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('say "hi"', r'"say \"hi\""'),
        ("back\\slash", r'"back\\slash"'),
        ('\\"', r'"\\\""'),
        ("nul\0 tab\t line\n", r'"nul\u0000 tab\u0009 line\u000a"'),
        ("caf\u00e9 😀 \u2028\x7f", '"caf\u00e9 😀 \u2028\x7f"'),
    ],
)
def test_text_is_escaped_where_it_must_be(text, written):
    assert json.loads(written) == text
    assert column(pa.array([text, "plain"]), {"type": "string"}) == [written, '"plain"']
    assert column(pa.array([None, text]), {"type": ["null", "string"]}) == ["null", written]
    key = texts(page(**{text: [1]}), {text: {"type": "integer"}})
    assert [json.loads(line) for line in key] == [{text: 1}]


@pytest.mark.parametrize(
    ("unit", "count", "written"),
    [
        ("s", 0, "1970-01-01T00:00:00Z"),
        ("ms", 1500, "1970-01-01T00:00:01.500000Z"),
        ("ms", -1, "1969-12-31T23:59:59.999000Z"),
        ("us", 1, "1970-01-01T00:00:00.000001Z"),
        ("us", 253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
        ("us", -62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
        ("ns", 1_000, "1970-01-01T00:00:00.000001Z"),
        ("ns", 1_001, "1970-01-01T00:00:00.000001001Z"),
        ("ns", -1, "1969-12-31T23:59:59.999999999Z"),
    ],
)
def test_timestamps_keep_every_digit_in_utc(unit, count, written):
    for zone in ("UTC", "America/New_York", "+02:00"):
        array = pa.array([count, 0, None], pa.timestamp(unit, zone))
        nullable = {**DATE_TIME, "type": ["null", "string"]}
        assert column(array, nullable) == [f'"{written}"', '"1970-01-01T00:00:00Z"', "null"]


def test_times_and_timestamps_a_driver_could_not_mean():
    assert refused(pa.array([0], pa.timestamp("us")), DATE_TIME)  # no zone: as from dicts
    assert refused(pa.array([253_402_300_800], pa.timestamp("s", "UTC")), DATE_TIME)  # the year 10000
    date = {"type": "string", "format": "date"}
    for day in (2_932_897, -719_163):  # 10000-01-01, and the day before 0001-01-01
        assert refused(pa.array([day], pa.int32()).cast(pa.date32()), date)
    assert column(pa.array([86_400_000_000], pa.time64("us")), {"type": "string"}) == ['"24:00:00"']  # not 00:00:00
    assert column(pa.array([1_500], pa.time32("ms")), {"type": "string"}) == ['"00:00:01.500000"']


def test_date_times_that_come_as_text_are_put_into_utc():
    assert column(pa.array(["2024-01-02T03:04:05+02:00", "2024-01-02T03:04:05Z"]), DATE_TIME) == [
        '"2024-01-02T01:04:05Z"',
        '"2024-01-02T03:04:05Z"',
    ]
    assert column(pa.array(["2024-01-02T03:04:05.1234567Z"]), DATE_TIME) == ['"2024-01-02T03:04:05.1234567Z"']
    for text in ("2024-01-02T03:04Z", "2024-01-02T03:04:05", "2024-02-30T00:00:00Z"):
        assert refused(pa.array([text]), DATE_TIME)


def test_numbers_are_written_as_they_are():
    number = {"type": "number"}
    assert column(pa.array([0.1], pa.float32()), number) == ["0.10000000149011612"]
    assert column(pa.array([-0.0, 0.0, 1.5]), number) == ["-0.0", "0", "1.5"]
    assert column(pa.array([Decimal("1.10")], pa.decimal128(9, 2)), number) == ["1.10"]
    assert column(pa.array([2**64 - 1], pa.uint64()), {"type": "integer"}) == ["18446744073709551615"]
    assert column(pa.array([5.0, -7.0]), {"type": "integer"}) == ["5", "-7"]
    assert refused(pa.array([5.5]), {"type": "integer"})
    assert refused(pa.array([5.0]), {"type": "string"})
    assert refused(pa.array([5.0]), {"type": "boolean"})
    assert column(pa.array([2.0**63]), {"type": "integer"}) == ["9223372036854775808"]
    assert column(pa.array([Decimal("2.00")], pa.decimal128(9, 2)), {"type": "integer"}) == ["2"]
    assert column(pa.array([Decimal("0.00000010")], pa.decimal128(9, 8)), {"type": "string"}) == ['"0.00000010"']


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_is_never_silent(value):
    nullable = {"type": ["null", "number"]}
    assert refused(pa.array([1.5, value]), nullable)
    assert column(pa.array([1.5, value]), nullable, config={"on_nan": "null"}) == ["1.5", "null"]
    assert refused(pa.array([1.5, value]), {"type": "number"}, config={"on_nan": "null"})


def test_what_lies_below_a_null_is_not_looked_at():
    inner = pa.array([None, "x"], pa.string())
    struct = pa.StructArray.from_arrays([inner], ["n"], mask=pa.array([True, False]))
    node = {"type": ["null", "object"], "properties": {"n": {"type": "string"}}}
    assert column(struct, node) == ["null", '{"n":"x"}']
    lists = pa.array([[1], None, [], [2, 3]], pa.list_(pa.int64()))
    assert column(lists[1:], {"type": ["null", "array"], "items": {"type": "integer"}}) == ["null", "[]", "[2,3]"]
    whole = {"type": "array", "items": {"type": "integer"}}
    assert column(lists[2:], whole) == ["[]", "[2,3]"]
    assert column(pa.array([[[1]], [[2], [3, 4]]])[1:], {"type": "array", "items": whole}) == ["[[2],[3,4]]"]
    assert refused(struct, {**node, "type": "object"})


def test_extension_types_and_maps():
    one = uuid.UUID(int=7)
    assert column(pa.array([one.bytes], pa.uuid()), {"type": "string", "format": "uuid"}) == [f'"{one}"']
    assert column(pa.array(['{"a":1}'], pa.json_()), {"type": "string"}) == ['"{\\"a\\":1}"']
    maps = pa.array([[("k", 1), ("l", None)], None], pa.map_(pa.string(), pa.int64()))
    free = {"type": ["null", "object"], "additionalProperties": {"type": ["null", "integer"]}}
    assert column(maps, free) == ['{"k":1,"l":null}', "null"]
    twice = pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64()))
    assert refused(twice, free)  # a dict would lose one
    base64 = {"type": "string", "contentEncoding": "base64"}
    assert column(pa.array([b"\x00\xff"]), base64) == ['"AP8="']
    assert refused(pa.array([b"x"]), {"type": "string"})


@pytest.mark.parametrize(
    ("array", "node"),
    [
        ([1], {"type": "integer", "maximum": 1}),
        (["ab"], {"type": "string", "maxLength": 2, "enum": ["ab", "c"]}),
        ([1.5], {"type": "number", "exclusiveMinimum": 1.4}),
    ],
)
def test_constraints_are_held(array, node):
    assert len(column(pa.array(array), node)) == 1
    broken = [array[0] * 2]
    if "exclusiveMinimum" in node:
        broken = [1.4]
    assert refused(pa.array(array + broken), node)
    assert column(pa.array(broken), node, config={"check_constraints": False})


def test_constraints_hold_for_what_is_written():
    assert refused(pa.array([12345]), {"type": "string", "maxLength": 2})
    assert column(pa.array([12]), {"type": "string", "maxLength": 2}) == ['"12"']

    assert refused(pa.array([3]), {"type": "integer", "exclusiveMaximum": 3})
    assert refused(pa.array(["a", None]), {"type": ["null", "string"], "enum": ["a"]})
    for inner, outer in ((3, 5), (5, 3)):
        assert refused(pa.array([4]), {"type": "integer", "maximum": outer, "allOf": [{"maximum": inner}]})


def test_unions_take_the_first_branch_that_needs_no_cast():
    def union(*branches):
        return {"anyOf": list(branches)}

    string, integer = {"type": "string"}, {"type": "integer"}
    assert column(pa.array([1]), union(string, integer)) == ["1"]
    assert column(pa.array(["1"]), union(integer, string)) == ['"1"']
    assert column(pa.array(["1e3"]), union({**string, "format": "singer.decimal"}, string)) == ['"1000"']
    picky = {"type": ["null", "integer"], "enum": [1]}
    assert column(pa.array([1, 2]), union(picky, {"type": "number"})) == ["1", "2"]
    assert refused(pa.array([1, None]), union(picky, string))  # null is none of the choices
    assert column(pa.array([1, None]), union(picky, {"type": ["null", "string"]})) == ["1", "null"]


def test_tuples_and_nodes_that_name_no_type():
    assert column(pa.array([[1, 2]]), {"type": "array", "items": [{"type": "string"}]}) == ['["1",2]']
    assert column(pa.array([[1]]), {"items": {"type": "string"}}) == ["[1]"]
    assert column(pa.array([5]), {}) == column(pa.array([5]), {"title": "Five"}) == ["5"]


def test_decimals_of_few_digits_are_multiples_of_a_cent():
    node = {"type": "number", "multipleOf": 0.01}
    assert column(pa.array([Decimal("0.07")], pa.decimal128(9, 2)), node) == ["0.07"]
    assert refused(pa.array([Decimal("0.071")], pa.decimal128(9, 3)), node)


# ---- what a page may hold ------------------------------------------------------------------------


def test_unknown_columns_are_dropped_and_noted_where_they_hold_something():
    batch = page(
        a=[1, 2, 3], extra=["x", None, "y"], nothing=[None] * 3, o=[{"b": 1, "c": None}, {"b": 2, "c": 5}, None]
    )
    schema = {"a": {"type": "integer"}, "o": {"type": ["null", "object"], "properties": {"b": {"type": "integer"}}}}
    done = run_of([batch, batch], schema)
    assert "extra" not in "".join(written(done)) and dropped(done) == {"extra": 4, "o.c": 2}
    lists = page(l=[[{"b": 1, "c": 2}, {"b": 2, "c": None}], []])
    assert dropped(run_of([lists], {"l": {"type": "array", "items": schema["o"]}})) == {"l[].c": 1}


def test_an_open_schema_keeps_what_it_does_not_know_behind_what_it_does():
    batch = page(x=["é"], a=[1], gone=[2])
    schema = {"a": {"type": "integer"}, "gone": {}}
    assert texts(batch, schema, additionalProperties=True, select="s,!s.gone") == ['{"a":1,"x":"é"}']
    assert run_of([batch], schema, additionalProperties={"type": "integer"}).code == 1


def test_a_missing_column_that_must_be_there():
    batch = page(a=[1])
    assert run_of([batch], {"a": {"type": "integer"}, "b": {}}, required=["b"]).code == 1
    assert run_of([batch], {"a": {"type": "integer"}, "b": {}}, options={"key_properties": "b"}).code == 1
    assert texts(batch, {"a": {"type": "integer"}, "b": {}}) == ['{"a":1}']
    assert refused(pa.array([{"x": 1}]), {"type": "object", "properties": {"x": {}, "y": {}}, "required": ["y"]})
    assert refused(pa.array([1, None]), {"type": "integer"})


def test_rules_for_the_row_as_a_whole():
    assert run_of([page(a=[1])], {"a": {}}, minProperties=2).code == 1
    assert texts(page(a=[1]), {"a": {}}, patternProperties={"^b": {}}) == ['{"a":1}']
    assert texts(page(b=[1]), {"a": {}}, patternProperties={"^b": {}}) == ['{"b":1}']


def test_pages_without_rows_or_columns():
    for kind in (pa.float64(), pa.date32(), pa.timestamp("us", "UTC"), pa.string(), pa.list_(pa.int64())):
        assert texts(page(a=pa.array([], kind)), {"a": {}}) == []
    assert texts(page(a=[1, 2]).select([]), {"a": {}}) == ["{}", "{}"]


def test_the_schema_of_pages_may_change():
    pages = [page(a=array) for array in ([1], ["x"], [2])]
    assert written(run_of(pages, {"a": {"type": ["integer", "string"]}})) == ['{"a":1}', '{"a":"x"}', '{"a":2}']


def broken_text(*values):
    return pa.array(values, pa.binary()).view(pa.string())


def test_text_that_is_no_utf8_is_refused():
    assert refused(broken_text(b"ok", b"\xff"), {"type": "string"})
    halves = "é".encode()
    assert refused(broken_text(halves[:1], halves[1:]), {"type": "string"})  # together they are


def test_large_types_are_written_as_others_are():
    batch = page(a=['q"', None, "\n"], b=[["x"], [], ['"']], c=[{"d": "\\"}, None, {"d": ""}])
    node = {"type": ["null", "string"]}
    schema = {
        "a": node,
        "b": {"type": "array", "items": node},
        "c": {"type": ["null", "object"], "properties": {"d": node}},
    }
    large = pa.RecordBatch.from_arrays(
        [batch["a"].cast(pa.large_string()), batch["b"].cast(pa.large_list(pa.large_string())), batch["c"]],
        ["a", "b", "c"],
    )
    assert texts(large, schema) == texts(batch, schema)


# ---- replication keys ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "node", "bookmark"),
    [
        ([3, 1, 2], {"type": "integer"}, 3),
        ([3.0, 1.0], {"type": "integer"}, 3),
        ([0.1, 1e300], {"type": "number"}, 1e300),
        (['b"', "a"], {"type": "string"}, 'b"'),
        (pa.array([0, None], pa.timestamp("ns", "UTC")), {**DATE_TIME, "type": ["string", "null"]},
         "1970-01-01T00:00:00Z"),
        (pa.array([1], pa.timestamp("ns", "UTC")), DATE_TIME, "1970-01-01T00:00:00.000000001Z"),
        (pa.array([19_000], pa.date32()), {"type": "string", "format": "date"}, "2022-01-08"),
        (pa.array([Decimal(10**30)], pa.decimal128(38, 0)), {"type": "integer"}, 10**30),
        (pa.array([Decimal("12345678901234567.25")], pa.decimal128(38, 2)), {"type": "number"}, 12345678901234566.0),
    ],
)  # fmt: skip
def test_replication_keys_come_as_they_go_into_the_state(array, node, bookmark):
    tap = burler.tap("tap-x")
    schema = {"properties": {"a": node, "k": {"type": ["null", "integer"]}}}
    tap.sync("s", schema=schema, replication_key="a")(lambda: page(a=array))
    tap.sync("t", schema=schema, replication_key="k")(lambda: page(a=array))  # it has no values of that key
    out = run_tap(tap)
    assert out.states[-1]["bookmarks"]["s"] == {"a": bookmark}
    assert type(out.states[-1]["bookmarks"]["s"]["a"]) is type(bookmark)
    assert not out.states[-1]["bookmarks"].get("t")


# ---- rows ----------------------------------------------------------------------------------------


def by_rows(**columns):
    """The records of a page of which a row does not fit: then it goes row by row, value by value."""
    size = max(map(len, columns.values()))
    bad = pa.array(["1"] * size + ["x"])
    longer = {name: pa.concat_arrays([array, pa.nulls(1, array.type)]) for name, array in columns.items()}
    done = run_of(
        [page(**longer, bad=bad)],
        {**{name: {} for name in columns}, "bad": {"type": "integer"}},
        options={"on_bad_record": "skip"},
    )
    assert done.code == 0, done.stderr
    return [{name: value for name, value in exact(row).items() if name != "bad"} for row in written(done)]


def test_rows_lose_nothing():
    first, second, third = by_rows(
        when=pa.array([1_001, 1_000, None], pa.timestamp("ns", "UTC")),
        took=pa.array([1_001, 1_000, None], pa.duration("ns")),
        clock=pa.array([1, 1_000, None], pa.time64("ns")),
        price=pa.array([Decimal("1.10"), None, None], pa.decimal128(9, 2)),
        attributes=pa.array([[("k", 1)], None, None], pa.map_(pa.string(), pa.int64())),
        kind=pa.array(["x", None, "x"]).dictionary_encode(),
        half=pa.array([1.5, None, None], pa.float16()),
        days=pa.array([0, 1, None], pa.date32()),
        strange=pa.array([0, 1, None], pa.timestamp("us", "No/Where")),
    )
    assert first == {
        "when": "1970-01-01T00:00:00.000001001Z", "took": "PT0.000001001S", "clock": "00:00:00.000000001",
        "price": Decimal("1.10"), "attributes": {"k": 1}, "kind": "x", "half": Decimal("1.5"), "days": "1970-01-01",
        "strange": "1970-01-01T00:00:00Z",
    }  # fmt: skip
    assert str(first["price"]) == "1.10"
    assert (second["when"], second["clock"]) == ("1970-01-01T00:00:00.000001Z", "00:00:00.000001")
    assert second["strange"] == "1970-01-01T00:00:00.000001Z"
    assert {third[name] for name in third if name != "kind"} == {None}


def test_rows_of_slices_unions_and_runs():
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 1), pa.list_view(pa.int64())):
        batch = page(a=pa.array([[1], None, [2]], kind))
        assert texts(batch.slice(1), {"a": {}}) == ['{"a":null}', '{"a":[2]}']
    sparse = pa.UnionArray.from_sparse(
        pa.array([0, 1, 1], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", None])]
    )
    assert texts(page(u=sparse).slice(1), {"u": {}}) == ['{"u":"b"}', '{"u":null}']
    runs = pa.RunEndEncodedArray.from_arrays([2, 3, 6], ["a", "b", None])
    assert [exact(row)["r"] for row in texts(page(r=runs[1:5]), {"r": {}})] == ["a", "b", None, None]


def test_what_lies_below_a_null_may_be_nothing_at_all():
    nowhere = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array([], pa.string()), safe=False)
    struct = pa.StructArray.from_arrays([nowhere], ["x"], mask=pa.array([True, True]))
    assert texts(page(s=struct), {"s": {}}) == ['{"s":null}', '{"s":null}']
    keys = pa.array(["k", "k"])
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), keys, nowhere, mask=pa.array([True, True]))
    assert texts(page(m=maps.slice(1)), {"m": {}}) == ['{"m":null}']


def test_a_zone_that_this_machine_does_not_know():
    batch = page(t=pa.array([0, 1], pa.timestamp("us", "No/Where")))
    assert column(batch["t"], DATE_TIME) == ['"1970-01-01T00:00:00Z"', '"1970-01-01T00:00:00.000001Z"']
