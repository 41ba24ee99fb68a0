"""Elements and zeep's objects as rows, in the form that the schema of the same WSDL has."""

from __future__ import annotations

import datetime
import logging
import math
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from soapserver import DATA, Web, answering

import burler
import burler.soap
from burler.testing import run_tap

NAMES = (
    'xmlns="urn:crm:types" xmlns:c="urn:crm:types" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xmlns:xs="http://www.w3.org/2001/XMLSchema"'
)
CONTACT = f"""<Contact {NAMES} version="3" xml:lang="de" system="old"><Id>1</Id><Name>Ann &amp; Bob</Name>
<Status>new</Status><Born>1990-01-02+02:00</Born><Modified>2024-01-02T03:04:05+01:00</Modified><Closes>17:30:00</Closes>
<Contract>P1Y2M</Contract><Rating> 7 </Rating><Score>2.5</Score><Active>1</Active>
<Balance currency="EUR">12.50</Balance><Share>0.1000000000000000000001</Share><Code>ab</Code><Photo>aGFs
bG8=</Photo><Phones><Phone kind="home">123</Phone><Phone>4</Phone></Phones><Tags><Tag>x</Tag><Tag/></Tags>
<Note>a</Note><Note xsi:nil="true"/><Street>Way 1</Street><City>Ulm</City><CreatedBy> me </CreatedBy>
<Numbers>1 2 3</Numbers><Year>2024</Year></Contact>"""
ROW = {
    "Id": 1,
    "Name": "Ann & Bob",
    "Status": "new",
    "Born": "1990-01-02",
    "Modified": "2024-01-02T03:04:05+01:00",
    "Closes": "17:30:00",
    "Contract": "P1Y2M",
    "Rating": 7,
    "Score": 2.5,
    "Active": True,
    "Balance": {"value": Decimal("12.50"), "currency": "EUR"},
    "Share": Decimal("0.1000000000000000000001"),
    "Code": "ab",
    "Photo": b"hallo",
    "Phones": [{"value": "123", "kind": "home"}, {"value": "4", "kind": None}],
    "Tags": ["x", ""],
    "Note": ["a", None],
    "Email": None,
    "Street": "Way 1",
    "City": "Ulm",
    "CreatedBy": "me",
    "UpdatedBy": None,
    "Numbers": [1, 2, 3],
    "Year": "2024",
    "version": 3,
    "lang": "de",
    "system": "old",
}


CONTACT_NAMES = tuple(ROW)


@pytest.fixture(scope="module")
def crm():
    return burler.wsdl(filepath=DATA / "crm.wsdl").read(where="x", config={})[0]


@pytest.fixture(scope="module")
def read():
    """An element as a client has it."""
    web = Web()
    yield answering(web, "", [f"c:{name}" for name in ("Contact", "Open", "Shape", "Owner", "Log", "Node")])
    web.stop()


@pytest.fixture
def objects(crm):
    """An element as zeep has it."""

    def value(name, text):
        kind = crm.types.get_type(f"{{urn:crm:types}}{name}")
        return kind.parse_xmlelement(etree.fromstring(text), crm.types)

    return value


