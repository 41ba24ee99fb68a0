"""A catalog of any tap, held against the rules: its form, its names, and SCHEMA messages."""

from copy import deepcopy

import pytest
from catalog_streams import TEXT, codes, contacts, of_field, one

from burler.spec import RULES, Findings, check_catalog, check_messages


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


# ---- SCHEMA messages -----------------------------------------------------------------------------


def of_message(**change):
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "email": TEXT}}
    message = {"type": "SCHEMA", "stream": "contacts", "schema": schema, "key_properties": ["id"], **change}
    findings = [one for one in check_messages([message]) if one.code[0] == "C"]
    assert all(finding.places == ("line 1",) for finding in findings)
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
