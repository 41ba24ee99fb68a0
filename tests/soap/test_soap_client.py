"""burler.soap.Client against a server of our own: calls, pages, faults, retries, what is sent."""

from __future__ import annotations

import base64
import datetime
import itertools
import json
import logging
import re
import time
import zoneinfo

import pytest
from soapserver import CRM, DATA, SOAP_12, envelope, fault

import burler
import burler.http
import burler.soap
from burler.errors import DeclarationError, HttpError, NoAnswerError, PagingError, SoapError
from burler.testing import canary, run_tap

ROWS = "ListContactsResult.Contacts.Contact"


def contact(number, more=""):
    return (
        f'<c:Contact version="1"><c:Id>{number}</c:Id><c:Name>n{number}</c:Name>'
        f"<c:Modified>2024-01-02T03:04:05Z</c:Modified><c:Closes xsi:nil='true'/>{more}"
        "<c:CreatedBy>me</c:CreatedBy></c:Contact>"
    )


def page(numbers, after=""):
    rows = "".join(map(contact, numbers))
    after = f"<NextPage>{after}</NextPage>" if after != "" else ""
    return envelope(
        '<ListContactsResponse xmlns="urn:crm"><ListContactsResult>'
        f"<Contacts>{rows}</Contacts>{after}</ListContactsResult></ListContactsResponse>"
    )


def page_asked(body):
    found = re.search(rb"Page>(\d+)<", body)
    return int(found[1]) if found else None


@pytest.fixture
def service(web):
    """A server with the WSDL; ``replies`` answers calls."""
    server = web()
    server.wsdl = server.serve_crm()
    return server


def fast(server, **options):
    """A client that waits for nothing."""
    options.setdefault("sleep", lambda seconds: None)
    return burler.http.Client(server.url, **options)


def client(server, *, http=None, **options):
    return burler.soap.Client(server.wsdl, http=http or fast(server), **options)


def calls(server):
    return [(headers, body) for method, path, headers, body in server.seen if method == "POST"]


# ---- calls and pages ----------------------------------------------------------------------------------------------


def test_numbered_pages_until_one_is_empty(service):
    service.pages["/soap"] = lambda path, body: page(
        range((page_asked(body) - 1) * 2, page_asked(body) * 2) if page_asked(body) < 4 else ()
    )
    with client(service) as soap:
        pages = list(soap.pages("ListContacts", rows=ROWS, page_param="Page"))
    assert [[row["Id"] for row in one] for one in pages] == [[0, 1], [2, 3], [4, 5]]
    assert [page_asked(body) for _, body in calls(service)] == [1, 2, 3, 4]
    headers, body = calls(service)[0]
    assert headers["SOAPAction"] == '"urn:crm/ListContacts"'
    assert headers["Content-Type"] == "text/xml; charset=utf-8"
    assert b"<ns0:Page>1</ns0:Page>" in body


def test_short_pages_end_too(service):
    service.pages["/soap"] = lambda path, body: page(range(2) if page_asked(body) == 1 else range(1))
    found = client(service).pages("ListContacts", rows=ROWS, page_param="Page", until="short", page_size=2)
    assert [len(one) for one in found] == [2, 1]
    assert len(calls(service)) == 2


def test_the_answer_says_which_page_is_next(service):
    after = {1: 7, 7: 9, 9: ""}
    service.pages["/soap"] = lambda path, body: page([page_asked(body)], after[page_asked(body)])
    found = client(service).pages("ListContacts", rows=ROWS, page_param="Page", next_page="ListContactsResult.NextPage")
    assert [row["Id"] for one in found for row in one] == [1, 7, 9]


def test_a_function_says_what_comes_next(service):
    service.pages["/soap"] = lambda path, body: page([page_asked(body)])

    def following(answer, params):
        assert answer["ListContactsResult"]["Contacts"][0]["Id"] == params["Page"]
        return {"Page": params["Page"] + 10} if params["Page"] < 20 else None

    found = client(service).pages("ListContacts", {"Page": 5}, rows=ROWS, following=following)
    assert [row["Id"] for one in found for row in one] == [5, 15, 25]


