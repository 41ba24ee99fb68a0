"""Metadata maps and lists, held against singer-python's."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import burler
from burler.singer import Breadcrumb, fields, standard_metadata, to_list, to_map
from burler.testing import run_tap

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "address": {"type": "object", "properties": {"city": {"type": "string"}, "id": {"type": "integer"}}},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "free": True,
    },
}
NAME = ("properties", "tags", "items", "properties", "name")


def singer(code: str, *values: object) -> object:
    """What singer-python's metadata module gives, asked in a process of its own: it changes root logging."""
    script = f"import json, sys\nfrom singer import metadata\na = json.loads(sys.argv[1])\nprint(json.dumps({code}))"
    argv = [sys.executable, "-W", "ignore", "-c", script, json.dumps(values)]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def test_map_and_list_equal_singers():
    entries = [
        {"breadcrumb": [], "metadata": {"selected": True, "tap-x.odd": [1, {"a": None}]}},
        {"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "automatic"}},
        {"breadcrumb": list(NAME), "metadata": {}},
    ]
    ours = to_map(entries)
    assert [[list(crumb), values] for crumb, values in ours.items()] == singer(
        "[[list(k), v] for k, v in metadata.to_map(a[0]).items()]", entries
    )
    assert to_list(ours) == singer("metadata.to_list(metadata.to_map(a[0]))", entries)


def test_the_list_form_begins_with_the_stream():
    assert [e["breadcrumb"] for e in to_list({("properties", "b"): {}, ("properties", "a"): {}, (): {}})] == [
        [],
        ["properties", "b"],
        ["properties", "a"],
    ]


def test_maps_are_copies():
    entries = [{"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "available"}}]
    compiled = to_map(entries)
    compiled["properties", "id"]["inclusion"] = "x"
    to_list(compiled)[0]["metadata"]["inclusion"] = "y"
    assert entries[0]["metadata"] == {"inclusion": "available"}
    assert compiled["properties", "id"] == {"inclusion": "x"}


@pytest.mark.parametrize(
    "entry",
    [
        {"metadata": {}},
        {"breadcrumb": []},
        {"breadcrumb": "properties", "metadata": {}},
        {"breadcrumb": [1], "metadata": {}},
        {"breadcrumb": None, "metadata": {}},
        {"breadcrumb": [], "metadata": None},
        {"breadcrumb": [], "metadata": [["a", 1]]},
        "text",
    ],
)
def test_entries_of_another_shape(entry):
    with pytest.raises((KeyError, TypeError)):
        to_map([entry])


def test_standard_metadata_says_what_singers_says_and_more():
    ours = standard_metadata(SCHEMA, key_properties=("id",), replication_method="INCREMENTAL", replication_key="at")
    theirs = singer(
        "metadata.get_standard_metadata(schema=a[0], key_properties=['id'], valid_replication_keys=['at'],"
        " replication_method='INCREMENTAL')",
        SCHEMA,
    )
    shown = {tuple(e["breadcrumb"]): e["metadata"] for e in theirs}
    # The replication key is always replicated, too: without it no bookmark moves. singer-python leaves that out.
    assert shown.pop(("properties", "at")) == {"inclusion": "available"}
    assert ours[("properties", "at")] == {"inclusion": "automatic"}
    for crumb, values in shown.items():
        assert ours[crumb] == values
    # Nested fields have an entry each, and are no keys though they are called so.
    assert set(ours) - set(shown) == {
        ("properties", "at"),
        ("properties", "address", "properties", "city"),
        ("properties", "address", "properties", "id"),
        NAME,
    }
    assert ours["properties", "address", "properties", "id"] == {"inclusion": "available"}


def test_a_full_table_has_no_replication_keys():
    compiled = standard_metadata(SCHEMA, key_properties=(), replication_method="FULL_TABLE", replication_key=None)
    assert compiled[()] == {
        "inclusion": "available",
        "table-key-properties": [],
        "forced-replication-method": "FULL_TABLE",
    }
    assert all(values == {"inclusion": "available"} for crumb, values in compiled.items() if crumb)


def test_breadcrumbs():
    table = [
        ((), None, 0),
        (("properties", "id"), "id", 1),
        (("properties", "a", "properties", "b"), "b", 2),
        (NAME, "name", 2),
        (("properties", "properties", "properties", "items"), "items", 2),
        (("properties", "m", "items", "items", "properties", "x"), "x", 2),
    ]
    for path, name, level in table:
        crumb = Breadcrumb(path)
        assert (crumb.name, crumb.level, crumb.path) == (name, level, path)
    assert Breadcrumb(("properties", "id")) == Breadcrumb(("properties", "id"))


def test_fields_come_parents_first_and_through_arrays():
    crumbs = [crumb for crumb, _ in fields(SCHEMA)]
    assert crumbs == [
        ("properties", "id"),
        ("properties", "at"),
        ("properties", "address"),
        ("properties", "address", "properties", "city"),
        ("properties", "address", "properties", "id"),
        ("properties", "tags"),
        NAME,
        ("properties", "free"),
    ]
    assert list(fields({"properties": ["no", "mapping"]})) == []
    assert list(fields({"properties": None})) == []


def test_an_author_sees_the_streams_metadata():
    tap = burler.tap("tap-x")
    seen = []

    @tap.sync("a", key_properties="id")
    def rows(stream):
        seen.append((dict(stream.metadata), dict(tap.stream_metadata())))
        yield {"id": 1}

    tap.schema("a", {"type": "object", "properties": {"id": {"type": "integer"}}})
    assert not run_tap(tap).result.errors
    assert seen[0][0] == seen[0][1]
    assert seen[0][0]["table-key-properties"] == ["id"]
