"""Unknown fields: counted whatever comes, remembered in little room, and never a row's trouble."""

from __future__ import annotations

import datetime as dt
import sys
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest

from support.internals import removed, unknown_fields


def noted(*values: Any, path: tuple[str | None, ...] = ("x",)) -> unknown_fields.Unknown:
    unknown = unknown_fields.Unknown()
    unknown.note(path, len(values), values)
    return unknown


def schema_of(*values: Any) -> Any:
    return removed.kept_schema(noted(*values))["properties"]["x"]


def glimpses(unknown: unknown_fields.Unknown) -> list[Any]:
    return unknown.fields[0][1].examples


def test_counts_add_up_under_dotted_paths():
    unknown = unknown_fields.Unknown()
    assert not unknown
    assert unknown.counts == {}
    assert removed.kept_schema(unknown) == {}
    unknown.note(("a", "b", None, "c"), 3)
    unknown.note(("a", "b", None, "c"), 4, iter([1]))
    unknown.note(("t", None, None, "u"), 1)
    assert unknown
    assert unknown.counts == {"a.b[].c": 7, "t[][].u": 1}
    assert unknown.total == 8


def test_two_paths_that_look_the_same_count_together():
    unknown = unknown_fields.Unknown()
    unknown.note(("a.b",), 1)
    unknown.note(("a", "b"), 2)
    assert unknown.counts == {"a.b": 3}


def test_merging_is_as_if_all_had_been_noted_in_one_place():
    first, second = noted(1, 2), noted("a", None)
    second.note(("y",), 5, [{"z": 1}])
    first.merge(second)
    assert first.counts == {"x": 4, "y": 5}
    assert removed.kept_schema(first)["properties"] == {
        "x": {"type": ["null", "integer", "string"]},
        "y": {"type": ["null", "object"], "properties": {"z": {"type": ["null", "integer"]}}},
    }
    assert [found.examples for _path, found in first.fields] == [[{"z": 1}], [1, 2, "a"]]
    assert second.counts == {"x": 2, "y": 5}, "the other one is not changed"


def test_beyond_a_thousand_names_they_are_counted_together():
    unknown, page = unknown_fields.Unknown(), unknown_fields.Unknown()
    for i in range(unknown_fields.MOST_PATHS + 5):
        unknown.note((f"f{i}",), 2, [i])
        page.note((f"g{i}",), 1, [i])
    assert len(unknown.counts) == unknown_fields.MOST_PATHS + 1
    assert unknown.counts["(further fields)"] == unknown.further == 10
    unknown.merge(page)
    assert unknown.further == 10 + unknown_fields.MOST_PATHS + 5
    assert unknown.total == 3 * (unknown_fields.MOST_PATHS + 5)
    assert len(removed.kept_schema(unknown)["properties"]) == unknown_fields.MOST_PATHS


def test_what_is_changed_later_does_not_show():
    value = {"a": [1]}
    unknown = noted(value)
    value["a"].append("text")
    value["b"] = 1
    assert glimpses(unknown) == [{"a": [1]}]
    assert removed.kept_schema(unknown)["properties"]["x"]["properties"] == {
        "a": {"type": ["null", "array"], "items": {"type": "integer"}}
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2**80], {"type": ["null", "integer"]}),
        ([1, 1.5, Decimal("1.25")], {"type": ["null", "number"]}),
        ([True, "a"], {"type": ["null", "boolean", "string"]}),
        (["2024-01-02T03:04:05Z"], {"type": ["null", "string"], "format": "date-time"}),
        ([dt.date(2024, 1, 2)], {"type": ["null", "string"], "format": "date"}),
        (["2024-01-02", "then"], {"type": ["null", "string"]}),
        ([b"\x00"], {"type": ["null", "string"], "contentEncoding": "base64"}),
        ([b"\x00", "text"], {}),
        ([None], {}),
        ([[]], {"type": ["null", "array"], "items": {}}),
        ([{}], {"type": ["null", "object"]}),
        ([float("nan"), 1], {"type": ["null", "number"]}),
        ([10**5000], {"type": ["null", "integer"]}),
        ([dt.timedelta(1)], {"type": ["null", "string"]}),
        ([object(), 1], {}),
        (["\ud800"], {"type": ["null", "string"]}),
        ([{1: 2}], {"type": ["null", "object"]}),
        ([{"a": object()}], {"type": ["null", "object"]}),
    ],
)
def test_the_schema_of_what_was_seen(values: list[Any], expected: dict[str, Any]):
    assert schema_of(*values) == expected


WIDE = {f"f{i}": i for i in range(1000)}
DEEP: Any = 1
for _ in range(50):
    DEEP = {"d": DEEP}


@pytest.mark.parametrize("big", [WIDE, DEEP, {"o": WIDE}])
def test_objects_with_too_many_fields_or_too_deep_are_kept_as_they_are(big: Any):
    """A schema that names some of their fields would drop the others."""
    for values in ([big], [{"a": 1}, big], [big, {"a": 1}]):
        assert schema_of(*values) == {"type": ["null", "object"]}
    assert schema_of([big], {"a": 1}) == {"type": ["null", "array", "object"], "items": {}}
    merged = noted({"a": 1})
    merged.merge(noted(big))
    assert removed.kept_schema(merged) == {"properties": {"x": {"type": ["null", "object"]}}}