def test_pages_in_a_circle_are_an_error(service):
    after = {1: 2, 2: 1}
    service.pages["/soap"] = lambda path, body: page([page_asked(body)], after[page_asked(body)])
    found = client(service).pages("ListContacts", rows=ROWS, page_param="Page", next_page="ListContactsResult.NextPage")
    with pytest.raises(PagingError, match=r"operation 'ListContacts': page 3 .* \(Page = 1\), so pages go in a circle"):
        list(itertools.islice(found, 5))
    assert len(calls(service)) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"next_page": "ListContactsResult.NextPage"}, "next_page= needs page_param="),
        ({"following": len, "page_param": "Page"}, "following= stands alone"),
        ({"until": "never"}, "until='never' is unknown"),
        ({"until": "short", "page_param": "Page"}, "needs page_size="),
        ({"until": "short", "page_param": "Page", "page_size": 2.5}, "page_size is 2.5; it is a whole number"),
        ({"rows": "Nothing"}, "there is no field 'Nothing' there"),
        ({"rows": "ListContactsResult.NextPage"}, "holds no records"),
        ({"page_param": "Page", "next_page": "ListContactsResult.Next"}, "next_page='ListContactsResult.Next'"),
    ],
)
def test_options_that_make_no_sense_send_nothing(service, options, said):
    with pytest.raises(DeclarationError, match=re.escape(said)):
        list(client(service).pages("ListContacts", **options))
    assert calls(service) == []


def test_one_call(service):
    service.pages["/soap"] = envelope(
        '<GetContactResponse xmlns="urn:crm"><GetContactResult version="4" xmlns="urn:crm:types">'
        "<Id>5</Id><Name/></GetContactResult></GetContactResponse>"
    )
    soap = client(service)
    found = soap.call("GetContact", Id=5)["GetContactResult"]
    assert (found["Id"], found["Name"], found["version"], found["Email"]) == (5, "", 4, None)
    assert soap.rows("GetContact", {"Id": 5}) == [found]
    assert b"<ns0:Id>5</ns0:Id>" in calls(service)[1][1]
    service.pages["/soap"] = envelope("")
    assert soap.call("Ping") is None
    service.pages["/soap"] = (202, {}, b"")
    assert soap.call("Ping") is None


def test_parameters_that_do_not_fit_are_one_error(service):
    soap = client(service)
    for params in ({"Nothing": 5}, {}):
        with pytest.raises(
            SoapError, match=r"operation 'GetContact': its parameters don't fit: .*\n  It takes: Id: xsd:long"
        ):
            soap.call("GetContact", **params)
    with pytest.raises(DeclarationError, match=r"no operation 'GetContcat'\. Did you mean 'GetContact'"):
        soap.call("GetContcat")
    assert calls(service) == []


def test_errors_of_the_authors_own_client_are_no_wrong_parameters(service):
    class Mine(burler.http.Client):
        def request(self, method, path, **asked):
            if method == "POST":
                raise TypeError("of my own")
            return super().request(method, path, **asked)

    with pytest.raises(TypeError, match="of my own"):
        client(service, http=Mine(service.url)).call("GetContact", Id=5)


def test_soap_1_2(service):
    service.pages["/crm.wsdl"] = (
        CRM.replace("http://127.0.0.1:9/soap", f"{service.url}/soap")
        .replace("http://schemas.xmlsoap.org/wsdl/soap/", "http://schemas.xmlsoap.org/wsdl/soap12/")
        .encode()
    )
    service.pages["/soap"] = envelope(
        "<s:Fault><s:Code><s:Value>s:Sender</s:Value><s:Subcode><s:Value>c:Busy</s:Value></s:Subcode></s:Code>"
        "<s:Reason><s:Text>later</s:Text></s:Reason></s:Fault>",
        SOAP_12,
    )
    service.pages["/soap"] = (400, {}, service.pages["/soap"])
    with pytest.raises(burler.soap.Fault) as caught:
        client(service).call("GetContact", Id=1)
    assert (caught.value.code, caught.value.subcodes, caught.value.text) == ("Sender", ("Busy",), "later")
    assert "application/soap+xml" in calls(service)[0][0]["Content-Type"]


OLD = """<n:listResponse xmlns:n="urn:old"><items href="#1"/><more>{more}</more></n:listResponse>
<multiRef id="1"><Item href="#2"/><Item><id>{first}</id><name xsi:nil="true"/></Item></multiRef>
<multiRef id="2"><id>{second}</id><name>n</name></multiRef>"""


