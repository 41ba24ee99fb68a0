"""What a service sends is in the rows, or an error or a warning says that it is not."""

from __future__ import annotations

import re
import time

import pytest
from soapserver import DATA, envelope

import burler
import burler.http
import burler.soap
from burler.errors import HttpError, PagingError, SoapError
from burler.testing import run_tap

XS = (
    'xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t" elementFormDefault="qualified"'
)
ID = '<xs:element name="Id" type="xs:int" minOccurs="0"/>'
PLAIN = f'<xs:complexType name="Row"><xs:sequence>{ID}</xs:sequence></xs:complexType>'
SHAPES = f"""<xs:complexType name="Row" abstract="true"><xs:sequence>{ID}</xs:sequence></xs:complexType>
<xs:complexType name="Circle"><xs:complexContent><xs:extension base="t:Row"><xs:sequence>
<xs:element name="Big" type="xs:boolean"/><xs:element name="Tag" type="xs:string" minOccurs="0" maxOccurs="unbounded"/>
</xs:sequence><xs:attribute name="colour" type="xs:string"/></xs:extension></xs:complexContent></xs:complexType>"""


def wsdl(url, types):
    return f"""<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
 xmlns:t="urn:t" targetNamespace="urn:t"><w:types><xs:schema {XS}>{types}
<xs:element name="List"><xs:complexType><xs:sequence><xs:element name="Page" type="xs:int" minOccurs="0"/></xs:sequence>
</xs:complexType></xs:element>
<xs:element name="ListResponse"><xs:complexType><xs:sequence>
<xs:element name="Row" type="t:Row" minOccurs="0" maxOccurs="unbounded" nillable="true"/>
<xs:element name="Next" type="xs:int" minOccurs="0"/></xs:sequence></xs:complexType></xs:element></xs:schema></w:types>
<w:message name="I"><w:part name="p" element="t:List"/></w:message>
<w:message name="O"><w:part name="p" element="t:ListResponse"/></w:message>
<w:portType name="P"><w:operation name="List"><w:input message="t:I"/><w:output message="t:O"/></w:operation>
</w:portType>
<w:binding name="B" type="t:P"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>
<w:operation name="List"><soap:operation soapAction="x"/><w:input><soap:body use="literal"/></w:input>
<w:output><soap:body use="literal"/></w:output></w:operation></w:binding>
<w:service name="S"><w:port name="P" binding="t:B"><soap:address location="{url}/soap"/></w:port></w:service>
</w:definitions>"""


def answer(rows, name="ListResponse"):
    return envelope(f'<{name} xmlns="urn:t" xmlns:t="urn:t">{rows}</{name}>')


@pytest.fixture
def service(web):
    """A service whose operation List gives rows of the type Row; a test says which type, and what is answered."""

    def start(types, replies):
        server = web()
        server.pages["/w"] = wsdl(server.url, types)
        server.pages["/soap"] = replies
        return server

    return start


def client(server, **options):
    http = burler.http.Client(server.url, retries=1, sleep=lambda seconds: None)
    return burler.soap.Client(f"{server.url}/w", http=http, **options)


def run(server, **options):
    """The rows that a tap with the WSDL's own schema writes."""
    tap = burler.tap("tap-x", config_spec={})
    tap.schema("rows", burler.wsdl(url=f"{server.url}/w", operation="List", rows="Row"))

    @tap.client
    def made(config):
        return client(server)

    @tap.sync("rows", key_properties="Id")
    def rows(client):
        yield from client.pages("List", rows="Row", **options)

    out = run_tap(tap, {})
    return out.records("rows"), "".join(map(str, out.result.errors.values()))


# ---- rows ----------------------------------------------------------------------------------------------------------


def test_a_row_that_says_of_which_type_it_is_has_all_fields_of_that_type(service):
    row = '<Row xsi:type="t:Circle" colour="red"><Id>1</Id><Big>true</Big><Tag>one</Tag></Row>'
    server = service(SHAPES, answer(row))
    expected = {"Id": 1, "Big": True, "Tag": ["one"], "colour": "red"}
    assert client(server).rows("List", rows="Row") == [expected] == client(server).call("List")["Row"]
    assert run(server) == ([expected], "")


