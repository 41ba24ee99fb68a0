"""A catalog of any tap, held against the rules."""

import json
from copy import deepcopy

import pytest

from burler.errors import CatalogError
from burler.spec.catalog import check_catalog, check_schema_message, read_catalog_text
from burler.spec.finding import Findings
from burler.spec.table import RULES

TEXT = {"type": ["null", "string"]}


def contacts(*, root=None, fields=None, said=None, **entry):
    """A stream that keeps all rules, changed where a test says so."""
    properties = {"id": {"type": "integer"}, "email": TEXT, **(fields or {})}
    inclusions = {name: {"inclusion": "automatic" if name == "id" else "available"} for name in properties}
    inclusions.update(said or {})
    metadata = [{"breadcrumb": ["properties", name], "metadata": one} for name, one in inclusions.items()]
    return {
        "tap_stream_id": "contacts",
        "stream": "contacts",
        "key_properties": ["id"],
        "schema": {"type": "object", "properties": properties},
        "metadata": [{"breadcrumb": [], "metadata": root or {}}, *metadata],
        **entry,
    }


def codes(*streams, **options):
    return [finding.code for finding in check_catalog({"streams": list(streams)}, **options)]


def one(*streams, **options):
    (finding,) = check_catalog({"streams": list(streams)}, **options)
    return finding


def of_field(node, **options):
    """What is found of a field with this schema: (code, path)."""
    stream = contacts(fields={"field": node}, **options)
    return [(finding.code, finding.path) for finding in check_catalog({"streams": [stream]})]


def test_a_good_catalog_gives_nothing_and_stays_as_it_is():
    catalog = {"streams": [contacts()]}
    before = deepcopy(catalog)
    assert list(check_catalog(catalog)) == []
    assert catalog == before


def test_a_finding_says_where():
    finding = one(contacts(), contacts(tap_stream_id="b", stream="b", key_properties=["ID"]), run="of tap-crm")
    assert (finding.code, finding.stream, finding.path) == ("C110", "b", "ID")
    assert (finding.places, finding.run, finding.severity) == (("streams[1]",), "of tap-crm", "error")


def test_findings_can_be_gathered_elsewhere():
    findings = Findings(RULES, run="resumed")
    assert check_catalog(None, findings=findings) is findings
    assert [(finding.code, finding.run) for finding in findings] == [("C101", "resumed")]


@pytest.mark.parametrize("catalog", [None, [], "{}", 5, {}, {"streams": None}, {"streams": {"contacts": {}}}])
def test_what_is_no_catalog(catalog):
    assert [finding.code for finding in check_catalog(catalog)] == ["C101"]


@pytest.mark.parametrize(
    "stream", [None, "contacts", [], {}, {"schema": {"type": "object", "properties": {"a": TEXT}}}]
)
def test_what_is_no_stream(stream):
    found = check_catalog({"streams": [stream]})
    assert "C101" in {finding.code for finding in found}
    assert {finding.stream for finding in found} == {None}


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a/b", "a\\b", "c:d", "a\nb", ".hidden", " a", "a.", "x" * 201, "ä" * 101, "a?"])
def test_names_that_are_no_part_of_a_path(name):
    assert codes(contacts(stream=name)) == ["C104"]


@pytest.mark.parametrize("name", ["public.contacts", "public-contacts", "Ünïcode", "x" * 200, "a b"])
def test_names_that_are(name):
    assert codes(contacts(stream=name)) == []


def test_the_alias_is_the_name_that_counts():
    two = contacts(tap_stream_id="two")
    assert codes(contacts(), two) == ["C103"]
    assert codes(contacts(), {**two, "stream_alias": "people"}) == []
    assert codes(contacts(), {**two, "stream_alias": "Contacts"}) == ["C105"]