def test_an_older_service_with_references_in_its_answers(service):
    """Parts instead of elements, arrays in SOAP's own encoding, a truth value that says whether there is more."""
    service.pages["/old.wsdl"] = (DATA / "rpc.wsdl").read_text().replace("http://127.0.0.1:9", service.url)

    def replies(path, body):
        number = int(re.search(rb"<page>(\d)</page>", body)[1])
        return envelope(OLD.format(more=str(number < 2).lower(), first=number * 10, second=number * 10 + 1))

    service.pages["/old"] = replies
    soap = burler.soap.Client(f"{service.url}/old.wsdl", http=fast(service))
    pages = list(soap.pages("list", rows="items", page_param="page", next_page="more"))
    assert pages == [[{"id": n + 1, "name": "n"}, {"id": n, "name": None}] for n in (10, 20)]
    assert soap.call("list", page=1)["items"] == pages[0]
    source = burler.wsdl(url=f"{service.url}/old.wsdl", operation="list", rows="items")
    assert list(source.load(where="x", config={})["properties"]) == ["id", "name"]


def test_several_parts_side_by_side(service):
    wsdl = CRM.replace("http://127.0.0.1:9", service.url)
    more = '<wsdl:part name="parameters" element="tns:GetContactResponse"/>'
    assert wsdl.count(more) == 1
    service.pages["/crm.wsdl"] = wsdl.replace(more, more + '<wsdl:part name="ping" element="tns:Ping"/>')
    service.pages["/soap"] = envelope(
        '<GetContactResponse xmlns="urn:crm"><GetContactResult xmlns="urn:crm:types"><Id>5</Id></GetContactResult>'
        '</GetContactResponse><Ping xmlns="urn:crm"/>'
    )
    found = client(service).call("GetContact", Id=5)
    assert list(found) == ["parameters", "ping"]  # as the WSDL names the parts
    assert found["parameters"]["GetContactResult"]["Id"] == 5
    assert client(service).rows("GetContact", rows="parameters.GetContactResult", Id=5)[0]["Id"] == 5


# ---- faults and failures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 500])
def test_a_fault_is_an_error_that_says_all_it_knows(service, status):
    service.pages["/soap"] = (status, {}, fault("Client.Bad", "no such\n contact", "<why>never <b>was</b></why>"))
    with pytest.raises(burler.soap.Fault) as caught:
        client(service, safe=["GetContact"]).call("GetContact", Id=1)
    error = caught.value
    assert (error.operation, error.code, error.text, error.detail) == (
        "GetContact",
        "Client.Bad",
        "no such contact",
        "never was",
    )
    assert str(error).splitlines() == [
        f"SOAP operation 'GetContact' at {service.url}/soap: fault Client.Bad: no such contact",
        "  detail: never was",
        "  The service does not like what was sent: compare the parameters with its documentation.",
    ]
    assert isinstance(error, SoapError) and error.exit_code == 1
    assert len(calls(service)) == 1  # a fault is an answer


@pytest.mark.parametrize(
    "bad",
    [
        (503, {}, b"busy"),
        (500, {}, b"<html>oops</html>"),
        (500, {}, b"oops"),
        (500, {}, envelope("<x/>")),
        (200, {}, b"<html>maintenance</html>"),
        (200, {}, page([1])[:300]),
        (200, {"Content-Length": "100000"}, page([1])),
        (200, {}, b"<!DOCTYPE s:Envelope>" + page([1]).partition(b"?>")[2]),
    ],
)
def test_only_safe_operations_are_sent_again(service, bad):
    def replies(path, body):
        return bad if len(calls(service)) % 2 else page([1])

    service.pages["/soap"] = replies
    soap = client(service, safe="ListContacts")
    assert [row["Id"] for row in soap.rows("ListContacts", rows=ROWS)] == [1]
    assert len(calls(service)) == 2
    with pytest.raises(HttpError) as caught:
        client(service).rows("ListContacts", rows=ROWS)
    assert len(calls(service)) == 3
    assert f"{service.url}/soap" in str(caught.value)


