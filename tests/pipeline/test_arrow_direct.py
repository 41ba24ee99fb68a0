"""Arrow pages as columns of a file: the same values as by way of RECORD lines, or none at all."""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from burler.errors import DataError
from support.internals import (
    arrow_direct,
    arrow_lines,
    column_types,
    column_values,
    shape_exact,
    shape_rules,
    shape_schema,
)

pytest.importorskip("pyarrow")
sys.path.append(str(Path(__file__).resolve().parent))
import pyarrow as pa
from arrow_pages import pages

SLOW = settings(suppress_health_check=list(HealthCheck))


def columns_of(schema):
    """The columns of a schema's file, and how the lines are read into them."""
    record = column_types.record_type(schema)
    return column_types.arrow_schema(record), column_values.converter(record, ())


def directly(batch, schema, *, form=None, rules=None, **options):
    """What ``ArrowDirect`` makes, its keys, and the unknown fields."""
    exact = shape_exact.Exact(rules or shape_rules.Rules())
    wanted, _ = columns_of(schema)
    made = arrow_direct.ArrowDirect(
        form or shape_schema.shaping_form(schema), wanted, exact, rules=rules or shape_rules.Rules(), **options
    ).batch(batch)
    return (None if made is None else made.table), (None if made is None else made.keys), exact.unknown.counts


def by_lines(batch, schema, *, form=None, rules=None, **options):
    """The slow reference: RECORD lines, read back value by value. Its table is None if a value has no column, or loses
    digits there."""
    exact = shape_exact.Exact(rules or shape_rules.Rules())
    lines = arrow_lines.ArrowShaper(
        form or shape_schema.shaping_form(schema), exact, rules=rules or shape_rules.Rules(), **options
    ).lines(batch, b"", b"\n")
    if lines is None:
        return None, None, exact.unknown.counts
    wanted, convert = columns_of(schema)
    report = column_values.Report(Counter(), Counter())
    table = None
    with contextlib.suppress(column_values.Misfit):
        rows = [convert(line, report) for line in bytes(lines.data).split(b"\n")[:-1]]
        if not report.dropped and not report.truncated:
            table = pa.RecordBatch.from_pylist(rows, schema=wanted)
    return table, lines.keys, exact.unknown.counts


@SLOW
@given(page=pages(), on_nan=st.sampled_from(["error", "null"]), data=st.data())
def test_what_goes_directly_is_what_goes_by_lines(page, on_nan, data):
    batch, schema = page
    with contextlib.suppress(DataError):
        columns_of(schema)
        rules = shape_rules.Rules(on_nan=on_nan)
        key = data.draw(st.sampled_from([None, *batch.schema.names]))
        table, keys, unknown = directly(batch, schema, rules=rules, key=key)
        if table is None:
            assert not unknown  # they are noted on the other way
            return
        wanted, wanted_keys, wanted_unknown = by_lines(batch, schema, rules=rules, key=key)
        assert table.equals(wanted), (table.to_pylist(), wanted and wanted.to_pylist())
        assert table.schema.equals(wanted.schema)
        table.validate(full=True)
        assert (keys, list(map(type, keys))) == (wanted_keys, list(map(type, wanted_keys)))
        assert unknown == wanted_unknown
        return
    assume(False)


UTC, US = dt.UTC, "us"
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=UTC)
MOMENT = {"type": ["null", "string"], "format": "date-time"}
CENTS = {"type": ["null", "number"], "multipleOf": 0.01}
MAP = {"type": ["null", "object"], "additionalProperties": {"type": ["null", "integer"]}}
POINT = {"type": ["null", "object"], "properties": {"x": {"type": "integer"}, "y": {"type": ["null", "string"]}}}


def page_of(array, node):
    """A page of one column, and its schema."""
    return pa.RecordBatch.from_arrays([array], names=["v"]), {"type": "object", "properties": {"v": node}}


def dictionary(values):
    return pa.array(values).dictionary_encode()


