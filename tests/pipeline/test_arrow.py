"""Arrow pages as a user sees them: what is written for which column, what is refused, what is noted."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal

import pytest

from support.internals import (
    arrow_lines,
    arrow_plan,
    arrow_rows,
    arrow_text,
    bookmark,
    shape_exact,
    shape_rules,
    shape_schema,
)

pa = pytest.importorskip("pyarrow")

DATE_TIME = {"type": "string", "format": "date-time"}


def page(**columns):
    return pa.RecordBatch.from_pydict(columns)


def made(batch, properties, *, rules=None, deselected=(), **more):
    """The shaper's answer, and what it noted as unknown."""
    options = {name: more.pop(name) for name in ("key", "required") if name in more}
    exact = shape_exact.Exact(rules or shape_rules.Rules())
    form = shape_schema.shaping_form({"type": "object", "properties": properties, **more}, deselected)
    lines = arrow_lines.ArrowShaper(form, exact, rules=rules or shape_rules.Rules(), **options).lines(
        batch, b"<", b">\n"
    )
    return lines, exact.unknown.counts


def texts(batch, properties, **more):
    """The records as they are written."""
    lines, _ = made(batch, properties, **more)
    assert lines is not None
    shown = bytes(lines.data).decode().split(">\n")
    assert shown.pop() == "" and all(line[0] == "<" for line in shown)
    return [line[1:] for line in shown]


def column(array, node, **more):
    """What is written for the values of one column."""
    return [text[len('{"a":') : -1] for text in texts(pa.RecordBatch.from_arrays([array], ["a"]), {"a": node}, **more)]


def refused(array, node, **more):
    return made(pa.RecordBatch.from_arrays([array], ["a"]), {"a": node}, **more)[0] is None


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
    assert column(pa.array([1.5, value]), nullable, rules=shape_rules.Rules(on_nan="null")) == ["1.5", "null"]
    assert refused(pa.array([1.5, value]), {"type": "number"}, rules=shape_rules.Rules(on_nan="null"))


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
    assert column(pa.array(broken), node, rules=shape_rules.Rules(check_constraints=False))


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
    lines, unknown = made(batch, schema)
    assert b"extra" not in bytes(lines.data) and unknown == {"extra": 2, "o.c": 1}
    lists = page(l=[[{"b": 1, "c": 2}, {"b": 2, "c": None}], []])
    items = {"type": "array", "items": schema["o"]}
    assert made(lists, {"l": items})[1] == {"l[].c": 1}


def test_unknown_columns_add_up_over_pages():
    exact = shape_exact.Exact()
    shaper = arrow_lines.ArrowShaper(
        shape_schema.shaping_form({"properties": {"a": {}, "m": {}}}), exact, required=["a"]
    )
    for batch in (page(a=[1], x=[1]), page(a=[1, 2], x=[1, 2]), page(x=[1])):
        shaper.lines(batch, b"", b"")
    assert exact.unknown.counts == {"x": 3}


def test_a_page_that_goes_by_rows_notes_nothing():
    batch = page(extra=[1, 2], a=["x", "no number"], z=[[1], [2]])
    schema = {"a": {"type": "integer"}, "z": {"type": "object"}}
    assert made(batch, schema) == (None, {})


def test_values_set_to_null_are_counted_row_by_row():
    node = {"type": "object", "properties": {"n": {"type": ["null", "integer"]}}, "patternProperties": {"^x": {}}}
    rules = shape_rules.Rules(on_bad_record="null")
    assert column(pa.array([{"n": 1, "x": 2}]), node, rules=rules) == ['{"n":1,"x":2}']
    assert refused(pa.array([{"n": "bad", "x": 2}]), node, rules=rules)


def test_an_open_schema_keeps_what_it_does_not_know_behind_what_it_does():
    batch = page(x=["é"], a=[1], gone=[2])
    schema = {"a": {"type": "integer"}}
    assert texts(batch, schema, additionalProperties=True, deselected=[("properties", "gone")]) == ['{"a":1,"x":"é"}']
    assert made(batch, schema, additionalProperties={"type": "integer"})[0] is None