def test_what_never_answers_is_one_error_in_the_end(service):
    service.pages["/soap"] = (200, {}, b"<html>maintenance</html>")
    soap = client(service, http=fast(service, retries=2), safe=["ListContacts"])
    with pytest.raises(HttpError, match="no SOAP envelope but <html>"):
        soap.rows("ListContacts", rows=ROWS)
    assert len(calls(service)) == 3
    service.stop()
    with pytest.raises(NoAnswerError):
        soap.rows("ListContacts", rows=ROWS)


def test_a_document_type_in_an_answer_reads_nothing(service, web, tmp_path):
    other = web()
    secret = tmp_path / "secret.txt"
    secret.write_text("got it")
    for outside in (secret.as_uri(), f"{other.url}/x"):
        doctype = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{outside}">]>'
        body = page([1]).replace(b"?>", b"?>" + doctype.encode(), 1).replace(b"<c:Name>n1", b"<c:Name>&e;")
        service.pages["/soap"] = body
        with pytest.raises(HttpError, match="a document type") as caught:
            client(service).rows("ListContacts", rows=ROWS)
        assert "got it" not in str(caught.value)
    assert other.seen == []


def test_safe_names_only_what_is_there(service):
    with pytest.raises(DeclarationError, match="safe names 'ListContact', which is no operation"):
        client(service, safe=["ListContact"])


# ---- where calls go, and what they carry ---------------------------------------------------------------------------


def test_a_wsdl_does_not_send_passwords_elsewhere(service, web):
    other = web()
    service.pages["/crm.wsdl"] = CRM.replace("http://127.0.0.1:9", other.url).encode()
    password = canary("wsse")
    with pytest.raises(DeclarationError, match=f"its service is at {other.url}/soap, on another server"):
        client(service, username="me", password=password)
    host = service.url.removeprefix("http://")
    service.pages["/crm.wsdl"] = CRM.replace("http://127.0.0.1:9", f"{other.url}\\@{host}").encode()
    with pytest.raises(DeclarationError, match="on another server"):
        client(service, username="me", password=password)
    assert other.seen == []
    service.pages["/crm.wsdl"] = CRM.replace("http://127.0.0.1:9", other.url).encode()
    other.pages["/soap"] = page([1])
    assert client(service, address=f"{other.url}/soap").rows("ListContacts", rows=ROWS)
    # The author's own client may be for it, too.
    assert burler.soap.Client(service.wsdl, http=fast(other)).rows("ListContacts", rows=ROWS)


@pytest.mark.parametrize("digest", [False, True])
def test_a_username_token_stands_in_each_envelope(service, caplog, digest):
    caplog.set_level(logging.DEBUG)
    password = canary("wsse")
    service.pages["/soap"] = (500, {}, fault("Client", f"wrong password: {password}", f"<got>{password}</got>"))
    with pytest.raises(burler.soap.Fault) as caught:
        client(service, username="me", password=password, digest=digest).call("GetContact", Id=1)
    body = calls(service)[0][1].decode()
    assert "<wsse:Username>me</wsse:Username>" in body
    assert (password in body) is not digest
    assert ("PasswordDigest" in body) is digest
    assert str(caught.value).count("***") == 2
    assert password not in str(caught.value) + caught.value.text + caught.value.detail
    assert password not in caplog.text


def test_secrets_of_addresses_are_in_no_error_and_no_log(service, caplog):
    caplog.set_level(logging.DEBUG, logger="zeep")
    caplog.set_level(logging.DEBUG, logger="burler")
    token = canary("soap-url")
    service.pages["*"] = (500, {}, fault("Client", "no"))
    service.pages[f"/crm.wsdl?token={token}"] = service.pages["/crm.wsdl"]
    address = f"{service.url}/soap?token={token}"
    soap = burler.soap.Client(f"{service.wsdl}?token={token}", http=fast(service), address=address)
    with pytest.raises(burler.soap.Fault) as caught:
        soap.call("GetContact", Id=5)
    assert service.paths[-1] == f"/soap?token={token}"
    assert token not in str(caught.value)
    assert "zeep" in caplog.text and token not in caplog.text


def test_a_password_without_a_name_is_refused(service):
    with pytest.raises(DeclarationError, match="a password without a username"):
        client(service, password=canary("wsse"))


