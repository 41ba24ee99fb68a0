"""Several schema versions of one stream: one set of columns, or an error that names both."""

from __future__ import annotations

import pytest

from burler.errors import ExportError
from burler.spark.types import record_type
from burler.spark.unite import VersionType, restrict, spell, unite_versions

INTEGER, NUMBER, TEXT, FLAG = ({"type": name} for name in ("integer", "number", "string", "boolean"))
DECIMAL = {"type": "number", "multipleOf": 0.01}
BIG = {"type": "integer", "maximum": 10**30}
DATE, MOMENT = ({"type": "string", "format": name} for name in ("date", "date-time"))


def versions(*schemas):
    return [
        VersionType(f"hash{at}", f"v{at}", record_type({"properties": schema})) for at, schema in enumerate(schemas, 1)
    ]


def united(*schemas):
    record = unite_versions("users", versions(*schemas))
    return {name: spell(kind) for name, kind in record.fields}


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        (INTEGER, INTEGER, "bigint"),
        (INTEGER, NUMBER, "double"),
        (INTEGER, BIG, "decimal(38,0)"),
        (INTEGER, DECIMAL, "decimal(38,2)"),
        (BIG, DECIMAL, "decimal(38,2)"),
        (INTEGER, TEXT, "string"),
        (NUMBER, TEXT, "string"),
        (FLAG, TEXT, "string"),
        (MOMENT, TEXT, "string"),
        (DATE, TEXT, "string"),
        ({"type": "null"}, MOMENT, "timestamp"),
        ({"properties": {"a": INTEGER}}, {}, "string"),
    ],
)
def test_types_widen_in_either_order(left, right, both):
    assert united({"x": left}, {"x": right}) == {"x": both}
    assert united({"x": right}, {"x": left}) == {"x": both}


def test_new_fields_come_after_the_old_ones_and_dropped_ones_stay():
    assert united({"a": INTEGER, "b": TEXT}, {"c": FLAG, "a": NUMBER}) == {
        "a": "double",
        "b": "string",
        "c": "boolean",
    }


def test_objects_lists_and_maps_are_united_inside():
    old = {"o": {"properties": {"l": {"type": "array", "items": {"properties": {"a": INTEGER}}}}}}
    new = {"o": {"properties": {"l": {"type": "array", "items": {"properties": {"a": TEXT, "b": FLAG}}}}}}

    record = unite_versions("users", versions(old, new))

    assert record == record_type({"properties": new})
    assert restrict(record, record_type({"properties": old})) == record_type(
        {"properties": {"o": {"properties": {"l": {"type": "array", "items": {"properties": {"a": TEXT}}}}}}}
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (FLAG, INTEGER),
        (DATE, MOMENT),
        (NUMBER, DECIMAL),
        ({"properties": {"a": INTEGER}}, {"type": "array", "items": INTEGER}),
        ({"properties": {"a": INTEGER}}, INTEGER),
        ({"properties": {"a": INTEGER}}, {"properties": {"a": FLAG}}),
    ],
)
def test_what_can_not_be_united_names_field_and_both_versions(left, right):
    with pytest.raises(ExportError) as caught:
        united({"y": INTEGER}, {"x": left, "y": INTEGER}, {"x": right})

    text = str(caught.value)
    assert "stream 'users', field 'x" in text
    assert "v2 (hash2)" in text
    assert "v3 (hash3)" in text
    assert "hash1" not in text


@pytest.mark.parametrize("second", [{"ID": INTEGER}, {"id": INTEGER, "Id": INTEGER}])
def test_fields_that_differ_only_in_case_are_refused(second):
    with pytest.raises(ExportError, match="differ only in upper and lower case"):
        united({"id": INTEGER}, second)