def plain(value):
    """A value with zeep's Python types as texts, None and empty alike: what the two ways may differ in."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if plain(one) not in (None, [], {})}
    if isinstance(value, list):
        return [plain(one) or None for one in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value or None if value in ("", []) else value


def test_a_contact_with_all_that_it_holds(read):
    row = read("Contact", CONTACT)
    assert row == ROW
    assert list(row) == list(
        burler.wsdl(filepath=DATA / "crm.wsdl", element="Contact").load(where="x", config={})["properties"]
    )


def test_zeeps_objects_give_the_same(objects, caplog):
    found = burler.soap.rows([objects("Contact", CONTACT)] * 2)
    assert found[0] == found[1] and len(found) == 2
    assert plain(found[0]) == plain(ROW)
    assert found[0]["Born"] == datetime.date(1990, 1, 2)
    assert found[0]["Closes"] == datetime.time(17, 30)
    assert found[0]["Phones"] == ROW["Phones"]
    assert list(found[0]) == list(ROW)


@pytest.mark.parametrize("way", ["reader", "objects"])
def test_rows_of_both_ways_fit_the_schema(read, objects, way):
    tap = burler.tap("tap-crm")
    tap.schema("contacts", burler.wsdl(filepath=DATA / "crm.wsdl"))

    @tap.sync("contacts", key_properties="Id")
    def contacts():
        yield read("Contact", CONTACT) if way == "reader" else burler.soap.rows(objects("Contact", CONTACT))

    out = run_tap(tap)
    assert not out.result.errors
    (row,) = out.records("contacts")
    assert row["Modified"] == "2024-01-02T02:04:05Z"
    assert (row["Photo"], row["Closes"], row["Contract"], row["Numbers"]) == (
        "aGFsbG8=",
        "17:30:00",
        "P1Y2M",
        [1, 2, 3],
    )
    assert row["Balance"] == {"value": 12.5, "currency": "EUR"}


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("Id", "+5", 5),
        ("Id", "12345678901234567890123", 12345678901234567890123),
        ("Id", "1.5", "1.5"),
        ("Id", "1_0", "1_0"),
        ("Id", "", None),
        ("Name", "", ""),
        ("Name", " a ", " a "),
        ("Name", "&#x10FFFF;", "\U0010ffff"),
        ("Active", "false", False),
        ("Active", "0", False),
        ("Active", "maybe", "maybe"),
        ("Active", "", None),
        ("Score", "INF", math.inf),
        ("Score", "-INF", -math.inf),
        ("Score", "1e5", 100000.0),
        ("Score", "much", "much"),
        ("Share", "much", "much"),
        ("Share", "-0.10", Decimal("-0.10")),
        ("Born", "1990-01-02Z", "1990-01-02"),
        ("Born", "soon", "soon"),
        ("Photo", "not base64!", {"no base64": "not base64!"}),
        ("Photo", "QUJD!", {"no base64": "QUJD!"}),
        ("CreatedBy", "a \n\t b", "a b"),
        ("Photo", "", b""),
        ("Numbers", "", []),
        ("Numbers", "1 x", [1, "x"]),
        ("Modified", "2024-01-02T03:04:05.123456789Z", "2024-01-02T03:04:05.123456789Z"),
        ("CreatedBy", "\n a\n", "a"),
    ],
)
def test_texts_as_values(read, field, text, value):
    """What is no value of its type stays text, or, where any text would do, goes into an object: then the row does not
    fit. Nothing becomes null in silence, and nothing goes out that is not what its type says."""
    found = read("Contact", f"<Contact {NAMES}><{field}>{text}</{field}></Contact>")[field]
    assert found == value and type(found) is type(value)


def test_nil_and_empty_are_two_things(read):
    row = read("Contact", f'<Contact {NAMES}><Name xsi:nil="true"/><Tags/><Phones xsi:nil="1"/><Balance/></Contact>')
    assert (row["Name"], row["Tags"], row["Phones"], row["Balance"], row["Note"]) == (None, [], None, None, [])
    assert read("Contact", f'<Contact {NAMES} xsi:nil="true"/>') is None
    assert read("Contact", f"<Contact {NAMES}/>") is None
    assert read("Contact", f'<Contact {NAMES} version="2"/>')["version"] == 2


def test_a_field_that_the_wsdl_does_not_know_is_kept_for_the_count(read):
    row = read("Contact", f"<Contact {NAMES}><Id>1</Id><New><a>1</a><b/><a>2</a></New></Contact>")
    assert row["New"] == {"a": ["1", "2"], "b": None}


def test_elements_of_any_namespace_are_known_by_their_names(read):
    assert read("Contact", '<x:Contact xmlns:x="urn:else"><x:Id>1</x:Id></x:Contact>')["Id"] == 1
    assert read("Contact", "<Contact><Id>1</Id></Contact>")["Id"] == 1


def test_open_places(read, objects):
    text = (
        f'<Open {NAMES} extra="7"><Id>1</Id><Anything><a x="1">t</a><b><c/></b></Anything>'
        "<Other>z</Other><Contact><Id>5</Id></Contact></Open>"
    )
    row = read("Open", text)
    assert row == {
        "Id": 1,
        "Anything": {"a": {"x": "1", "value": "t"}, "b": {"c": None}},
        "_value_1": [{"Other": "z"}, {"Contact": {"Id": "5"}}],
        "_attr_1": {"extra": "7"},
    }
    (same,) = burler.soap.rows(objects("Open", text.replace("<Contact><Id>5</Id></Contact>", "")))
    assert same == {**row, "_value_1": [{"Other": "z"}]}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("xs:int", "5", 5),
        ("xs:boolean", "true", True),
        ("c:Phone", "5", "5"),
        ("c:Circle", "<Id>1</Id><Radius>2</Radius><Size>3</Size>", {"Id": 1, "Radius": 2.0, "Size": 3}),
        ("c:Unknown", "5", "5"),
        ("nowhere:Unknown", "5", "5"),
    ],
)
def test_values_that_say_of_which_type_they_are(read, kind, text, value):
    row = read("Open", f'<Open {NAMES}><Id>1</Id><Anything xsi:type="{kind}">{text}</Anything></Open>')
    if kind == "c:Phone":
        value = {"value": "5", "kind": None}
    assert row["Anything"] == value


def test_a_derived_type_where_the_base_is_declared(read, objects):
    text = f'<Shape {NAMES} xsi:type="c:Square"><Id>1</Id><Side>2</Side><Size>big</Size></Shape>'
    assert read("Shape", text) == {"Id": 1, "Side": 2.0, "Size": "big"}


def test_an_element_that_stands_for_another(read, objects):
    text = f"<Owner {NAMES}><Id>1</Id><Dog><Name>Rex</Name><Barks>true</Barks></Dog></Owner>"
    row = read("Owner", text)
    assert row == {"Id": 1, "Pet": None, "Dog": {"Name": "Rex", "Barks": True}, "Cat": None}
    assert plain(burler.soap.rows(objects("Owner", text))[0]) == plain(row)


def test_rounds_of_a_choice(read, objects):
    text = (
        f'<Log {NAMES} Id="a"><Id>1</Id><Opened>2024-01-01T00:00:00Z</Opened><Opened>2024-01-02T00:00:00Z</Opened>'
        "<Closed>2024-01-03T00:00:00Z</Closed></Log>"
    )
    row = read("Log", text)
    rounds = [("Opened", 1), ("Opened", 2), ("Closed", 3)]
    assert row == {
        "Id": 1,
        "_value_1": [{name: f"2024-01-0{day}T00:00:00Z"} for name, day in rounds],
        "attr__Id": "a",
    }
    (same,) = burler.soap.rows(objects("Log", text))
    assert [list(one) for one in same["_value_1"]] == [["Opened"], ["Opened"], ["Closed"]]


def test_rounds_of_a_sequence_and_names_that_come_again(web):
    schema = (
        '<xs:complexType name="Pairs"><xs:sequence maxOccurs="unbounded"><xs:element name="k" type="xs:string"/>'
        '<xs:element name="v" type="xs:int" minOccurs="0"/></xs:sequence></xs:complexType>'
        '<xs:complexType name="Twice"><xs:sequence><xs:element name="a" type="xs:int"/>'
        '<xs:element name="b" type="xs:int"/><xs:element name="a" type="xs:int"/></xs:sequence></xs:complexType>'
    )
    read = answering(web(), schema, ["t:Pairs", "t:Twice"])
    assert read("Pairs", "<Pairs><k>a</k><v>1</v><k>b</k><k>c</k><v>3</v></Pairs>") == {
        "_value_1": [{"k": "a", "v": 1}, {"k": "b"}, {"k": "c", "v": 3}]
    }
    assert read("Twice", "<Twice><a>1</a><b>2</b><a>3</a></Twice>") == {"a": 1, "b": 2, "a__1": 3}


def test_types_that_hold_themselves(read, objects):
    text = (
        f"<Node {NAMES}><Label>a</Label>"
        + "<Child xmlns='urn:crm:types'><Label>b</Label>" * 50
        + "</Child>" * 50
        + "</Node>"
    )
    row = read("Node", text)
    depth = 0
    while row["Child"]:
        row, depth = row["Child"][0], depth + 1
    assert depth == 50
    same = burler.soap.rows(objects("Node", text))[0]
    assert same["Child"][0]["Child"][0]["Label"] == "b"


LOCALS = ("Contact", "Id", "Name", "Balance", "Phones", "Phone", "Note", "Numbers", "Active", "Strange", "Photo")
TEXTS = st.one_of(st.none(), st.sampled_from(["", " ", "7", "-1", "x", "true", "INF", "2024-01-02", "aGk=", "12.50"]))
TREES = st.recursive(
    st.tuples(st.sampled_from(LOCALS), TEXTS, st.sampled_from([None, "nil", "currency", "kind", "type"]), st.just([])),
    lambda inner: st.tuples(st.sampled_from(LOCALS), TEXTS, st.just(None), st.lists(inner, max_size=5)),
    max_leaves=12,
)


def made(tree):
    name, text, attribute, children = tree
    element = etree.Element(f"{{urn:crm:types}}{name}")
    element.text = text
    if attribute == "nil":
        element.set("{http://www.w3.org/2001/XMLSchema-instance}nil", "true")
    elif attribute == "type":
        element.set("{http://www.w3.org/2001/XMLSchema-instance}type", "Phone")
    elif attribute:
        element.set(attribute, "a")
    element.extend([made(child) for child in children])
    return element


@given(TREES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_service_sends_is_a_row_or_none(read, tree):
    """No shape of an answer breaks the reader: what does not fit, the shape stage says with the field's name."""
    row = read("Contact", etree.tostring(made(("Contact", *tree[1:])), encoding="unicode"))
    assert row is None or set(CONTACT_NAMES) <= set(row)


