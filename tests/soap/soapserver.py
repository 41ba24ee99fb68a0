"""A server on 127.0.0.1 that answers with what a test gives it, and remembers every request."""

from __future__ import annotations

from pathlib import Path

from requests.structures import CaseInsensitiveDict

from support.servers import serving

DATA = Path(__file__).parent.parent / "schema" / "data" / "wsdl"
CRM = (DATA / "crm.wsdl").read_text(encoding="utf-8")
TYPES = {f"/parts/{name}": (DATA / "parts" / name).read_bytes() for name in ("types.xsd", "simple.xsd", "money.xsd")}

SOAP_11 = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP_12 = "http://www.w3.org/2003/05/soap-envelope"


def envelope(inside, namespace=SOAP_11):
    return (
        f'<?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="{namespace}" xmlns:c="urn:crm:types" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><s:Body>{inside}</s:Body></s:Envelope>'
    ).encode()


def fault(code, text, detail=""):
    return envelope(
        f"<s:Fault><faultcode>s:{code}</faultcode><faultstring>{text}</faultstring><detail>{detail}</detail></s:Fault>"
    )


def answering(web, schema, kinds):
    """What a client has for an element: ``read("Contact", text)``, of a service that gives one of each type.

    Args:
        web: the server.
        schema: the inside of the service's own schema, whose types are ``t:...``; those of the contacts are ``c:...``.
        kinds: the types, as the schema names them.
    """
    import burler.http
    import burler.soap

    inside, messages, operations, bound = "", "", "", ""
    for kind in kinds:
        name = kind.partition(":")[2]
        inside += f"""<xs:element name="{name}Asked"><xs:complexType/></xs:element><xs:element name="{name}Given">
<xs:complexType><xs:sequence><xs:element name="{name}" type="{kind}" minOccurs="0" nillable="true"/>
<xs:element name="Beside" type="xs:int" minOccurs="0"/></xs:sequence></xs:complexType></xs:element>"""
        for way in ("Asked", "Given"):
            messages += f'<w:message name="{name}{way}"><w:part name="p" element="t:{name}{way}"/></w:message>'
        ways = f'<w:input message="t:{name}Asked"/><w:output message="t:{name}Given"/>'
        operations += f'<w:operation name="{name}">{ways}</w:operation>'
        literal = '<soap:body use="literal"/>'
        ways = f'<soap:operation soapAction="x"/><w:input>{literal}</w:input><w:output>{literal}</w:output>'
        bound += f'<w:operation name="{name}">{ways}</w:operation>'
    web.pages.update(TYPES)
    web.pages["/w"] = f"""<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:c="urn:crm:types"
 xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:t="urn:t" targetNamespace="urn:t"><w:types>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">
<xs:import namespace="urn:crm:types" schemaLocation="parts/types.xsd"/>{schema}{inside}</xs:schema></w:types>{messages}
<w:portType name="P">{operations}</w:portType><w:binding name="B" type="t:P">
<soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>{bound}</w:binding>
<w:service name="S"><w:port name="P" binding="t:B"><soap:address location="{web.url}/read"/></w:port></w:service>
</w:definitions>"""
    client = burler.soap.Client(f"{web.url}/w", http=burler.http.Client(web.url, retries=0))

    def read(name, text):
        web.pages["/read"] = envelope(f'<t:{name}Given xmlns:t="urn:t">{text}</t:{name}Given>')
        return client.call(name)[name]

    return read


class Web:
    """A server.

    ``pages`` maps a path to a body, to (status, headers, body), or to a function of (path, body) that gives one.
    ``seen`` has (method, path, headers, body) of each request. ``open`` counts the connections.
    """

    def __init__(self):
        self.pages = {}
        self.seen = []
        self._running = serving(self._answer)
        self._server = self._running.__enter__()
        self.port, self.url = self._server.port, self._server.url

    @property
    def open(self):
        return self._server.open

    def _answer(self, asked):
        self.seen.append((asked.method, asked.raw, CaseInsensitiveDict(asked.headers), asked.body))
        page = self.pages.get(asked.raw, self.pages.get("*", (404, {}, b"not here")))
        if callable(page):
            page = page(asked.raw, asked.body)
        status, headers, content = page if isinstance(page, tuple) else (200, {"Content-Type": "text/xml"}, page)
        content = content.encode() if isinstance(content, str) else content

        def broken_off(connection):
            connection.send(status, content, headers)
            connection.wfile.flush()
            connection.end()

        return broken_off if "Content-Length" in headers else (status, headers, content)

    @property
    def paths(self):
        return [path for _, path, _, _ in self.seen]

    def stop(self):
        self._running.__exit__(None, None, None)

    def serve_crm(self):
        """The WSDL of the contacts' service, with its address here; gives the WSDL's address."""
        self.pages["/crm.wsdl"] = CRM.replace("http://127.0.0.1:9/soap", f"{self.url}/soap").encode()
        self.pages.update(TYPES)
        return f"{self.url}/crm.wsdl"