def test_a_missing_column_that_must_be_there():
    batch = page(a=[1])
    assert made(batch, {"a": {"type": "integer"}, "b": {}}, required=["b"])[0] is None
    assert texts(batch, {"a": {"type": "integer"}, "b": {}}) == ['{"a":1}']
    assert refused(pa.array([{"x": 1}]), {"type": "object", "properties": {"x": {}, "y": {}}, "required": ["y"]})
    assert refused(pa.array([1, None]), {"type": "integer"})


def test_rules_for_the_row_as_a_whole_are_for_the_rows():
    assert made(page(a=[1]), {"a": {}}, minProperties=2)[0] is None
    assert made(page(a=[1]), {"a": {}}, patternProperties={"^b": {}})[0] is not None
    assert made(page(b=[1]), {"a": {}}, patternProperties={"^b": {}})[0] is None


def test_a_column_name_that_comes_twice_is_refused():
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    assert made(batch, {"a": {"type": "integer"}})[0] is None
    with pytest.raises(ValueError, match=r"two columns of an Arrow page are named 'a'.*rename one"):
        arrow_rows.batch_to_rows(batch)
    struct = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["b", "b"])
    with pytest.raises(ValueError, match="two fields of an Arrow struct are named 'b'"):
        arrow_rows.batch_to_rows(page(s=struct))


def test_pages_without_rows_or_columns():
    for kind in (pa.float64(), pa.date32(), pa.timestamp("us", "UTC"), pa.string(), pa.list_(pa.int64())):
        lines, _ = made(page(a=pa.array([], kind)), {"a": {}}, key="a")
        assert (lines.count, bytes(lines.data), lines.keys) == (0, b"", [])
    assert texts(page(a=[1, 2]).select([]), {"a": {}}) == ["{}", "{}"]
    assert arrow_rows.batch_to_rows(page(a=[1, 2]).select([])) == [{}, {}]


def test_the_schema_of_pages_may_change():
    shaper = arrow_lines.ArrowShaper(
        shape_schema.shaping_form({"properties": {"a": {"type": ["integer", "string"]}}}), shape_exact.Exact()
    )
    for array, written in (([1], b'{"a":1}'), (["x"], b'{"a":"x"}'), ([2], b'{"a":2}')):
        assert bytes(shaper.lines(page(a=array), b"", b"").data) == written


def broken_text(*values):
    return pa.array(values, pa.binary()).view(pa.string())


def test_text_that_is_no_utf8_is_refused():
    assert refused(broken_text(b"ok", b"\xff"), {"type": "string"})
    halves = "é".encode()
    assert refused(broken_text(halves[:1], halves[1:]), {"type": "string"})  # together they are


@pytest.mark.parametrize("limit", ["_HUGE", "_LARGE"])
def test_pages_beyond_32_bit_offsets(monkeypatch, limit):
    batch = page(a=['q"', None, "\n"], b=[["x"], [], ['"']], c=[{"d": "\\"}, None, {"d": ""}])
    node = {"type": ["null", "string"]}
    schema = {
        "a": node,
        "b": {"type": "array", "items": node},
        "c": {"type": ["null", "object"], "properties": {"d": node}},
    }
    small = texts(batch, schema)
    monkeypatch.setattr(arrow_text, limit, 0)
    assert texts(batch, schema) == small
    large = pa.RecordBatch.from_arrays(
        [batch["a"].cast(pa.large_string()), batch["b"].cast(pa.large_list(pa.large_string())), batch["c"]],
        ["a", "b", "c"],
    )
    assert texts(large, schema) == small