def test_credentials_of_the_http_client_are_sent_with_the_wsdl_too(service):
    token = canary("soap-bearer")
    service.pages["/soap"] = page([1])
    soap = client(service, http=fast(service, token=token))
    soap.rows("ListContacts", rows=ROWS)
    assert {headers.get("Authorization") for _, _, headers, _ in service.seen} == {f"Bearer {token}"}


def test_the_wsdl_of_a_client_is_not_fetched_from_another_server(service, web):
    other = web()
    other.pages["/crm.wsdl"] = CRM.encode()
    for status in (301, 302, 303, 307, 308):
        service.pages["/crm.wsdl"] = (status, {"Location": f"{other.url}/crm.wsdl"}, b"")
        with pytest.raises(DeclarationError, match=f"redirects to another server: {other.url}/crm.wsdl"):
            client(service)
    assert other.seen == []
    service.pages["/crm.wsdl"] = (302, {"Location": "/crm.wsdl"}, b"")
    with pytest.raises(DeclarationError, match="redirects without an end"):
        client(service)
    service.pages |= {"/crm.wsdl": (302, {"Location": "/new.wsdl"}, b""), "/new.wsdl": CRM.encode()}
    assert client(service, address=f"{service.url}/soap").address == f"{service.url}/soap"


def test_a_wsdl_is_asked_for_again_when_its_server_is_busy(service):
    good = service.pages["/crm.wsdl"]
    service.pages["/crm.wsdl"] = lambda path, body: (503, {}, b"") if len(service.seen) < 3 else good
    assert client(service)
    with pytest.raises(HttpError, match="404"):
        burler.soap.Client(f"{service.url}/none.wsdl", http=fast(service))


def test_ports_and_services(service):
    for options, said in (({"service": "Cmr"}, "no service 'Cmr'. Services: Crm"), ({"port": "X"}, "no SOAP port 'X'")):
        with pytest.raises(DeclarationError, match=said):
            client(service, **options)
    service.pages["/soap"] = page([1])
    assert client(service, service="Crm", port="CrmPort").rows("ListContacts", rows=ROWS)


@pytest.mark.parametrize("options", [{}, {"service": "Cmr"}, {"safe": ["Nothing"]}])
def test_a_client_that_could_not_be_made_leaves_no_connection_open(web, options):
    server = web()
    url = server.serve_crm()
    if not options:
        server.pages["/crm.wsdl"] = b"<wsdl"
    with pytest.raises(DeclarationError) as failed:
        burler.soap.Client(url, **options)
    limit = time.monotonic() + 10
    while server.open and time.monotonic() < limit:
        time.sleep(0.01)
    assert (server.open, len(server.seen) > 0) == (0, True), failed.value  # which still has the client in its traceback


def test_a_wsdl_in_a_file_with_an_address(service):
    service.pages["/soap"] = page([1])
    soap = burler.soap.Client(DATA / "crm.wsdl", address=f"{service.url}/soap")
    assert soap.rows("ListContacts", rows=ROWS)[0]["Id"] == 1
    soap.close()
    with pytest.raises(DeclarationError, match="has no SOAP port"):
        burler.soap.Client(DATA / "parts" / "types.xsd")


def test_metric_lines_name_the_operation(service, caplog, metrics_of_requests):
    caplog.set_level(logging.INFO)
    service.pages["/soap"] = page([1])
    client(service).rows("ListContacts", rows=ROWS)
    lines = [record.getMessage() for record in caplog.records if "http_request_duration" in record.getMessage()]
    named = [json.loads(line.removeprefix("METRIC: "))["tags"]["endpoint"] for line in lines]
    assert named == ["WSDL"] * 4 + ["ListContacts"]  # http://www.w3.org/2001/xml.xsd comes with burler


def test_long_texts_and_deep_answers(service):
    """11 MB in one text are read; a thousand elements inside each other are an error, and no crash."""
    long = base64.b64encode(b"x" * 11 * 2**20).decode()
    service.pages["/soap"] = page([1]).replace(b"<c:CreatedBy>", f"<c:Photo>{long}</c:Photo><c:CreatedBy>".encode())
    soap = client(service)
    assert len(soap.rows("ListContacts", rows=ROWS)[0]["Photo"]) == 11 * 2**20
    for depth in (1500, 100_000):
        service.pages["/soap"] = page([1]).replace(b"<c:Id>", b"<c:X>" * depth + b"</c:X>" * depth + b"<c:Id>")
        with pytest.raises((SoapError, HttpError)):
            soap.rows("ListContacts", rows=ROWS)