def test_tables_of_two_databases_may_have_one_name():
    """Taps of databases put the schema or the database before it."""
    streams = [
        contacts(tap_stream_id=f"{where}-contacts", root={"schema-name": where, "table-key-properties": ["id"]})
        for where in ("sales", "archive")
    ]
    assert codes(*streams) == []


def test_case_twins_of_nested_fields():
    nested = {"type": "object", "properties": {"Zip": TEXT, "zip": TEXT}}
    assert of_field(nested) == [("C106", "field.Zip")]
    assert of_field({"type": "array", "items": nested}) == [("C106", "field[].Zip")]


def test_names_that_postgresql_cuts():
    long = "x" * 63
    assert codes(contacts(fields={long: TEXT})) == []
    assert one(contacts(fields={long + "y": TEXT})).message.endswith("PostgreSQL cuts it after 63")
    assert "are one in their first 63 bytes" in one(contacts(fields={long: TEXT, long + "y": TEXT})).message
    assert codes(contacts(fields={"nested": {"type": "object", "properties": {long + "y": TEXT}}})) == []


# ---- schemas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        [],
        "object",
        {},
        {"type": "object"},
        {"type": "string"},
        {"type": "array", "items": TEXT},
        {"type": "object", "properties": {}},
        {"anyOf": [{"type": "object", "properties": {"id": TEXT}}]},
    ],
    ids=json.dumps,
)
def test_no_object(schema):
    assert codes(contacts(schema=schema, metadata=[])) == ["C107"]


@pytest.mark.parametrize(
    "change", [{"type": ["null", "object"]}, {"additionalProperties": False}, {"definitions": {"a": {"type": "int"}}}]
)
def test_an_object(change):
    stream = contacts()
    stream["schema"].update(change)
    assert codes(stream) == []
    del stream["schema"]["type"]
    assert codes(stream) == []


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("#/definitions/a", "is left in the schema"),
        ("#/definitions/b", "points to nothing"),
        ("#mark", "is left in the schema"),
        ("#none", "points to nothing"),
        ("#/definitions/list/items/0", "is left in the schema"),
        ("#/definitions/list/items/1", "points to nothing"),
        ("shared.json#/a", "points to another document"),
        ("https://example.org/a.json", "points to another document"),
    ],
)
def test_references_that_are_left(reference, words):
    stream = contacts(fields={"field": {"type": "array", "items": {"$ref": reference}}})
    stream["schema"]["definitions"] = {"a": {"$id": "#mark", **TEXT}, "list": {"items": [TEXT]}}
    finding = one(stream)
    assert (finding.code, finding.path) == ("C108", "field[]")
    assert words in finding.message


@pytest.mark.parametrize("reference", ["#", "#/properties/field", "#/definitions/a", "#/definitions/b"])
def test_references_that_lead_round(reference):
    stream = contacts(fields={"field": {"$ref": reference}})
    round_ = {"type": "object", "properties": {"c": {"$ref": "#/definitions/a"}}}
    stream["schema"]["definitions"] = {"a": {"type": "array", "items": {"$ref": "#/definitions/b"}}, "b": round_}
    assert codes(stream) == ["C109"]


def test_a_field_called_ref_is_a_field():
    assert of_field({"type": "object", "properties": {"$ref": TEXT, "type": TEXT, "items": TEXT}}) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("int", "'integer'"),
        ("datetime", '"format": "date-time"'),
        ("String", "'string'"),
        (["null", "float"], "'number'"),
        ("any", "anything"),
        ([], "empty"),
        (None, "not null"),
        (5, "not the number 5"),
        ({"type": "string"}, "not an object"),
        ("x" * 1000, "there is no type"),
    ],
    ids=lambda given: json.dumps(given)[:20],
)
def test_types_that_do_not_exist(given, words):
    finding = one(contacts(fields={"field": {"type": given}}))
    assert (finding.code, finding.path) == ("C123", "field")
    assert words in finding.message and len(finding.message) < 200