def test_a_nest_of_lists_is_looked_at_for_microseconds():
    """Twenty to the ninth items, and six bytes a list."""
    nest: Any = 1
    for _ in range(9):
        nest = [nest] * 20
    assert schema_of(nest) == {"type": ["null", "array"], "items": {}}


def test_what_is_known_below_all_fields_together_is_bounded():
    unknown, page = unknown_fields.Unknown(), unknown_fields.Unknown()
    for i in range(200):
        for notes in (unknown, page):
            notes.note((f"f{i}",), 1, [{f"{notes is page}{j}": j for j in range(90)}])
    assert 5000 < sum(found.places for _path, found in unknown.fields) <= unknown_fields.MOST_PLACES
    unknown.merge(page)
    assert sum(found.places for _path, found in unknown.fields) <= unknown_fields.MOST_PLACES
    assert removed.kept_schema(unknown)["properties"]["f199"] == {"type": ["null", "object"]}


def test_no_value_is_kept():
    """Of hundreds of fields with megabytes each, kilobytes."""
    unknown = unknown_fields.Unknown()
    tracemalloc.start()
    try:
        for i in range(200):
            wide = {f"{i}name{j}": {"k": [j] * 100} for j in range(40)}
            unknown.note((f"f{i}",), 1, ["x" * 1_000_000, wide, [wide] * 2, "\U0001f600" * 100_000])
        kept, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10_000_000, kept
    assert max(len(str(found.examples)) for _path, found in unknown.fields) < 2500


def test_few_values_are_read_and_later_on_hardly_any():
    """Looking at every value would cost more than shaping the row."""
    read = []

    def values():
        for i in range(1000):
            read.append(i)
            yield "text"

    unknown = unknown_fields.Unknown()
    unknown.note(("x",), 1000, values())
    assert 1 < len(read) <= 20
    for _ in range(99):
        unknown.note(("x",), 1000, values())
    assert 200 <= len(read) <= 200 + 2 * 100
    del read[:]
    for _ in range(100_000):  # row by row, as on the exact path
        unknown.note(("x",), 1, values())
    assert 50 <= len(read) <= 250
    assert unknown.counts == {"x": 200_000}


def test_a_type_that_comes_late_is_still_seen():
    unknown = unknown_fields.Unknown()
    for page in range(50):
        unknown.note(("x",), 1000, [page] * 1000 if page < 40 else [f"v{page}"] * 1000)
    assert removed.kept_schema(unknown)["properties"]["x"] == {"type": ["null", "integer", "string"]}


def test_notes_of_a_page_that_is_merged_onto_others_read_no_more_than_those_need():
    read = []

    def values():
        for i in range(1000):
            read.append(i)
            yield i

    unknown = unknown_fields.Unknown()
    for _ in range(100):
        page = unknown_fields.Unknown(unknown)
        page.note(("x",), 1000, values())
        unknown.merge(page)
    assert unknown.counts == {"x": 100_000}
    assert 200 <= len(read) <= 200 + 2 * 100
    assert removed.kept_schema(unknown) == {"properties": {"x": {"type": ["null", "integer"]}}}
    thrown_away = unknown_fields.Unknown(unknown)
    thrown_away.note(("y",), 1, [1])
    assert "y" not in unknown.counts


class Hostile(dict):
    """Bears no look."""

    def items(self):
        raise RuntimeError("dictionary changed size during iteration")


@pytest.mark.parametrize("value", [Hostile(a=1), [Hostile(a=1)]])
def test_a_value_that_can_not_be_looked_at_is_counted_all_the_same(value: Any):
    unknown = noted(value, path=("a", "b"))
    assert unknown.counts == {"a.b": 1}
    assert removed.kept_schema(unknown) == {"properties": {"a": {"properties": {"b": {}}}}}


def test_what_has_no_known_form_on_one_page_gets_no_type_from_another():
    merged = noted(1)
    merged.merge(noted(object()))
    assert removed.kept_schema(merged) == {"properties": {"x": {}}}


def test_examples_are_few_different_and_short():
    unknown = noted(1, 1, True, 1.0, "x" * 1000, "y", [1, 2, 3, 4], path=("x",))
    assert glimpses(unknown) == [1, True, 1.0]
    assert [type(example) for example in glimpses(unknown)] == [int, bool, float]
    assert glimpses(noted("x" * 1000)) == ["x" * 200]
    assert glimpses(noted([1, 2, 3, 4], {"a": {"b": {"c": {"d": 1}}}}, b"ab")) == [
        [1, 2, 3],
        {"a": {"b": {"c": "(dict)"}}},
        "(bytes)",
    ]
    assert glimpses(noted(Decimal("1.5"), Decimal("1e999"), 10**400)) == [
        1.5,
        "1E+999",
        "an integer of hundreds of digits",
    ]


def test_the_inference_is_loaded_only_when_a_field_turns_up():
    """Start-up: a stream whose rows are as declared never needs it."""
    import subprocess

    code = (
        "import sys; from support.internals import unknown_fields; u = unknown_fields.Unknown(); u.counts; "
        "loaded = lambda: any('.infer' in name for name in sys.modules)\n"
        "assert not loaded(); u.note(('x',), 1, [1]); assert loaded()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
