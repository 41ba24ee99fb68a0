"""Several schema versions of one stream: one set of columns, and nothing of any version lost."""

from __future__ import annotations

import pytest

from burler.errors import ExportError, UsageError
from burler.spark import record_type
from support import internals
from support.internals import lakefiles, readoptions

INTEGER, NUMBER, TEXT, FLAG = ({"type": name} for name in ("integer", "number", "string", "boolean"))
DECIMAL = {"type": "number", "multipleOf": 0.01}
FINE = {"type": "number", "multipleOf": 1e-25}
BIG = {"type": "integer", "maximum": 10**30}
DATE, MOMENT = ({"type": "string", "format": name} for name in ("date", "date-time"))
BASE64 = {"type": "string", "contentEncoding": "base64"}
OBJECT, MAP = {"properties": {"a": INTEGER}}, {"type": "object", "additionalProperties": INTEGER}
ARRAY = {"type": "array", "items": INTEGER}


def versions(*schemas, keys=()):
    return [
        lakefiles.SchemaVersion(f"hash{at}", f"v{at}", {"properties": schema}, keys, ())
        for at, schema in enumerate(schemas, 1)
    ]


def united(*schemas, **options):
    return internals.united.unite_stream("users", versions(*schemas), readoptions.ReadOptions(**options))


def columns(found):
    return {name: internals.united.spell(kind) for name, kind in found.record.fields}


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        (INTEGER, INTEGER, "integer"),
        (INTEGER, NUMBER, "number"),
        (INTEGER, BIG, "decimal(38,0)"),
        (INTEGER, DECIMAL, "decimal(38,2)"),
        (BIG, DECIMAL, "decimal(38,2)"),
        ({"type": "null"}, MOMENT, "date-time"),
        ({"type": "null"}, OBJECT, "object"),
    ],
)
def test_types_widen_in_either_order_without_a_word(left, right, both):
    for found in (united({"x": left}, {"x": right}), united({"x": right}, {"x": left})):
        assert columns(found) == {"x": both}
        assert found.notes == ()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (INTEGER, TEXT),
        (NUMBER, TEXT),
        (FLAG, TEXT),
        (MOMENT, TEXT),
        (DATE, TEXT),
        (BASE64, TEXT),
        (FLAG, INTEGER),
        (DATE, MOMENT),
        (NUMBER, DECIMAL),
        (INTEGER, FINE),  # 13 digits are left before the point, an integer has 19
        (OBJECT, ARRAY),
        (OBJECT, MAP),
        (OBJECT, INTEGER),
        (OBJECT, {}),
    ],
)
def test_what_no_type_holds_is_text_and_a_note_says_so(left, right):
    found = united({"y": INTEGER}, {"x": left, "y": INTEGER}, {"x": right})

    assert columns(found) == {"y": "integer", "x": "string"}
    (note,) = found.notes
    assert note.startswith("field 'x': ")
    assert " in v2, " in note
    assert note.endswith(" in v3: held as text")


def test_a_conflict_inside_leaves_all_around_it_as_it_is():
    found = united(
        {"o": {"properties": {"a": FLAG, "b": TEXT}}, "l": {"type": "array", "items": INTEGER}, "m": MAP},
        {"o": {"properties": {"a": INTEGER}}, "l": {"type": "array", "items": FLAG}, "m": {**MAP, "type": "object"}},
    )

    assert found.record == record_type(
        {
            "properties": {
                "o": {"properties": {"a": TEXT, "b": TEXT}},
                "l": {"type": "array", "items": TEXT},
                "m": MAP,
            }
        }
    )
    assert found.notes == (
        "field 'o.a': boolean in v1, integer in v2: held as text",
        "field 'l.[]': integer in v1, boolean in v2: held as text",
    )


def test_new_fields_come_after_the_old_ones_dropped_ones_stay_and_keys_are_first():
    found = internals.united.unite_stream(
        "users", versions({"a": INTEGER, "b": TEXT}, {"c": FLAG, "a": NUMBER, "k": TEXT}, keys=("k", "c"))
    )

    assert columns(found) == {"k": "string", "c": "boolean", "a": "number", "b": "string"}
    assert list(columns(found)) == ["k", "c", "a", "b"]


def test_rows_of_a_version_are_read_with_its_own_fields_and_the_columns_types():
    old = {"o": {"properties": {"l": {"type": "array", "items": {"properties": {"a": INTEGER}}}}}}
    new = {"o": {"properties": {"l": {"type": "array", "items": {"properties": {"a": TEXT, "b": FLAG}}}}}}

    found = united(old, new)

    assert found.record == record_type({"properties": new})
    assert found.own["hash1"] == record_type(
        {"properties": {"o": {"properties": {"l": {"type": "array", "items": {"properties": {"a": TEXT}}}}}}}
    )
    with pytest.raises(ExportError, match="under schema other"):
        found.mapped("other")


