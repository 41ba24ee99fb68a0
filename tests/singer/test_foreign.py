"""Catalogs as other tools write them, and ours as other tools read it."""

from __future__ import annotations

import copy
import json
import logging
import subprocess
import sys

import pytest

import burler
from burler.errors import CatalogError
from burler.singer.catalog import catalog_from_wire
from burler.testing import run_tap
from support.taps import discovered

ROW = {
    "id": 1,
    "updated_at": "2024-01-01T00:00:00Z",
    "name": "Ann",
    "address": {"city": "Bonn", "zip": "53111"},
    "tags": [{"label": "x", "weight": 2}],
}
TEXT = {"type": ["null", "string"]}
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "updated_at": {"type": "string", "format": "date-time"},
        "name": TEXT,
        "address": {"type": "object", "properties": {"city": TEXT, "zip": TEXT}},
        "tags": {
            "type": "array",
            "items": {"type": "object", "properties": {"label": TEXT, "weight": {"type": "integer"}}},
        },
    },
}


@pytest.fixture
def tap():
    tap = burler.tap("tap-users")
    tap.sync("users", key_properties="id", replication_key="updated_at")(lambda: iter([copy.deepcopy(ROW)]))
    tap.schema("users", SCHEMA)
    tap.sync("logs", key_properties="id")(lambda: iter([{"id": 7}]))
    tap.schema("logs", {"type": "object", "properties": {"id": {"type": "integer"}}})
    return tap


def entry(metadata, **more):
    return {"streams": [{"tap_stream_id": "users", "stream": "users", "schema": SCHEMA, "metadata": metadata, **more}]}


def on(*more):
    return [{"breadcrumb": [], "metadata": {"selected": True}}, *more]


def of(path, **words):
    return {"breadcrumb": path, "metadata": {key.replace("_", "-"): value for key, value in words.items()}}