HARD = [
    {},
    {"description": "anything"},
    {"enum": ["a"]},
    True,
    {"type": "null"},
    {"type": ["string", "object"]},
    {"type": ["null", "integer", "string"]},
    {"type": "array"},
    {"type": "array", "items": [TEXT, TEXT]},
    {"type": "array", "prefixItems": [TEXT]},
    {"type": "object", "patternProperties": {"^x": TEXT}},
    {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    {"oneOf": [{"type": "string"}, {}]},
    {"anyOf": [{"type": "object", "properties": {"a": TEXT}}, {"type": "object", "properties": {"b": TEXT}}]},
    {"allOf": [{"type": "string"}]},
]


@pytest.mark.parametrize("node", HARD, ids=json.dumps)
def test_what_targets_make_no_column_of(node):
    assert of_field(node) == [("C124", "field")]
    assert of_field({"type": "array", "items": node}) == [("C124", "field[]")]
    assert of_field({"type": "object", "properties": {"a": node}}) == [("C124", "field.a")]


@pytest.mark.parametrize("node", HARD, ids=json.dumps)
def test_fields_that_never_come_are_left_alone(node):
    """A tap of a database publishes columns of odd types so."""
    assert of_field(node, said={"field": {"inclusion": "unsupported"}}) == []
    if node is not True:
        assert of_field({**node, "inclusion": "unsupported"}, said={"field": {}}) == []


@pytest.mark.parametrize(
    "node",
    [
        {"type": ["null", "integer", "number"]},
        {"anyOf": [{"type": "string", "format": "date-time"}, {"type": ["string", "null"]}]},
        {"anyOf": [{"type": "object", "properties": {"a": TEXT}}, {"type": "null"}]},
        {"oneOf": [{"type": "null"}, {"type": "array", "items": TEXT}]},
        {"anyOf": [{"type": "integer"}, {"type": "number"}]},
        {"type": "object", "properties": {"a": TEXT}, "anyOf": [{"required": ["a"]}, {"minProperties": 1}]},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "string", "not": {"enum": [""]}},
        {"type": "string", "maxLength": 5, "minLength": 0, "pattern": "^a", "title": "A", "enum": ["a"], "default": 1},
        {"type": "number", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 0.01},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1e300},
        {"type": "array", "items": TEXT, "uniqueItems": True, "minItems": 1.0},
        {"type": "string", "format": "uri"},
        {"type": "integer", "format": "int64"},
        {"type": "string", "format": "time"},
    ],
    ids=json.dumps,
)
def test_what_targets_take(node):
    assert of_field(node) == []


INVALID = [
    ({"type": ["string", "string"]}, "names a type twice"),
    ({"type": "string", "pattern": "("}, "does not compile"),
    ({"type": "string", "pattern": "a{99999999999}"}, "does not compile"),
    ({"type": "string", "pattern": None}, "null"),
    ({"type": "object", "required": True}, "draft 3"),
    ({"type": "object", "required": "id"}, "a list of names"),
    ({"type": "object", "properties": {"a": TEXT}, "required": ["a", "a"]}, "twice"),
    ({"type": "object", "properties": []}, "an object of names"),
    ({"type": "string", "enum": "a"}, "a list of values"),
    ({"type": "string", "enum": []}, "no value fits"),
    ({"type": "number", "minimum": "0"}, "a number"),
    ({"type": "number", "maximum": True}, "a number"),
    ({"type": "number", "multipleOf": 0}, "above 0"),
    ({"type": "number", "exclusiveMinimum": None}, "a number, or true or false"),
    ({"type": "string", "maxLength": -1}, "0 or more"),
    ({"type": "string", "maxLength": 1.5}, "0 or more"),
    ({"type": "array", "items": TEXT, "uniqueItems": "yes"}, "true or false"),
    ({"type": "string", "format": None}, "text"),
    ({"type": "string", "$ref": 5}, "text"),
    ({"type": "string", "anyOf": {}}, "one schema or more"),
    ({"type": "string", "dependencies": []}, "names and schemas"),
    ("string", "should be"),
    (None, "should be"),
]