@pytest.mark.parametrize(
    ("until", "pages", "expected"),
    [
        ("short", [[1, None], [2, 3], [4]], [1, 2, 3, 4]),
        ("short", [[1, 0], [2, 3], []], [1, 2, 3]),
        ("empty", [[1, 2], [None, None], [3], []], [1, 2, 3]),
        ("empty", [[1, 2], [0, 0], [3], []], [1, 2, 3]),
    ],
)
def test_rows_that_are_null_count_as_rows_of_their_page(service, until, pages, expected, caplog):
    forms = {None: '<Row xsi:nil="true"/>', 0: "<Row/>"}

    def replies(path, body):
        number = int(re.search(rb"Page>(\d+)<", body)[1])
        return answer("".join(forms.get(one, f"<Row><Id>{one}</Id></Row>") for one in pages[number - 1]))

    soap = client(service(PLAIN, replies))
    found = soap.pages("List", rows="Row", page_param="Page", until=until, page_size=2)
    assert [row["Id"] for page in found for row in page] == expected
    nulls = sum(not one for page in pages for one in page)
    assert f"SOAP operation 'List': {nulls} row{'s' * (nulls > 1)} left out, null or empty" in caplog.text


def test_null_rows_of_one_call_are_said_too(service, caplog):
    soap = client(service(PLAIN, answer('<Row xsi:nil="true"/><Row><Id>1</Id></Row>')))
    assert soap.rows("List", rows="Row") == [{"Id": 1}]
    assert "1 row left out, null or empty." in caplog.text


# ---- answers that are none -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 202, 204])
def test_an_answer_of_nothing_is_no_answer(service, status):
    server = service(PLAIN, (status, {}, b""))
    with pytest.raises(HttpError, match=r"SOAP operation 'List': POST .*: nothing at all(.|\n)*name it in safe="):
        client(server).rows("List", rows="Row")
    with pytest.raises(HttpError, match="nothing at all, after 2 tries"):
        client(server, safe=["List"]).call("List")


@pytest.mark.parametrize(
    ("reply", "fact"),
    [
        (envelope(""), "its Body is empty"),
        (answer("<Row><Id>1</Id></Row>", "OtherResponse"), "<OtherResponse> in place of <ListResponse>"),
        (answer("<Rows><Row><Id>1</Id></Row></Rows>"), "<Rows> in place of <Row>"),
    ],
)
def test_an_answer_of_another_shape_is_not_one_without_rows(service, reply, fact):
    with pytest.raises(SoapError, match=f"SOAP operation 'List': the answer is not the one of the WSDL: {fact}"):
        client(service(PLAIN, reply)).rows("List", rows="Row")


@pytest.mark.parametrize("inside", ["", "<Next>0</Next>", '<Row xsi:nil="true"/>'])
def test_answers_without_rows_are_what_they_are(service, inside):
    assert client(service(PLAIN, answer(inside))).rows("List", rows="Row") == []


def test_an_error_of_http_names_the_operation(service):
    with pytest.raises(HttpError, match=r"^SOAP operation 'List': POST http://.*: 502 Bad Gateway"):
        client(service(PLAIN, (502, {}, b"x"))).call("List")


# ---- values --------------------------------------------------------------------------------------------------------

VALUES = f"""<xs:complexType name="Row"><xs:sequence>{ID}<xs:element name="Name" type="xs:string" minOccurs="0"/>
<xs:element name="Photo" type="xs:base64Binary" minOccurs="0"/><xs:element name="Word" minOccurs="0"><xs:simpleType>
<xs:restriction base="xs:token"><xs:enumeration value="a b"/></xs:restriction></xs:simpleType></xs:element>
<xs:element name="Line" type="xs:normalizedString" minOccurs="0"/></xs:sequence></xs:complexType>"""


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("<Name>a</Name><Name>b</Name>", "field 'Name' is list"),
        ("<Name>An<b>x</b>n</Name>", "field 'Name' is dict"),
        ("<Photo>!!not base64</Photo>", "field 'Photo' is dict"),
    ],
)
def test_a_value_that_a_field_has_no_place_for_is_an_error(service, inside, said):
    rows, error = run(service(VALUES, answer(f"<Row><Id>1</Id>{inside}</Row>")))
    assert rows == [] and said in error