# What singer-sdk 0.54 prints for such a stream: no entry for fields inside arrays, 'selected' in discovery, keys at
# the top, nothing forced.
SDK = {
    "streams": [
        {
            "tap_stream_id": "logs",
            "replication_method": "FULL_TABLE",
            "key_properties": [],
            "schema": {"properties": {"id": {"type": ["integer", "null"]}}, "type": "object"},
            "stream": "logs",
            "metadata": [
                {"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "available"}},
                {
                    "breadcrumb": [],
                    "metadata": {
                        "inclusion": "available",
                        "selected": False,
                        "selected-by-default": False,
                        "table-key-properties": [],
                    },
                },
            ],
        },
        {
            "tap_stream_id": "users",
            "replication_key": "updated_at",
            "replication_method": "INCREMENTAL",
            "key_properties": ["id"],
            "schema": {**SCHEMA, "$schema": "https://json-schema.org/draft/2020-12/schema"},
            "is_view": False,
            "database_name": "crm",
            "table_name": "users",
            "row_count": 3,
            "stream": "users",
            "metadata": [
                *({"breadcrumb": ["properties", name], "metadata": {"inclusion": "available"}} for name in ROW),
                {"breadcrumb": ["properties", "address", "properties", "city"], "metadata": {"inclusion": "available"}},
                {
                    "breadcrumb": [],
                    "metadata": {
                        "inclusion": "available",
                        "selected": True,
                        "selected-by-default": True,
                        "table-key-properties": ["id"],
                        "replication-key": "updated_at",
                        "valid-replication-keys": ["updated_at"],
                    },
                },
            ],
        },
    ]
}


def test_the_sdks(tap, caplog):
    run = run_tap(tap, catalog=SDK)
    assert run.records("users") == [ROW]
    assert run.records("logs") == []
    assert run.states[-1]["bookmarks"] == {"users": {"updated_at": ROW["updated_at"]}}
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_keys_that_burler_does_not_know_are_carried_along():
    read = catalog_from_wire(SDK)
    assert read.entries["users"].extra == {
        "is_view": False,
        "database_name": "crm",
        "table_name": "users",
        "row_count": 3,
    }
    again = read.to_wire()["streams"][1]
    for key, value in SDK["streams"][1].items():
        if key != "metadata":
            assert again[key] == value
    odd = {"streams": [{**SDK["streams"][1], "custom metadata": {"a": [1]}}]}
    assert catalog_from_wire(odd).to_wire()["streams"][0]["custom metadata"] == {"a": [1]}
    own = of([], **{"tap-crm.anything": {"x": 1}})
    assert catalog_from_wire(entry(on(own))).entries["users"].metadata[()] == {
        "selected": True,
        "tap-crm.anything": {"x": 1},
    }


def test_meltanos(tap, caplog):
    """It marks all that it does not want, and writes its extras into entry and metadata, underscored and not."""
    catalog = entry(
        [
            of(["properties", "id"], inclusion="automatic", selected=False),
            of(["properties", "name"], inclusion="available", selected="false"),
            of(["properties", "address"], inclusion="available", selected=True),
            of(["properties", "address", "properties", "zip"], selected=False),
            of(["properties", "tags"], selected=True),
            of([], selected="true", replication_method="INCREMENTAL", replication_key="updated_at"),
        ],
        replication_method="INCREMENTAL",
        replication_key="updated_at",
        selected=True,
    )
    del catalog["streams"][0]["stream"]
    run = run_tap(tap, catalog=catalog)
    assert run.records("users") == [
        {key: value for key, value in ROW.items() if key != "name"} | {"address": {"city": "Bonn"}}
    ]
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warned == ["stream 'users': 'selected' is text (name, the stream itself); read as a boolean"]


def test_stitchs(tap):
    """Null for what nobody said, inclusion in the schema nodes, an alias for the name on the wire."""
    schema = json.loads(json.dumps(SCHEMA))
    for node in schema["properties"].values():
        node["inclusion"] = "available"
        node["selected"] = None
    schema["properties"]["name"]["inclusion"] = "unsupported"
    schema["inclusion"] = "available"
    catalog = {
        "streams": [
            {
                "tap_stream_id": "users",
                "stream": "users",
                "stream_alias": "crm_users",
                "is_view": None,
                "database_name": "crm",
                "table_name": "users",
                "row_count": 12,
                "key_properties": None,
                "replication_key": None,
                "replication_method": None,
                "schema": schema,
                "metadata": on(of(["properties", "address"], selected=None)),
            },
            {"tap_stream_id": "logs", "stream": "logs", "schema": {}, "selected": None, "metadata": None},
        ]
    }
    run = run_tap(tap, catalog=catalog)
    assert run.records("crm_users") == [{key: value for key, value in ROW.items() if key != "name"}]
    sent = next(message for message in run.messages if message["type"] == "SCHEMA")
    assert "inclusion" not in json.dumps(sent) and "selected" not in json.dumps(sent)
    assert sent["key_properties"] == ["id"]
    assert run.states[-1]["bookmarks"] == {"users": {"updated_at": ROW["updated_at"]}}


def test_legacy_properties(tap):
    schema = json.loads(json.dumps(SCHEMA))
    schema["selected"] = True
    schema["properties"]["name"]["selected"] = False
    schema["properties"]["tags"]["items"]["properties"]["weight"]["selected"] = False
    run = run_tap(tap, catalog={"streams": [{"stream": "users", "schema": schema}, {"stream": "logs", "schema": {}}]})
    (record,) = run.records("users")
    assert "name" not in record and record["tags"] == [{"label": "x"}]
    assert run.records("logs") == []


@pytest.mark.parametrize(
    "path",
    [
        ["properties", "address", "properties", "city"],
        "properties.address.properties.city",
        "address.city",
        ["properties", "address", "anyOf", "1", "properties", "city"],
        ["properties", "address", "anyOf", 1, "properties", "city"],
        ["allOf", "0", "properties", "address", "properties", "city"],
    ],
)
def test_spellings_of_a_breadcrumb(tap, path):
    (record,) = run_tap(tap, catalog=entry(on(of(path, selected=False)))).records("users")
    assert record["address"] == {"zip": "53111"}


def test_text_breadcrumbs():
    schema = {"properties": {"a.b": {}, "a": {"properties": {"b": {}}}, "tags": {"items": {"properties": {"n": {}}}}}}

    def crumbs(*given):
        metadata = [of(text, selected=True) for text in given]
        return list(
            catalog_from_wire({"streams": [{"stream": "s", "schema": schema, "metadata": metadata}]})
            .entries["s"]
            .metadata
        )

    assert crumbs("", "a", "a.b", "properties.tags.items.properties.n") == [
        (),
        ("properties", "a"),
        ("properties", "a.b"),
        ("properties", "tags", "items", "properties", "n"),
    ]
    assert crumbs("tags.n", "tags[].n", "new.one", "properties.x") == [
        ("properties", "tags", "items", "properties", "n"),
        ("properties", "new", "properties", "one"),
        ("properties", "x"),
    ]


def test_a_breadcrumb_listed_twice_is_one(caplog):
    read = catalog_from_wire(
        entry([of([], inclusion="available"), of([], selected=True), of(["properties", "id"], selected=True)])
    )
    assert read.entries["users"].metadata[()] == {"inclusion": "available", "selected": True}
    assert not caplog.records
    read = catalog_from_wire(entry([of(["properties", "name"], selected=True), of("name", selected=False)]))
    assert read.entries["users"].metadata["properties", "name"] == {"selected": False}
    assert "streams[0] ('users'): metadata says two things of 'selected' of name; the later one counts" in caplog.text


@pytest.mark.parametrize(
    "bad",
    [
        {"breadcrumb": ["properties", 1], "metadata": {}},
        {"breadcrumb": ["properties", "a", "anyOf", True], "metadata": {}},
        {"breadcrumb": "properties", "metadata": {}},
        {"breadcrumb": "properties.", "metadata": {}},
        {"breadcrumb": None, "metadata": {}},
        {"breadcrumb": {}, "metadata": {}},
        {"breadcrumb": []},
        "x",
    ],
)
def test_metadata_of_another_shape(bad):
    with pytest.raises(CatalogError, match=r"c\.json: streams\[0\] \('users'\): 'metadata' must be a list of"):
        catalog_from_wire(entry([bad]), source="c.json")


def test_an_inclusion_that_singer_does_not_know():
    with pytest.raises(CatalogError, match=r"field address\.city: 'inclusion' must be one of automatic, available"):
        catalog_from_wire(entry([of("address.city", inclusion="yes")]))


def test_a_schema_nested_too_deep():
    schema: dict = {}
    for _ in range(5000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(CatalogError, match=r"streams\[0\]: its schema is nested too deep"):
        catalog_from_wire({"streams": [{"stream": "s", "schema": schema}]})


# ---- ours, read by others ------------------------------------------------------------------------


def singer_python(code: str, value: object) -> object:
    """Ask singer-python, in a process of its own: it changes the root logger."""
    script = f"import json, sys, singer, singer.catalog\na = json.load(sys.stdin)\nprint(json.dumps({code}))"
    argv = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(argv, input=json.dumps(value), capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_singer_python_reads_our_catalog(tap):
    ours = {"streams": list(discovered(tap).values())}
    assert singer_python("[s.is_selected() for s in singer.catalog.Catalog.from_dict(a).streams]", ours) == [None, None]
    for stream in ours["streams"]:
        stream["metadata"][0]["metadata"]["selected"] = True
    back = singer_python("singer.catalog.Catalog.from_dict(a).to_dict()", ours)
    assert singer_python("[s.is_selected() for s in singer.catalog.Catalog.from_dict(a).streams]", ours) == [True, True]
    for mine, theirs in zip(ours["streams"], back["streams"], strict=True):
        assert {key: theirs[key] for key in mine} == mine
    assert run_tap(tap, catalog=back).records("users") == [ROW]


def test_deselected_by_singer_pythons_rules_too(tap):
    """Its transformer drops the same fields of a row, given the same metadata."""
    metadata = on(
        of(["properties", "name"], selected=False),
        of(["properties", "address", "properties", "zip"], inclusion="unsupported", selected=True),
        of(["properties", "tags", "items", "properties", "weight"], selected=False),
    )
    theirs = singer_python(
        "singer.Transformer().transform(a[0], a[1], singer.metadata.to_map(a[2]))", [ROW, SCHEMA, metadata]
    )
    theirs["updated_at"] = ROW["updated_at"]  # it writes six digits
    assert run_tap(tap, catalog=entry(metadata)).records("users") == [theirs]