SURE = {
    "integers": (lambda: pa.array([1, -2, None, 2**63 - 1]), {"type": ["null", "integer"]}),
    "small integers": (lambda: pa.array([1, 255], pa.uint8()), {"type": "integer"}),
    "unsigned that fit": (lambda: pa.array([0, 2**63 - 1], pa.uint64()), {"type": "integer"}),
    "whole floats as integers": (lambda: pa.array([1.0, None, -0.0]), {"type": ["null", "integer"]}),
    "whole decimals as integers": (lambda: pa.array([Decimal("7.00"), None]), {"type": ["null", "integer"]}),
    "wide integers": (lambda: pa.array([2**64 - 1], pa.uint64()), {"type": "integer", "maximum": 2**64}),
    "floats": (lambda: pa.array([1.5, None, -0.0, 5e-324, 1.7e308]), {"type": ["null", "number"]}),
    "single floats": (lambda: pa.array([0.1, None], pa.float32()), {"type": ["null", "number"]}),
    "integers as numbers": (lambda: pa.array([1, 2**53]), {"type": "number"}),
    "decimals as numbers": (lambda: pa.array([Decimal("0.47"), Decimal("3.00")]), {"type": "number"}),
    "decimals": (lambda: pa.array([Decimal("1.10"), None], pa.decimal128(12, 2)), CENTS),
    "integers as decimals": (lambda: pa.array([1, None, -7], pa.int32()), CENTS),
    "booleans": (lambda: pa.array([True, None, False]), {"type": ["null", "boolean"]}),
    "text": (lambda: pa.array(['a"\\\n', None, "", "é😀"]), {"type": ["null", "string"]}),
    "large text": (lambda: pa.array(["a", None], pa.large_string()), {"type": ["null", "string"]}),
    "text with a limit": (lambda: pa.array(["abc", None]), {"type": ["null", "string"], "maxLength": 3}),
    "chosen text": (lambda: pa.array(["on", "off"]), {"type": "string", "enum": ["on", "off"]}),
    "dictionaries": (lambda: dictionary(["a", None, "a"]), {"type": ["null", "string"]}),
    "integers as text": (lambda: pa.array([1, None]), {"type": ["null", "string"]}),
    "decimals as text": (lambda: pa.array([Decimal("1.10"), None]), {"type": ["null", "string"]}),
    "integers in a union with text": (lambda: pa.array([1, None]), {"type": ["null", "integer", "string"]}),
    "text in a union with integers": (lambda: pa.array(["x", None]), {"type": ["null", "integer", "string"]}),
    "times of day": (lambda: pa.array([dt.time(1, 2, 3, 4), None]), {"type": ["null", "string"], "format": "time"}),
    "dates as text": (lambda: pa.array([dt.date(2024, 1, 2), None]), {"type": ["null", "string"]}),
    "moments": (lambda: pa.array([NOON, None], pa.timestamp(US, "UTC")), MOMENT),
    "moments in seconds": (lambda: pa.array([NOON], pa.timestamp("s", "UTC")), MOMENT),
    "moments elsewhere": (lambda: pa.array([NOON], pa.timestamp("ms", "Europe/Berlin")), MOMENT),
    "whole nanoseconds": (lambda: pa.array([1_000, None], pa.timestamp("ns", "UTC")), MOMENT),
    "the first and the last moment": (
        lambda: pa.array([-62_135_596_800, 253_402_300_799], pa.timestamp("s", "UTC")), MOMENT
    ),
    "moments as burler writes them": (lambda: pa.array(["2024-01-02T03:04:05Z", None]), MOMENT),
    "days": (lambda: pa.array([dt.date(1, 1, 1), None]), {"type": ["null", "string"], "format": "date"}),
    "days of 64 bits": (
        lambda: pa.array([dt.date(2024, 1, 2)], pa.date64()), {"type": "string", "format": "date"}
    ),
    "days as text": (lambda: pa.array(["2024-02-29"]), {"type": "string", "format": "date"}),
    "bytes": (lambda: pa.array([b"\x00\xff", None]), {"type": ["null", "string"], "contentEncoding": "base64"}),
    "bytes of one length": (
        lambda: pa.array([b"ab"], pa.binary(2)), {"type": "string", "contentEncoding": "base64"}
    ),
    "structs": (lambda: pa.array([{"x": 1, "y": "a"}, None, {"x": 2, "y": None}]), POINT),
    "structs without a field": (lambda: pa.array([{"x": 1}, None]), POINT),
    "lists": (
        lambda: pa.array([[1, None], None, []]), {"type": ["null", "array"], "items": {"type": ["null", "integer"]}}
    ),
    "lists of structs": (
        lambda: pa.array([[{"x": 1}, None], [], None]), {"type": ["null", "array"], "items": POINT}
    ),
    "fixed lists": (
        lambda: pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)), {"type": "array", "items": {"type": "number"}}
    ),
    "maps": (lambda: pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int32())), MAP),
    "open objects": (lambda: pa.array([{"x": 1, "y": [1.5, None]}, None]), {"type": ["null", "object"]}),
    "lists of anything": (lambda: pa.array([["a", None], None]), {"type": ["null", "array"]}),
    "numbers of anything": (lambda: pa.array([1.5, None]), {}),
    "only nulls": (lambda: pa.nulls(2), {"type": ["null", "integer"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", SURE)
@pytest.mark.parametrize("part", ["all", "slice", "chunks"])
def test_ordinary_columns_go_directly(name, part):
    make, node = SURE[name]
    batch, schema = page_of(make(), node)
    batch = batch.slice(1 if len(batch) > 1 else 0) if part == "slice" else batch
    given = pa.Table.from_batches([batch, batch]) if part == "chunks" else batch
    table, keys, _ = directly(given, schema, key="v")
    assert table is not None
    single = given if part != "chunks" else given.combine_chunks().to_batches()[0]
    wanted, wanted_keys, _ = by_lines(single, schema, key="v")
    assert table.equals(wanted), (table.to_pylist(), wanted.to_pylist())
    assert keys == wanted_keys


UNSURE = {
    "text among anything": (lambda: pa.array(["7", '"', None]), {}),
    "text among objects": (lambda: pa.array(["7"]), {"type": ["string", "object"]}),
    "a number that is none": (lambda: pa.array([1.0, float("nan")]), {"type": ["null", "number"]}),
    "an infinity": (lambda: pa.array([float("inf")], pa.float32()), {"type": "number"}),
    "null where none may be": (lambda: pa.array([1, None]), {"type": "integer"}),
    "null below": (lambda: pa.array([{"x": None, "y": "a"}]), POINT),
    "an integer beyond 64 bits": (lambda: pa.array([2**63], pa.uint64()), {"type": "integer"}),
    "a fraction": (lambda: pa.array([1.5]), {"type": "integer"}),
    "a double beyond 64 bits": (lambda: pa.array([2.0**63]), {"type": "integer"}),
    "an integer that no double holds": (lambda: pa.array([2**53 + 1]), {"type": "number"}),
    "floats as decimals": (lambda: pa.array([0.25]), CENTS),
    "digits of a float": (lambda: pa.array([0.1]), {"type": "number", "format": "singer.decimal"}),
    "more digits than the column has": (
        lambda: pa.array([Decimal("7.47")], pa.decimal128(29, 2)),
        {"type": "number", "multipleOf": Decimal("1e-38")},
    ),
    "too many digits": (lambda: pa.array([Decimal("1.005")], pa.decimal128(12, 3)), CENTS),
    "a digit that six do not hold": (lambda: pa.array([1], pa.timestamp("ns", "UTC")), MOMENT),
    "a time without a zone": (lambda: pa.array([0], pa.timestamp(US)), MOMENT),
    "a moment before year 1": (lambda: pa.array([-62_135_596_801], pa.timestamp("s", "UTC")), MOMENT),
    "a moment behind year 9999": (lambda: pa.array([253_402_300_800], pa.timestamp("s", "UTC")), MOMENT),
    "a moment written otherwise": (lambda: pa.array(["2024-01-02 03:04:05Z"]), MOMENT),
    "no moment": (lambda: pa.array(["soon"]), MOMENT),
    "a day behind year 9999": (lambda: pa.array([2_932_897], pa.date32()), {"type": "string", "format": "date"}),
    "a day before year 1": (lambda: pa.array(["0000-01-01"]), {"type": "string", "format": "date"}),
    "text that is no number": (lambda: pa.array(["12"]), {"type": "integer"}),
    "text that is no UTF-8": (lambda: pa.array([b"\xff"]).view(pa.string()), {"type": "string"}),
    "text beyond its limit": (lambda: pa.array(["abcd"]), {"type": "string", "maxLength": 3}),
    "a number beyond its limit": (lambda: pa.array([6]), {"type": "integer", "maximum": 5}),
    "no choice": (lambda: pa.array(["x"]), {"type": "string", "enum": ["on", "off"]}),
    "a pattern": (lambda: pa.array(["x"]), {"type": "string", "pattern": "^x"}),
    "bytes that no schema wants": (lambda: pa.array([b"a"]), {"type": "string"}),
    "a key twice": (lambda: pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32())), MAP),
    "a struct as a map": (lambda: pa.array([{"a": 1}]), MAP),
}


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_not_sure_goes_by_lines(name):
    make, node = UNSURE[name]
    batch, schema = page_of(make(), node)
    assert directly(batch, schema) == (None, None, {})


def test_fields_that_are_not_selected_stay_out_at_every_depth():
    batch = pa.RecordBatch.from_pylist([{"id": 1, "secret": "s", "p": {"x": 1, "y": "a"}}] * 2)
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "p": {**POINT, "properties": {}}}}
    schema["properties"]["p"]["properties"] = {"x": {"type": "integer"}}
    form = shape_schema.shaping_form(schema, [("properties", "secret"), ("properties", "p", "properties", "y")])
    table, _, unknown = directly(batch, schema, form=form)
    assert table.to_pylist() == [{"id": 1, "p": {"x": 1}}] * 2
    assert unknown == {}