def test_attributes_and_texts_that_the_wsdl_does_not_know_are_counted(service, caplog):
    inside = '<Row lost="x" Name="y">stray<Id>1</Id><Name lang="en">a</Name><New>1</New><New>2</New></Row>'
    server = service(VALUES, answer(inside))
    (row,) = client(server).rows("List", rows="Row")
    assert {name: row[name] for name in ("lost", "attr__Name", "value", "New", "Name")} == {
        "lost": "x", "attr__Name": "y", "value": "stray", "New": ["1", "2"], "Name": "a",
    }  # fmt: skip
    assert "does not know the attribute 'Name/@lang' of a text" in caplog.text
    caplog.clear()
    assert run(server)[1] == ""
    assert re.search(r"fields that its schema does not know were dropped: .*lost", caplog.text)


def test_attributes_of_the_protocol_are_no_data(service):
    inside = (
        '<Row xsi:type="t:Row" xmlns:e="http://schemas.xmlsoap.org/soap/encoding/" e:root="1" '
        'xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle="x"><Id e:position="[0]">1</Id></Row>'
    )
    assert client(service(PLAIN, answer(inside))).rows("List", rows="Row") == [{"Id": 1}]


def test_white_space_of_tokens_says_nothing(service):
    rows, error = run(service(VALUES, answer("<Row><Id>1</Id><Word>\n a\t b </Word><Line>a\n b</Line></Row>")))
    assert (error, rows[0]["Word"], rows[0]["Line"]) == ("", "a b", "a  b")


# ---- objects and groups --------------------------------------------------------------------------------------------


@pytest.fixture
def in_xsd(service):
    """A row of the type Row."""

    def read(types, text):
        (row,) = client(service(types, answer(f"<Row>{text}</Row>"))).rows("List", rows="Row")
        return row

    return read


ADDRESS = """<xs:complexType name="Address"><xs:sequence><xs:element name="City" type="xs:string" minOccurs="0"/>
<xs:element name="Line" type="xs:string" minOccurs="0" maxOccurs="2"/></xs:sequence></xs:complexType>
<xs:complexType name="Row"><xs:sequence><xs:element name="One" type="t:Address"/>
<xs:element name="Maybe" type="t:Address" minOccurs="0"/><xs:element name="Nil" type="t:Address" nillable="true"/>
<xs:element name="Many" type="t:Address" minOccurs="0" maxOccurs="9"/></xs:sequence></xs:complexType>"""


def test_an_empty_object_that_may_not_be_null_is_an_object(in_xsd):
    text = "<One/><Maybe/><Nil/><Many/><Many><City>x</City></Many>"
    nothing = {"City": None, "Line": []}
    expected = {"One": nothing, "Maybe": None, "Nil": None, "Many": [nothing, {"City": "x", "Line": []}]}
    assert in_xsd(ADDRESS, text) == expected


def element(name, more=""):
    return f'<xs:element name="{name}" type="xs:string" {more}/>'


MANY = 'minOccurs="0" maxOccurs="unbounded"'
MAYBE = 'minOccurs="0"'
IN_GROUPS = {
    "choice": f"<xs:choice {MANY}>{element('In')}{element('Out')}</xs:choice>",
    "sequence": f"<xs:sequence {MANY}>{element('In')}{element('Out', MAYBE)}</xs:sequence>",
    "group": f'<xs:group ref="t:G" {MANY}/>',
}


