"""Keys, replication and metadata in a catalog."""

import json

import pytest
from catalog_streams import TEXT, codes, contacts, one

# ---- keys and replication ------------------------------------------------------------------------

UPDATED = {"updated_at": {"type": "string", "format": "date-time"}}
STAYS = {"updated_at": {"inclusion": "automatic"}}


@pytest.mark.parametrize("keys", ["id", 5, {"id": 1}, [1]], ids=json.dumps)
def test_keys_that_are_no_list_of_names(keys):
    assert codes(contacts(key_properties=keys)) == ["C110"]


def test_keys_are_looked_for_where_taps_write_them():
    in_metadata = contacts(root={"table-key-properties": ["id"]})
    del in_metadata["key_properties"]
    assert codes(in_metadata) == []
    of_a_view = contacts(key_properties=[], root={"is-view": True, "view-key-properties": ["id"]})
    assert codes(of_a_view) == []
    of_a_view["metadata"][0]["metadata"]["view-key-properties"] = ["ID"]
    assert codes(of_a_view) == ["C110"]
    assert codes(contacts(key_properties=[], root={"table-key-properties": ["id"]})) == ["C122"]


@pytest.mark.parametrize("key", [{"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": ["integer", "null"]}])
def test_keys_that_may_be_null(key):
    assert codes(contacts(fields={"id": key})) == ["C111"]


def test_a_key_that_never_comes():
    assert codes(contacts(said={"id": {"inclusion": "unsupported"}})) == ["C112"]


@pytest.mark.parametrize(
    ("entry", "root", "expected"),
    [
        ({"replication_key": "updated_at", "replication_method": "INCREMENTAL"}, {}, []),
        ({"replication_method": "INCREMENTAL"}, {"valid-replication-keys": ["updated_at", "id"]}, []),
        ({"replication_method": "INCREMENTAL"}, {}, ["C117"]),
        ({}, {"replication-method": "INCREMENTAL"}, ["C117"]),
        ({}, {"forced-replication-method": "INCREMENTAL"}, ["C134"]),
        ({"replication_method": "FULL_TABLE"}, {"valid-replication-keys": []}, []),
        ({"replication_method": "LOG_BASED"}, {}, []),
        ({"replication_method": "incremental"}, {}, ["C116"]),
        ({"replication_method": ["FULL_TABLE"]}, {}, ["C116"]),
        ({"replication_method": None, "replication_key": ""}, {}, []),
        ({"replication_key": 5}, {}, ["C114"]),
        ({}, {"valid-replication-keys": ["changed"]}, ["C114"]),
        ({}, {"replication-key": "changed"}, ["C114"]),
        ({"replication_key": "id"}, {"valid-replication-keys": ["updated_at"]}, ["C122"]),
        ({"replication_method": "FULL_TABLE"}, {"forced-replication-method": "LOG_BASED"}, ["C122"]),
    ],
    ids=json.dumps,
)
def test_replication(entry, root, expected):
    assert codes(contacts(fields=UPDATED, said=STAYS, root=root, **entry)) == expected


def test_a_replication_key_that_can_be_left_out():
    only = {"forced-replication-method": "INCREMENTAL", "valid-replication-keys": ["updated_at"]}
    assert codes(contacts(fields=UPDATED, root=only)) == ["C115"]
    assert codes(contacts(fields=UPDATED, said=STAYS, root=only)) == []
    chosen = {"updated_at": {"inclusion": "available", "selected": True}}
    assert codes(contacts(fields=UPDATED, said=chosen, root=only)) == []
    of_many = {"valid-replication-keys": ["updated_at", "email"]}
    assert codes(contacts(fields=UPDATED, root=of_many, replication_method="FULL_TABLE")) == []


@pytest.mark.parametrize("node", [{"type": ["null", "boolean"]}, {"type": "array", "items": TEXT}], ids=json.dumps)
def test_replication_keys_without_an_order(node):
    assert codes(contacts(fields={"done": node}, root={"valid-replication-keys": ["done"]})) == ["C129"]


# ---- metadata ------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["tap-crm.kind", "tap_crm.kind", "tap-other.kind", "crm.kind"])
def test_keys_of_the_taps_own(key):
    assert codes(contacts(root={key: 1}), config_tap_name="crm") == []


@pytest.mark.parametrize("key", ["tap-crm", "tap-crm.", "crm.kind", "fieldExclusions", ""])
def test_keys_that_nobody_knows(key):
    assert codes(contacts(root={key: 1})) == ["C118"]