# ---- replication keys ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "node", "keys"),
    [
        (pa.array([3, 1, 2]), {"type": "integer"}, [3, 1, 2]),
        (pa.array([3.0, 1.0]), {"type": "integer"}, [3, 1]),
        (pa.array([0.1, 1e300]), {"type": "number"}, [0.1, 1e300]),
        (pa.array(['b"', "a"]), {"type": "string"}, ['b"', "a"]),
        (
            pa.array([0, None], pa.timestamp("ns", "UTC")),
            {**DATE_TIME, "type": ["string", "null"]},
            ["1970-01-01T00:00:00Z", None],
        ),
        (pa.array([1], pa.timestamp("ns", "UTC")), DATE_TIME, ["1970-01-01T00:00:00.000000001Z"]),
        (pa.array([19_000], pa.date32()), {"type": "string", "format": "date"}, ["2022-01-08"]),
        (pa.array([Decimal(10**30)], pa.decimal128(38, 0)), {"type": "integer"}, [10**30]),
        (pa.array([Decimal("12345678901234567.25")], pa.decimal128(38, 2)), {"type": "number"}, [12345678901234566.0]),
    ],
)
def test_replication_keys_come_as_they_go_into_the_state(array, node, keys):
    lines, _ = made(pa.RecordBatch.from_arrays([array], ["a"]), {"a": node}, key="a")
    assert [bookmark.key_text(value) for value in lines.keys] == keys
    assert lines.count == len(keys)


def test_a_page_without_the_key_has_no_values_of_it():
    assert made(page(a=[1, 2]), {"a": {}, "k": {"type": "integer"}}, key="k")[0].keys == [None, None]


# ---- rows ----------------------------------------------------------------------------------------


def test_rows_lose_nothing():
    batch = page(
        when=pa.array([1_001, 1_000, None], pa.timestamp("ns", "UTC")),
        naive=pa.array([1_001, 0, None], pa.timestamp("ns")),
        clock=pa.array([1, 1_000, None], pa.time64("ns")),
        took=pa.array([1_001, 1_000, None], pa.duration("ns")),
        far=pa.array([2**31 - 1, 0, None], pa.date32()),
        price=pa.array([Decimal("1.10"), None, None], pa.decimal128(9, 2)),
        attributes=pa.array([[("k", 1)], None, [("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64())),
        id=pa.array([uuid.UUID(int=1).bytes, None, None], pa.uuid()),
        kind=pa.array(["x", None, "x"]).dictionary_encode(),
        half=pa.array([1.5, None, None], pa.float16()),
        raw=broken_text(b"\xff", b"ok", None),
    )
    first, second, third = arrow_rows.batch_to_rows(batch)
    assert first == {
        "when": "1970-01-01T00:00:00.000001001Z", "naive": "1970-01-01T00:00:00.000001001",
        "clock": "00:00:00.000000001", "took": "PT0.000001001S", "far": "2147483647 days from 1970-01-01",
        "price": Decimal("1.10"), "attributes": {"k": 1}, "id": uuid.UUID(int=1), "kind": "x", "half": 1.5,
        "raw": "\udcff",
    }  # fmt: skip
    assert type(first["half"]) is float and str(first["price"]) == "1.10"
    assert second["when"] == dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC) and type(second["when"]) is dt.datetime
    assert second["clock"] == dt.time(0, 0, 0, 1) and second["took"] == dt.timedelta(microseconds=1)
    assert second["far"] == dt.date(1970, 1, 1) and second["raw"] == "ok"
    assert third["attributes"] == [("k", 1), ("k", 2)] and third["kind"] == "x"
    assert {third[name] for name in ("when", "naive", "clock", "took", "far", "price", "id", "half", "raw")} == {None}


def test_rows_of_tables_slices_and_unions():
    table = pa.table({"a": pa.chunked_array([[1], [2, 3]]), "s": [{"x": 1}, None, {"x": 3}]})
    assert arrow_rows.batch_to_rows(table) == table.to_pylist()
    assert arrow_rows.batch_to_rows(table.slice(1)) == table.to_pylist()[1:]
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 1), pa.list_view(pa.int64())):
        batch = page(a=pa.array([[1], None, [2]], kind))
        assert arrow_rows.batch_to_rows(batch.slice(1)) == [{"a": None}, {"a": [2]}]
    sparse = pa.UnionArray.from_sparse(
        pa.array([0, 1, 1], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", None])]
    )
    assert arrow_rows.batch_to_rows(page(u=sparse).slice(1)) == [{"u": "b"}, {"u": None}]
    runs = pa.RunEndEncodedArray.from_arrays([2, 3, 6], ["a", "b", None])
    assert arrow_rows.batch_to_rows(page(r=runs[1:5])) == [{"r": "a"}, {"r": "b"}, {"r": None}, {"r": None}]


def test_rows_do_not_look_below_a_null():
    nowhere = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array([], pa.string()), safe=False)
    struct = pa.StructArray.from_arrays([nowhere], ["x"], mask=pa.array([True, True]))
    assert arrow_rows.batch_to_rows(page(s=struct)) == [{"s": None}, {"s": None}]
    keys = pa.array(["k", "k"])
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), keys, nowhere, mask=pa.array([True, True]))
    assert arrow_rows.batch_to_rows(page(m=maps.slice(1))) == [{"m": None}]