@pytest.mark.parametrize("kind", IN_GROUPS)
def test_groups_that_repeat_in_groups_that_repeat(in_xsd, kind):
    group = f'<xs:group name="G"><xs:sequence>{element("In")}{element("Out", MAYBE)}</xs:sequence></xs:group>'
    row = f"<xs:sequence><xs:sequence {MANY}>{element('Day')}{IN_GROUPS[kind]}</xs:sequence></xs:sequence>"
    text = "<Day>1</Day><In>a</In><Out>b</Out><In>c</In><Day>2</Day><Day>3</Day><In>d</In>"
    one = [{"In": "a"}, {"Out": "b"}] if kind == "choice" else [{"In": "a", "Out": "b"}]
    found = in_xsd(f'{group}<xs:complexType name="Row">{row}</xs:complexType>', text)
    assert found == {
        "_value_1": [
            {"Day": "1", "_value_1": [*one, {"In": "c"}]},
            {"Day": "2"},
            {"Day": "3", "_value_1": [{"In": "d"}]},
        ]
    }


def test_a_round_begins_with_what_stands_first_in_it(in_xsd):
    """Also where the first field of a round is not always there."""
    row = f"<xs:sequence><xs:sequence {MANY}>{element('k', MAYBE)}{element('v')}</xs:sequence></xs:sequence>"
    found = in_xsd(f'<xs:complexType name="Row">{row}</xs:complexType>', "<v>1</v><k>b</k><v>2</v><v>3</v>")
    assert found == {"_value_1": [{"v": "1"}, {"k": "b", "v": "2"}, {"v": "3"}]}


def test_a_name_that_stands_twice_where_the_first_is_a_list(in_xsd):
    row = f"<xs:sequence>{element('A', MANY)}{element('B')}{element('A')}</xs:sequence>"
    text = "<A>x</A><A>y</A><B>b</B><A>z</A>"
    found = in_xsd(f'<xs:complexType name="Row">{row}</xs:complexType>', text)
    assert found == {"A": ["x", "y"], "B": "b", "A__1": "z"}


# ---- references ----------------------------------------------------------------------------------------------------

HEAD = '<n:listResponse xmlns:n="urn:old"><items href="#1"/><more>false</more></n:listResponse>'


@pytest.fixture
def old(web):
    def call(body):
        server = web()
        server.pages["/old.wsdl"] = (DATA / "rpc.wsdl").read_text().replace("http://127.0.0.1:9", server.url)
        server.pages["/old"] = envelope(body)
        http = burler.http.Client(server.url, retries=1, sleep=lambda seconds: None)
        return burler.soap.Client(f"{server.url}/old.wsdl", http=http).rows("list", rows="items", page=1)

    return call


@pytest.mark.parametrize(
    "references",
    [
        '<multiRef id="1"><Item href="#1"/></multiRef>',
        '<multiRef id="1"><Item href="#2"/></multiRef><multiRef id="2"><Item href="#1"/></multiRef>',
        "".join(f'<multiRef id="{n}"><Item href="#{n + 1}"/></multiRef>' for n in range(1, 2000)),
    ],
)
def test_a_value_that_holds_itself_is_an_error(old, references):
    with pytest.raises(SoapError, match=r"SOAP operation 'list': .* refers to holds itself, or is nested too deep"):
        old(HEAD + references)


def test_references_that_stand_for_more_than_there_is_memory_for_are_an_error(old):
    """2 kB that stand for 10**9 elements."""
    began = time.process_time()
    levels = "".join(f'<multiRef id="{n}">{f"""<a href="#{n + 1}"/>""" * 10}</multiRef>' for n in range(1, 10))
    with pytest.raises(SoapError, match=r"stand for far more elements than it has"):
        old(f'{HEAD}{levels}<multiRef id="10">x</multiRef>')
    assert time.process_time() - began < 20


def test_many_references_to_one_value_are_read(old):
    items = '<Item href="#2"/>' * 500
    rows = old(f'{HEAD}<multiRef id="1">{items}</multiRef><multiRef id="2"><id>7</id><name>n</name></multiRef>')
    assert rows == [{"id": 7, "name": "n"}] * 500


def test_pages_in_a_circle_of_numbers_are_an_error(service):
    def replies(path, body):
        return answer("<Row><Id>1</Id></Row><Next>1</Next>")

    with pytest.raises(PagingError, match="pages go in a circle"):
        list(client(service(PLAIN, replies)).pages("List", rows="Row", page_param="Page", next_page="Next"))