def test_an_unknown_key_of_many_fields_is_one_finding():
    said = {name: {"inclusion": "available", "behaviour": "x", "Selected": 1} for name in ("email", "a", "b")}
    finding = one(contacts(fields={"a": TEXT, "b": TEXT}, said=said))
    assert (finding.code, finding.path) == ("C118", "email")
    assert "'behaviour' (3 places); 'Selected' (3 places) (did you mean 'selected'?)" in finding.message


NESTED = {
    "tags": {"type": "array", "items": {"type": "object", "properties": {"name": TEXT}}},
    "either": {"anyOf": [{"type": "object", "properties": {"b": TEXT}}, {"type": "null"}]},
    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"c": TEXT}}},
}


@pytest.mark.parametrize(
    "crumb",
    [
        ["properties", "tags", "items", "properties", "name"],
        ["properties", "tags", "items"],
        ["properties", "either", "properties", "b"],
        ["properties", "either", "anyOf", 0, "properties", "b"],
        ["properties", "either", "anyOf", "0", "properties", "b"],
        ["properties", "map", "additionalProperties", "properties", "c"],
    ],
    ids=json.dumps,
)
def test_breadcrumbs_that_lead_somewhere(crumb):
    stream = contacts(fields=NESTED)
    stream["metadata"].append({"breadcrumb": crumb, "metadata": {"inclusion": "available"}})
    assert codes(stream) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"breadcrumb": ["properties", "emial"], "metadata": {}},
        {"breadcrumb": ["email"], "metadata": {}},
        {"breadcrumb": ["properties", "tags", "properties", "name"], "metadata": {}},
        {"breadcrumb": ["properties", "email"], "metadata": {}},
        {"breadcrumb": [], "metadata": {}},
        {"breadcrumb": "properties.tags.items", "metadata": {}},
        {"breadcrumb": ["properties", 5], "metadata": {}},
        {"breadcrumb": None, "metadata": {}},
        {"breadcrumb": {}, "metadata": {}},
        {"breadcrumb": []},
        {"metadata": {}},
        [],
        None,
    ],
    ids=json.dumps,
)
def test_metadata_that_does_not_say_what_it_is_about(entry):
    stream = contacts(fields=NESTED)
    stream["metadata"].append(entry)
    finding = one(stream)
    assert finding.code == "C119"
    assert finding.places[0].startswith("streams[0].metadata[6]")


def test_a_breadcrumb_that_is_misspelt():
    stream = contacts()
    stream["metadata"].append({"breadcrumb": ["properties", "emial"], "metadata": {}})
    assert "Did you mean 'email'?" in one(stream).message


def test_no_breadcrumb_is_missed_where_a_reference_hides_the_fields():
    stream = contacts(fields={"address": {"$ref": "#/definitions/address"}})
    stream["schema"]["definitions"] = {"address": {"type": "object", "properties": {"city": TEXT}}}
    crumb = ["properties", "address", "properties", "city"]
    stream["metadata"].append({"breadcrumb": crumb, "metadata": {"inclusion": "available"}})
    assert codes(stream) == ["C108"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("selected", "true"),
        ("selected", 1),
        ("inclusion", "always"),
        ("inclusion", ["available"]),
        ("table-key-properties", "id"),
        ("valid-replication-keys", [1]),
        ("is-view", "no"),
        ("row-count", "12"),
        ("schema-name", 5),
        ("sql-datatype", "int"),  # of a field
    ],
)
def test_values_of_a_wrong_kind(key, value):
    assert codes(contacts(root={key: value})) == ["C120"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("selected", None), ("row-count", -1), ("schema-name", ""), ("is-view", False), ("selected-by-default", True)],
)
def test_values_of_the_right_kind(key, value):
    assert codes(contacts(root={key: value})) == []


def test_a_key_of_the_stream_at_a_field():
    finding = one(contacts(said={"email": {"inclusion": "available", "replication-key": "email"}}))
    assert (finding.code, finding.path) == ("C120", "email")


def test_an_inclusion_in_the_schema_counts():
    """As catalogs of old have it, which have no metadata at all."""
    fields = {"id": {"type": "integer", "inclusion": "automatic"}, "email": {**TEXT, "inclusion": "available"}}
    assert codes(contacts(fields=fields, metadata=[])) == []
    assert codes(contacts(fields=fields, metadata=None)) == []
    finding = one(contacts(metadata=[]))
    assert (finding.code, finding.message) == ("C121", "2 of 2 fields have no 'inclusion': 'id', 'email'")