@pytest.mark.parametrize(("node", "words"), INVALID, ids=lambda given: json.dumps(given)[:60])
def test_keywords_with_wrong_values(node, words):
    finding = one(contacts(fields={"field": {"type": "object", "properties": {"a": node}}}))
    assert (finding.code, finding.path) == ("C125", "field.a")
    assert words in finding.message


def test_keywords_are_looked_at_inside_conditions_too():
    assert of_field({"type": "string", "not": {"minLength": "1"}}) == [("C125", "field")]
    assert of_field({"type": "object", "patternProperties": {"(": TEXT}}) == [("C125", "field"), ("C124", "field")]


def test_a_schema_of_too_many_levels():
    node = TEXT
    for _ in range(120):
        node = {"type": "array", "items": node}
    assert {finding.code for finding in check_catalog({"streams": [contacts(fields={"field": node})]})} == {"C125"}


@pytest.mark.parametrize(
    "more",
    [{"additionalProperties": True}, {"patternProperties": {}}, {"anyOf": [{"required": ["a"]}]}],
    ids=json.dumps,
)
def test_required_fields_that_may_come_all_the_same(more):
    assert of_field({"type": "object", "properties": {}, "required": ["b"]}) == [("C131", "field")]
    assert of_field({"type": "object", "properties": {}, "required": ["b"], **more}) == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("datetime", "date-time"),
        ("Date-Time", "date-time"),
        ("singer_decimal", "singer.decimal"),
        ("ISO8601", "date-time"),
    ],
)
def test_formats_that_are_meant_for_others(given, meant):
    finding = one(contacts(fields={"field": {"type": "string", "format": given}}))
    assert finding.code == "C132" and f"'{meant}'" in finding.message


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


# ---- SCHEMA messages -----------------------------------------------------------------------------


def of_message(**change):
    findings = Findings(RULES)
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "email": TEXT}}
    message = {"type": "SCHEMA", "stream": "contacts", "schema": schema, "key_properties": ["id"], **change}
    check_schema_message(message, findings, place="line 12")
    assert all(finding.places == ("line 12",) for finding in findings)
    return [(finding.code, finding.stream, finding.path) for finding in findings]


def test_a_schema_message():
    assert of_message() == []
    assert of_message(schema=[]) == [("C107", "contacts", None)]
    assert of_message(key_properties=["ID"]) == [("C110", "contacts", "ID")]
    assert of_message(bookmark_properties=["at"]) == [("C114", "contacts", "at")]
    fields = {"id": {"type": "int"}, "Id": {}, "a": {"$ref": "#"}, "b": {**TEXT, "enum": 5}}
    found = of_message(schema={"type": "object", "properties": fields})
    assert {code for code, _, _ in found} == {"C106", "C123", "C124", "C125", "C109"}


def test_what_is_missing_from_a_schema_message_is_for_others_to_say():
    assert of_message(stream=None, schema=None, key_properties=None) == []
    assert of_message(stream=5, key_properties="id", bookmark_properties="id") == []


# ---- reading -------------------------------------------------------------------------------------


def test_the_text_of_a_catalog():
    assert read_catalog_text(b'\xef\xbb\xbf{"streams": []}') == {"streams": []}
    assert read_catalog_text(b"5") == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not JSON"),
        (b"{'streams': []}", "not JSON"),
        (b'{"streams": [}', "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        ('{"streams": []}'.encode("utf-16"), "not UTF-8"),
        (b'{"streams": [], "streams": []}', "'streams' is there twice"),
        (b"[" * 100_000, "nested too deep."),
    ],
    ids=["empty", "quotes", "broken", "nan", "utf-16", "twice", "deep"],
)
def test_what_is_no_text_of_a_catalog(text, words):
    with pytest.raises(CatalogError, match=words):
        read_catalog_text(text)