# ---- rows of objects ----------------------------------------------------------------------------------------------


def test_only_the_fields_of_a_schema(objects):
    schema = {"properties": {"Id": {}, "Balance": {}, "None": {}}}
    assert burler.soap.rows([objects("Contact", CONTACT)], schema=schema) == [{"Id": 1, "Balance": ROW["Balance"]}]


def test_no_objects_are_no_rows(objects):
    assert burler.soap.rows(None) == burler.soap.rows([]) == []


@pytest.mark.parametrize("wrong", [5, [None], ["x"], [{"a": 1}]])
def test_what_is_no_object_is_an_error(wrong):
    with pytest.raises(TypeError, match="is no object of a complex type"):
        burler.soap.rows(wrong)


def test_an_empty_text_that_may_not_be_null_is_empty(objects):
    """zeep gives None for it."""
    text = CONTACT.replace("<Name>Ann &amp; Bob</Name>", "<Name></Name>").replace("<Code>ab</Code>", "<Code/>")
    (row,) = burler.soap.rows(objects("Contact", text))
    assert (row["Name"], row["Code"]) == ("", None)


def test_zones_of_objects(objects):
    text = CONTACT.replace("05+01:00", "05")
    zone = datetime.timezone(datetime.timedelta(hours=2))
    for named in (None, zone):
        (row,) = burler.soap.rows(objects("Contact", text), zone=named)
        assert row["Modified"].tzinfo is named
    (row,) = burler.soap.rows(objects("Contact", CONTACT), zone=zone)
    assert row["Modified"].utcoffset() == datetime.timedelta(hours=1)


def test_a_bad_value_is_lost_by_zeep_and_not_by_the_reader(read, objects, caplog):
    """Why pages do not go through zeep's objects."""
    caplog.set_level(logging.CRITICAL)
    text = CONTACT.replace("<Rating> 7 </Rating>", "<Rating>seven</Rating>")
    assert read("Contact", text)["Rating"] == "seven"
    assert objects("Contact", text).Rating is None
