"""A WSDL's types as JSON Schema. tests/schema/data/wsdl is a made-up service with most of what XSD has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import burler
from burler.errors import DeclarationError
from burler.schema import check_types

DATA = Path(__file__).parent / "data" / "wsdl"
HEAD = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t" '
    'elementFormDefault="qualified">'
)
WHERE = "stream 'rows' (tap_x.py:3)"


def crm(**options):
    return burler.wsdl(filepath=DATA / "crm.wsdl", **options).load(where="stream 'contacts' (tap_x.py:3)", config={})


@pytest.fixture
def xsd(tmp_path):
    """The schema of the type ``Row`` in an XSD of which a test writes the inside."""

    def load(inside, **options):
        (tmp_path / "a.xsd").write_text(f"{HEAD}{inside}</xs:schema>")
        options.setdefault("element", "Row")
        return burler.wsdl(filepath=tmp_path / "a.xsd", **options).load(where=WHERE, config={})

    return load


@pytest.fixture
def field(xsd):
    """The schema of one field: of a type of XSD, or of an element that a test writes."""

    def load(type_or_element, more="", **options):
        element = type_or_element
        if not element.startswith("<"):
            element = f'<xs:element name="a" type="{type_or_element}"/>'
        row = f'<xs:complexType name="Row"><xs:sequence>{element}</xs:sequence></xs:complexType>'
        return xsd(more + row, **options)["properties"]["a"]

    return load


def restricted(base, *facets):
    inside = "".join(f'<xs:{name} value="{value}"/>' for name, value in facets)
    return (
        f'<xs:element name="a"><xs:simpleType><xs:restriction base="{base}">{inside}</xs:restriction>'
        "</xs:simpleType></xs:element>"
    )


CONTACT = {
    "Id": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "Name": {"type": "string"},
    "Status": {"type": ["null", "string"], "enum": ["new", "active", "gone", None]},
    "Born": {"type": ["null", "string"], "format": "date"},
    "Modified": {"type": "string", "format": "date-time"},
    "Closes": {"type": ["null", "string"], "format": "time"},
    "Contract": {"type": ["null", "string"], "format": "duration"},
    "Rating": {"type": ["null", "integer"], "minimum": -(2**31), "maximum": 2**31 - 1},
    "Score": {"type": ["null", "number"]},
    "Active": {"type": ["null", "boolean"]},
    "Balance": {
        "type": ["null", "object"],
        "properties": {
            "value": {"type": ["null", "number"], "format": "singer.decimal"},
            "currency": {"type": "string"},
        },
        "required": ["currency"],
    },
    "Share": {"type": ["null", "number"], "format": "singer.decimal"},
    "Code": {"type": ["null", "string"]},
    "Photo": {"type": ["null", "string"], "contentEncoding": "base64"},
    "Phones": {
        "type": ["null", "array"],
        "items": {
            "type": "object",
            "properties": {
                "value": {"type": ["null", "string"]},
                "kind": {"type": ["null", "string"], "enum": ["home", "work", None]},
            },
        },
    },
    "Tags": {"type": ["null", "array"], "items": {"type": "string"}},
    "Note": {"type": ["null", "array"], "items": {"type": ["null", "string"]}},
    "Email": {"type": ["null", "string"]},
    "Street": {"type": ["null", "string"]},
    "City": {"type": ["null", "string"]},
    "CreatedBy": {"type": "string"},
    "UpdatedBy": {"type": ["null", "string"]},
    "Numbers": {"type": ["null", "array"], "items": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}},
    "Year": {"type": ["null", "string"]},
    "version": {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
    "lang": {"type": ["null", "string"]},
    "system": {"type": ["null", "string"]},
}


@pytest.mark.parametrize(
    "options",
    [
        {"element": "Contact"},
        {"element": "{urn:crm:types}Contact"},
        {"operation": "GetContact"},
        {"operation": "GetContact", "rows": "GetContactResult"},
        {"operation": "ListContacts", "rows": "ListContactsResult.Contacts.Contact"},
        {"operation": "ListContacts", "rows": "ListContactsResult.Contacts"},
        {},  # the element that is named as the stream is
        {"parse": lambda wsdl: wsdl.types.get_element("{urn:crm:types}Contact")},
        {"parse": lambda wsdl: wsdl.types.get_type("{urn:crm:types}Contact")},
    ],
)
def test_a_contact_with_all_that_it_holds(options):
    """Base fields first, several namespaces and documents, groups, choices, lists, attributes."""
    schema = crm(**options)
    assert schema["properties"] == CONTACT
    assert list(schema["properties"])[:3] == ["Id", "Name", "Status"]
    assert schema["required"] == ["Id", "Name", "Modified", "Closes", "CreatedBy", "version"]
    check_types(schema, where="x")
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("xs:string", {"type": "string"}),
        ("xs:anyURI", {"type": "string"}),
        ("xs:QName", {"type": "string"}),
        ("xs:hexBinary", {"type": "string"}),
        ("xs:ID", {"type": "string"}),
        ("xs:gYearMonth", {"type": "string"}),
        ("xs:boolean", {"type": "boolean"}),
        ("xs:float", {"type": "number"}),
        ("xs:integer", {"type": "integer"}),
        ("xs:byte", {"type": "integer", "minimum": -128, "maximum": 127}),
        ("xs:unsignedLong", {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}),
        ("xs:positiveInteger", {"type": "integer", "minimum": 1}),
        ("xs:negativeInteger", {"type": "integer", "maximum": -1}),
        ("xs:anyType", {}),
        ("xs:anySimpleType", {}),
    ],
)
def test_types_of_xsd_itself(field, kind, schema):
    assert field(kind) == schema


@pytest.mark.parametrize(
    ("element", "schema"),
    [
        (restricted("xs:short", ("enumeration", "1"), ("enumeration", " 2 "), ("enumeration", "1")),
         {"type": "integer", "minimum": -(2**15), "maximum": 2**15 - 1, "enum": [1, 2]}),
        (restricted("xs:int", ("minInclusive", "1"), ("enumeration", "x")),
         {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}),
        (restricted("xs:decimal", ("fractionDigits", "4"), ("minInclusive", "0.5"), ("enumeration", "0.5")),
         {"type": "number", "format": "singer.decimal"}),
        (restricted("xs:string", ("length", "3"), ("pattern", "[a-z]")), {"type": "string"}),
        (restricted("xs:date", ("minInclusive", "2000-01-01")), {"type": "string", "format": "date"}),
        ('<xs:element name="a" type="xs:int" nillable="true"/>',
         {"type": ["null", "integer"], "minimum": -(2**31), "maximum": 2**31 - 1}),
        ('<xs:element name="a" minOccurs="0"/>', {}),
        ('<xs:element name="a" type="xs:boolean" maxOccurs="5"/>',
         {"type": ["null", "array"], "items": {"type": "boolean"}}),
        ('<xs:element name="a"><xs:simpleType><xs:list itemType="xs:boolean"/></xs:simpleType></xs:element>',
         {"type": "array", "items": {"type": "boolean"}}),
        ('<xs:element name="a"><xs:simpleType><xs:union memberTypes="xs:int xs:string"/></xs:simpleType></xs:element>',
         {"type": "string"}),
        ('<xs:element name="a"><xs:complexType/></xs:element>', {"type": "object", "properties": {}}),
    ],
)  # fmt: skip
def test_elements_and_restrictions(field, element, schema):
    assert field(element) == schema


def test_a_restriction_of_a_restriction(field):
    one = '<xs:restriction base="xs:string"><xs:enumeration value="a"/><xs:enumeration value="b"/></xs:restriction>'
    two = '<xs:restriction base="t:One"><xs:enumeration value="b"/></xs:restriction>'
    three = '<xs:restriction base="t:One"><xs:minLength value="1"/></xs:restriction>'
    more = "".join(
        f'<xs:simpleType name="{name}">{kind}</xs:simpleType>'
        for name, kind in (("One", one), ("Two", two), ("Three", three))
    )
    assert field("t:Two", more) == {"type": "string", "enum": ["b"]}
    assert field("t:One", more) == field("t:Three", more) == {"type": "string", "enum": ["a", "b"]}


def test_a_restriction_of_a_list_keeps_the_list(field):
    more = (
        '<xs:simpleType name="L"><xs:list itemType="xs:byte"/></xs:simpleType>'
        '<xs:simpleType name="M"><xs:restriction base="t:L"><xs:maxLength value="3"/></xs:restriction></xs:simpleType>'
    )
    items = {"type": "integer", "minimum": -128, "maximum": 127}
    assert field("t:M", more) == {"type": "array", "items": items}


def test_names_that_meet(xsd):
    schema = xsd(
        '<xs:complexType name="Text"><xs:simpleContent><xs:extension base="xs:int">'
        '<xs:attribute name="value" type="xs:string"/></xs:extension></xs:simpleContent></xs:complexType>'
        '<xs:complexType name="Row"><xs:sequence><xs:element name="a" type="xs:int"/>'
        '<xs:element name="b" type="t:Text"/><xs:element name="a" type="xs:string"/></xs:sequence>'
        '<xs:attribute name="a" type="xs:boolean"/></xs:complexType>'
    )
    assert list(schema["properties"]) == ["a", "b", "a__1", "attr__a"]
    assert list(schema["properties"]["b"]["properties"]) == ["_value", "value"]


def test_a_choice_of_sequences_that_share_a_field(xsd):
    schema = xsd(
        '<xs:complexType name="Row"><xs:choice>'
        '<xs:sequence><xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:string"/></xs:sequence>'
        '<xs:sequence><xs:element name="a" type="xs:string"/><xs:element name="c" type="xs:string"/></xs:sequence>'
        "</xs:choice></xs:complexType>"
    )
    text = {"type": ["null", "string"]}
    assert schema == {"type": "object", "properties": {"a": {}, "b": text, "c": text}}


def test_groups_that_repeat_are_lists_of_rounds(xsd):
    schema = xsd(
        '<xs:complexType name="Row"><xs:sequence maxOccurs="unbounded"><xs:element name="k" type="xs:string"/>'
        '<xs:element name="v" type="xs:boolean"/></xs:sequence></xs:complexType>'
    )
    parts = {"k": {"type": ["null", "string"]}, "v": {"type": ["null", "boolean"]}}
    assert schema["properties"] == {
        "_value_1": {"type": ["null", "array"], "items": {"type": "object", "properties": parts}}
    }


@pytest.mark.parametrize(
    ("element", "names"),
    [
        ("Open", ["Id", "Anything", "_value_1", "_attr_1"]),
        ("Shape", ["Id", "Radius", "Size", "Side"]),
        ("Circle", ["Id", "Radius", "Size"]),
        ("Owner", ["Id", "Pet", "Dog", "Cat"]),
        ("Log", ["Id", "_value_1", "attr__Id"]),
        ("Small", ["Id", "version"]),
    ],
)
def test_types_that_need_care(element, names):
    schema = crm(element=element)
    assert list(schema["properties"]) == names
    check_types(schema, where="x")


def test_an_abstract_type_has_the_fields_of_all_that_derive_from_it():
    schema = crm(element="Shape")
    assert schema["required"] == ["Id"]
    kinds = [branch["type"] for branch in schema["properties"]["Size"]["anyOf"]]
    assert kinds == [["null", "integer"], ["null", "string"]]


def test_a_type_that_holds_itself_is_refused_or_cut():
    with pytest.raises(DeclarationError, match="the type 'Node' holds itself at 'Child'") as caught:
        crm(element="Node")
    assert 'recursive="open"' in str(caught.value)
    once = crm(element="Node", recursive="open")
    assert once["properties"]["Child"] == {"type": ["null", "array"], "items": {}}
    twice = crm(element="Node", recursive=1)["properties"]["Child"]["items"]
    assert list(twice["properties"]) == ["Label", "Child"]
    assert twice["properties"]["Child"] == {"type": ["null", "array"], "items": {}}


def test_a_type_that_is_used_twice_is_no_circle(xsd):
    schema = xsd(
        '<xs:complexType name="P"><xs:sequence><xs:element name="x" type="xs:int"/></xs:sequence></xs:complexType>'
        '<xs:complexType name="Row"><xs:sequence><xs:element name="a" type="t:P"/><xs:element name="b" type="t:P"/>'
        "</xs:sequence></xs:complexType>"
    )
    assert schema["properties"]["a"] == schema["properties"]["b"]


def test_an_array_in_soaps_own_encoding(xsd):
    """The schema of the encoding comes with burler: nobody is asked for it."""
    schema = xsd(
        '<xs:import namespace="http://schemas.xmlsoap.org/soap/encoding/"/>'
        '<xs:complexType name="P"><xs:sequence><xs:element name="x" type="xs:string"/></xs:sequence></xs:complexType>'
        '<xs:complexType name="Ps"><xs:complexContent><xs:restriction '
        'xmlns:e="http://schemas.xmlsoap.org/soap/encoding/" base="e:Array"><xs:attribute ref="e:arrayType" '
        'xmlns:w="http://schemas.xmlsoap.org/wsdl/" w:arrayType="t:P[]"/></xs:restriction></xs:complexContent>'
        '</xs:complexType><xs:complexType name="Row"><xs:sequence><xs:element name="a" type="t:Ps"/>'
        "</xs:sequence></xs:complexType>"
    )
    item = {"type": ["null", "object"], "properties": {"x": {"type": "string"}}, "required": ["x"]}
    assert schema["properties"]["a"] == {"type": "array", "items": item}


# ---- what is asked for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"element": "Contcat"}, "there is no element or type 'Contcat'. Did you mean 'Contact'"),
        ({"operation": "ListContact"}, "there is no operation 'ListContact'. Did you mean 'ListContacts'"),
        ({"operation": "Ping"}, "the operation 'Ping' answers nothing"),
        ({"operation": "ListContacts", "rows": "Contacts"}, "rows='Contacts': there is no field 'Contacts' there. "
         "Did you mean 'ListContactsResult'?"),
        ({"operation": "ListContacts", "rows": "ListContactsResult.NextPage"}, "has no fields"),
        ({"element": "Rating"}, "'Rating' has no fields"),
        ({"modify": lambda schema: 5}, "modify gives the schema, a dict, not int"),
        ({"modify": lambda schema: schema["x"]}, "the function modify= failed: KeyError: 'x'"),
        ({"parse": lambda wsdl: 1 / 0}, "the function parse= failed: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_one_error(options, said):
    with pytest.raises(DeclarationError) as caught:
        crm(**options)
    text = str(caught.value)
    assert said in text and text.startswith("stream 'contacts' (tap_x.py:3): ")
    assert len(text.splitlines()) <= 3


def test_without_a_name_the_streams_own_has_to_be_there():
    source = burler.wsdl(filepath=DATA / "crm.wsdl")
    with pytest.raises(DeclarationError, match=r"which element is a row\? Say it with element=... or operation=..."):
        source.load(where="stream 'invoices' (tap_x.py:3)", config={})


@pytest.mark.parametrize(
    "arguments",
    [{}, {"url": "http://x/a", "filepath": "b"}, {"url": "http://x/a", "element": "A", "operation": "B"},
     {"url": "http://x/a", "rows": "a..b"}, {"url": "http://x/a", "recursive": 0},
     {"url": "http://x/a", "recursive": True}, {"url": "http://x/a", "recursive": "yes"}],
)  # fmt: skip
def test_wrong_arguments_are_refused_where_they_stand(arguments):
    with pytest.raises(ValueError):
        burler.wsdl(**arguments)


def test_an_element_of_two_namespaces_is_asked_about(tmp_path):
    other = (
        HEAD.replace("urn:t", "urn:u") + '<xs:element name="Row"><xs:complexType><xs:sequence>'
        '<xs:element name="b" type="xs:int"/></xs:sequence></xs:complexType></xs:element></xs:schema>'
    )
    (tmp_path / "u.xsd").write_text(other)
    (tmp_path / "a.xsd").write_text(
        f'{HEAD}<xs:import namespace="urn:u" schemaLocation="u.xsd"/>'
        '<xs:element name="Row"><xs:complexType><xs:sequence><xs:element name="a" type="xs:int"/></xs:sequence>'
        "</xs:complexType></xs:element></xs:schema>"
    )
    with pytest.raises(DeclarationError, match=r"more than one 'Row'. Write element='\{urn:t\}Row' or '\{urn:u\}Row'"):
        burler.wsdl(filepath=tmp_path / "a.xsd", element="Row").load(where=WHERE, config={})
    found = burler.wsdl(filepath=tmp_path / "a.xsd", element="{urn:u}Row").load(where=WHERE, config={})
    assert list(found["properties"]) == ["b"]


def test_modify_changes_the_schema_or_gives_another():
    def drop(schema):
        del schema["properties"]["Photo"]

    assert "Photo" not in crm(modify=drop)["properties"]
    assert crm(modify=lambda schema: {"properties": {"Id": schema["properties"]["Id"]}}) == {
        "properties": {"Id": CONTACT["Id"]}
    }


def test_document_and_cache_come_from_the_config(tmp_path):
    source = burler.wsdl(url=lambda config: config["wsdl"], element="Contact")
    found = source.load(where=WHERE, config={"wsdl": str(DATA / "crm.wsdl")})
    assert found["properties"] == CONTACT
    with pytest.raises(DeclarationError, match="the function for the document failed: the config has no 'wsdl'"):
        source.load(where=WHERE, config={})
    with pytest.raises(DeclarationError, match="the document is a path or a URL, not int"):
        burler.wsdl(url=lambda config: 5).load(where=WHERE, config={})


def test_a_stream_with_a_schema_from_a_wsdl():
    """``tap.schema("contacts", method=wsdl(...))``."""
    from burler.testing import run_tap

    tap = burler.tap("tap-crm")
    tap.schema("contacts", method=burler.wsdl(filepath=DATA / "crm.wsdl"))

    @tap.sync("contacts", key_properties="Id")
    def contacts():
        row = {"Id": "7", "Name": "", "Modified": "2024-01-02T03:04:05+01:00", "Closes": None, "CreatedBy": "me"}
        yield {**row, "version": 1, "Balance": {"value": "12.50", "currency": "EUR"}}

    out = run_tap(tap)
    assert not out.result.errors
    assert out.records("contacts")[0]["Modified"] == "2024-01-02T02:04:05Z"
    assert out.messages[0]["schema"]["properties"]["Rating"] == CONTACT["Rating"]


# ---- sizes and oddities -------------------------------------------------------------------------------------------


def test_types_that_stand_for_more_fields_than_there_is_memory_for_are_an_error(xsd):
    """2.5 kB of XSD: each type has two fields of the next, which makes 2**40 of the last."""
    types = "".join(
        f'<xs:complexType name="T{n}"><xs:sequence><xs:element name="a" type="t:T{n + 1}"/>'
        f'<xs:element name="b" type="t:T{n + 1}"/></xs:sequence></xs:complexType>'
        for n in range(40)
    )
    last = '<xs:complexType name="T40"><xs:sequence><xs:element name="x" type="xs:int"/></xs:sequence></xs:complexType>'
    with pytest.raises(DeclarationError, match=r"has more than 100,000 fields(.|\n)*Take a smaller part with element="):
        xsd(f'{types}{last}<xs:element name="Row" type="t:T0"/>')


def test_types_that_are_nested_too_deep_are_an_error(xsd):
    types = "".join(
        f'<xs:complexType name="T{n}"><xs:sequence><xs:element name="a" type="t:T{n + 1}"/></xs:sequence>'
        "</xs:complexType>"
        for n in range(70)
    )
    last = '<xs:complexType name="T70"><xs:sequence><xs:element name="x" type="xs:int"/></xs:sequence></xs:complexType>'
    with pytest.raises(DeclarationError, match=r"nested deeper than 64 levels, at 'a.a.a.a...'"):
        xsd(f'{types}{last}<xs:element name="Row" type="t:T0"/>')


def test_values_of_enumerations_are_read_as_their_type_reads_them(xsd):
    def row(base, facets):
        kind = f'<xs:simpleType><xs:restriction base="xs:{base}">{facets}</xs:restriction></xs:simpleType>'
        inside = f'<xs:element name="a">{kind}</xs:element>'
        found = xsd(f'<xs:complexType name="Row"><xs:sequence>{inside}</xs:sequence></xs:complexType>')
        return found["properties"]["a"]

    value = '<xs:enumeration value=" a &#9; b "/>'
    assert row("token", value)["enum"] == ["a b"]
    assert row("normalizedString", value)["enum"] == [" a   b "]
    assert row("string", value)["enum"] == [" a \t b "]


def test_instructions_for_other_programs_are_passed_over(xsd):
    field = '<xs:element name="a" type="xs:int"/>'
    row = f'<xs:complexType name="Row"><xs:sequence><?a b?>{field}</xs:sequence></xs:complexType>'
    assert list(xsd(f"<?pi x?>{row}")["properties"]) == ["a"]