def test_attachments_of_an_answer(service):
    """MTOM: bytes beside the envelope instead of base64 in it."""
    inner = contact(1).replace(
        "<c:CreatedBy>",
        '<c:Photo><x:Include xmlns:x="http://www.w3.org/2004/08/xop/include" href="cid:p@x"/></c:Photo><c:CreatedBy>',
    )
    body = page([]).replace(b"<Contacts>", b"<Contacts>" + inner.encode())
    parts = (
        b"--b\r\nContent-Type: application/xop+xml\r\nContent-ID: <r@x>\r\n\r\n" + body + b"\r\n--b\r\n"
        b"Content-Type: image/png\r\nContent-ID: <p@x>\r\nContent-Transfer-Encoding: binary\r\n\r\n\x00\xffpng\r\n--b--"
    )
    service.pages["/soap"] = (200, {"Content-Type": 'multipart/related; boundary="b"'}, parts)
    assert client(service).rows("ListContacts", rows=ROWS)[0]["Photo"] == b"\x00\xffpng"
    service.pages["/soap"] = (200, {"Content-Type": "multipart/related"}, parts)
    with pytest.raises(HttpError, match="broken parts"):
        client(service).rows("ListContacts", rows=ROWS)


# ---- a tap --------------------------------------------------------------------------------------------------------


def test_a_tap_over_soap(service):
    """Schema and rows from the same WSDL; a bad value ends the stream with an error that names it."""
    service.pages["/soap"] = lambda path, body: page([1, 2], 2) if page_asked(body) == 1 else page([3])
    tap = burler.tap("tap-crm", config_spec={"url": "https://example.com/crm.wsdl"})
    tap.schema("contacts", method=burler.wsdl(url=lambda config: config["url"], operation="ListContacts", rows=ROWS))

    @tap.client
    def make(config):
        return burler.soap.Client(config["url"], http=fast(service), safe=["ListContacts"])

    @tap.sync("contacts", key_properties="Id", replication_key="Modified")
    def contacts(client):
        yield from client.pages("ListContacts", rows=ROWS, page_param="Page", next_page="ListContactsResult.NextPage")

    out = run_tap(tap, {"url": service.wsdl})
    assert not out.result.errors
    assert [row["Id"] for row in out.records("contacts")] == [1, 2, 3]
    assert out.states[-1]["bookmarks"]["contacts"]["Modified"] == "2024-01-02T03:04:05Z"
    service.pages["/soap"] = page([1]).replace(b"<c:Id>1", b"<c:Id>one")
    out = run_tap(tap, {"url": service.wsdl})
    assert "field 'Id' is a string" in str(out.result.errors["contacts"])


def test_zones_of_date_times_that_name_none(service):
    service.pages["/soap"] = page([1]).replace(b"03:04:05Z", b"03:04:05.1234567")
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    for zone, text in ((None, ""), (datetime.UTC, "+00:00"), (berlin, "+01:00")):
        found = client(service, zone=zone).rows("ListContacts", rows=ROWS)[0]["Modified"]
        assert found == f"2024-01-02T03:04:05.1234567{text}"


def test_an_answer_that_says_there_is_more_makes_no_whole_table(service, caplog):
    def run(**options):
        caplog.clear()
        tap = burler.tap("tap-crm")

        @tap.sync("contacts", key_properties="Id", schema={"properties": {"Id": {"type": "integer"}}})
        def contacts():
            for rows in client(service).pages("ListContacts", rows=ROWS, **options):
                yield from ({"Id": row["Id"]} for row in rows)

        return run_tap(tap).types.count("ACTIVATE_VERSION")  # one stands before the first rows of all

    service.pages["/soap"] = lambda path, body: page([1, 2], 7)
    assert run() == 1
    assert "reading ends, and 'NextPage' of the answer says that there are more than 2 rows. Say page_" in caplog.text
    service.pages["/soap"] = lambda path, body: page([1, 2] if page_asked(body) in (None, 1) else [], 7)
    assert run(page_param="Page") == 2
    assert "says that there are more" not in caplog.text