def test_a_zone_that_this_machine_does_not_know_costs_no_time():
    batch = page(t=pa.array([0, 1], pa.timestamp("us", "No/Where")))
    assert [row["t"] for row in arrow_rows.batch_to_rows(batch)] == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00.000001Z",
    ]
    assert column(batch["t"], DATE_TIME) == ['"1970-01-01T00:00:00Z"', '"1970-01-01T00:00:00.000001Z"']


# ---- the fast way is there -----------------------------------------------------------------------


def test_columns_of_common_types_never_go_value_by_value(monkeypatch):
    def by_value(plan, array, exact):
        raise AssertionError(f"{array.type} under {plan.node} went value by value")

    monkeypatch.setattr(arrow_plan, "by_value", by_value)
    string = {"type": ["null", "string"]}
    when = dt.datetime(2024, 1, 2, 3, 4, 5, 6, dt.UTC)
    for array, node in (
        (pa.array([1, None], pa.int32()), {"type": ["null", "integer"]}),
        (pa.array([1]), {"type": "number", "minimum": 0}),
        (pa.array([1]), {"type": "string"}),
        (pa.array([1.5, None], pa.float32()), {"type": ["number", "null"]}),
        (pa.array([1.0]), {"type": "integer"}),
        (pa.array([True]), {"type": "boolean"}),
        (pa.array(["a\n", None]), string),
        (pa.array(["a", None, "a"]).dictionary_encode(), string),
        (pa.array(["a", None], pa.string_view()), {"type": ["null", "string"], "maxLength": 9, "format": "email"}),
        (pa.array(["2024-01-02T03:04:05Z"]), DATE_TIME),
        (pa.array([when, None]), {**DATE_TIME, "type": ["string", "null"]}),
        (pa.array([when.date()]), {"type": "string", "format": "date"}),
        (pa.array(["2024-01-02"]), {"type": "string", "format": "date"}),
        (pa.array([when.time()]), {"type": "string", "format": "time"}),
        (pa.array([Decimal("1.5")]), {"type": "number"}),
        (pa.array([Decimal(5)]), {"type": ["null", "integer"]}),
        (pa.array([None]), {"type": "null"}),
        (pa.array([uuid.UUID(int=7).bytes, None], pa.uuid()), string),
        (pa.array([b"x", None]), {**string, "contentEncoding": "base64"}),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), {"type": ["null", "object"]}),
        (pa.array([when, None]), {"anyOf": [DATE_TIME, string]}),
        (pa.array(["x", None]), {"anyOf": [{"type": "integer"}, string]}),
        (pa.array([[{"a": [1]}], None]), {"type": ["null", "array"], "items": {}}),
        (pa.array([[9], [1], [2, 3]])[1:], {"type": "array", "items": {"type": "integer"}}),
        (pa.array([["a"]], pa.list_(pa.large_string())), {"type": "array", "items": string}),
        (pa.array([[1.5]], pa.list_(pa.float64(), 1)), {"type": "array", "items": {"type": "number"}}),
    ):
        assert len(column(array, node)) == len(array), node
