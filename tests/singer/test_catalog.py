"""Catalogs and legacy properties files: read, written, and broken in every way."""

from __future__ import annotations

import copy

import pytest

from burler.errors import CatalogError
from burler.singer.catalog import catalog_from_wire

GOOD = {
    "tap_stream_id": "public-users",
    "stream": "users",
    "key_properties": ["id"],
    "replication_key": "at",
    "replication_method": "INCREMENTAL",
    "schema": {"type": "object", "properties": {"id": {"type": "integer"}}},
    "metadata": [{"breadcrumb": [], "metadata": {"selected": True}}],
}


def read(**changes):
    entry = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    return catalog_from_wire({"streams": [entry]}).entries


def test_round_trip():
    wire = {"streams": [GOOD, {**GOOD, "tap_stream_id": "b"}]}
    before = copy.deepcopy(wire)
    catalog = catalog_from_wire(wire)
    assert catalog.to_wire() == before == wire
    assert list(catalog.entries) == ["public-users", "b"]
    assert catalog.entries["public-users"].stream == "users"


def test_what_may_be_left_out():
    entry = read(stream=..., key_properties=..., replication_key=..., replication_method=..., metadata=..., schema=...)
    entry = entry["public-users"]
    assert (entry.stream, entry.schema, entry.key_properties, entry.metadata) == ("public-users", {}, (), {})
    assert "replication_key" not in entry.to_wire()
    assert "replication_method" not in entry.to_wire()
    assert read(tap_stream_id=...)["users"].stream == "users"


def test_metadata_wins_over_the_entry():
    entry = read(
        metadata=[{"breadcrumb": [], "metadata": {"replication-key": "b", "replication-method": "FULL_TABLE"}}]
    )["public-users"]
    assert (entry.replication_key, entry.replication_method) == ("b", "FULL_TABLE")
    metadata = [{"breadcrumb": [], "metadata": {"table-key-properties": ["x"]}}]
    assert read(metadata=metadata, key_properties=...)["public-users"].key_properties == ("x",)
    assert read(metadata=metadata)["public-users"].key_properties == ("id",)


def test_legacy_selection_moves_into_metadata_and_yields_to_it():
    schema = {
        "selected": "true",
        "properties": {
            "a": {"selected": False, "inclusion": "available"},
            "b": {"selected": False},
            "c": {"type": "object", "properties": {"d": {"selected": True, "inclusion": "unsupported"}}},
        },
    }
    before = copy.deepcopy(schema)
    metadata = [{"breadcrumb": ["properties", "b"], "metadata": {"selected": True}}]
    entry = read(schema=schema, metadata=metadata)["public-users"]
    assert entry.metadata == {
        (): {"selected": "true"},
        ("properties", "a"): {"selected": False, "inclusion": "available"},
        ("properties", "b"): {"selected": True},
        ("properties", "c", "properties", "d"): {"selected": True, "inclusion": "unsupported"},
    }
    assert schema == before
    assert read(selected=False)["public-users"].metadata[()] == {"selected": True}
    assert read(selected=True, metadata=...)["public-users"].metadata[()] == {"selected": True}


@pytest.mark.parametrize("wire", [None, [], "x", 5, {}, {"streams": None}, {"streams": {}}])
def test_no_catalog_at_all(wire):
    with pytest.raises(CatalogError, match=r'file\.json: a catalog is a JSON object \{"streams": \[\.\.\.\]\}'):
        catalog_from_wire(wire, source="file.json")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tap_stream_id": ..., "stream": ...}, "has neither"),
        ({"tap_stream_id": "", "stream": None}, "has neither"),
        ({"tap_stream_id": 5}, "'tap_stream_id' must be text, not int"),
        ({"stream": ["x"]}, "'stream' must be text, not list"),
        ({"schema": []}, "'schema' must be a JSON object"),
        ({"schema": "x"}, "'schema' must be a JSON object"),
        ({"schema": {"properties": []}}, "'properties' of its schema must be a JSON object"),
        ({"schema": {"properties": None}}, "'properties' of its schema must be a JSON object"),
        ({"metadata": {"breadcrumb": []}}, "'metadata' must be a list"),
        ({"metadata": "x"}, "'metadata' must be a list"),
        ({"metadata": 5}, "'metadata' must be a list"),
        ({"metadata": [5]}, "'metadata' must be a list"),
        ({"metadata": [{"breadcrumb": "properties", "metadata": {}}]}, "'metadata' must be a list"),
        ({"metadata": [{"breadcrumb": [[]], "metadata": {}}]}, "'metadata' must be a list"),
        ({"metadata": [{"breadcrumb": []}]}, "'metadata' must be a list"),
        ({"key_properties": "id"}, "the key properties must be a list of field names"),
        ({"key_properties": [1]}, "the key properties must be a list of field names"),
        ({"key_properties": {"id": 1}}, "the key properties must be a list of field names"),
        ({"replication_key": ["at"]}, "'replication_key' must be text, not list"),
        ({"replication_method": 5}, "'replication_method' must be text, not int"),
    ],
)
def test_each_broken_entry_is_named_by_its_place(changes, says):
    entry = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    with pytest.raises(CatalogError) as caught:
        catalog_from_wire({"streams": [{"stream": "fine"}, entry]}, source="cat.json")
    text = str(caught.value)
    assert text.startswith("cat.json: streams[1]")
    assert says in text
    assert len(text.splitlines()) <= 3


@pytest.mark.parametrize("entry", [None, 5, "x", []])
def test_an_entry_that_is_no_object(entry):
    with pytest.raises(CatalogError, match=r"catalog: streams\[0\]: a JSON object was expected"):
        catalog_from_wire({"streams": [entry]})


def test_a_stream_listed_twice():
    with pytest.raises(CatalogError, match="'public-users' is listed twice"):
        catalog_from_wire({"streams": [GOOD, GOOD]})