def test_fields_that_no_schema_knows_are_dropped_and_counted():
    rows = [{"id": 1, "p": {"x": 1, "z": 1}, "new": None}, {"id": 2, "p": None, "new": "n"}]
    batch = pa.RecordBatch.from_pylist(rows)
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "p": POINT}}
    table, _, unknown = directly(batch, schema)
    assert table.to_pylist() == [{"id": 1, "p": {"x": 1, "y": None}}, {"id": 2, "p": None}]
    assert unknown == by_lines(batch, schema)[2] == {"p.z": 1, "new": 1}
    assert directly(batch, schema, key="p")[2] == unknown


def test_what_an_open_schema_lets_in_has_no_column_and_goes_by_lines():
    batch, schema = page_of(pa.array([1]), {"type": "integer"})
    batch = batch.append_column("more", pa.array(["m"]))
    assert directly(batch, {**schema, "additionalProperties": True})[0] is None


def test_a_column_that_is_not_there_is_null_unless_it_is_needed():
    batch, schema = page_of(pa.array([1]), {"type": "integer"})
    schema["properties"]["w"] = CENTS
    assert directly(batch, schema)[0].to_pylist() == [{"v": 1, "w": None}]
    assert directly(batch, schema, key="w")[1] == [None]
    assert directly(batch, schema, required=["w"])[0] is None
    assert directly(batch, {**schema, "required": ["w"]})[0] is None


def test_limits_do_not_count_where_they_are_not_checked():
    make, node = UNSURE["a number beyond its limit"]
    batch, schema = page_of(make(), node)
    assert directly(batch, schema, rules=shape_rules.Rules(check_constraints=False))[0].to_pylist() == [{"v": 6}]


def test_pages_of_other_columns_follow_each_other():
    schema = {"type": "object", "properties": {"v": {"type": ["null", "number"]}, "w": {"type": ["null", "string"]}}}
    wanted, _ = columns_of(schema)
    direct = arrow_direct.ArrowDirect(shape_schema.shaping_form(schema), wanted, shape_exact.Exact())
    pages = [{"v": 1}, {"w": "a", "v": 1.5}, {"v": None}]
    made = [direct.batch(pa.RecordBatch.from_pylist([page])).table.to_pylist() for page in pages]
    assert made == [[{"v": 1.0, "w": None}], [{"v": 1.5, "w": "a"}], [{"v": None, "w": None}]]


def test_an_empty_page_has_the_columns():
    batch, schema = page_of(pa.array([], pa.int8()), MOMENT)
    table, keys, _ = directly(batch, schema, key="v")
    assert (table.num_rows, table.schema, keys) == (0, columns_of(schema)[0], [])
