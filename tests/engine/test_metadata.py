"""The metadata of a catalog entry: what every stream gets without a word, and what its author writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from described import CRUMBS, FIELDS, GEO, INTEGER, TEXT, entry_of, schema_of, tap_of, written

import burler
from burler.errors import DeclarationError
from burler.testing import discover, run_tap

# ---- without a word ---------------------------------------------------------------------------------


def test_what_a_stream_gets_without_a_word():
    assert entry_of(tap_of(replication_key="at")).metadata == {
        (): {
            "inclusion": "available",
            "table-key-properties": ["id"],
            "forced-replication-method": "INCREMENTAL",
            "valid-replication-keys": ["at"],
        },
        **{crumb: {"inclusion": "available"} for path, crumb in CRUMBS.items() if path},
        CRUMBS["id"]: {"inclusion": "automatic"},
        CRUMBS["at"]: {"inclusion": "automatic"},
    }


def test_a_full_table_has_no_replication_keys():
    root = written(tap_of())
    assert root == {
        "inclusion": "available",
        "table-key-properties": ["id"],
        "forced-replication-method": "FULL_TABLE",
    }


def test_a_stream_without_keys():
    made = entry_of(tap_of(key_properties=[]))
    assert made.metadata[()]["table-key-properties"] == []
    assert {values["inclusion"] for crumb, values in made.metadata.items() if crumb} == {"available"}


def test_a_bookmark_function_makes_it_incremental_without_a_key():
    tap = tap_of()
    tap.bookmark("rows")(lambda record: record["id"])
    root = written(tap)
    assert root["forced-replication-method"] == "INCREMENTAL"
    assert "valid-replication-keys" not in root


# ---- the visitor --------------------------------------------------------------------------------------


def test_it_is_called_for_the_stream_first_then_for_every_field_parents_first():
    seen: list[tuple[Any, ...]] = []

    def visit(breadcrumb, sub_schema):
        seen.append((breadcrumb.path, breadcrumb.name, breadcrumb.level, sub_schema))

    entry_of(tap_of(visit))
    assert [path for path, *_ in seen] == list(CRUMBS.values())
    assert [(name, level) for _, name, level, _ in seen] == [
        (None, 0),
        ("id", 1),
        ("at", 1),
        ("address", 1),
        ("street", 2),
        ("geo", 2),
        ("lat", 3),
        ("tags", 1),
        ("name", 2),
    ]
    assert seen[0][3] == FIELDS
    assert seen[1][3] == INTEGER
    assert seen[4][3] == TEXT
    assert seen[7][3] == FIELDS["properties"]["tags"]


def test_it_sees_the_fields_of_union_branches_once():
    branches = [{"type": "object", "properties": {"x": INTEGER, "y": TEXT}}, {"type": "null"}]
    schema = {"type": "object", "properties": {"a": {"anyOf": branches}, "b": {"oneOf": [*branches, *branches]}}}
    seen = []
    entry_of(tap_of(lambda breadcrumb: seen.append(str(breadcrumb)), schema=schema, key_properties=[]))
    assert seen == ["(the stream)", "a", "a.x", "a.y", "b", "b.x", "b.y"]


def test_it_sees_what_references_lead_to():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/geo"}}, "$defs": {"geo": GEO}}
    seen = []
    entry_of(tap_of(lambda breadcrumb: seen.append(str(breadcrumb)), schema=schema, key_properties=[]))
    assert seen == ["(the stream)", "a", "a.lat"]


def test_what_it_writes_stands_in_the_catalog():
    tap = burler.tap("tap-meta")
    tap.sync("rows", schema=FIELDS)(lambda: [])

    @tap.metadata("rows")
    def visit(breadcrumb, field):
        if breadcrumb.level == 0:
            tap.write_metadata("key_properties", "id")
            tap.write_metadata("tap-meta.table", {"name": "t", "parts": [1, None]})
            field.selected.by_default()
        elif breadcrumb.name in tap.key_properties:
            tap.write_metadata("inclusion", "automatic")
        elif breadcrumb.name == "street":
            field.inclusion.unsupported()
            field.set("unsupported-description", "no room")
        elif breadcrumb.name == "name":
            field.selected.by_default(False)
        elif breadcrumb.name == "at":
            field.set("sql_type", "timestamptz")
            field.inclusion.unsupported()
            field.inclusion.available()

    made = entry_of(tap)
    assert made.key_properties == ("id",)
    assert made.metadata[()] == {
        "inclusion": "available",
        "table-key-properties": ["id"],
        "forced-replication-method": "FULL_TABLE",
        "tap-meta.table": {"name": "t", "parts": [1, None]},
        "selected-by-default": True,
    }
    assert made.metadata[CRUMBS["id"]] == {"inclusion": "automatic"}
    assert made.metadata[CRUMBS["address.street"]] == {
        "inclusion": "unsupported",
        "unsupported-description": "no room",
    }
    assert made.metadata[CRUMBS["tags.name"]] == {"inclusion": "available", "selected-by-default": False}
    assert made.metadata[CRUMBS["at"]] == {"inclusion": "available", "sql-datatype": "timestamptz"}


def test_the_keys_are_known_after_the_call_for_the_stream():
    tap = burler.tap("tap-meta")
    tap.sync("rows", schema=FIELDS)(lambda: [])
    seen = []

    @tap.metadata("rows")
    def visit(breadcrumb, key_properties, stream):
        if breadcrumb.level == 0:
            tap.write_metadata("table-key-properties", ["id"])
            tap.write_metadata("valid-replication-keys", ["at"])
            tap.write_metadata("forced-replication-method", "INCREMENTAL")
        seen.append((tap.key_properties, key_properties, stream.key_properties, stream.replication_key))

    entry_of(tap)
    assert seen[0] == ((), (), (), None)
    assert set(seen[1:]) == {(("id",), ("id",), ("id",), "at")}


def test_declared_keys_are_known_from_the_start():
    seen = []
    tap = tap_of(lambda key_properties: seen.append(key_properties))
    entry_of(tap)
    assert seen == [("id",)] * len(CRUMBS)


def test_the_client_and_the_config_come_by_name():
    tap = burler.tap("tap-meta")
    tap.client(lambda config: {"unsupported": config["not"]})
    tap.sync("rows", schema=FIELDS)(lambda: [])

    @tap.metadata("rows")
    def visit(field, client, config):
        assert client["unsupported"] == config["not"] == tap.client.get("unsupported")
        if field.name in client["unsupported"]:
            field.inclusion.unsupported()

    assert discover(tap, {"not": ["tags"]}).entries["rows"].metadata[CRUMBS["tags"]] == {"inclusion": "unsupported"}


def test_the_schema_that_it_gets_is_that_of_the_catalog_and_stays_so():
    run = run_tap(tap_of(lambda sub_schema, breadcrumb: None))
    assert run.messages[0]["schema"] == FIELDS


def test_a_stream_has_its_own_metadata_while_it_runs():
    tap = burler.tap("tap-meta")
    seen = []

    @tap.sync("rows", key_properties="id", schema=FIELDS)
    def rows():
        seen.append(dict(tap.stream_metadata()))
        yield {"id": 1}

    tap.metadata("rows", {"": {"tap-meta.table": "t", "schema-name": "public"}})
    run_tap(tap)
    assert seen[0]["tap-meta.table"] == "t"
    assert seen[0]["schema-name"] == "public"
    assert seen[0]["table-key-properties"] == ["id"]


# ---- the mapping --------------------------------------------------------------------------------------


def test_metadata_as_a_mapping():
    tap = tap_of(
        {
            "": {"schema-name": "public"},
            "address.street": {"selected_by_default": False},
            "tags.name": {"inclusion": "unsupported"},
            "at": {"sql-datatype": "timestamptz"},
        }
    )
    assert written(tap)["schema-name"] == "public"
    assert written(tap, "address.street") == {"inclusion": "available", "selected-by-default": False}
    assert written(tap, "tags.name") == {"inclusion": "unsupported"}
    assert written(tap, "at") == {"inclusion": "available", "sql-datatype": "timestamptz"}


def test_the_function_has_the_last_word_over_the_mapping():
    tap = tap_of({"at": {"selected-by-default": False, "sql-datatype": "a"}})

    @tap.metadata("rows")
    def visit(field):
        if field.name == "at":
            field.selected.by_default(True)

    assert written(tap, "at") == {"inclusion": "available", "selected-by-default": True, "sql-datatype": "a"}


@pytest.mark.parametrize("given", [5, "x", ["id"], {"id": "automatic"}, {5: {}}, {"id": None}])
def test_what_is_no_mapping_of_fields_to_metadata(given: Any):
    with pytest.raises(DeclarationError, match=r"stream 'rows' \(.*test_metadata.py:\d+\).*metadata is a mapping"):
        burler.tap("tap-meta").metadata("rows", given)


def test_the_mapping_of_the_author_is_not_changed():
    given = {"": {"key_properties": "id"}, "at": {"selected_by_default": False}}
    before = json.dumps(given)
    entry_of(tap_of(given, key_properties=[]))
    assert json.dumps(given) == before


def test_metadata_for_a_field_that_is_not_there():
    with pytest.raises(DeclarationError) as caught:
        entry_of(tap_of({"adress.street": {"selected-by-default": False}}))
    text = str(caught.value)
    assert "stream 'rows' (" in text
    assert "described.py:" in text
    assert "'adress.street'" in text
    assert "Did you mean 'address.street'?" in text
    assert len(text.splitlines()) <= 3


# ---- what it does to a run ----------------------------------------------------------------------------


def test_unsupported_fields_never_come_whatever_the_user_selects():
    tap = tap_of({"address": {"inclusion": "unsupported"}})
    assert list(schema_of(tap)["schema"]["properties"]) == ["id", "at", "tags"]
    wire = discover(tap, {}).to_wire()
    for node in wire["streams"][0]["metadata"]:
        node["metadata"]["selected"] = True
    assert list(schema_of(tap, catalog=wire)["schema"]["properties"]) == ["id", "at", "tags"]


def test_fields_that_are_off_by_default_come_on_request():
    tap = tap_of({"at": {"selected-by-default": False}})
    assert "at" not in schema_of(tap)["schema"]["properties"]
    assert "at" in schema_of(tap, select="rows,rows.at")["schema"]["properties"]


def test_automatic_fields_come_whatever_the_user_says():
    tap = tap_of({"at": {"inclusion": "automatic"}})
    assert list(schema_of(tap, select="rows.tags")["schema"]["properties"]) == ["id", "at", "tags"]


def test_a_stream_that_is_off_by_default():
    tap = tap_of({"": {"selected-by-default": False}})
    assert run_tap(tap).records("rows") == []
    assert len(run_tap(tap, select="rows").records("rows")) == 1


def test_an_unsupported_stream_never_comes():
    tap = tap_of({"": {"inclusion": "unsupported"}})
    assert run_tap(tap).records("rows") == []


def test_a_path_that_two_fields_have_is_refused():
    nested = {"type": "object", "properties": {"ssn": TEXT}}
    schema = {"type": "object", "properties": {"id": INTEGER, "o.ssn": TEXT, "o": nested}}
    tap = tap_of({"o.ssn": {"inclusion": "unsupported"}}, schema=schema)
    with pytest.raises(DeclarationError) as caught:
        discover(tap, {})
    text = str(caught.value)
    assert "stream 'rows' (" in text and "field 'o.ssn'" in text
    assert '["properties","o.ssn"] and ["properties","o","properties","ssn"]' in text
    assert "@tap.metadata function" in text


def test_a_function_can_tell_the_two_apart():
    nested = {"type": "object", "properties": {"ssn": TEXT}}
    schema = {"type": "object", "properties": {"id": INTEGER, "o.ssn": TEXT, "o": nested}}

    def visit(field):
        if field.breadcrumb.path == ("properties", "o", "properties", "ssn"):
            field.inclusion.unsupported()

    assert schema_of(tap_of(visit, schema=schema))["schema"]["properties"]["o.ssn"] == TEXT
    assert schema_of(tap_of(visit, schema=schema))["schema"]["properties"]["o"]["properties"] == {}


@pytest.mark.parametrize("how", ["clear", "add", "delete", "nested", "stream"])
def test_a_function_does_not_change_the_schema(how: str, caplog: pytest.LogCaptureFixture):
    def visit(sub_schema, field, stream):
        if how == "clear":
            sub_schema.clear()
        elif field.level == 0 and how == "add":
            sub_schema["properties"]["evil"] = INTEGER
        elif field.level == 0 and how == "delete":
            del sub_schema["properties"]["at"]
        elif field.name == "geo" and how == "nested":
            sub_schema["properties"]["lat"]["type"] = "integer"
        elif how == "stream":
            stream.schema.get("properties", {}).clear()

    run = run_tap(tap_of(visit))
    assert run.messages[0]["schema"] == FIELDS
    assert [row["id"] for row in run.records("rows")] == [1]
    told = [one.getMessage() for one in caplog.records if "changes the schema that it gets" in one.getMessage()]
    assert len(told) == 1 and "test_metadata.py" in told[0]