def test_a_field_renamed_in_case_is_one_column_spelled_as_the_newest_version_has_it():
    found = united({"ID": INTEGER, "o": {"properties": {"Aa": TEXT}}}, {"Id": INTEGER, "o": OBJECT}, {"id": NUMBER})

    assert columns(found) == {"id": "number", "o": "object"}
    assert found.record.get("o") == record_type({"properties": {"Aa": TEXT, "a": INTEGER}})
    assert found.mapped("hash1").names == {("id",): "ID"}
    assert found.mapped("hash2").names == {("id",): "Id"}
    assert found.mapped("hash3").names == {}
    assert found.column("hash1", "ID") == "id"
    assert found.column("hash3", "ID") is None
    assert found.notes == ("field 'id': also spelled 'ID', 'Id' in older schemas",)


def test_fields_of_one_version_that_differ_in_case_are_two_columns():
    found = united({"id": INTEGER}, {"ID": TEXT, "id": INTEGER, "ID_2": FLAG}, {"Id": NUMBER})

    assert columns(found) == {"id": "integer", "ID_3": "string", "Id_4": "number", "ID_2": "boolean"}
    assert found.mapped("hash2").names == {("ID_3",): "ID"}
    assert found.column("hash2", "ID") == "ID_3"
    assert found.column("hash2", "id") == "id"
    assert "field 'ID': it differs from another by case: held in column 'ID_3'" in found.notes


def test_a_field_with_the_name_of_a_column_that_export_adds_is_kept_under_another():
    found = united({"_sdc_version": TEXT, "_SDC_Sequence": INTEGER, "o": {"properties": {"_sdc_version": TEXT}}})

    assert columns(found) == {"_sdc_version_2": "string", "_SDC_Sequence_2": "integer", "o": "object"}
    assert found.record.get("o") == record_type({"properties": {"_sdc_version": TEXT}})
    assert len(found.notes) == 2


def test_integers_in_a_column_of_doubles_can_be_asked_for_as_text():
    schemas = {"n": INTEGER, "o": OBJECT}, {"n": NUMBER, "o": {"properties": {"a": NUMBER}}}

    assert united(*schemas).mapped("hash1").wide == {("n",), ("o", "a")}
    assert united(*schemas).mapped("hash2").wide == frozenset()
    found = united(*schemas, as_text=frozenset({"o.a"}))
    assert found.mapped("hash1").wide == {("n",)}
    assert found.record.get("o") == record_type({"properties": {"a": TEXT}})
    assert found.notes == ("field 'o.a': integer in v1, number in v2: held as text",)


def test_options_decide_of_times_and_open_values():
    schema = {"at": MOMENT, "open": {}, "list": {"type": "array", "items": {}}, "u": {"type": ["string", "integer"]}}

    assert columns(united(schema)) == {"at": "date-time", "open": "string", "list": "array", "u": "string"}
    assert columns(united(schema, timestamps="text"))["at"] == "string"
    open_as = columns(united(schema, open_types="variant"))
    assert open_as["open"] == "any JSON"
    assert open_as["u"] == "string"


def test_references_are_followed_and_circles_are_refused():
    pointed = {"definitions": {"n": INTEGER}, "properties": {"x": {"$ref": "#/definitions/n"}}}
    circle = {"properties": {"x": {"properties": {"y": {"$ref": "#"}}}}}

    def unite(schema):
        return internals.united.unite_stream("users", [lakefiles.SchemaVersion("h", "v1", schema, (), ())])

    assert columns(unite(pointed)) == {"x": "integer"}
    with pytest.raises(ExportError, match=r"stream 'users': its schema v1 is recursive"):
        unite(circle)
    with pytest.raises(ExportError, match=r"stream 'users': .*no properties"):
        unite({"type": "object"})
    with pytest.raises(ExportError, match="knows no schema"):
        internals.united.unite_stream("users", [])


@pytest.mark.parametrize(
    "options",
    [{"max_bad_rows": -1}, {"max_bad_rows": "3"}, {"timestamps": "nanos"}, {"open_types": "VARIANT"}],
    ids=["below-zero", "text", "nanos", "capitals"],
)
def test_options_that_are_none_are_refused(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        readoptions.ReadOptions(**options)
