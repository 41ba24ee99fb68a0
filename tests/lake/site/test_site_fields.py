"""Schemas as fields in words, and what differs between two of them."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from support.internals import site_changes, site_fields, site_names


def view(*keys, **properties):
    return site_changes.View(site_fields.fields_of({"type": "object", "properties": properties}), keys)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"type": "integer"}, "integer"),
        ({"type": ["null", "string"], "format": "date-time"}, "string (date-time)"),
        ({"type": ["integer", "string"]}, "integer or string"),
        ({"type": "array", "items": {"type": ["null", "number"]}}, "array of number"),
        ({"type": "array", "items": {"type": "array", "items": {}}}, "array of array"),
        ({"type": "array", "items": [{"type": "string"}]}, "array of fixed length"),
        ({"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}, "string (date)"),
        ({"oneOf": [{"type": "integer"}, {"type": "object"}]}, "integer or object"),
        ({"properties": {"a": {}}}, "object"),
        ({"enum": ["a", 1, None]}, "string or integer"),
        ({"const": True}, "boolean"),
        ({"type": "null"}, "null"),
        ({}, "any"),
        (True, "any"),
        (False, "nothing"),
        ({"type": 7}, "any"),
    ],
)
def test_types_are_said_in_words(node, words):
    assert site_fields.type_words(node) == words


def test_fields_are_listed_with_the_path_that_leads_to_them():
    schema = {
        "type": "object",
        "required": ["id", "a.b"],
        "properties": {
            "id": {"type": "integer"},
            "a.b": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "grid": {
                "type": "array",
                "items": {"type": "array", "items": {"properties": {"x": {"type": "number"}}}},
            },
            "either": {"anyOf": [{"properties": {"left": {}}}, {"properties": {"right": {}}}, {"type": "null"}]},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "": {"patternProperties": {"^x": {"type": "boolean"}}},
        },
    }
    fields = {field.path: field for field in site_fields.fields_of(schema).fields}
    assert list(fields) == [
        "id", '"a.b"', "tags", "tags[].name", "grid", "grid[][].x", "either", "either.left", "either.right",
        "map", "map.*", '""', r'"".\/^x/'.replace("\\", ""),
    ]  # fmt: skip
    assert [path for path, field in fields.items() if field.required] == ["id", '"a.b"']
    assert fields["tags[].name"].parent == "tags"
    assert fields["tags[].name"].depth == 1
    assert fields["either"].nullable is True
    assert fields["either.left"].nullable is None


def test_limits_and_descriptions_are_said():
    schema = {
        "description": "All of it.",
        "properties": {
            "n": {"type": "number", "minimum": 0, "exclusiveMaximum": 10.5, "multipleOf": 0.01, "title": "Count"},
            "e": {"enum": list(range(20))},
            "c": {"const": "x", "default": "x"},
            "old": {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            "broken": {"description": 7, "enum": "no list", "pattern": "^" + "a" * 500},
        },
    }
    found = site_fields.fields_of(schema)
    by_name = {field.path: field for field in found.fields}
    assert found.description == "All of it."
    assert by_name["n"].limits == ("at least 0", "a multiple of 0.01", "less than 10.5")
    assert by_name["n"].description == "Count"
    assert by_name["e"].limits == ("one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more",)
    assert by_name["c"].limits == ("always x", "default x")
    assert by_name["old"].limits == ("at least 1", "more than its limit, not equal")
    assert len(by_name["broken"].limits[0]) < 140


def test_limits_are_said_of_exact_numbers_too():
    """As a lake gives them: numbers with a point are Decimals."""
    node = {"exclusiveMinimum": Decimal("0.5"), "multipleOf": Decimal("0.1"), "enum": [{"a": Decimal("1.5")}]}
    (field,) = site_fields.fields_of({"properties": {"n": node}}).fields
    assert field.limits == ('one of {"a": 1.5}', "a multiple of 0.1", "more than 0.5")


def test_references_are_resolved_and_those_that_lead_nowhere_are_told():
    schema = {
        "properties": {"home": {"$ref": "#/definitions/place"}},
        "definitions": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
    assert [field.path for field in site_fields.fields_of(schema).fields] == ["home", "home.city"]
    broken = site_fields.fields_of(
        {"properties": {"home": {"$ref": "#/definitions/nothing"}, "id": {"type": "integer"}}}
    )
    assert [field.path for field in broken.fields] == ["home", "id"]
    assert "References could not be resolved" in broken.left_out
    circle = site_fields.fields_of({"properties": {"a": {"$ref": "#/properties/a"}}})
    assert "References could not be resolved" in circle.left_out


def test_huge_and_deep_schemas_are_cut_and_it_is_said():
    wide = site_fields.fields_of(
        {"properties": {f"f{n}": {"type": "string"} for n in range(site_fields.MOST_FIELDS + 1)}}
    )
    assert len(wide.fields) == site_fields.MOST_FIELDS
    assert "Only the first 5,000 fields" in wide.left_out
    deep: dict = {"type": "string"}
    for _ in range(300):
        deep = {"type": "object", "properties": {"x": deep}}
    found = site_fields.fields_of(deep)
    assert len(found.fields) == site_fields.MOST_LEVELS
    assert "deeper than 30 levels" in found.left_out


@pytest.mark.parametrize(
    "schema", [{}, {"properties": None}, {"properties": {"a": None, "b": 3}}, {"type": "object", "properties": []}]
)
def test_schemas_that_are_none_do_no_harm(schema):
    assert all(field.type == "any" for field in site_fields.fields_of(schema).fields)


def test_differences_are_told_in_words():
    old = view("id", id={"type": "integer"}, gone={"type": "string"}, name={"type": "string", "maxLength": 10})
    new = view(
        "id",
        "name",
        id={"type": ["null", "number"]},
        name={"type": "string", "maxLength": 20, "description": "How one is called."},
        box={"type": "object", "properties": {"a": {"properties": {"b": {}}}, "c": {"type": "string"}}},
    )
    changes = site_changes.compare(old, new)
    assert changes == (
        site_changes.Change("changed", "", "keys: was id, now id, name"),
        site_changes.Change("added", "box", "object, with 3 fields inside"),
        site_changes.Change("removed", "gone", "string"),
        site_changes.Change("changed", "id", "type: was integer, now number; may be null now"),
        site_changes.Change(
            "changed",
            "name",
            "limits: was at most 10 characters, now at most 20 characters; description is new: “How one is called.”",
        ),
    )
    assert site_changes.counts(changes) == "1 added, 1 removed, 3 changed"
    assert site_changes.compare(old, old) == ()


def test_a_field_added_inside_of_an_old_one_is_told_with_its_path():
    old = view(box={"type": "array", "items": {"properties": {"a": {"type": "string"}}}})
    new = view(box={"type": "array", "items": {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}})
    assert site_changes.compare(old, new) == (site_changes.Change("added", "box[].b", "integer"),)


def test_two_versions_of_thousands_of_fields_are_compared_at_once():
    old = view(**{f"f{n}": {"type": "string"} for n in range(4000)})
    new = view(**{f"f{n}": {"type": "integer"} for n in range(2000, 6000)})
    begun = time.process_time()
    changes = site_changes.compare(old, new)
    assert site_changes.counts(changes) == "2,000 added, 2,000 removed, 2,000 changed"
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("name", "page"),
    [("users", "users"), ("user_events-2", "user_events-2"), ("Users", "users-"), ("con", "con-"), ("🐟", "")],
)
def test_pages_are_named_by_safe_characters(name, page):
    found = site_names.page_name(name)
    assert found == page or (found.startswith(page) and len(found) == len(page) + 12)


def test_no_name_takes_the_page_of_another():
    names = [
        "Users",
        "users",
        "USERS",
        "users-" + site_names.page_name("Users")[-12:],
        site_names.page_name("🐟"),
        "🐟",
        "a b",
        "a-b",
        "a_b",
    ]
    assert len({site_names.page_name(name) for name in names}) == len(names)
    assert len({site_names.anchor(name) for name in names}) == len(names)
    taken = site_names.Unlike()
    assert [taken.one("a", "b"), taken.one("a", "b"), taken.one("a", "b"), taken.one("b", "a")] == [
        "a",
        "b",
        "b-2",
        "a-2",
    ]
