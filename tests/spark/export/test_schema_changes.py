"""A stream that changes its schema five times, exported all the while: the rules hold, and nothing is lost."""

from __future__ import annotations

import json

import pytest

from burler.errors import ExportError

pytestmark = pytest.mark.usefixtures("packages")

INTEGER, NUMBER, TEXT = {"type": ["null", "integer"]}, {"type": ["null", "number"]}, {"type": ["null", "string"]}
LIST = {"type": ["null", "array"], "items": INTEGER}
OBJECT = {"type": ["null", "object"], "properties": {"a": INTEGER}}

VERSIONS = [
    ({"id": INTEGER, "n": INTEGER, "old": TEXT, "o": OBJECT}, {"id": 1, "n": 1, "old": "x", "o": {"a": 1}}),
    ({"id": INTEGER, "n": INTEGER, "old": TEXT, "o": OBJECT, "new": TEXT}, {"id": 2, "n": 2, "new": "added"}),
    ({"id": INTEGER, "n": INTEGER, "o": OBJECT, "new": TEXT}, {"id": 3, "n": 3, "new": "old is dropped"}),
    ({"id": INTEGER, "n": NUMBER, "o": OBJECT, "new": TEXT}, {"id": 4, "n": 4.25}),
    ({"id": INTEGER, "n": TEXT, "o": OBJECT, "new": TEXT}, {"id": 5, "n": "five"}),
    ({"id": INTEGER, "n": TEXT, "o": LIST, "new": TEXT}, {"id": 6, "n": "six", "o": [1, 2]}),
]
EXPECTED = [
    (1, "1", "x", {"a": 1}, None),
    (2, "2", None, None, "added"),
    (3, "3", None, None, "old is dropped"),
    (4, "4.25", None, None, None),
    (5, "five", None, None, None),
    (6, "six", None, [1, 2], None),
]


def test_five_changes(lake, run, rows_of, both_ways):
    """Without Spark an export after each of them, with it one at the end."""
    each = both_ways == "small"
    for properties, row in VERSIONS:
        lake.commit("s", [row], schema={"properties": properties})
        if each:
            run()
    result = run()["s"] if not each else None

    found = rows_of("s", "id", "n", "old", "o", "new")

    assert [(*row[:3], row[3] and json.loads(row[3]), row[4]) for row in found] == EXPECTED
    if result is not None:
        assert any("'n'" in note and "text" in note for note in result.notes)
        assert any("'o'" in note for note in result.notes)


def test_a_renamed_case_is_one_column_also_as_the_key(lake, run, rows_of, with_spark):
    lake.commit("s", [{"id": 1, "x": 1}, {"id": 2, "x": 2}], schema={"properties": {"id": INTEGER, "x": INTEGER}})
    run()
    lake.commit("s", [{"ID": 2, "X": 20}], schema={"properties": {"ID": INTEGER, "X": INTEGER}}, keys=("ID",))
    run()

    assert rows_of("s", "ID", "X") == [(1, 1), (2, 20)]


def test_fields_with_the_names_of_export_s_columns_are_kept_beside_them(lake, run, rows_of):
    schema = {"properties": {"id": INTEGER, "_sdc_sequence": INTEGER, "_sdc_extracted_at": TEXT}}
    lake.commit("s", [{"id": 1, "_sdc_sequence": 77, "_sdc_extracted_at": "mine"}], schema=schema)

    result = run()["s"]

    assert rows_of("s", "_sdc_sequence", "_sdc_sequence_2", "_sdc_extracted_at_2") == [(1, 77, "mine")]
    assert len(result.notes) == 2


def test_a_whole_number_that_no_double_holds_makes_its_column_text_and_it_stays_so(lake, run, rows_of, with_spark):
    lake.commit("s", [{"id": 1, "n": 2**53 + 1}], schema={"properties": {"id": INTEGER, "n": INTEGER}})
    run()
    lake.commit("s", [{"id": 2, "n": 1.5}], schema={"properties": {"id": INTEGER, "n": NUMBER}})
    run()
    assert rows_of("s", "n") == [("1.5",), (str(2**53 + 1),)]
    lake.commit("s", [{"id": 3, "n": 2.5}], schema={"properties": {"id": INTEGER, "n": NUMBER}})
    assert run()["s"].rows_read == 1, "an increment: the column is not widened again"
    assert rows_of("s", "n") == [("1.5",), ("2.5",), (str(2**53 + 1),)]


def test_a_key_that_is_no_column_any_more_ends_that_stream(lake, run):
    lake.commit("s", [{"id": 1, "x": 1}], schema={"properties": {"id": INTEGER, "x": INTEGER}})
    run()
    lake.commit("s", [{"x": 2}], schema={"properties": {"x": INTEGER}})

    with pytest.raises(ExportError, match="its key 'id' is no field of its schema"):
        run()
